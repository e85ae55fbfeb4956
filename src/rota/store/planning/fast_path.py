"""Fast path of planning, from the row of a schedule to those of its run: no policy, limit or other run has a say in
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from rota.core.calendar.zones import tzdata_version
from rota.core.planning.tally import Tally
from rota.core.planning.tick import Fire, due_until, eligible, ordinary
from rota.errors import RotaError
from rota.store.databases.columns import Column, Columns, column
from rota.store.databases.database import Tx
from rota.store.limits.quotas import Under
from rota.store.planning.lanes import AllLanes
from rota.store.planning.make_runs import RunTemplate, plain_facts, plain_ready, plain_runs
from rota.store.schedules.schedule_row import ScheduleRow


class DueSchedule(msgspec.Struct, frozen=True, gc=False):
    """A schedule that is due, and what its runs are like. Thousands of tuples that outlive a few collections of garbage
    would bring about one of everything there is, right when there is the least time for it.
    """

    row: ScheduleRow
    pattern: RunTemplate


Decided = dict[tuple[int, int | None], Fire | None]
"""By pattern and plan time."""


class FastFire(msgspec.Struct, frozen=True, gc=False):
    row: ScheduleRow
    pattern: RunTemplate
    fire: Fire


def ordinary_fires(
    known: Sequence[DueSchedule], lanes: AllLanes, under: Under, now: int
) -> tuple[list[FastFire], list[DueSchedule]]:
    """Split a batch into ordinary fires and the others, of which everything has to be asked."""
    tzdata, fires, others = tzdata_version(), list[FastFire](), list[DueSchedule]()
    decided: Decided = {}
    for one in known:
        row, pattern, fire = one.row, one.pattern, None
        if pattern.is_plain and row.provider is None and row.tzdata == tzdata and lanes.are_well(row.id):
            fire = _fire(row, pattern, now, decided)
        if fire is None or (under and pattern.definition.lanes[0] in under):
            others.append(one)
        else:
            fires.append(FastFire(row, pattern, fire))
    return fires, others


def _fire(row: ScheduleRow, pattern: RunTemplate, now: int, decided: Decided) -> Fire | None:
    """Thousands that are due together may say the same."""
    definition = pattern.definition
    try:
        times = pattern.times
        if times is None:
            return ordinary(definition, definition.times(row.name), row.next_plan, due_until(definition, now))
        standing = id(pattern), row.next_plan
        if standing not in decided:
            decided[standing] = ordinary(definition, times, row.next_plan, due_until(definition, now))
        return decided[standing]
    except RotaError:  # it will be told when the others are decided
        return None


def rehearse(pattern: RunTemplate, name: str, plan_time: int | None) -> None:
    """Asks for what an ordinary fire will: all of it is kept where it is found."""
    with suppress(Exception):  # whatever is wrong with it is told when it is planned, and is in nobody's way before
        if pattern.is_plain and plan_time is not None:
            definition = pattern.definition
            ordinary(definition, pattern.times or definition.times(name), plan_time, plan_time)


async def make_ordinary(tx: Tx, fires: Sequence[FastFire], now: int, new_id: Callable[[], str]) -> Tally:
    ids = [new_id() for _ in fires]
    ats = [_eligible(one) for one in fires]
    plans = [one.fire.plan_time for one in fires]
    facts = [plain_facts(one.row, one.pattern, one.fire.plan_time) for one in fires]
    there = await tx.hot.insert_planned(plain_runs(ids, facts, now, ats, [one.row.id for one in fires], plans))
    await tx.hot.advance_ordinary(_advanced(fires, ids, plans, there), [one.row.rowid for one in fires])
    tally = Tally()
    if there is not None:  # somebody made the run of the others' plan times before
        made = [place for place, id in enumerate(ids) if id in there]
        tally.skipped["overlap"] = len(fires) - len(made)
        fires, ids, ats = (
            [fires[place] for place in made],
            [ids[place] for place in made],
            [ats[place] for place in made],
        )
    if fires:
        places = [one.pattern.place for one in fires]
        tx.wake(*{queue for queue, *_ in places})
        await tx.fetch("insert_planned_ready", plain_ready(ids, places, now, ats))
    tally.ran, tally.lateness = len(fires), [max(0, now - at) for at in ats]
    return tally


def _eligible(one: FastFire) -> int:
    definition, fire = one.pattern.definition, one.fire
    return eligible(one.row.standing, definition.lanes[0], fire.plan_time) if definition.jitter else fire.eligible_at


def _advanced(fires: Sequence[FastFire], ids: Sequence[str], plans: Column, there: set[str] | None) -> Columns:
    opened = plans if there is None else [plan if id in there else None for id, plan in zip(ids, plans, strict=True)]
    following = [one.fire.next_plan for one in fires], [one.fire.next_at for one in fires]
    return Columns(
        len(fires),
        [
            [one.row.cursor_no for one in fires],
            column(plans),
            *map(column, following),
            column(opened),
            column([one.row.fired + 1 for one in fires]),
            (None,),
            (tzdata_version(),),
        ],
    )
