"""Ordinary fires, from the row of a schedule to those of its run: no policy, limit or other run has a say in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rota.core.planning import Fire, due_until, eligible, ordinary
from rota.core.rules import Times
from rota.core.tallying import Tally
from rota.core.zones import tzdata_version
from rota.errors import RotaError
from rota.store.database import Row, Tx
from rota.store.lanes import AllLanes
from rota.store.making import Pattern, plain_ready_row, plain_run_row
from rota.store.quotas import Under
from rota.store.schedule_rows import ScheduleRow

Known = tuple[ScheduleRow, Pattern]
Ordinary = tuple[ScheduleRow, Pattern, Fire]


def ordinary_fires(
    known: Sequence[Known], lanes: AllLanes, under: Under, now: int
) -> tuple[list[Ordinary], list[Known]]:
    """Those of a batch that are ordinary, and the others, of which everything has to be asked."""
    tzdata, fires, others = tzdata_version(), list[Ordinary](), list[Known]()
    decided: dict[tuple[Times, int, int | None], Fire | None] = {}
    for row, pattern in known:
        fire = None
        if pattern.is_plain and row.provider is None and row.tzdata == tzdata and lanes.are_well(row.id):
            fire = _fire(row, pattern, now, decided)
        if fire is None or (under and pattern.definition.lanes[0] in under):
            others.append((row, pattern))
        else:
            fires.append((row, pattern, fire))
    return fires, others


def _fire(
    row: ScheduleRow, pattern: Pattern, now: int, decided: dict[tuple[Times, int, int | None], Fire | None]
) -> Fire | None:
    """Thousands that are due together may say the same."""
    definition = pattern.definition
    try:
        times = definition.times(row.name)
        place = times, id(pattern), row.next_plan
        if place not in decided:
            decided[place] = ordinary(definition, times, row.next_plan, due_until(definition, now))
        return decided[place]
    except RotaError:  # it will be told when the others are decided
        return None


async def make_ordinary(
    tx: Tx, fires: Sequence[Ordinary], now: int, new_id: Callable[[], str], queues: set[str]
) -> Tally:
    ids = [new_id() for _ in fires]
    ats = [_eligible(*fire) for fire in fires]
    there = await tx.hot.insert_planned(
        [
            plain_run_row(id, pattern, row, fire.plan_time, at, now)
            for id, at, (row, pattern, fire) in zip(ids, ats, fires, strict=True)
        ]
    )
    made = list(zip(ids, ats, fires, strict=True))
    if there is not None:
        made = [one for one in made if one[0] in there]
    if made:
        queues |= {pattern.place[0] for _, _, (_, pattern, _) in made}
        ready = [plain_ready_row(id, pattern, at, 0 if at <= now else 1) for id, at, (_, pattern, _) in made]
        await tx.fetch("insert_planned_ready", ready)
    await tx.fetch("advance_cursors", _advanced(fires, ids, there))
    tally = Tally(ran=len(made), lateness=[max(0, now - at) for _, at, _ in made])
    if len(made) < len(fires):  # somebody made the run of that plan time before
        tally.skipped["overlap"] = len(fires) - len(made)
    return tally


def _eligible(row: ScheduleRow, pattern: Pattern, fire: Fire) -> int:
    definition = pattern.definition
    return eligible(row.standing, definition.lanes[0], fire.plan_time) if definition.jitter else fire.eligible_at


def _advanced(fires: Sequence[Ordinary], ids: Sequence[str], there: set[str] | None) -> list[Row]:
    tzdata = tzdata_version()
    return [
        (
            row.cursor_no,
            fire.plan_time,
            fire.next_plan,
            fire.next_at,
            fire.plan_time if there is None or id in there else None,
            row.fired + 1,
            None,
            tzdata,
        )
        for id, (row, _, fire) in zip(ids, fires, strict=True)
    ]
