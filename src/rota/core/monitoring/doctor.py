"""Checks of an installation's state; each is ok, a warning or a problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rota.core.alerts.expectations import Expected
from rota.core.ledger.explain_run import LiveWorker
from rota.core.ledger.verify import Verification
from rota.values.durations import span
from rota.values.instants import instant

OK, WARNING, PROBLEM = "ok", "warning", "problem"
_MOST_OFFSET = 1_000_000
_SHOWN = 5
REAPER_HINT = "a server or worker does that: check that one is alive"
JOBS_HINT = "start a worker whose app declares them, or cancel their runs"
MESSENGER_HINT = "the messenger of a server or worker sends them: check that one is alive, and its log"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a check: its subject, level, explanation, and what to do about it."""

    name: str
    level: str
    words: str
    hint: str | None = None
    facts: dict[str, Any] = {}


class OverdueSchedule(msgspec.Struct, frozen=True):
    name: str
    next_at: int
    trouble: str | None
    provider: str | None


class StuckRun(msgspec.Struct, frozen=True):
    run_id: str
    worker_id: str
    expires_at: int


class OperatorPause(msgspec.Struct, frozen=True):
    """Pause of a job or a queue by an operator."""

    kind: str
    name: str
    since: int
    by: str | None
    reason: str | None


class Symptoms(msgspec.Struct, frozen=True, kw_only=True):
    """State of an installation at `now` of the database's clock; `queues` and `jobs`: number of claimable runs of each.

    `begun_and_skipped`: runs with attempts in the state `skipped`, which means that they never began.
    """

    now: int
    overdue: Sequence[OverdueSchedule] = ()
    stuck: Sequence[StuckRun] = ()
    queues: dict[str, int] = {}
    jobs: dict[str, int] = {}
    held: Sequence[OperatorPause] = ()
    workers: Sequence[LiveWorker] = ()
    orphaned_waits: int = 0
    orphaned_limits: int = 0
    signals: int = 0
    begun_and_skipped: Sequence[str] = ()


def check_symptoms(found: Symptoms) -> Iterator[Check]:
    yield _overdue(found)
    yield _stuck(found)
    yield _queues(found)
    yield _jobs(found)
    yield _paused(found)
    yield _signals(found)
    yield _orphans("waits", found.orphaned_waits, "runs that wait for runs which have ended or are gone")
    yield _orphans("limits", found.orphaned_limits, "slots of limits whose runs have ended or are gone")
    yield _skipped(found)


def _overdue(found: Symptoms) -> Check:
    if not found.overdue:
        return Check(name="schedules", level=OK, words="no schedule is overdue")
    told = [f"{one.name} {why_overdue(one, found)}" for one in found.overdue[:_SHOWN]]
    words = f"{many(len(found.overdue), 'schedule is', 'schedules are')} overdue: " + "; ".join(told)
    facts = {"schedules": [one.name for one in found.overdue]}
    return Check(name="schedules", level=PROBLEM, words=words, hint=planner_hint(found), facts=facts)


def why_overdue(one: OverdueSchedule, found: Symptoms) -> str:
    """Return for how long a schedule is overdue, and why."""
    late = span(instant(found.now) - instant(one.next_at))
    why = one.trouble or (
        f"no process with scope provider {one.provider!r} plans" if one.provider else "no process plans it"
    )
    return f"for {late} ({why})"


def planner_hint(found: Symptoms) -> str:
    if not found.workers:
        return "no worker is alive: start `rota server`, `rota dev` or `rota worker`"
    return "register the provider in a running process, or read its log"


def _stuck(found: Symptoms) -> Check:
    if not found.stuck:
        return Check(name="leases", level=OK, words="no lease is stuck")
    told = [f"{one.run_id} on {one.worker_id}" for one in found.stuck[:_SHOWN]]
    words = f"{many(len(found.stuck), 'lease has', 'leases have')} expired without being taken away: " + ", ".join(told)
    facts = {"runs": [one.run_id for one in found.stuck]}
    return Check(name="leases", level=PROBLEM, words=words, hint=REAPER_HINT, facts=facts)


def unserved_queues(found: Symptoms) -> dict[str, int]:
    """Return the queues with runs that no live worker takes from."""
    served = {queue for worker in found.workers if worker.claims for queue in worker.queues}
    return {queue: count for queue, count in sorted(found.queues.items()) if queue not in served}


def unknown_jobs(found: Symptoms) -> dict[str, int]:
    """Return the jobs with runs that no live worker knows."""
    known = {job for worker in found.workers for job in worker.jobs}
    return {job: count for job, count in sorted(found.jobs.items()) if job not in known}


def queues_hint(queues: Iterable[str]) -> str:
    return f"rota worker MODULE:APP --queues {','.join(queues)}"


def _queues(found: Symptoms) -> Check:
    left = unserved_queues(found)
    if not left:
        words = f"every queue with runs has a live worker ({many(len(found.workers), 'worker', 'workers')})"
        words = words if found.workers else "no run waits for a worker"
        return Check(name="queues", level=OK, words=words)
    told = ", ".join(f"{queue} ({many(count, 'run', 'runs')})" for queue, count in left.items())
    words = f"no live worker takes from: {told}"
    return Check(name="queues", level=PROBLEM, words=words, hint=queues_hint(left), facts=left)


def _jobs(found: Symptoms) -> Check:
    left = unknown_jobs(found)
    if not left:
        return Check(name="jobs", level=OK, words="every job with runs is known to a live worker")
    told = ", ".join(f"{job} ({many(count, 'run', 'runs')})" for job, count in left.items())
    return Check(name="jobs", level=PROBLEM, words=f"no live worker knows: {told}", hint=JOBS_HINT, facts=left)


def held_words(one: OperatorPause, count: int) -> str:
    by = f" by {one.by}" if one.by else ""
    why = f" ({one.reason})" if one.reason else ""
    return f"{one.kind} {one.name} is paused{by}{why}, and {many(count, 'run waits', 'runs wait')}"


def resume_hint(one: OperatorPause) -> str:
    return f"rota {one.kind} resume {one.name}"


def _paused(found: Symptoms) -> Check:
    """Warn of pauses that hold runs back: they are deliberate, but may be forgotten."""
    waiting = {"queue": found.queues, "job": found.jobs}
    told = [(one, count) for one in found.held if (count := waiting.get(one.kind, {}).get(one.name, 0))]
    if not told:
        return Check(name="paused", level=OK, words="no run waits because its job or queue is paused")
    words = "; ".join(held_words(one, count) for one, count in told[:_SHOWN])
    hint = "; ".join(resume_hint(one) for one, _ in told[:_SHOWN])
    facts = {"paused": [[one.kind, one.name] for one, _ in told]}
    return Check(name="paused", level=WARNING, words=words, hint=hint, facts=facts)


def _signals(found: Symptoms) -> Check:
    if not found.signals:
        return Check(name="signals", level=OK, words="no signal waits to be sent")
    words = (
        f"{many(found.signals, 'signal waits', 'signals wait')} for longer than a minute: notifications are not sent"
    )
    return Check(name="signals", level=PROBLEM, words=words, hint=MESSENGER_HINT, facts={"count": found.signals})


def _orphans(name: str, count: int, what: str) -> Check:
    if not count:
        return Check(name=name, level=OK, words=f"no {what}")
    hint = "the reaper of a server or worker cleans them up within seconds"
    return Check(name=name, level=WARNING, words=f"{count} {what}", hint=hint, facts={"count": count})


def _skipped(found: Symptoms) -> Check:
    """Warn of runs that an older version ended with a wrong state; they stay as they are."""
    runs = found.begun_and_skipped
    if not runs:
        return Check(name="skipped", level=OK, words="no run with attempts is marked as skipped")
    told = ", ".join(runs[:_SHOWN])
    runs_have = many(len(runs), "run is marked as skipped, but has", "runs are marked as skipped, but have")
    words = f"{runs_have} attempts: {told}"
    hint = "an older version of rota marked superseded runs so; they disappear when they are pruned"
    return Check(name="skipped", level=WARNING, words=words, hint=hint, facts={"runs": list(runs)})


def check_clock(offset: int) -> Check:
    """Check the `offset` (µs) of the host's clock from the database's."""
    told = f"this host's clock is {span(abs(instant(offset) - instant(0)))} {'ahead of' if offset > 0 else 'behind'} "
    facts = {"offset_ms": offset // 1_000}
    if abs(offset) <= _MOST_OFFSET:
        return Check(name="clock", level=OK, words=f"{told}the database's", facts=facts)
    hint = "only timestamps in logs are affected: set up NTP"
    return Check(name="clock", level=WARNING, words=f"{told}the database's", hint=hint, facts=facts)


def check_expectations(found: Sequence[Expected]) -> Check:
    """Check expectations. A breach is only a warning: rota itself may be well."""
    told = [(one, breach) for one in found for breach in one.breaches]
    if not told:
        words = f"all expectations of {many(len(found), 'job or schedule', 'jobs and schedules')} are met"
        return Check(name="expected", level=OK, words=words if found else "there are no expectations")
    said = "; ".join(f"{one.kind} {one.subject}: {breach.message}" for one, breach in told[:_SHOWN])
    words = f"{many(len(told), 'expectation is', 'expectations are')} breached: {said}"
    facts = {"breached": [[one.kind, one.subject, breach.what] for one, breach in told]}
    return Check(
        name="expected", level=WARNING, words=words, hint="to list them: rota expectation ls --breached", facts=facts
    )


def check_ledgers(verified: Iterable[Verification], left_out: int) -> Iterator[Check]:
    count, plan_times = 0, 0
    for one in verified:
        count += 1
        plan_times += one.plan_times
        for finding in one.findings[:_SHOWN]:
            yield Check(
                name="ledger",
                level=PROBLEM,
                words=f"schedule {one.schedule!r}: {finding.words}",
                facts=msgspec.to_builtins(finding),
            )
    left = f"; {left_out} more were not checked" if left_out else ""
    words = f"{plan_times} plan times of {many(count, 'schedule', 'schedules')} were verified{left}"
    hint = "to check all of them: rota doctor --all" if left_out else None
    yield Check(name="ledger", level=WARNING if left_out else OK, words=words, hint=hint)


def many(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"
