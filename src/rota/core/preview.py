"""The times that a rule names next, as people read them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from rota.core.schedules import ScheduleDefinition
from rota.durations import in_micros
from rota.instants import instant


class Fire(msgspec.Struct, frozen=True, kw_only=True):
    """`local` is the plan time in the schedule's zone; `eligible_at` is when its run may start, jitter aside.

    `marks`: `gap` (its time of the day does not exist, it fires right after), `fold-first`, `fold-second` (its time of
    the day comes twice), `transition` (the first one after the clocks changed).
    """

    plan_time: datetime
    local: datetime
    eligible_at: datetime
    marks: tuple[str, ...] = ()


def upcoming(definition: ScheduleDefinition, name: str, after: int, count: int) -> list[Fire]:
    times = definition.times(name)
    zone = ZoneInfo(zone_of(definition))
    fires: list[Fire] = []
    at = times.next(after)
    while at is not None and len(fires) < count:
        eligible_at = instant(at + in_micros(definition.delay))
        fires.append(
            Fire(
                plan_time=instant(at),
                local=instant(at).astimezone(zone),
                eligible_at=eligible_at,
                marks=times.marks(at),
            )
        )
        at = times.next(at)
    return fires


def zone_of(definition: ScheduleDefinition) -> str:
    """The zone that people read its times in: the trigger's, else the rule's."""
    return str(getattr(definition.rule.trigger, "timezone", definition.rule.timezone))
