"""Planning as store operations: look what is due, lock a batch of it and plan it, read ahead what will be due, and look
after schedules that wait for something else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

import msgspec

from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.jobs.job import JobDefinition
from rota.core.planning.assumptions import Present
from rota.core.runs.claim import NIL_ID
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import RotaError, UnreadableSchedule
from rota.store.databases.database import Database, Tx
from rota.store.databases.statements import SQLITE
from rota.store.planning.fast_path import rehearse
from rota.store.planning.make_runs import RunTemplate, patterns_of
from rota.store.planning.plan import MOST_RUNS, REST_AFTER_TROUBLE, NewId, Planning, Providers, plan_rows
from rota.store.planning.present import read_present
from rota.store.schedules import change
from rota.store.schedules.schedule_row import (
    NO_DEFINITIONS,
    DefinitionCache,
    Definitions,
    Read,
    ScheduleRow,
    decoded,
    look_up,
    read_unknown,
    schedule_rows,
)

Position = tuple[int, int]
"""Among those that are due, the last: when, and its cursor's number."""

_ZONES = "tzdata"
_BY_HAND = "it was switched off in the database itself, where it still has a next time"
_BATCH = 1_000
_LAST = 2**63 - 1
# µs. A schedule that was planned with newer time zone data is left to a program that has it, for so long.
_PATIENCE = 60_000_000


class Look(msgspec.Struct, frozen=True):
    """`next_at`: when a schedule is due, None if none will be. `ended`: a run that one follows is."""

    next_at: int | None
    now: int
    ended: bool

    @property
    def next_in(self) -> int | None:
        return None if self.next_at is None else self.next_at - self.now


class PlanningStore:
    """Operations of planners. Each is one transaction, or several of which each may be repeated."""

    def __init__(self, database: Database, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id
        self._looks: dict[tuple[tuple[str, ...], bool], tuple[object, Look]] = {}
        self._definitions = DefinitionCache()
        self._read_ahead: Position = (0, 0)
        self.writers = 1 if database.dialect is SQLITE else 2
        """How many planning transactions are worth being under way together: SQLite has one writer."""

    async def look(self, providers: Collection[str], *, followers: bool = True) -> Look:
        """Return what there is to plan with these providers.

        Cheap, because it is polled all day. Cached until the next commit where the database tells of commits.
        """
        key, version = (tuple(providers), followers), self._database.version()
        if version is not None and key in self._looks:
            seen_version, look = self._looks[key]
            if seen_version == version:
                return msgspec.structs.replace(look, now=self._database.clock.micros())

        async def body(tx: Tx) -> Look:
            ((next_at, now, ended),) = await tx.fetch("look", [(name,) for name in providers], followers=int(followers))
            return Look(next_at, now, bool(ended))

        look = await self._database.glance(body)
        self._looks[key] = version, look
        return look

    async def plan(self, limit: int, providers: Providers) -> Planning:
        """Turn a batch of due schedules into runs."""
        planning = await self._database.transact(
            lambda tx: plan_due(tx, limit, providers, self._new_id, self._definitions), acts=True
        )
        if planning.read:
            self._definitions.keep(planning.read.values())
        return planning

    async def set_aside(self, providers: Providers, trouble: str) -> None:
        """Set aside the first that is due: it cannot be planned, and must not stand in the way of the others."""

        # In a transaction of its own, because that which met the trouble was rolled back. Perhaps another one is the
        # first by now: it loses half a minute, and nothing else.
        async def body(tx: Tx) -> None:
            rows, _ = await lock_due(tx, 1, providers)
            for row in rows:
                await tx.fetch("note_trouble", [(row.cursor_no, trouble, REST_AFTER_TROUBLE)])

        await self._database.transact(body)

    async def read_ahead(self, until: int, limit: int) -> bool:
        """Read definitions that will be due until then into the cache. Return whether there are more."""
        after, end = self._read_ahead, (until, _LAST)
        if after >= end:
            return False
        # In a read transaction: every planner process reads the same rows, and SQLite has a single writer.
        read, last = await self._database.read(lambda tx: _read_ahead(tx, after, until, limit, self._definitions))
        if read:
            self._definitions.keep(read.values())
        self._read_ahead = last or end
        # Touches what planning the same ones will. The answer is thrown away: the pages that it reads are then in the
        # cache when the second comes.
        values = {"after_at": after[0], "after_no": after[1], "until": until, "limit": limit}
        await self._database.foresee(lambda tx: tx.fetch("foresee", **values))
        return last is not None

    async def present(self, wanted: Mapping[str, tuple[ScheduleDefinition, JobDefinition]]) -> dict[str, Present]:
        """Return the state of schedules now, by name, for a simulation with these definitions and jobs."""

        async def body(tx: Tx) -> dict[str, Present]:
            return {name: await read_present(tx, name, *given) for name, given in wanted.items()}

        return await self._database.read(body)

    async def due_providers(self, providers: Collection[str]) -> list[str]:
        """Return those of these providers whose scopes are needed now."""
        rows = [(name,) for name in providers]
        return [name for (name,) in await self._database.read(lambda tx: tx.fetch("due_providers", rows))]

    async def note_provider_trouble(self, provider: str, trouble: str | None) -> None:
        await self._database.transact(lambda tx: tx.fetch("note_provider_trouble", provider=provider, trouble=trouble))

    async def wake_followers(self, limit: int) -> int:
        """Make schedules due whose awaited run has ended."""

        # Whether the awaited run has ended, planning decides under the lock of the cursor.
        async def body(tx: Tx) -> int:
            ended = await tx.fetch("ended_awaited", limit=limit)
            return len(await tx.fetch("wake_followers", ended)) if ended else 0

        return await self._database.transact(body, acts=True)

    async def replan_zones(self) -> bool:
        """Plan all zoned schedules again after an update of time zone data. Return whether there was one."""
        if await self._database.read(_knows_zones):
            return False
        after: str | None = NIL_ID
        while after is not None:
            after = await self._database.transact(partial(_look_again_at_zones, after=after), acts=True)
        return True


async def plan_due(
    tx: Tx, limit: int, providers: Providers, new_id: NewId, cache: Definitions = NO_DEFINITIONS
) -> Planning:
    """`cache` holds the definitions that were read before; what had to be read now, the answer tells."""
    due, read = await lock_due(tx, limit, providers, cache)
    rows = _affordable(due, providers)
    if not rows:
        return Planning(0, 0)
    asleep = [row for row in rows if not row.active]
    ready = [row for row in rows if row.active] if asleep else rows
    planning = await plan_rows(tx, ready, new_id, providers)
    # Each by itself: to resume is a change, with a revision and an event. Few pauses end in the same second.
    for row in asleep:
        await _wake(tx, row, new_id)
    return msgspec.structs.replace(planning, schedules=len(rows), read=read)


async def lock_due(
    tx: Tx, limit: int, providers: Providers, cache: Definitions = NO_DEFINITIONS
) -> tuple[list[ScheduleRow], Read]:
    """Lock schedules that are due; return them with the definitions that were not known."""
    names = [(name,) for name in providers]
    # Cursors come before runs in the lock order. Any number of planners: what one has locked, the others skip.
    marked = await tx.hot.lock_due(names, limit=limit, tzdata=TZDATA_VERSION, patience=_PATIENCE)
    cached = look_up(marked, cache)
    # Under the lock, so that a definition fits the mark; it is cached by the caller after the commit only.
    read = await read_unknown(tx, marked, cached)
    rows = schedule_rows(marked, cached, read)
    if len(rows) < len(marked):  # deleted ones that are due all the same would be met again and again
        existing = {row.cursor_no for row in rows}
        await tx.fetch("put_off", [(no, None) for no, *_ in marked if no not in existing])
    return rows, read


async def _read_ahead(
    tx: Tx, after: Position, until: int, limit: int, cache: Definitions
) -> tuple[Read, Position | None]:
    """Read the definitions of those that will be due until then, and how far that is; None: there are no more."""
    coming = await tx.fetch("coming", after_at=after[0], after_no=after[1], until=until, limit=limit)
    # Without a lock: a change in between gets another mark, and what was read here is then not used.
    read = await read_unknown(tx, coming, look_up(coming, cache))
    templates = await patterns_of(tx, [definition.text for definition in read.values()])
    plans = {no: next_plan for no, _, _, _, _, next_plan in coming}
    for (no, definition), template in zip(read.items(), templates, strict=True):
        if isinstance(template, RunTemplate):
            rehearse(template, definition.name, plans[no])
    if len(coming) < limit:
        return read, None
    last_no, _, _, _, last_at, _ = coming[-1]
    return read, (last_at, last_no)


def _affordable(rows: list[ScheduleRow], providers: Providers) -> list[ScheduleRow]:
    """The first of them, as many as have scopes enough for one transaction; the others stay due."""
    named = {text: _scopes_of(text) for text in {row.text for row in rows}}
    if len(rows) * max([*named.values(), *map(len, providers.values())], default=0) <= MOST_RUNS:
        return rows
    scopes = 0
    for place, row in enumerate(rows):
        scopes += len(providers[row.provider]) if row.provider else named[row.text]
        if scopes > MOST_RUNS:
            return rows[: max(1, place)]
    return rows


def _scopes_of(text: str) -> int:
    try:
        return len(decoded(text).scopes) or 1
    except UnreadableSchedule:
        return 0


async def _wake(tx: Tx, row: ScheduleRow, new_id: NewId) -> None:
    """A pause that was to end now. Others that are not active are not due: that was done by hand, and is left so."""
    if row.resume_at is None:
        await tx.fetch("note_trouble", [(row.cursor_no, _BY_HAND, REST_AFTER_TROUBLE)])
        return
    ((now,),) = await tx.fetch("now")
    if row.resume_at > int(now):  # whatever made it due, its pause goes on until then
        await tx.fetch("put_off", [(row.cursor_no, row.resume_at)])
        return
    try:
        await change.resume(tx, row, new_id, mode="skip", actor="planner")
    except (RotaError, msgspec.DecodeError) as error:  # its definition, before anything was written
        await tx.fetch("note_trouble", [(row.cursor_no, str(error), REST_AFTER_TROUBLE)])


async def _knows_zones(tx: Tx) -> bool:
    """Return whether every plan was made with time zone data as new as this program's."""
    return any(str(version) >= TZDATA_VERSION for (version,) in await tx.fetch("get_setting", name=_ZONES))


async def _look_again_at_zones(tx: Tx, after: str) -> str | None:
    """One batch, in the order of their ids: the last of them, or None when all are done."""
    locked = await tx.fetch("lock_older_zones", tzdata=TZDATA_VERSION, after=after, limit=_BATCH)
    if locked:
        await tx.fetch("look_again_at_zones", [(no,) for no, _ in locked], tzdata=TZDATA_VERSION)
    if len(locked) == _BATCH:
        _, last_id = locked[-1]
        return str(last_id)
    # Last, and only when all are done: a program that stops in between begins anew.
    await tx.fetch("save_setting", name=_ZONES, value=TZDATA_VERSION)
    return None
