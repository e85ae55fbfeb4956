"""Counters with the labels `job` and `queue`, found by both in one lookup.

A job's counters are made when it is first seen, each at zero: a series that began with its first failure would have no
increase for Prometheus. Jobs beyond `MOST_JOBS` are counted together, as `other`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from rota.core.planning.tally import MISSED, SKIPPED, Subject
from rota.core.states import FINAL_STATES, Outcome
from rota.observability.metrics import OTHER, Counter, Family, Metrics

MOST_JOBS = 100
"""Maximum pairs of job and queue that are counted separately."""
REPORTED: Sequence[Outcome] = [outcome for outcome in Outcome if outcome is not Outcome.LOST]
_BY = ("job", "queue")


class _Made(Protocol):
    def __init__(self, families: dict[str, Family[Counter]], subject: Subject) -> None: ...


C = TypeVar("C", bound=_Made)


class RunCounters:
    """Counters of the runs of one job in one queue."""

    __slots__ = (
        "attempts", "cancels", "enqueued", "given_up", "handed_over", "lost", "requeued", "retries", "runs", "timeouts",
    )  # fmt: skip

    def __init__(self, families: dict[str, Family[Counter]], subject: Subject) -> None:
        self.enqueued = families["rota_runs_enqueued_total"](*subject)
        runs, attempts = families["rota_runs_total"], families["rota_attempts_total"]
        self.runs = {state: runs(*subject, state.value) for state in sorted(FINAL_STATES)}
        self.attempts = {outcome: attempts(*subject, outcome.value) for outcome in REPORTED}
        self.retries = families["rota_task_failure_retry_total"](*subject)
        self.handed_over = families["rota_handed_over_total"](*subject)
        self.timeouts = families["rota_task_timeout_total"](*subject)
        self.cancels = families["rota_cancel_requests_total"](*subject)
        self.lost = families["rota_leases_lost_total"](*subject)
        reaped = families["rota_leases_reaped_total"]
        self.requeued, self.given_up = reaped(*subject, "queued"), reaped(*subject, "ended")


class PlanCounters:
    """Counters of the plan times whose runs are of one job in one queue."""

    __slots__ = ("_full", "_overlaps", "_skipped", "coalesced", "missed", "ran")

    def __init__(self, families: dict[str, Family[Counter]], subject: Subject) -> None:
        decided = families["rota_plan_times_total"]
        self.ran, self.coalesced = decided(*subject, "ran", ""), decided(*subject, "coalesced", "")
        self._skipped = {kind: decided(*subject, "skipped", kind) for kind in SKIPPED}
        self.missed = {kind: decided(*subject, "missed", kind) for kind in (*MISSED, "other")}
        self._overlaps = families["rota_task_overlap_skipped_total"](*subject)
        self._full = families["rota_concurrency_skipped_total"](*subject)

    def skip(self, kind: str, count: int) -> None:
        self._skipped[kind].add(count)
        if kind == "overlap":
            self._overlaps.add(count)
        elif kind == "limit":
            self._full.add(count)


class _Counters(dict[Subject, C], Generic[C]):
    """Counters by job and queue. Only a pair that is not known yet takes more than the lookup of a dictionary."""

    def __init__(self, make: type[C], families: Iterable[Family[Counter]]) -> None:
        super().__init__()
        self._make = make
        self._families = {family.name: family for family in families}
        self._other: C | None = None

    def __missing__(self, subject: Subject) -> C:
        if len(self) < MOST_JOBS and subject != (OTHER, OTHER):
            return self.setdefault(subject, self._make(self._families, subject))
        if self._other is None:
            self._other = self._make(self._families, (OTHER, OTHER))
        return self._other

    def all(self) -> list[C]:
        return [*self.values(), *([] if self._other is None else [self._other])]


class ByJob(_Counters[RunCounters]):
    def __init__(self, metrics: Metrics) -> None:
        families = [
            metrics.counter(name, about, *_BY, *labels, most=None)
            for name, about, *labels in (
                ("rota_runs_enqueued_total", "Runs that were enqueued through this process."),
                ("rota_runs_total", "Runs whose end this process wrote, by their final state.", "status"),
                ("rota_attempts_total", "Attempts of this worker, by their outcome.", "outcome"),
                (
                    "rota_task_failure_retry_total",
                    "Failures and timeouts that are retried, by a job or by failure=retry.",
                ),
                ("rota_handed_over_total", "Runs handed over to an external party."),
                ("rota_task_timeout_total", "Attempts that were stopped by their timeout."),
                ("rota_cancel_requests_total", "Cancel requests made through this process."),
                ("rota_leases_lost_total", "Leases that this worker lost while it held a run."),
                ("rota_leases_reaped_total", "Expired leases (stale locks) reclaimed.", "then"),
            )
        ]
        super().__init__(RunCounters, families)


class PlannedByJob(_Counters[PlanCounters]):
    def __init__(self, metrics: Metrics) -> None:
        families = [
            metrics.counter(name, about, *_BY, *labels, most=None)
            for name, about, *labels in (
                ("rota_plan_times_total", "Plan times decided by this planner, by outcome.", "outcome", "reason"),
                ("rota_task_overlap_skipped_total", "Plan times skipped by overlap policies."),
                ("rota_concurrency_skipped_total", "Plan times skipped because a limit was full."),
            )
        ]
        super().__init__(PlanCounters, families)
