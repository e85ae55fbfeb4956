"""Metrics of the loops of one process, and gauges read from the database on request; docs/metrics.md lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rota.core.monitoring.attention import KINDS as ATTENTION_KINDS
from rota.core.monitoring.counters import Counted, Gauges
from rota.core.monitoring.statistics import bucket_bounds
from rota.core.states import FINAL_STATES, Outcome, RunState
from rota.engine.observability.job_counters import REPORTED, ByJob, PlannedByJob
from rota.observability.metrics import Metrics
from rota.version import __version__

if TYPE_CHECKING:
    from rota.core.planning.tally import Tally
    from rota.core.runs.claim import Claim
    from rota.core.runs.outcome import EndedRun, Report
    from rota.store.runs.report import Reaped, Reported

_MICRO = 1e-6
_SHORT = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_LONG = (0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)
_FINER = bucket_bounds(100, 10**11)
_LOOPS = ("planner", "promoter", "conductor", "messenger", "reaper", "janitor", "watchman", "recorder")
_RETRIED = (Outcome.FAILED, Outcome.TIMED_OUT)
_SUCCEEDED = Outcome.SUCCEEDED  # an enum lookup costs as much as everything else that counting a run does


class Meters:
    """Metrics of one app. Where work comes in batches, batches are counted, not runs."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._offset: float | None = None
        self._add_runs(self.metrics)
        self._add_leases(self.metrics)
        self._add_planning(self.metrics)
        self._add_loops(self.metrics)
        self._add_gauges(self.metrics)

    def _add_runs(self, metrics: Metrics) -> None:
        self.of = ByJob(metrics)
        durations = metrics.histogram(
            "rota_run_duration_seconds",
            "Duration of handlers, by the outcome of the attempt.",
            "outcome",
            bounds=_SHORT,
            unit=_MICRO,
            finer=_FINER,
        )
        self._durations = {outcome: durations(outcome.value) for outcome in REPORTED}
        self.lag = metrics.histogram(
            "rota_run_lag_seconds",
            "Time from when a run was due until this worker claimed it.",
            bounds=_SHORT,
            unit=_MICRO,
            finer=_FINER,
        )()

    def _add_leases(self, metrics: Metrics) -> None:
        claims = metrics.counter("rota_claims_total", "Claims of this worker, by their result.", "result")
        self._won, self._empty, self.claims_failed = claims("won"), claims("empty"), claims("failed")
        self.claimed_runs = metrics.counter("rota_claimed_runs_total", "Runs that this worker has claimed.")()
        self.refused = metrics.counter("rota_reports_refused_total", "Reports refused because their fence was stale.")()
        beats = metrics.counter("rota_heartbeats_total", "Renewals of this worker's leases.", "result")
        self.beats_ok, self.beats_failed = beats("ok"), beats("failed")
        self.promoted = metrics.counter("rota_runs_promoted_total", "Runs that became due.")()
        self.pruned = metrics.counter("rota_runs_pruned_total", "Finished runs deleted by retention.")()

    def _add_planning(self, metrics: Metrics) -> None:
        self.planned_of = PlannedByJob(metrics)
        self.lateness = metrics.histogram(
            "rota_plan_lateness_seconds",
            "Time from when a plan time was eligible until its run was planned.",
            bounds=_LONG,
            unit=_MICRO,
        )()
        self.set_aside = metrics.counter("rota_schedules_set_aside_total", "Schedules that could not be planned.")()
        self.provider_errors = metrics.counter("rota_scope_provider_errors_total", "Failures of scope providers.")()

    def _add_loops(self, metrics: Metrics) -> None:
        self.loop_errors = metrics.counter("rota_loop_errors_total", "Steps of a loop that failed.", "loop")
        for loop in _LOOPS:
            self.loop_errors(loop)
        self.last_step = metrics.gauge(
            "rota_loop_last_step_timestamp_seconds", "Unix time of a loop's last successful step.", "loop"
        )

    def _add_gauges(self, metrics: Metrics) -> None:
        metrics.gauge("rota_build_info", "Version of rota.", "version")(__version__).set(1)
        self._up = metrics.gauge(
            "rota_database_up", "1 if the database answered; otherwise the gauges below are missing."
        )
        self._depth = metrics.gauge("rota_queue_runs", "Live runs.", "queue", "state")
        self._age = metrics.gauge(
            "rota_queue_oldest_age_seconds",
            "Time since the oldest queued run became due, or the oldest running one was claimed.",
            "queue",
            "state",
        )
        self._workers = metrics.gauge(
            "rota_workers",
            "Workers by whether they sent a heartbeat within a lease; `server`: it only sends notifications.",
            "state",
        )
        self._slots = metrics.gauge("rota_worker_slots", "Runs that live workers can execute at once.")
        self._schedules = metrics.gauge("rota_schedules", "Schedules, by their state.", "state")
        self._overdue = metrics.gauge("rota_schedules_overdue", "Schedules due for longer than 10 s and not planned.")
        self._attention = metrics.gauge("rota_attention", "Items that need attention and are not snoozed.", "kind")
        self._breached = metrics.gauge(
            "rota_expectations_breached", "1 for each breached expectation.", "kind", "subject", "what"
        )

    def learn_time(self, wall: int, steady: float) -> None:
        """Relate the database's clock (`wall`, microseconds) to this host's monotonic clock, to measure lag with."""
        self._offset = wall - steady * 1_000_000

    def claimed(self, claims: Sequence[Claim], steady: float) -> None:
        if not claims:
            self._empty.add()
            return
        self._won.add()
        self.claimed_runs.add(len(claims))
        if self._offset is not None:
            self.lag.observe_since([claim.run_at for claim in claims], int(self._offset + steady * 1_000_000))

    def reported(self, batch: Sequence[Report], answer: Reported) -> None:
        """Count a batch of reports. Most runs succeed, so these are counted by number alone."""
        done = [report for report in batch if report.outcome is _SUCCEEDED]
        self._durations[_SUCCEEDED].observe_all([report.busy for report in done])
        succeeded = Counter([(report.job, report.queue) for report in done])
        if answer.refused:
            self.refused.add(len(answer.refused))
            succeeded.subtract((report.job, report.queue) for report in answer.refused if report.outcome is _SUCCEEDED)
        # Parts of pipelines: their runs go on.
        advanced = Counter([(job, queue) for outcome, _, job, queue in answer.settled if outcome is _SUCCEEDED])
        for subject, count in succeeded.items():
            counters = self.of[subject]
            counters.attempts[_SUCCEEDED].add(count)
            counters.runs[RunState.SUCCEEDED].add(count - advanced[subject])
        if len(done) < len(batch) or answer.settled:
            self._count_unsuccessful(batch, answer)
        self.ended(answer.in_vain)

    def _count_unsuccessful(self, batch: Sequence[Report], answer: Reported) -> None:
        for report in batch:
            if report.wait is not None:
                self.of[report.job, report.queue].handed_over.add()
            elif report.outcome is not _SUCCEEDED and report.began and report.outcome in self._durations:
                self._durations[report.outcome].observe(report.busy)
        for outcome, state, job, queue in answer.settled:
            counters = self.of[job, queue]
            if outcome is not _SUCCEEDED and outcome in counters.attempts:
                counters.attempts[outcome].add()
            if state is not None:
                counters.runs[state].add()
            elif outcome in _RETRIED:
                counters.retries.add()
            if outcome is Outcome.TIMED_OUT:
                counters.timeouts.add()

    def reaped(self, reaped: Reaped) -> None:
        for _, state, job, queue in reaped.settled:
            counters = self.of[job, queue]
            if state is None:
                counters.requeued.add()
            else:
                counters.given_up.add()
                counters.runs[state].add()
        self.ended(reaped.in_vain)

    def ended(self, runs: Iterable[EndedRun]) -> None:
        """Count runs that ended otherwise than by a report."""
        for state, job, queue in runs:
            self.of[job, queue].runs[state].add()

    def planned(self, tally: Tally) -> None:
        for subject, count in tally.ran.items():
            self.planned_of[subject].ran.add(count)
        for subject, count in tally.coalesced.items():
            self.planned_of[subject].coalesced.add(count)
        self.lateness.observe_all(tally.lateness)
        for (subject, kind), count in tally.skipped.items():
            self.planned_of[subject].skip(kind, count)
            self.of[subject].runs[RunState.SKIPPED].add(count)
        for subject, count in tally.retried.items():
            self.of[subject].retries.add(count)
        for (subject, kind), count in tally.missed.items():
            self.planned_of[subject].missed[kind].add(count)

    def total(self, state: RunState) -> int:
        """Return how many runs ended in this state through this process."""
        return int(sum([counters.runs[state].value for counters in self.of.all()]))

    def counted(self) -> Counted:
        """Return the totals of runs since the start, from which charts are made."""
        durations: dict[int, int] = {}
        for histogram in self._durations.values():
            for low, count in histogram.counted().items():
                durations[low] = durations.get(low, 0) + count
        runs = {state.value: count for state in sorted(FINAL_STATES) if (count := self.total(state))}
        return Counted(runs=runs, durations=durations, lag=self.lag.counted())

    def text(self, levels: Gauges | None) -> str:
        """Return all metrics as text. `levels` is None if the database did not answer."""
        for family in (
            self._depth,
            self._age,
            self._workers,
            self._slots,
            self._schedules,
            self._overdue,
            self._breached,
            self._attention,
        ):
            family.clear()
        self._up().set(0 if levels is None else 1)
        if levels is not None:
            self._show(levels)
        return self.metrics.text()

    def _show(self, levels: Gauges) -> None:
        for queue in levels.queues:
            self._depth(queue.name, queue.state).set(queue.runs)
            if queue.oldest is not None:
                self._age(queue.name, queue.state).set(max(0, queue.oldest) * _MICRO)
        self._workers("alive").set(levels.workers_alive)
        self._workers("silent").set(levels.workers_silent)
        self._workers("server").set(levels.servers)
        self._slots().set(levels.slots)
        for state, count in levels.schedules.items():
            self._schedules(state).set(count)
        self._overdue().set(levels.overdue)
        for kind in ATTENTION_KINDS:
            self._attention(kind).set(levels.attention.get(kind, 0))
        for kind, subject, expectation in levels.breached:
            self._breached(kind, subject, expectation).set(1)
