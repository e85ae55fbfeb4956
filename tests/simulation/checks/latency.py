"""Promises that say how soon: checked only while nothing goes wrong and nobody is far away (P9, P12, P13, P15, P19)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from tests.simulation.checks.coordination.eligibility import Eligibility
from tests.simulation.checks.coordination.rates import patience
from tests.simulation.script.entries import Jump
from tests.simulation.world.note_observer import Effect
from tests.simulation.world.observer import Finding
from tests.simulation.world.processes import CONFIG

if TYPE_CHECKING:
    from tests.simulation.world.history import Deed
    from tests.simulation.world.observer import Change, Seen
    from tests.simulation.world.world import World


LATE = 9.0
"""Seconds. An operation may take three of them, and a step has several."""
SETTLED = 20.0
"""Seconds after the last trouble: a lease, the reaper's caution, a heartbeat."""
_JITTER = 2_000_000
_RECOVERED = 5.0
_REAPED = (CONFIG.reaper + CONFIG.heartbeat).total_seconds() + 2 * 3.0 + 2.0
"""Its interval, its caution, an operation or two on their way, and a second."""
_OVERDUE = """
select s.name, s.next_at, s.awaits, r.finished_at from rota_schedule_now s left join rota_run r on r.id = s.awaits
where s.enabled = 1 and s.paused_at is null and s.job_paused = 0 and s.deleted_at is null
order by s.name
"""
_LEASE = CONFIG.lease.total_seconds()


class Latency:
    def __init__(self, world: World) -> None:
        self._world = world
        self._eligibility = Eligibility(world)
        self._idle_since: dict[str, float] = {}
        self._renewed_at: dict[tuple[str, int], float] = {}
        self._definitions: dict[str, dict[str, Any]] = {}
        self._judged = 0
        self._set_back_at = [one.at for one in world.script.entries if isinstance(one, Jump) and one.by < 0]
        self._untold: dict[tuple[str, int], Deed] = {}

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.planned_on_time, self.no_needless_loss]

    def of_commits(self) -> list[Callable[[], Iterator[Finding]]]:
        return [
            self.not_left_waiting,
            self.begun_in_time,
            self.nothing_goes_on_in_vain,
            self.taken_away_in_time,
            self.told_in_time,
        ]

    def _is_calm(self, span: float) -> bool:
        now = self._world.loop.time()
        return now >= span and self._world.is_calm(now - span, now)

    def planned_on_time(self, change: Change) -> Iterator[Finding]:
        """P19: with hints or without, a plan time is decided soon after it is due, and its run not before."""
        seen = change.after
        if change.before is not None or seen is None or seen.plan_time is None or seen.schedule_id is None:
            return
        if seen.retry_of or seen.backfilled:
            return
        delay = self._delay(seen.schedule_id)
        yield from self._follows(seen)
        if not 0 <= seen.run_at - seen.plan_time - int(delay * 1e6) <= _JITTER:
            yield "P2", f"to be run {(seen.run_at - seen.plan_time) / 1e6:.3f}s after its plan time, not {delay:g}s"
        late = (change.now - (seen.covers_from or seen.plan_time)) / 1e6 - delay
        if change.op in ("PlanningStore.plan", "quieten") and late > LATE and self._is_calm(late + SETTLED):
            yield "P19", f"planned {late:.3f}s late, though nothing was in the way"

    def _follows(self, seen: Seen) -> Iterator[Finding]:
        """P2: what is to run some time after the last run has ended does so not earlier."""
        trigger = self._definitions[str(seen.schedule_id)]["rule"]["trigger"]
        if trigger["type"] != "after" or seen.plan_time is None or self._world.clock.jumped < 0:
            return
        before = [one for one in self._world.observer.runs.values() if _is_before(one, seen)]
        last = max(before, key=lambda one: one.plan_time or 0, default=None)
        distance = msgspec.convert(trigger["interval"], timedelta) // timedelta(microseconds=1)
        if last is not None and (last.end is None or seen.plan_time < last.end.finished_at + distance):
            yield "P2", f"planned less than {distance / 1e6:g}s after the end of {last}"

    def _delay(self, id: str) -> float:
        ((text,),) = self._world.backend.look(f"select definition from rota_schedule where id = '{id}'")
        self._definitions[id] = msgspec.json.decode(text)
        return msgspec.convert(self._definitions[id].get("delay", "PT0S"), timedelta).total_seconds()

    def no_needless_loss(self, change: Change) -> Iterator[Finding]:
        """P12: whoever lives and can reach the database keeps what it holds, and knows of all of it."""
        was, now = (seen.lease if seen else None for seen in (change.before, change.after))
        if now is not None and (was is None or was.expires_at != now.expires_at):
            self._renewed_at[change.run_id, now.fence] = change.at
        if change.op != "Store.reap" or was is None or now is not None or was.cancel_at is not None:
            return
        if was.worker.startswith("outsider"):  # they may forget it
            return
        if was.worker not in self._world.deaths and self._is_calm(_LEASE + SETTLED):
            yield "P12", f"the lease of {was.worker} ran out, and nothing is the matter with it"

    def not_left_waiting(self) -> Iterator[Finding]:
        """P12, P19: what is due and held back by nothing does not wait while everybody is idle."""
        now, micros = self._world.loop.time(), self._world.clock.micros()
        runs = self._world.observer.live.values()
        busy = any(seen.lease or seen.external for seen in runs) or self._world.holds_anything
        waiting = {seen.id for seen in runs if seen.place and seen.place.hold != 3 and seen.place.run_at <= micros}
        for id in self._idle_since.keys() - waiting if not busy else list(self._idle_since):
            del self._idle_since[id]
        for id in waiting if not busy else ():
            since = self._idle_since.setdefault(id, now)
            if now - since > LATE and self._is_calm(LATE + SETTLED) and self._could_begin(id, now - since):
                yield "P12", f"due, and left waiting for {now - since:.3f}s: {self._world.observer.runs[id]}"

    def _could_begin(self, id: str, waited: float) -> bool:
        """Somebody is there who may have it, and its rate has had a place."""
        seen = self._world.observer.runs[id]
        return waited > LATE + patience(seen) and self._eligibility.somebody_may_begin(seen)

    def taken_away_in_time(self) -> Iterator[Finding]:
        """P12: what a dead worker held can be claimed again soon after its lease has ended."""
        now = self._world.loop.time()
        for seen in self._world.observer.live.values():
            held = self._renewed_at.get((seen.id, seen.lease.fence)) if seen.lease else None
            if held is not None and self._was_set_back(held):  # until the clock comes there again
                continue
            if held is not None and now - held - _LEASE > _REAPED and self._is_calm(_REAPED + SETTLED):
                yield "P12", f"its lease ended {now - held - _LEASE:.3f}s ago, and nobody takes it: {seen}"

    def _was_set_back(self, since: float) -> bool:
        return any(since <= at <= self._world.loop.time() for at in self._set_back_at)

    def told_in_time(self) -> Iterator[Finding]:
        """P12: that a handler has returned is told soon, even if what it said cannot be written."""
        now, world = self._world.loop.time(), self._world
        for (run_id, fence), deed in list(self._untold.items()):
            seen = world.observer.runs.get(run_id)
            if seen is None or seen.lease is None or seen.lease.fence != fence or deed.worker in world.deaths:
                del self._untold[run_id, fence]
            elif now > deed.at + LATE and world.is_calm(deed.at - _RECOVERED, now, grave=True):
                yield "P12", f"returned {now - deed.at:.3f}s ago, and nobody is told: {deed}"

    def nothing_is_overdue(self) -> Iterator[Finding]:
        """P19: planners look by themselves, for what is due and for runs that somebody waits for."""
        settled = self._world.loop.time() >= (self._world.healed_at or 0.0) + LATE  # scopes, too, can be read again
        if self._world.script.distance > 1.0 or not self._is_calm(LATE) or not settled:
            return
        now = self._world.clock.micros()
        for name, next_at, awaits, finished_at in self._world.backend.look(_OVERDUE):
            if next_at is not None and next_at < now - LATE * 1e6:
                yield "P19", f"{name} has been due for {(now - next_at) / 1e6:.3f}s"
            if next_at is None and finished_at is not None and finished_at < now - LATE * 1e6:
                yield "P19", f"{name} awaits run {str(awaits)[-6:]}, which has been over for long"

    def begun_in_time(self) -> Iterator[Finding]:
        """P9: no handler begins on a lease that has run out."""
        deeds = self._world.diary.deeds
        for deed in deeds[self._judged :]:
            renewed = self._renewed_at.get((deed.run_id, deed.fence))
            if deed.what == "returned":
                self._untold[deed.run_id, deed.fence] = deed
            if deed.what == "began" and renewed is not None and deed.at > renewed + _LEASE + 0.001:
                yield "P9", f"begun {deed.at - renewed:.3f}s after its lease was renewed: {deed}"
        self._judged = len(deeds)

    def nothing_goes_on_in_vain(self) -> Iterator[Finding]:
        """P9: a handler whose lease is lost is stopped soon, wherever it runs."""
        world = self._world
        if world.healed_at is None or world.loop.time() < world.healed_at + SETTLED or world.script.distance > 1.0:
            return
        running = {}
        for deed in world.diary.deeds:
            if deed.what == "began":
                running[deed.run_id, deed.fence] = deed
            elif deed.what != "effect":
                running.pop((deed.run_id, deed.fence), None)
        for (run_id, fence), deed in running.items():
            seen = world.observer.runs.get(run_id)
            alive = deed.worker not in world.deaths and "stubborn" not in deed.detail
            if Effect(run_id, fence, 1) in world.note_observer.effects:  # it gave it up itself, with a transaction
                continue
            if alive and (seen is None or seen.lease is None or seen.lease.fence != fence):
                yield "P9", f"goes on though its lease is lost: {deed}"

    def left_behind(self, worker: str, since: float) -> Iterator[Finding]:
        """P13, P22: whoever stops by itself gives everything back."""
        world = self._world
        left: list[Seen] = [s for s in world.observer.runs.values() if s.lease and s.lease.worker == worker]
        troubles = [trouble for trouble in world.troubles if trouble[0] > since]
        if left and not troubles and world.is_calm(since - _RECOVERED, since - 0.001):
            yield "P13", f"{worker} stopped, and holds {', '.join(map(str, left))} still"


def _is_before(one: Seen, seen: Seen) -> bool:
    """An earlier run of the same lane, by the rule."""
    same = (one.schedule_id, one.scope) == (seen.schedule_id, seen.scope) and not one.retry_of and not one.backfilled
    return same and one.id != seen.id and one.plan_time is not None and one.plan_time < (seen.plan_time or 0)
