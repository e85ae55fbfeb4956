"""Overview page: live runs, the last day, what needs attention, next runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from rota.core.monitoring.counters import LastDay
from rota.core.monitoring.doctor import (
    JOBS_HINT,
    MESSENGER_HINT,
    OK,
    REAPER_HINT,
    OperatorPause,
    StuckRun,
    Symptoms,
    check_clock,
    held_words,
    many,
    planner_hint,
    queues_hint,
    resume_hint,
    unknown_jobs,
    unserved_queues,
    why_overdue,
)
from rota.values.instants import instant

LATE = 10_000_000
"""Microseconds after its due time from which a run that has not begun is late."""
_SHOWN = 20


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that have not ended."""

    running: int = 0
    cancelling: int = 0
    """Runs that were asked to stop and have not yet."""
    queued: int = 0
    scheduled: int = 0
    waiting: int = 0
    """Runs that wait for external work."""
    oldest_queued_at: datetime | None = None
    """Since when the run that waits longest could be claimed."""
    capped: bool = False
    """True if there are more queued or scheduled runs than were counted."""


class Late(msgspec.Struct, frozen=True):
    """Numbers of what is late."""

    runs: int
    """Runs that are queued more than 10 s after they were due."""
    schedules: int
    """Schedules that are not planned more than 10 s after they were due."""


class WorkerCounts(msgspec.Struct, frozen=True):
    """Numbers of workers and slots."""

    alive: int
    """Workers that send heartbeats."""
    stale: int
    """Workers that are silent for longer than a lease, without a shutdown."""
    slots: int
    """Slots of all workers that are alive."""
    busy: int
    """Slots in use."""


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """Item that needs attention."""

    kind: str
    """What is the matter, for programs."""
    subject: str | None
    since: datetime | None
    text: str
    """What is the matter, for people."""
    hint: str | None = None


class NextRun(msgspec.Struct, frozen=True, kw_only=True):
    """Next plan time of a schedule."""

    schedule: str
    job: str
    at: datetime
    """When it is due."""
    zone: str
    rule: str


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the overview page."""

    at: datetime
    """When it was computed."""
    live: Live
    """Runs that have not ended."""
    late: Late
    last_day: LastDay
    """Runs that ended within the last 24 hours."""
    workers: WorkerCounts
    """Numbers of workers and slots."""
    schedules: dict[str, int]
    """Numbers of schedules by state."""
    attention: Sequence[Attention] = ()
    attention_count: int = 0
    next_fires: Sequence[NextRun] = ()
    """The next plan times of all schedules."""


class Backlog(msgspec.Struct, frozen=True):
    """Claimable runs of a job in a queue; instants in microseconds."""

    queue: str
    job: str
    runs: int
    oldest: int
    late: int


class OpenBreach(msgspec.Struct, frozen=True):
    kind: str
    subject: str
    what: str
    since: int
    message: str


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts from the database and this process. `lingering`: runs whose grace is over, and that have not stopped.

    `offset`: of this host's clock from the database's, in microseconds, as far as it is certain.
    """

    symptoms: Symptoms
    backlog: Sequence[Backlog] = ()
    held: Sequence[OperatorPause] = ()
    lingering: Sequence[StuckRun] = ()
    breaches: Sequence[OpenBreach] = ()
    polls: bool = False
    offset: int = 0


def attention(facts: Facts) -> tuple[list[Attention], int]:
    """Return the first items of each kind, the gravest kind first, and the number of all items."""
    shown: list[Attention] = []
    total = 0
    for rule in (_overdue, _stuck, _lingering, _unserved, _unknown, _unsent, _breached, _paused, _environment):
        items = list(rule(facts))
        total += len(items)
        shown += items[:_SHOWN]
    return shown, total


def backlogs(backlog: Sequence[Backlog], of: str) -> dict[str, tuple[int, int]]:
    """Sum the backlog by `queue` or by `job`: number of runs, and the due time of the oldest."""
    counted: dict[str, tuple[int, int]] = {}
    for row in backlog:
        name = getattr(row, of)
        runs, oldest = counted.get(name, (0, row.oldest))
        counted[name] = runs + row.runs, min(oldest, row.oldest)
    return counted


def _overdue(facts: Facts) -> Iterator[Attention]:
    symptoms = facts.symptoms
    for schedule in symptoms.overdue:
        text = f"schedule {schedule.name} is overdue {why_overdue(schedule, symptoms)}"
        yield _item("schedule_overdue", schedule.name, schedule.next_at, text, planner_hint(symptoms))


def _stuck(facts: Facts) -> Iterator[Attention]:
    for run in facts.symptoms.stuck:
        text = f"the lease of run {run.run_id} on {run.worker_id} has expired without being taken away"
        yield _item("run_stuck", run.run_id, run.expires_at, text, REAPER_HINT)


def _lingering(facts: Facts) -> Iterator[Attention]:
    for run in facts.lingering:
        text = f"run {run.run_id} was asked to stop, and its grace period is over; {run.worker_id} still holds it"
        yield _item("run_lingering", run.run_id, run.expires_at, text, REAPER_HINT)


def _unserved(facts: Facts) -> Iterator[Attention]:
    """Yield queues without a live worker.

    Not at once, since a worker may be about to start. Paused queues have an item of their own.
    """
    paused = {pause.name for pause in facts.held if pause.kind == "queue"}
    backlog = backlogs(facts.backlog, "queue")
    for queue, count in unserved_queues(facts.symptoms).items():
        since = backlog[queue][1]
        if queue not in paused and facts.symptoms.now - since > LATE:
            text = f"no live worker takes from queue {queue}, where {many(count, 'run waits', 'runs wait')}"
            yield _item("queue_unserved", queue, since, text, queues_hint([queue]))


def _unknown(facts: Facts) -> Iterator[Attention]:
    paused = {pause.name for pause in facts.held if pause.kind == "job"}
    backlog = backlogs(facts.backlog, "job")
    for job, count in unknown_jobs(facts.symptoms).items():
        since = backlog[job][1]
        if job not in paused and facts.symptoms.now - since > LATE:
            text = f"no live worker knows job {job}, of which {many(count, 'run waits', 'runs wait')}"
            yield _item("job_unknown", job, since, text, JOBS_HINT)


def _unsent(facts: Facts) -> Iterator[Attention]:
    if count := facts.symptoms.signals:
        text = f"{many(count, 'signal waits', 'signals wait')} for longer than a minute: notifications are not sent"
        yield _item("signals_untold", None, None, text, MESSENGER_HINT)


def _breached(facts: Facts) -> Iterator[Attention]:
    for breach in facts.breaches:
        text = f"{breach.kind} {breach.subject}: {breach.message or breach.what}"
        yield _item("expectation_breached", f"{breach.kind}/{breach.subject}", breach.since, text, None)


def _paused(facts: Facts) -> Iterator[Attention]:
    for pause in facts.held:
        count, _ = backlogs(facts.backlog, pause.kind).get(pause.name, (0, 0))
        if count:
            yield _item(f"{pause.kind}_paused", pause.name, pause.since, held_words(pause, count), resume_hint(pause))


def _environment(facts: Facts) -> Iterator[Attention]:
    if facts.polls:
        text = "a transaction pooler blocks LISTEN/NOTIFY: work is found by polling, up to a second later"
        yield _item("polling", None, None, text, "let rota connect to PostgreSQL directly")
    clock = check_clock(facts.offset)
    if clock.level != OK:
        yield _item("clock", None, None, clock.words, clock.hint)


def _item(kind: str, subject: str | None, since: int | None, text: str, hint: str | None) -> Attention:
    at = None if since is None else instant(since)
    return Attention(kind=kind, subject=subject, since=at, text=text, hint=hint)
