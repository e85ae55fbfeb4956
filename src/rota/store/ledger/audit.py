"""The audit trail: acts are noted in their own transaction, and read back as events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rota.core.ledger import audit
from rota.core.ledger.audit import CLIENT, CONDUCTOR, MESSENGER, PLANNER, Event, Note, Revised, RunFacts, Tried
from rota.core.runs.admission import is_queued
from rota.core.schedules.job_triggers import cause_of
from rota.core.states import Outcome, RunState
from rota.errors import UnknownRun, UnknownSchedule
from rota.store.databases.database import Database, Row, Tx

Details = Mapping[str, Any]

_MOST = 10_000
_COLUMNS = "seq, at, kind, subject, type, actor, fence, details"


async def note(
    tx: Tx, kind: str, subject: str, event: str, actor: str | None, details: Details, *, fence: int | None = None
) -> None:
    """Note an act.

    Call it only when something really changed: a repetition changes nothing, and must note nothing.
    """
    facts = {"kind": kind, "subject": subject, "type": event, "actor": actor, "fence": fence}
    await tx.fetch("note_event", **facts, details=_text(details))


async def note_once(
    tx: Tx, kind: str, subject: str, event: str, actor: str | None, details: Details, *, fence: int | None = None
) -> None:
    """Note an act unless it was noted before, for acts whose repetition cannot be recognized by its effect.

    `details["act"]` identifies the act.
    """
    facts = {"kind": kind, "subject": subject, "type": event, "actor": actor, "fence": fence}
    await tx.fetch("note_event_once", **facts, act=details["act"], details=_text(details))


async def note_runs(tx: Tx, event: str, rows: Iterable[tuple[str, str | None, int | None, Details]]) -> None:
    """Note one type of event for any number of runs, in one statement. `rows` are (run id, actor, fence, details)."""
    events = [(id, actor, fence, _text(details)) for id, actor, fence, details in rows]
    if events:
        await tx.fetch("note_events", events, kind="run", type=event)


def waiting_state(hold: int) -> RunState:
    """Return the state of a run in `rota_ready` from its hold."""
    return RunState.QUEUED if is_queued(hold) else RunState.SCHEDULED


def _text(details: Details) -> str | None:
    present = {key: value for key, value in details.items() if value is not None}
    return msgspec.json.encode(present).decode() if present else None


class EventStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_schedule(self, name: str) -> list[Event]:
        """Return the events of the schedule that has this name, or had it last."""
        return await self._database.read(lambda tx: _of_schedule(tx, name))

    async def audit(self, filters: dict[str, str], limit: int, before: int | None) -> list[Event]:
        """Return events, newest first.

        Without releases of waiting runs, which are nobody's act.
        """
        conditions = ["type <> 'released'", *(f"{column} = :{column}" for column in filters)]
        conditions += [] if before is None else ["seq < :before"]
        values: dict[str, object] = {**filters} if before is None else {**filters, "before": before}
        sql = f"select {_COLUMNS} from rota_event where {' and '.join(conditions)} order by seq desc limit :limit"

        async def body(tx: Tx) -> list[Event]:
            return [audit.event_of(_note(row)) for row in await tx.fetch_sql(sql, limit=limit, **values)]

        return await self._database.read(body)


async def events_of_run(tx: Tx, run_id: str) -> list[Event]:
    return audit.life_of(await _run_facts(tx, run_id))


async def _run_facts(tx: Tx, run_id: str) -> RunFacts:
    rows = await tx.fetch("run_facts", id=run_id)
    if not rows:
        raise UnknownRun(run_id)
    ((created_at, run_at, state, fence, attempt, claimed_at, finished_at, worker_id, reason, cancelled_by, retry_of,
      metadata, schedule_id, schedule, plan_time, backfilled, hold, parent_id),) = rows  # fmt: skip
    tried = sorted((_tried(row) for row in await tx.fetch("tried_facts", id=run_id)), key=lambda tried: tried.fence)
    if state == RunState.SUCCEEDED and claimed_at is not None:
        # A success writes no row of `rota_attempt`: it is the hot path, and the run's own row tells as much.
        state_after = RunState.SUCCEEDED
        tried.append(Tried(fence, attempt, worker_id, claimed_at, finished_at, Outcome.SUCCEEDED, state_after))
    made_by: str | None = CLIENT
    if backfilled:
        made_by = (msgspec.json.decode(metadata) if metadata else {}).get("backfilled_by")
    elif parent_id is not None:
        made_by = CONDUCTOR
    elif schedule_id is not None and retry_of is None:
        made_by = PLANNER if plan_time is not None else await _triggered_by(tx, schedule, run_id)
    made_of = {"schedule": schedule, "plan_time": plan_time, "retry_of": _id(retry_of), "replica_of": _id(parent_id)}
    cause = (
        cause_of(msgspec.json.decode(metadata)) if metadata and schedule_id is not None and plan_time is None else None
    )
    if cause is not None and retry_of is None:
        made_by, made_of = MESSENGER, {**made_of, "after": cause.run_id}
    return RunFacts(
        id=run_id,
        made_by=made_by,
        created_at=created_at,
        run_at=run_at,
        made_of=made_of,
        state=RunState(state) if state else None,
        fence=fence,
        finished_at=finished_at,
        reason=reason,
        cancelled_by=cancelled_by,
        waits_as=None if hold is None else waiting_state(hold),
        tried=tried,
        notes=await _notes(tx, "run", run_id),
    )


async def _triggered_by(tx: Tx, schedule: str | None, run_id: str) -> str | None:
    for (actor,) in await tx.fetch("triggered_by", name=schedule, id=run_id) if schedule else ():
        return str(actor) if actor is not None else None
    return None


async def _of_schedule(tx: Tx, name: str) -> list[Event]:
    for (schedule_id,) in await tx.fetch("newest_of_name", name=name):
        id = str(schedule_id)
        # Names are reused: notes of an older schedule of this name are not this one's.
        notes = [note for note in await _notes(tx, "schedule", name) if note.details.get("schedule_id") == id]
        revisions = [Revised(*row) for row in await tx.fetch("revisions_told", id=id, limit=_MOST)]
        return audit.history_of(name, revisions, notes)
    raise UnknownSchedule(name, [other for (other,) in await tx.fetch("schedule_names")])


async def _notes(tx: Tx, kind: str, subject: str) -> Sequence[Note]:
    rows = await tx.fetch("events_of", kind=kind, subject=subject, limit=_MOST)
    return [_note(row) for row in reversed(rows)]


def _id(value: object) -> str | None:
    return None if value is None else str(value)


def _note(row: Row) -> Note:
    seq, at, kind, subject, event, actor, fence, details = row
    return Note(seq, at, kind, subject, event, actor, fence, msgspec.json.decode(details) if details else {})


def _tried(row: Row) -> Tried:
    fence, no, worker_id, claimed_at, ended_at, outcome, left_as, due_at, error = row
    ended = Outcome(outcome) if outcome else None
    state_after = RunState(left_as) if left_as else None
    return Tried(fence, no, worker_id, claimed_at, ended_at, ended, state_after, due_at, error)
