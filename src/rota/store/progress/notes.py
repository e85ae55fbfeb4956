"""Notes of runs in progress: steps, progress and logs, written only under a current lease."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.progress.notes import LogLine, LogNote, Notes, ProgressNote, StepNote, decoded, level_name, percentage_of
from rota.core.progress.steps import Step, StepDefinition, StepState, in_order, kept_of, left_open
from rota.core.runs.run import RunError
from rota.core.states import Outcome, RunState
from rota.errors import Invalid, UnknownRun
from rota.store.databases.database import Database, Row, Tx
from rota.store.runs.read import about
from rota.values.clock import Clock
from rota.values.instants import instant, maybe_instant
from rota.values.scope import Scope

_PAGE = 1_000
_LONGEST_CURSOR = 30
_MOST_IN_CURSOR = 2**31
_GAP = "lines are missing here: the log of this attempt grew beyond its limit"


class RecordedStep(msgspec.Struct, frozen=True):
    """A step of an earlier attempt, as the next attempt needs it. `result` is JSON."""

    id: str
    no: int
    state: StepState
    result: str | None


class NoteStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, notes: Notes) -> set[tuple[str, int]]:
        """Write notes. Return the leases that are gone, for which nothing was written."""
        return await self._database.transact(lambda tx: write(tx, notes, self._database.clock))

    async def shield(self, run_id: str, fence: int, no: int, *, another: bool = False) -> bool | None:
        """Make a cancel wait for the end of a step.

        Return False if the run was asked to stop before, None if the lease is gone. `no` counts the shields of an
        attempt; `another`: a step that goes on has shielded it already.
        """
        values = {"id": run_id, "fence": fence, "no": no, "another": int(another)}
        for (shielded,) in await self._database.transact(lambda tx: tx.fetch("shield", **values)):
            return bool(shielded)
        return None

    async def unshield(self, notes: Notes, grace: int, no: int) -> set[tuple[str, int]]:
        """End the shield of a step, and write its `notes`. `no` is that of the last shield."""

        async def body(tx: Tx) -> set[tuple[str, int]]:
            for run_id, fence in notes.leases:
                await tx.fetch("unshield", id=run_id, fence=fence, grace=grace, no=no)
            return await write(tx, notes, self._database.clock)

        return await self._database.transact(body)

    async def recorded_steps(self, run_id: str) -> list[RecordedStep]:
        rows = await self._database.read(lambda tx: tx.fetch("recorded_steps", id=run_id))
        return [RecordedStep(id, no, StepState(state), result) for id, no, state, result in rows]

    async def steps(self, part: str, within: Scope | None = None) -> list[Step]:
        return await about(self._database, part, within, steps)

    async def logs(
        self, part: str, cursor: str | None = None, within: Scope | None = None, limit: int = _PAGE
    ) -> list[LogLine]:
        """Return the next log lines after a cursor. Empty if there are no more yet."""
        return await about(self._database, part, within, lambda tx, id: logs(tx, id, cursor, limit))

    async def last_logs(self, part: str, count: int, within: Scope | None = None) -> list[LogLine]:
        return await about(self._database, part, within, lambda tx, id: last_logs(tx, id, count))


async def write(tx: Tx, notes: Notes, clock: Clock | None = None) -> set[tuple[str, int]]:
    """Write notes, as `NoteStore.write`. `clock` is that of `taken_at`; without it, they were taken just now."""
    leases = notes.leases
    # Fenced: the notes of a lease that is gone are dropped. The lock keeps the others until this has committed.
    current = {(str(id), fence) for id, fence in await tx.fetch("lock_noted", leases)}
    if len(current) < len(leases):  # external runs have no lease
        missing = [lease for lease in leases if lease not in current]
        current |= {(str(id), fence) for id, fence in await tx.fetch("lock_noted_outside", missing)}
    accepted = notes if len(current) == len(leases) else notes.under(current)
    # Only now, when nothing is left to wait for (a connection, SQLite's writer, the lease's lock): `:now` of the next
    # statements is as much later than `taken_at` as this says, and the times of lines and steps stay what they were.
    now = clock.monotonic() if clock else None
    if accepted.progress:
        await tx.fetch("put_progress", [_progress_row(note) for note in accepted.progress])
    if accepted.steps:
        # One order for all: two transactions that write the same steps would deadlock otherwise.
        ordered = sorted(accepted.steps, key=lambda note: (note.run_id, note.id))
        await tx.fetch("put_steps", [_step_row(note, now) for note in ordered])
    if accepted.logs:
        await tx.fetch("put_logs", [_log_row(note, now) for note in accepted.logs])
        drops = [(note.run_id, note.fence, no) for note in accepted.logs for no in note.drops]
        if drops:
            await tx.fetch("drop_logs", drops)
    return set(leases) - current


def _progress_row(note: ProgressNote) -> Row:
    return note.run_id, note.fence, note.done, note.summary


def _step_row(note: StepNote, now: float | None) -> Row:
    age = None if note.age is None else note.age + _waited(note, now)
    return (
        note.run_id, note.id, note.no, note.state.value, note.fence, note.attempt, age, note.done, note.summary,
        note.result, note.error,
    )  # fmt: skip


def _log_row(note: LogNote, now: float | None) -> Row:
    return note.run_id, note.fence, note.no, note.attempt, note.lines, _waited(note, now)


def _waited(note: StepNote | LogNote, now: float | None) -> int:
    """Return the microseconds since the ages in a note were taken."""
    return 0 if now is None or note.taken_at is None else max(0, int((now - note.taken_at) * 1_000_000))


async def steps(tx: Tx, run_id: str) -> list[Step]:
    """Return the run's steps: declared ones in their order, then others as they were opened."""
    for state, definition in await tx.fetch("run_of_steps", id=run_id):
        ended = None if state is None else RunState(state)
        opened = [_step(row, ended) for row in await tx.fetch("steps", id=run_id)]
        return in_order(_declared(definition), {step.id: step for step in opened}, over=ended is not None)
    raise UnknownRun(run_id)


def _declared(definition: str | None) -> Sequence[StepDefinition]:
    return msgspec.json.decode(definition, type=JobDefinition).steps if definition else ()


def _step(row: Row, ended: RunState | None) -> Step:
    id, state, attempt, started_at, finished_at, done, summary, result, error, kept_from, _, held, outcome = row
    actual = StepState(state)
    if actual is StepState.RUNNING and not held:  # its attempt is over, and did not close it
        actual = left_open(Outcome(outcome) if outcome else None, ended)
    return Step(
        id=id,
        name="",
        state=actual,
        attempt=attempt,
        started_at=maybe_instant(started_at),
        finished_at=maybe_instant(finished_at),
        percentage=_percentage(actual, done),
        summary=summary,
        result=msgspec.json.decode(result) if result else None,
        error=msgspec.json.decode(error, type=RunError) if error else None,
        kept_from=None if kept_from is None else str(kept_from),
    )


def _percentage(state: StepState, done: int | None) -> float | None:
    if state is StepState.PENDING:  # it will be begun again, from nothing
        return None
    return 100.0 if state is StepState.SUCCEEDED else percentage_of(done)


async def keep_steps(tx: Tx, old_id: str, run_id: str, from_step: str | None) -> None:
    """Copy steps that `old_id` has finished to its retry: all of them, or those before `from_step`."""
    ((_, definition),) = await tx.fetch("run_of_steps", id=old_id)
    recorded = [id for id, *_ in await tx.fetch("recorded_steps", id=old_id)]
    kept = [(id, no) for no, id in enumerate(kept_of(_declared(definition), recorded, from_step), 1)]
    if kept:
        await tx.fetch("keep_steps", kept, run_id=run_id, old_id=old_id)


async def logs(tx: Tx, run_id: str, cursor: str | None, limit: int) -> list[LogLine]:
    fence, no, seen = _place(cursor)
    # A cursor within a row reads this row again. It may be gone meanwhile: then its other lines are a gap.
    before = no if seen is None else no - 1
    rows = await tx.fetch("log_rows", id=run_id, fence=fence, no=before, limit=limit)  # each has a line at least
    skipped = seen or 0 if [row[:2] for row in rows[:1]] == [(fence, no)] else 0
    return list(islice(_lines([(fence, before, 0, 0, "[]"), *rows]), skipped, skipped + limit))


async def last_logs(tx: Tx, run_id: str, count: int) -> list[LogLine]:
    rows = list(reversed(await tx.fetch("last_log_rows", id=run_id, limit=count)))  # each has a line at least
    return list(_lines(rows[:1] + rows))[-count:]


def _lines(rows: Sequence[Row]) -> Iterator[LogLine]:
    """Decode all rows but the first, which only tells where they go on."""
    latest = 0
    for (last_fence, last_no, *_), (fence, no, attempt, at, text) in pairwise(rows):
        is_gap = no > (last_no + 1 if fence == last_fence else 1)
        entries = decoded(text)
        gap = [(age, 30, "rota", _GAP) for age, *_ in entries[:1]] if is_gap else []
        for place, (age, level, logger, words) in enumerate([*gap, *entries], 1 - len(gap)):
            # Ages are measured by hosts: between two rows they differ by the time that a statement takes.
            latest = max(latest, at - age)
            yield LogLine(
                at=instant(latest),
                level=level_name(level),
                logger=logger,
                text=words,
                attempt=attempt,
                fence=fence,
                cursor=f"{fence}.{no}" if place == len(entries) else f"{fence}.{no}.{place}",
            )


def _place(cursor: str | None) -> tuple[int, int, int | None]:
    """Return the place in a cursor: fence, row, and how many lines of the row were seen; None: all."""
    if cursor is None:
        return 0, 0, None
    parts = cursor.split(".")
    if len(parts) not in (2, 3) or len(cursor) > _LONGEST_CURSOR or not all(map(_is_number, parts)):
        raise Invalid(
            f"cursor {cursor!r:.40} is invalid", hint="use next_cursor of the previous page, or that of a line"
        )
    fence, no, *seen = map(int, parts)
    return fence, no, seen[0] if seen else None


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and int(text) < _MOST_IN_CURSOR
