"""Fast path of planning, from the row of a schedule to those of its run: no policy, limit or other run has a say in
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.planning.tally import Tally
from rota.core.planning.tick import Fire, OrdinaryRule, due_until, eligible
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
    template: RunTemplate


Decided = dict[tuple[int, int | None], Fire | None]
"""By template and plan time."""


class FastFire(msgspec.Struct, frozen=True, gc=False):
    row: ScheduleRow
    template: RunTemplate
    fire: Fire


def ordinary_fires(
    batch: Sequence[DueSchedule], lanes: AllLanes, under: Under, now: int
) -> tuple[list[FastFire], list[DueSchedule]]:
    """Split a batch into ordinary fires and the others, of which everything has to be asked."""
    fires, remaining = list[FastFire](), list[DueSchedule]()
    decided: Decided = {}
    for schedule in batch:
        row, template, fire = schedule.row, schedule.template, None
        rule = template.ordinary if row.provider is None and row.tzdata == TZDATA_VERSION else None
        if rule is not None and lanes.are_well(row.id):
            fire = _fire(row, template, rule, now, decided)
        if fire is None or (under and template.under(under, template.scopes[0])):
            remaining.append(schedule)
        else:
            fires.append(FastFire(row, template, fire))
    return fires, remaining


def _fire(row: ScheduleRow, template: RunTemplate, rule: OrdinaryRule, now: int, decided: Decided) -> Fire | None:
    """Thousands that are due together may say the same."""
    # By identity, which costs nothing: templates are shared, and live as long as this batch.
    key = id(template), row.next_plan
    if key in decided:
        return decided[key]
    try:
        times = template.times or template.definition.times(row.name)
        fire = rule.fire(times, row.next_plan, due_until(rule.delay, now))
    except RotaError:  # it will be told when the others are decided
        return None
    if template.times is not None:
        decided[key] = fire
    return fire


def rehearse(template: RunTemplate, name: str, plan_time: int | None) -> None:
    """Asks for what an ordinary fire will: all of it is kept where it is found."""
    with suppress(Exception):  # whatever is wrong with it is told when it is planned, and is in nobody's way before
        if template.ordinary is not None and plan_time is not None:
            template.ordinary.fire(template.times or template.definition.times(name), plan_time, plan_time)


async def make_ordinary(tx: Tx, fires: Sequence[FastFire], now: int, new_id: Callable[[], str]) -> Tally:
    # Columns instead of rows, here and below: thousands may be due in the same second, and a tuple for each of their
    # rows is work for the collector of garbage.
    ids = [new_id() for _ in fires]
    ats = [_eligible(entry) for entry in fires]
    plans = [entry.fire.plan_time for entry in fires]
    facts = [plain_facts(entry.row, entry.template, entry.fire.plan_time) for entry in fires]
    # The unique index on plan times is the last guard, should a cursor be set back. None: no row met it.
    inserted = await tx.hot.insert_planned(plain_runs(ids, facts, now, ats, [entry.row.id for entry in fires], plans))
    # In the transaction of the runs: a crash leaves both or neither. The cursors are locked since `lock_due`.
    await tx.hot.advance_ordinary(_advanced(fires, ids, plans, inserted), [entry.row.rowid for entry in fires])
    tally = Tally()
    if inserted is not None:  # somebody made the run of the others' plan times before
        indices = [index for index, id in enumerate(ids) if id in inserted]
        repeated = Counter(entry.template.subject for entry, id in zip(fires, ids, strict=True) if id not in inserted)
        tally.skipped = {(subject, "overlap"): count for subject, count in repeated.items()}
        fires, ids, ats = (
            [fires[index] for index in indices],
            [ids[index] for index in indices],
            [ats[index] for index in indices],
        )
    if fires:
        places = [entry.template.place for entry in fires]
        tx.wake(*{queue for queue, *_ in places})
        tally.ran = dict(Counter([(job, queue) for queue, _, _, job, _ in places]))
        await tx.fetch("insert_planned_ready", plain_ready(ids, places, now, ats))
    tally.lateness = [max(0, now - at) for at in ats]
    return tally


def _eligible(entry: FastFire) -> int:
    template, fire = entry.template, entry.fire
    if not template.definition.jitter:
        return fire.eligible_at
    return eligible(entry.row.standing, template.scopes[0], fire.plan_time)


def _advanced(fires: Sequence[FastFire], ids: Sequence[str], plans: Column, inserted: set[str] | None) -> Columns:
    opened = (
        plans if inserted is None else [plan if id in inserted else None for id, plan in zip(ids, plans, strict=True)]
    )
    following = [entry.fire.next_plan for entry in fires], [entry.fire.next_at for entry in fires]
    return Columns(
        len(fires),
        [
            [entry.row.cursor_no for entry in fires],
            column(plans),
            *map(column, following),
            column(opened),
            column([entry.row.fired + 1 for entry in fires]),
            (None,),
            (TZDATA_VERSION,),
        ],
    )
