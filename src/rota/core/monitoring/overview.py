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
    """Runs that have not ended. `capped`: there are more queued or scheduled runs than were counted."""

    running: int = 0
    cancelling: int = 0
    queued: int = 0
    scheduled: int = 0
    waiting: int = 0
    oldest_queued_at: datetime | None = None
    capped: bool = False


class Late(msgspec.Struct, frozen=True):
    """Numbers of runs that are queued, and of schedules that are not planned, more than 10 s after they were due."""

    runs: int
    schedules: int


class WorkerCounts(msgspec.Struct, frozen=True):
    """Numbers of workers and slots. `stale`: silent for longer than a lease, no shutdown. `busy`: slots in use."""

    alive: int
    stale: int
    slots: int
    busy: int


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """Item that needs attention: `kind` for programs, `text` for people; `subject` is a name or an id."""

    kind: str
    subject: str | None
    since: datetime | None
    text: str
    hint: str | None = None


class NextRun(msgspec.Struct, frozen=True, kw_only=True):
    schedule: str
    job: str
    at: datetime
    zone: str
    rule: str


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the overview page; `attention` has the first of each kind, `attention_count` counts all."""

    at: datetime
    live: Live
    late: Late
    last_day: LastDay
    workers: WorkerCounts
    schedules: dict[str, int]
    attention: Sequence[Attention] = ()
    attention_count: int = 0
    next_fires: Sequence[NextRun] = ()


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
    for look in (_overdue, _stuck, _lingering, _unserved, _unknown, _untold, _breached, _paused, _surroundings):
        found = list(look(facts))
        total += len(found)
        shown += found[:_SHOWN]
    return shown, total


def backlogs(found: Sequence[Backlog], of: str) -> dict[str, tuple[int, int]]:
    """Sum the backlog by `queue` or by `job`: number of runs, and the due time of the oldest."""
    counted: dict[str, tuple[int, int]] = {}
    for one in found:
        name = getattr(one, of)
        runs, oldest = counted.get(name, (0, one.oldest))
        counted[name] = runs + one.runs, min(oldest, one.oldest)
    return counted


def _overdue(facts: Facts) -> Iterator[Attention]:
    found = facts.symptoms
    for one in found.overdue:
        text = f"schedule {one.name} is overdue {why_overdue(one, found)}"
        yield _told("schedule_overdue", one.name, one.next_at, text, planner_hint(found))


def _stuck(facts: Facts) -> Iterator[Attention]:
    for one in facts.symptoms.stuck:
        text = f"the lease of run {one.run_id} on {one.worker_id} has expired without being taken away"
        yield _told("run_stuck", one.run_id, one.expires_at, text, REAPER_HINT)


def _lingering(facts: Facts) -> Iterator[Attention]:
    for one in facts.lingering:
        text = f"run {one.run_id} was asked to stop, and its grace period is over; {one.worker_id} still holds it"
        yield _told("run_lingering", one.run_id, one.expires_at, text, REAPER_HINT)


def _unserved(facts: Facts) -> Iterator[Attention]:
    """Yield queues without a live worker.

    Not at once, since a worker may be about to start. Paused queues have an item of their own.
    """
    paused = {one.name for one in facts.held if one.kind == "queue"}
    known = backlogs(facts.backlog, "queue")
    for queue, count in unserved_queues(facts.symptoms).items():
        since = known[queue][1]
        if queue not in paused and facts.symptoms.now - since > LATE:
            text = f"no live worker takes from queue {queue}, where {many(count, 'run waits', 'runs wait')}"
            yield _told("queue_unserved", queue, since, text, queues_hint([queue]))


def _unknown(facts: Facts) -> Iterator[Attention]:
    paused = {one.name for one in facts.held if one.kind == "job"}
    known = backlogs(facts.backlog, "job")
    for job, count in unknown_jobs(facts.symptoms).items():
        since = known[job][1]
        if job not in paused and facts.symptoms.now - since > LATE:
            text = f"no live worker knows job {job}, of which {many(count, 'run waits', 'runs wait')}"
            yield _told("job_unknown", job, since, text, JOBS_HINT)


def _untold(facts: Facts) -> Iterator[Attention]:
    if count := facts.symptoms.signals:
        text = f"{many(count, 'signal waits', 'signals wait')} for longer than a minute: notifications are not sent"
        yield _told("signals_untold", None, None, text, MESSENGER_HINT)


def _breached(facts: Facts) -> Iterator[Attention]:
    for one in facts.breaches:
        text = f"{one.kind} {one.subject}: {one.message or one.what}"
        yield _told("expectation_breached", f"{one.kind}/{one.subject}", one.since, text, None)


def _paused(facts: Facts) -> Iterator[Attention]:
    for one in facts.held:
        count, _ = backlogs(facts.backlog, one.kind).get(one.name, (0, 0))
        if count:
            yield _told(f"{one.kind}_paused", one.name, one.since, held_words(one, count), resume_hint(one))


def _surroundings(facts: Facts) -> Iterator[Attention]:
    if facts.polls:
        text = "a transaction pooler blocks LISTEN/NOTIFY: work is found by polling, up to a second later"
        yield _told("polling", None, None, text, "let rota connect to PostgreSQL directly")
    clock = check_clock(facts.offset)
    if clock.level != OK:
        yield _told("clock", None, None, clock.words, clock.hint)


def _told(kind: str, subject: str | None, since: int | None, text: str, hint: str | None) -> Attention:
    at = None if since is None else instant(since)
    return Attention(kind=kind, subject=subject, since=at, text=text, hint=hint)
