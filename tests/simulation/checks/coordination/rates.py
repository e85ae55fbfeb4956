"""Rates: within no span of the database's clock do more runs of a key begin than may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from rota.values.durations import parse_duration
from tests.simulation.application.coordination_jobs import RATED
from tests.simulation.script.entries import Jump
from tests.simulation.world.observer import Change, Finding, Seen

if TYPE_CHECKING:
    from tests.simulation.world.world import World

RATE = "rate"


class Rate(msgspec.Struct, frozen=True):
    max: int
    period: int
    by_scope: bool


def rates_of(job: str) -> list[Rate]:
    limits: Any = RATED.get(job, {}).get("limit", [])
    found = [one for one in (limits if isinstance(limits, list) else [limits]) if "per" in one]
    return [Rate(one["max"], parse_duration(one["per"]) // timedelta(microseconds=1), "by" in one) for one in found]


def patience(seen: Seen) -> float:
    """How many seconds a run may wait for its rate while nobody is at work: two periods."""
    return max((2 * rate.period / 1e6 for rate in rates_of(seen.job)), default=0.0)


class Begin(msgspec.Struct, frozen=True):
    """`at`: seconds that have passed; `now`: the database's clock."""

    at: float
    now: int
    run_id: str
    fence: int


class RateChecks:
    def __init__(self, world: World) -> None:
        self._world = world
        self._begun: dict[tuple[str, int, object], list[Begin]] = {}
        self._set_back = list(_set_back(world))

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.not_too_many]

    def not_too_many(self, change: Change) -> Iterator[Finding]:
        """What was further ahead than a period when a clock was set back has begun just then, and is not counted."""
        was, now = (seen.lease if seen else None for seen in (change.before, change.after))
        if now is None or change.after is None or (was and was.fence == now.fence):
            return
        for place, rate in enumerate(rates_of(change.after.job)):
            key = (change.after.job, place, change.after.scope if rate.by_scope else None)
            begun = self._begun.setdefault(key, [])
            begun.append(Begin(change.at, change.now, change.run_id, now.fence))
            near = [one for one in begun if abs(one.now - change.now) < rate.period and not self._is_far(one, rate)]
            span = [one for one in near if one.now <= change.now]
            for found in (span, _densest(near, rate)):
                if len(found) > rate.max:
                    told = ", ".join(f"{one.run_id[-6:]} ({one.fence}) at {one.now}" for one in found)
                    yield RATE, f"{len(found)} of {key} began within {rate.period / 1e6:g}s, not {rate.max}: {told}"
                    return

    def _is_far(self, one: Begin, rate: Rate) -> bool:
        return any(at > one.at and clock <= one.now - rate.period for at, clock in self._set_back)


def _densest(begun: Iterable[Begin], rate: Rate) -> list[Begin]:
    """The span of a period with the most of them."""
    known = sorted(begun, key=lambda one: one.now)
    spans = ([one for one in known if first.now <= one.now < first.now + rate.period] for first in known)
    return max(spans, key=len, default=[])


def _set_back(world: World) -> Iterator[tuple[float, int]]:
    """When the clock was, and what it showed then."""
    jumped = 0
    for entry in world.script.entries:
        if isinstance(entry, Jump):
            jumped += int(entry.by * 1_000_000)
            if entry.by < 0:
                yield entry.at, world.script.start + int(entry.at * 1_000_000) + jumped
