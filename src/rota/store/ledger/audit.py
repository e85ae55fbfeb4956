"""The audit trail: acts noted in their own transaction, and trails read back."""

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
    tx: Tx, kind: str, subject: str, what: str, actor: str | None, details: Details, *, fence: int | None = None
) -> None:
    """Only for what really changes something: whoever repeats it changes nothing, and notes nothing."""
    facts = {"kind": kind, "subject": subject, "type": what, "actor": actor, "fence": fence}
    await tx.fetch("note_event", **facts, details=_text(details))


async def note_once(
    tx: Tx, kind: str, subject: str, what: str, actor: str | None, details: Details, *, fence: int | None = None
) -> None:
    """For acts whose repetition cannot be told from another such act but by their name, `act` in the details."""
    facts = {"kind": kind, "subject": subject, "type": what, "actor": actor, "fence": fence}
    await tx.fetch("note_event_once", **facts, act=details["act"], details=_text(details))


async def note_runs(tx: Tx, what: str, rows: Iterable[tuple[str, str | None, int | None, Details]]) -> None:
    """One statement for however many: run, actor, fence, details."""
    written = [(id, actor, fence, _text(details)) for id, actor, fence, details in rows]
    if written:
        await tx.fetch("note_events", written, kind="run", type=what)


def waiting_state(hold: int) -> RunState:
    """That of a run in `rota_ready`."""
    return RunState.QUEUED if is_queued(hold) else RunState.SCHEDULED


def _text(details: Details) -> str | None:
    given = {key: value for key, value in details.items() if value is not None}
    return msgspec.json.encode(given).decode() if given else None


class EventStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_run(self, run_id: str) -> list[Event]:
        async def body(tx: Tx) -> list[Event]:
            return audit.life_of(await _run_facts(tx, run_id))

        return await self._database.read(body)

    async def of_schedule(self, name: str) -> list[Event]:
        """Of the one that has this name, or had it last."""
        return await self._database.read(lambda tx: _of_schedule(tx, name))

    async def audit(self, wanted: dict[str, str], limit: int, before: int | None) -> list[Event]:
        """The newest first. That a run waits no longer for others is nobody's act."""
        conditions = ["type <> 'released'", *(f"{column} = :{column}" for column in wanted)]
        conditions += [] if before is None else ["seq < :before"]
        values: dict[str, object] = {**wanted} if before is None else {**wanted, "before": before}
        sql = f"select {_COLUMNS} from rota_event where {' and '.join(conditions)} order by seq desc limit :limit"

        async def body(tx: Tx) -> list[Event]:
            return [audit.event_of(_note(row)) for row in await tx.fetch_sql(sql, limit=limit, **values)]

        return await self._database.read(body)


async def _run_facts(tx: Tx, run_id: str) -> RunFacts:
    found = await tx.fetch("run_facts", id=run_id)
    if not found:
        raise UnknownRun(run_id)
    (created_at, run_at, state, fence, attempt, claimed_at, finished_at, worker_id, reason, cancelled_by, retry_of,
     metadata, schedule_id, schedule, plan_time, backfilled, hold, parent_id) = found[0]  # fmt: skip
    tried = sorted((_tried(row) for row in await tx.fetch("tried_facts", id=run_id)), key=lambda one: one.fence)
    if state == RunState.SUCCEEDED and claimed_at is not None:
        done = RunState.SUCCEEDED
        tried.append(Tried(fence, attempt, worker_id, claimed_at, finished_at, Outcome.SUCCEEDED, done))
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
    rows = await tx.fetch("triggered_by", name=schedule, id=run_id) if schedule else ()
    return rows[0][0] if rows else None


async def _of_schedule(tx: Tx, name: str) -> list[Event]:
    found = await tx.fetch("newest_of_name", name=name)
    if not found:
        raise UnknownSchedule(name, [row[0] for row in await tx.fetch("schedule_names")])
    id = str(found[0][0])
    notes = [note for note in await _notes(tx, "schedule", name) if note.details.get("schedule_id") == id]
    revisions = [Revised(*row) for row in await tx.fetch("revisions_told", id=id, limit=_MOST)]
    return audit.history_of(name, revisions, notes)


async def _notes(tx: Tx, kind: str, subject: str) -> Sequence[Note]:
    rows = await tx.fetch("events_of", kind=kind, subject=subject, limit=_MOST)
    return [_note(row) for row in reversed(rows)]


def _id(value: object) -> str | None:
    return None if value is None else str(value)


def _note(row: Row) -> Note:
    seq, at, kind, subject, what, actor, fence, details = row
    return Note(seq, at, kind, subject, what, actor, fence, msgspec.json.decode(details) if details else {})


def _tried(row: Row) -> Tried:
    fence, no, worker_id, claimed_at, ended_at, outcome, left_as, due_at, error = row
    ended = Outcome(outcome) if outcome else None
    left = RunState(left_as) if left_as else None
    return Tried(fence, no, worker_id, claimed_at, ended_at, ended, left, due_at, error)
