"""One step of planning: lock a batch of due schedules, plan them, and look after those that wait for something else."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from rota.core.calendar.zones import tzdata_version
from rota.errors import RotaError, UnreadableSchedule
from rota.store.databases.database import Tx
from rota.store.planning.definition_cache import NO_DEFINITIONS, Definitions, Read, look_up, read_unknown, schedule_rows
from rota.store.planning.fast_path import rehearse
from rota.store.planning.make_runs import RunTemplate, patterns_of
from rota.store.planning.plan import MOST_RUNS, REST_AFTER_TROUBLE, NewId, Planning, Providers, plan_rows
from rota.store.schedules import change
from rota.store.schedules.schedule_row import ScheduleRow, decoded

Position = tuple[int, int]
"""Among those that are due, the last: when, and its cursor's number."""

_ZONES = "tzdata"
_BY_HAND = "it was switched off in the database itself, where it still has a next time"
_BATCH = 1_000
# µs. A schedule that was planned with newer time zone data is left to a program that has it, for so long.
_PATIENCE = 60_000_000


async def look(tx: Tx, providers: Collection[str], *, followers: bool) -> Look:
    ((next_at, now, ended),) = await tx.fetch("look", [(name,) for name in providers], followers=int(followers))
    return Look(next_at, now, bool(ended))


class Look(msgspec.Struct, frozen=True):
    """`next_at`: when a schedule is due, None if none will be. `ended`: a run that one follows is."""

    next_at: int | None
    now: int
    ended: bool

    @property
    def next_in(self) -> int | None:
        return None if self.next_at is None else self.next_at - self.now


async def due_providers(tx: Tx, providers: Iterable[str]) -> list[str]:
    """Return those of these providers whose scopes are needed now."""
    return [name for (name,) in await tx.fetch("due_providers", [(name,) for name in providers])]


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
    marked = await tx.hot.lock_due(names, limit=limit, tzdata=tzdata_version(), patience=_PATIENCE)
    cached = look_up(marked, cache)
    # Under the lock, so that a definition fits the mark; it is cached by the caller after the commit only.
    read = await read_unknown(tx, marked, cached)
    rows = schedule_rows(marked, cached, read)
    if len(rows) < len(marked):  # deleted ones that are due all the same would be met again and again
        existing = {row.cursor_no for row in rows}
        await tx.fetch("put_off", [(no, None) for no, *_ in marked if no not in existing])
    return rows, read


async def read_ahead(
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


async def foresee(tx: Tx, after: Position, until: int, limit: int) -> None:
    """Touches what planning the same ones will."""
    # The answer is thrown away: the pages that it reads are then in the cache when the second comes.
    await tx.fetch("foresee", after_at=after[0], after_no=after[1], until=until, limit=limit)


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
        return len(decoded(text).lanes)
    except UnreadableSchedule:
        return 0


async def set_aside(tx: Tx, providers: Providers, trouble: str) -> None:
    """The first that is due cannot be planned, and must not stand in the way of the others."""
    # In a transaction of its own, because that which met the trouble was rolled back. Perhaps another one is the first
    # by now: it loses half a minute, and nothing else.
    rows, _ = await lock_due(tx, 1, providers)
    for row in rows:
        await tx.fetch("note_trouble", [(row.cursor_no, trouble, REST_AFTER_TROUBLE)])


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


async def wake_followers(tx: Tx, limit: int) -> int:
    """Schedules whose awaited run has ended are due to be looked at."""
    # This only makes them due. Whether the awaited run has ended, planning decides under the lock of the cursor.
    ended = await tx.fetch("ended_awaited", limit=limit)
    return len(await tx.fetch("wake_followers", ended)) if ended else 0


async def knows_zones(tx: Tx) -> bool:
    """Return whether every plan was made with time zone data as new as this program's."""
    return any(str(version) >= tzdata_version() for (version,) in await tx.fetch("get_setting", name=_ZONES))


async def look_again_at_zones(tx: Tx, after: str) -> str | None:
    """One batch, in the order of their ids: the last of them, or None when all are done."""
    locked = await tx.fetch("lock_older_zones", tzdata=tzdata_version(), after=after, limit=_BATCH)
    if locked:
        await tx.fetch("look_again_at_zones", [(no,) for no, _ in locked], tzdata=tzdata_version())
    if len(locked) == _BATCH:
        _, last_id = locked[-1]
        return str(last_id)
    # Last, and only when all are done: a program that stops in between begins anew.
    await tx.fetch("save_setting", name=_ZONES, value=tzdata_version())
    return None
