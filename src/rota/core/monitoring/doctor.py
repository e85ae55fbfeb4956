"""Checks of an installation's state; each is ok, a warning or a problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rota.core.alerts.expectations import Expected
from rota.core.ledger.explain_run import LiveWorker
from rota.core.ledger.verify import Verification
from rota.core.limits.live import LiveLimit
from rota.core.monitoring.attention import Attention
from rota.values.durations import span
from rota.values.instants import instant

KIND = "each scope of kind"
"""Kind of a pause that is about all scopes of a kind."""
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
    """Pause of a job, a queue, a scope or a kind of scopes by an operator. Older programs did not note when they paused
    a scope.
    """

    kind: str
    name: str
    since: int | None
    by: str | None
    reason: str | None


class OperatorLimit(msgspec.Struct, frozen=True):
    """Live limit of a job or a queue, and how many runs wait under it."""

    kind: str
    name: str
    limit: LiveLimit
    waiting: int


class Symptoms(msgspec.Struct, frozen=True, kw_only=True):
    """State of an installation at `now` of the database's clock; `queues` and `jobs`: number of claimable runs of each;
    `scopes`: number of waiting runs of each that is paused.

    `begun_and_skipped`: runs with attempts in the state `skipped`, which means that they never began.
    """

    now: int
    overdue: Sequence[OverdueSchedule] = ()
    stuck: Sequence[StuckRun] = ()
    queues: dict[str, int] = {}
    jobs: dict[str, int] = {}
    scopes: dict[str, int] = {}
    held: Sequence[OperatorPause] = ()
    live_limits: Sequence[OperatorLimit] = ()
    workers: Sequence[LiveWorker] = ()
    orphaned_waits: int = 0
    orphaned_limits: int = 0
    signals: int = 0
    begun_and_skipped: Sequence[str] = ()
    cadences: Sequence[tuple[str, str]] = ()
    """Schedules, each with a warning about the time between its plan times."""


def check_symptoms(symptoms: Symptoms) -> Iterator[Check]:
    yield _overdue(symptoms)
    yield _stuck(symptoms)
    yield _queues(symptoms)
    yield _jobs(symptoms)
    yield _paused(symptoms)
    yield _limited(symptoms)
    yield _signals(symptoms)
    yield _orphans("waits", symptoms.orphaned_waits, "runs that wait for runs which have ended or are gone")
    yield _orphans("limits", symptoms.orphaned_limits, "slots of limits whose runs have ended or are gone")
    yield _skipped(symptoms)
    yield _cadences(symptoms)


def _overdue(symptoms: Symptoms) -> Check:
    if not symptoms.overdue:
        return Check(name="schedules", level=OK, words="no schedule is overdue")
    reasons = [f"{schedule.name} {why_overdue(schedule, symptoms)}" for schedule in symptoms.overdue[:_SHOWN]]
    words = f"{many(len(symptoms.overdue), 'schedule is', 'schedules are')} overdue: " + "; ".join(reasons)
    facts = {"schedules": [schedule.name for schedule in symptoms.overdue]}
    hint = planner_hint(symptoms, symptoms.overdue)
    return Check(name="schedules", level=PROBLEM, words=words, hint=hint, facts=facts)


def why_overdue(schedule: OverdueSchedule, symptoms: Symptoms) -> str:
    """Return for how long a schedule is overdue, and why."""
    late = span(instant(symptoms.now) - instant(schedule.next_at))
    why = schedule.trouble or (
        f"no process with scope provider {schedule.provider!r} plans" if schedule.provider else "no process plans it"
    )
    return f"for {late} ({why})"


def planner_hint(symptoms: Symptoms, overdue: Sequence[OverdueSchedule]) -> str:
    """Return what helps: a process that died within the last seconds still counts as alive."""
    if not symptoms.workers:
        return "no worker is alive: start `rota server`, `rota dev` or `rota worker`"
    if any(schedule.provider and not schedule.trouble for schedule in overdue):
        return "register the provider in a running process, or read its log"
    return "a server or worker plans: check that one is alive, and read its log"


def _stuck(symptoms: Symptoms) -> Check:
    if not symptoms.stuck:
        return Check(name="leases", level=OK, words="no lease is stuck")
    runs = [f"{run.run_id} on {run.worker_id}" for run in symptoms.stuck[:_SHOWN]]
    leases = many(len(symptoms.stuck), "lease has", "leases have")
    words = f"{leases} expired without being taken away: " + ", ".join(runs)
    facts = {"runs": [run.run_id for run in symptoms.stuck]}
    return Check(name="leases", level=PROBLEM, words=words, hint=REAPER_HINT, facts=facts)


def unserved_queues(symptoms: Symptoms) -> dict[str, int]:
    """Return the queues with runs that no live worker takes from."""
    served = {queue for worker in symptoms.workers if worker.claims for queue in worker.queues}
    return {queue: count for queue, count in sorted(symptoms.queues.items()) if queue not in served}


def unknown_jobs(symptoms: Symptoms) -> dict[str, int]:
    """Return the jobs with runs that no live worker knows."""
    known = {job for worker in symptoms.workers for job in worker.jobs}
    return {job: count for job, count in sorted(symptoms.jobs.items()) if job not in known}


def queues_hint(queues: Iterable[str]) -> str:
    return f"rota worker MODULE:APP --queues {','.join(queues)}"


def _queues(symptoms: Symptoms) -> Check:
    unserved = unserved_queues(symptoms)
    if not unserved:
        words = f"every queue with runs has a live worker ({many(len(symptoms.workers), 'worker', 'workers')})"
        words = words if symptoms.workers else "no run waits for a worker"
        return Check(name="queues", level=OK, words=words)
    names = ", ".join(f"{queue} ({many(count, 'run', 'runs')})" for queue, count in unserved.items())
    words = f"no live worker takes from: {names}"
    return Check(name="queues", level=PROBLEM, words=words, hint=queues_hint(unserved), facts=unserved)


def _jobs(symptoms: Symptoms) -> Check:
    unknown = unknown_jobs(symptoms)
    if not unknown:
        return Check(name="jobs", level=OK, words="every job with runs is known to a live worker")
    names = ", ".join(f"{job} ({many(count, 'run', 'runs')})" for job, count in unknown.items())
    return Check(name="jobs", level=PROBLEM, words=f"no live worker knows: {names}", hint=JOBS_HINT, facts=unknown)


def held_words(pause: OperatorPause, count: int) -> str:
    by = f" by {pause.by}" if pause.by else ""
    why = f" ({pause.reason})" if pause.reason else ""
    return f"{pause.kind} {pause.name} is paused{by}{why}, and {many(count, 'run waits', 'runs wait')}"


def resume_hint(pause: OperatorPause) -> str:
    return f"rota quota delete {pause.name}" if pause.kind == KIND else f"rota {pause.kind} resume {pause.name}"


def _paused(symptoms: Symptoms) -> Check:
    """Warn of pauses that hold runs back: they are deliberate, but may be forgotten."""
    waiting = {"queue": symptoms.queues, "job": symptoms.jobs, "scope": symptoms.scopes, KIND: symptoms.scopes}
    pauses = [(pause, count) for pause in symptoms.held if (count := waiting.get(pause.kind, {}).get(pause.name, 0))]
    if not pauses:
        return Check(name="paused", level=OK, words="no run waits because its job, queue or scope is paused")
    words = "; ".join(held_words(pause, count) for pause, count in pauses[:_SHOWN])
    hint = "; ".join(resume_hint(pause) for pause, _ in pauses[:_SHOWN])
    facts = {"paused": [[pause.kind, pause.name] for pause, _ in pauses]}
    return Check(name="paused", level=WARNING, words=words, hint=hint, facts=facts)


def _limited(symptoms: Symptoms) -> Check:
    """Warn of live limits under which runs wait: they are deliberate, but may be forgotten."""
    limits = [limit for limit in symptoms.live_limits if limit.waiting]
    if not limits:
        return Check(name="live_limits", level=OK, words="no run waits under a live limit")
    words = "; ".join(_limit_words(limit, symptoms.now) for limit in limits[:_SHOWN])
    hint = "; ".join(f"rota {limit.kind} limit {limit.name} --clear" for limit in limits[:_SHOWN])
    facts = {"limited": [[limit.kind, limit.name] for limit in limits]}
    return Check(name="live_limits", level=WARNING, words=words, hint=hint, facts=facts)


def _limit_words(held: OperatorLimit, now: int) -> str:
    limit = held.limit
    by = f" by {limit.by}" if limit.by else ""
    since = f" for {span(instant(now) - limit.since)}" if limit.since else ""
    why = f" ({limit.reason})" if limit.reason else ""
    waiting = many(held.waiting, "run waits", "runs wait")
    return f"{held.kind} {held.name} is limited to {limit.words}{by}{since}{why}, and {waiting}"


def _signals(symptoms: Symptoms) -> Check:
    if not symptoms.signals:
        return Check(name="signals", level=OK, words="no signal waits to be sent")
    words = (
        f"{many(symptoms.signals, 'signal waits', 'signals wait')} for longer than a minute: notifications are not sent"
    )
    return Check(name="signals", level=PROBLEM, words=words, hint=MESSENGER_HINT, facts={"count": symptoms.signals})


def _orphans(name: str, count: int, subject: str) -> Check:
    if not count:
        return Check(name=name, level=OK, words=f"no {subject}")
    hint = "the reaper of a server or worker cleans them up within seconds"
    return Check(name=name, level=WARNING, words=f"{count} {subject}", hint=hint, facts={"count": count})


def _cadences(symptoms: Symptoms) -> Check:
    if not symptoms.cadences:
        return Check(name="cadences", level=OK, words="no schedule is faster than its cancels and retries")
    words = "; ".join(f"{name}: {warning}" for name, warning in symptoms.cadences[:_SHOWN])
    facts = {"schedules": sorted({name for name, _ in symptoms.cadences})}
    hint = "choose a shorter cancel_grace or backoff, or a longer interval"
    return Check(name="cadences", level=WARNING, words=words, hint=hint, facts=facts)


def _skipped(symptoms: Symptoms) -> Check:
    """Warn of runs that an older version ended with a wrong state; they stay as they are."""
    runs = symptoms.begun_and_skipped
    if not runs:
        return Check(name="skipped", level=OK, words="no run with attempts is marked as skipped")
    ids = ", ".join(runs[:_SHOWN])
    runs_have = many(len(runs), "run is marked as skipped, but has", "runs are marked as skipped, but have")
    words = f"{runs_have} attempts: {ids}"
    hint = "an older version of rota marked superseded runs so; they disappear when they are pruned"
    return Check(name="skipped", level=WARNING, words=words, hint=hint, facts={"runs": list(runs)})


def check_clock(offset: int) -> Check:
    """Check the `offset` (µs) of the host's clock from the database's."""
    deviation = (
        f"this host's clock is {span(abs(instant(offset) - instant(0)))} {'ahead of' if offset > 0 else 'behind'} "
    )
    facts = {"offset_ms": offset // 1_000}
    if abs(offset) <= _MOST_OFFSET:
        return Check(name="clock", level=OK, words=f"{deviation}the database's", facts=facts)
    hint = "only timestamps in logs are affected: set up NTP"
    return Check(name="clock", level=WARNING, words=f"{deviation}the database's", hint=hint, facts=facts)


def check_expectations(expected: Sequence[Expected]) -> Check:
    """Check expectations. A breach is only a warning: rota itself may be well."""
    breaches = [(expectations, breach) for expectations in expected for breach in expectations.breaches]
    if not breaches:
        words = f"all expectations of {many(len(expected), 'job or schedule', 'jobs and schedules')} are met"
        return Check(name="expected", level=OK, words=words if expected else "there are no expectations")
    messages = "; ".join(
        f"{expectations.kind} {expectations.subject}: {breach.message}" for expectations, breach in breaches[:_SHOWN]
    )
    words = f"{many(len(breaches), 'expectation is', 'expectations are')} breached: {messages}"
    facts = {"breached": [[expectations.kind, expectations.subject, breach.what] for expectations, breach in breaches]}
    return Check(
        name="expected", level=WARNING, words=words, hint="to list them: rota expectation ls --breached", facts=facts
    )


_OF_OTHER_CHECKS = {
    "schedule_overdue", "run_stuck", "queue_unserved", "job_unknown", "queue_paused", "job_paused", "signals_untold",
    "expectation_breached", "database_copied", "epoch_new", "polling", "clock",
}  # fmt: skip
"""Kinds of attention that have a check of their own, which tells more."""


def check_attention(items: Sequence[Attention], snoozed: int) -> Iterator[Check]:
    """Check what needs attention, a check for each kind, as everybody else shows it."""
    kinds: dict[str, list[Attention]] = {}
    for item in items:
        if item.kind not in _OF_OTHER_CHECKS:
            kinds.setdefault(item.kind, []).append(item)
    for kind, found in kinds.items():
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        words = "; ".join(item.text for item in found[:_SHOWN]) + more
        facts = {"subjects": [item.subject for item in found]}
        yield Check(name=kind, level=found[0].severity, words=words, hint=found[0].help, facts=facts)
    if not kinds:
        more = f" ({snoozed} snoozed)" if snoozed else ""
        yield Check(name="attention", level=OK, words=f"nothing else needs attention{more}")


def check_ledgers(verified: Iterable[Verification], left_out: int) -> Iterator[Check]:
    count, plan_times = 0, 0
    for result in verified:
        count += 1
        plan_times += result.plan_times
        for finding in result.findings[:_SHOWN]:
            yield Check(
                name="ledger",
                level=PROBLEM,
                words=f"schedule {result.schedule!r}: {finding.words}",
                facts=msgspec.to_builtins(finding),
            )
    unchecked = f"; {left_out} more were not checked" if left_out else ""
    words = f"{plan_times} plan times of {many(count, 'schedule', 'schedules')} were verified{unchecked}"
    hint = "to check all of them: rota doctor --all" if left_out else None
    yield Check(name="ledger", level=WARNING if left_out else OK, words=words, hint=hint)


def many(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"
