"""Quotas: never more of a scope at once, waiting, or begun within a span, than the one in force allows; over all jobs.

Which one that is, is told from what clients asked and were answered. While one of them waits for its answer, or nobody
knows which of two came first, nothing is said of that scope. Nor is it of runs that came in just then: they are put
under it some seconds later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from rota.values.durations import parse_duration
from tests.simulation.clients.quotas import QUOTA
from tests.simulation.world.history import Call
from tests.simulation.world.observer import Change, Finding, Seen

if TYPE_CHECKING:
    from tests.simulation.world.world import World

_KNOWN_FOR = 1.0  # that there is no quota at all, clients remember for so long
_TRAVEL = 3.0
_EXCEEDED = "QuotaExceeded"


class InForce(msgspec.Struct, frozen=True):
    """`asked`, `since`: when somebody asked for it, and was told that all is under it."""

    quota: dict[str, Any]
    asked: float
    since: float

    @property
    def at_once(self) -> int | None:
        return self.quota.get("max_concurrency")

    @property
    def queued(self) -> int | None:
        """Besides those that run; under a rate, it is not told from what is there."""
        return None if "rate" in self.quota else self.quota.get("max_queued")

    @property
    def rate(self) -> tuple[int, int] | None:
        """So many within so many microseconds."""
        if "rate" not in self.quota:
            return None
        count, _, per = self.quota["rate"].partition("/")
        return int(count), parse_duration(per) // timedelta(microseconds=1)


class QuotaChecks:
    def __init__(self, world: World) -> None:
        self._world = world
        self._made_at: dict[str, float] = {}
        self._lives: dict[tuple[str, str], list[tuple[float, int]]] = {}
        self._begun: dict[tuple[str, str], list[tuple[int, str, InForce]]] = {}
        self._far = _KNOWN_FOR + _TRAVEL * max(1.0, world.script.distance)

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.remembered, self.not_too_many_at_once, self.not_too_many_wait, self.not_too_many_begin]

    def remembered(self, change: Change) -> Iterator[Finding]:
        """Not a check: since when a run is there, and how many of its scope live."""
        seen = change.after
        if seen is not None and change.before is None:
            self._made_at[seen.id] = change.at
            self._count(seen, change.at, +1)
        if seen is not None and seen.end and not (change.before and change.before.end):
            self._count(seen, change.at, -1)
        yield from ()

    def _count(self, seen: Seen, at: float, by: int) -> None:
        known = self._lives.setdefault(seen.scope, [(0.0, 0)])
        known.append((at, known[-1][1] + by))

    def _in_force(self, scope: tuple[str, str], calls: list[Call] | None = None) -> InForce | None:
        """Its own, else that of its kind; None if there is neither, or nobody can tell."""
        asked = [call for call in calls or self._world.diary.calls if call.verb == QUOTA]
        own, general = (
            _said([call for call in asked if (call.options["kind"], call.options["id"]) == (scope[0], id)])
            for id in (scope[1], None)
        )
        if own is None or general is None:
            return None
        quota = own.quota or general.quota
        return InForce(quota, max(own.asked, general.asked), max(own.since, general.since)) if quota else None

    def _is_under(self, seen: Seen, quota: InForce) -> bool:
        """It was there when the quota came, or came when clients knew for sure that there are any."""
        made = self._made_at[seen.id]
        return made < quota.asked or (made > quota.since and self._is_known(made))

    def _is_known(self, at: float) -> bool:
        calls = [call for call in self._world.diary.calls if call.verb == QUOTA and call.options["quota"]]
        return any(call.answered_at is not None and call.answered_at < at - self._far for call in calls)

    def _beside(self, scope: tuple[str, str], quota: InForce) -> list[Seen]:
        live = self._world.observer.live.values()
        return [one for one in live if one.scope == scope and one.end is None and self._is_under(one, quota)]

    def not_too_many_at_once(self, change: Change) -> Iterator[Finding]:
        seen, quota = self._claimed(change)
        if seen is None or quota is None or quota.at_once is None:
            return
        held = [one for one in self._beside(seen.scope, quota) if one.lease]
        if len(held) > quota.at_once:
            yield QUOTA, f"{len(held)} of {seen.scope} at once, under {quota}: {', '.join(map(str, held))}"

    def _claimed(self, change: Change) -> tuple[Seen | None, InForce | None]:
        """The run, if this is its claim, and what it is under."""
        was, now = (seen.lease if seen else None for seen in (change.before, change.after))
        if now is None or change.after is None or (was and was.fence == now.fence):
            return None, None
        quota = self._in_force(change.after.scope)
        return change.after, quota if quota and self._is_under(change.after, quota) else None

    def not_too_many_wait(self, change: Change) -> Iterator[Finding]:
        """One too many is refused when it is enqueued. Replicas were asked for with their run."""
        seen = change.after
        if change.before is not None or seen is None or seen.end or seen.schedule_id or seen.parent_id:
            return
        quota = self._in_force(seen.scope)
        if quota is None or quota.queued is None or not self._is_under(seen, quota):
            return
        beside = [one for one in self._beside(seen.scope, quota) if not (one.lease and one.lease.cancel_at)]
        counted = [one for one in beside if not one.conduct and (quota.at_once is not None or not one.lease)]
        if len(counted) > (quota.at_once or 0) + quota.queued:
            yield QUOTA, f"{len(counted)} of {seen.scope} run and wait, under {quota}: {', '.join(map(str, counted))}"

    def not_too_many_begin(self, change: Change) -> Iterator[Finding]:
        seen, quota = self._claimed(change)
        if seen is None or quota is None or quota.rate is None:
            return
        count, period = quota.rate
        begun = self._begun.setdefault(seen.scope, [])
        begun.append((change.now, seen.id[-6:], quota))
        near = [one for one in begun if one[2] == quota and change.now - one[0] < period]
        if len(near) > count:
            yield QUOTA, f"{len(near)} of {seen.scope} began within {period / 1e6:g}s, under {quota}: {near}"

    def refused_for_a_reason(self) -> Iterator[Finding]:
        """Nobody is turned away while there is room."""
        calls = self._world.diary.calls
        for call in calls:
            if call.verb != "enqueue" or not (call.error or "").startswith(_EXCEEDED) or call.answered_at is None:
                continue
            scope = call.options["scope"]
            known = [one for one in calls if one.at < call.answered_at]
            quota = self._in_force(scope, known)
            if quota is None or quota.since > call.at or quota.queued is None:
                continue
            room = (quota.at_once or 0) + quota.queued
            lives = self._lives.get(scope, [(0.0, 0)])
            before = [count for at, count in lives if at <= call.at][-1:]
            most = max([*before, *(count for at, count in lives if call.at < at <= call.answered_at)])
            if most + call.options["copies"] <= room:
                yield QUOTA, f"refused, though {most} of {scope} lived, under {quota}: {call}"


def _said(calls: list[Call]) -> InForce | None:
    """The last of these that changed anything; none of them: nothing. None if two of them came at once, and one of
    those was the last, or if one has no answer."""
    said: InForce | None = InForce({}, 0.0, 0.0)
    over = 0.0
    for call in calls:
        if call.answered_at is None:
            return None
        if call.at < over:
            said = None
        elif said is None or said.quota != call.options["quota"]:
            said = InForce(call.options["quota"], call.at, call.answered_at)
        over = max(over, call.answered_at)
    return said
