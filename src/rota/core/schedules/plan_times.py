"""Plan times to come: those that planning will name, for every reader of the future."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from rota.core.calendar.rules import Times
from rota.core.calendar.zones import LAST_SECOND
from rota.core.schedules.schedule import ScheduleDefinition
from rota.values.durations import in_micros
from rota.values.instants import instant


def plan_times(
    times: Times, cursor: int, after: int, most: int, room: int | None = None, until: int = LAST_SECOND * 1_000_000
) -> list[int]:
    """Return the plan times after `after`, up to `until`. From `cursor` on nothing is decided yet, and `room` says how
    many the schedule may still have, those up to `after` included."""
    start = max(cursor, after)
    if room is not None:
        most = min(most, room - times.count(cursor, start))
    plans: list[int] = []
    at = times.next(start)
    while at is not None and at <= until and len(plans) < most:
        plans.append(at)
        at = times.next(at)
    return plans


class Fire(msgspec.Struct, frozen=True, kw_only=True):
    """A plan time to come. `local` is in the schedule's `zone`; `eligible_at` is when its run may start, jitter aside.

    `marks`: `gap` (its time of the day does not exist, it fires right after), `fold-first`, `fold-second` (its time of
    the day comes twice), `transition` (the first one after the clocks changed).
    """

    plan_time: datetime
    local: datetime
    eligible_at: datetime
    marks: tuple[str, ...] = ()
    zone: str = "UTC"
    schedule: str = ""


def upcoming(
    definition: ScheduleDefinition, name: str, after: int, count: int, *, fired: int = 0, next_plan: int | None = None
) -> list[Fire]:
    """Return the next plan times of a schedule that has fired so often; `next_plan` is all that is known of one that
    waits for the ends of runs."""
    times, zone = definition.times(name), zone_of(definition)
    room = None if definition.max_runs is None else definition.max_runs - fired
    plans = plan_times(times, after, after, count, room)
    if times.waits_for_ends and next_plan is not None and next_plan > after and room != 0:
        plans = [next_plan]
    return [
        Fire(
            plan_time=instant(at),
            local=instant(at).astimezone(ZoneInfo(zone)),
            eligible_at=instant(at + in_micros(definition.delay)),
            marks=times.marks(at),
            zone=zone,
            schedule=name,
        )
        for at in plans
    ]


def zone_of(definition: ScheduleDefinition) -> str:
    """Return the zone that people read its times in: the trigger's, else the rule's."""
    return definition.rule.trigger.own_zone or definition.rule.timezone
