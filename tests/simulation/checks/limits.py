"""P6, checked after every commit by counting rows: limits, and the overlap of a schedule's runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from rota.store.databases.statements import SQLITE
from rota.store.limits.strays import look_astray
from tests.simulation.application.jobs import JOBS
from tests.simulation.script.entries import AddSchedule, ChangeJob, ChangeSchedule, Hold, SetQuota
from tests.simulation.world.observer import Finding

if TYPE_CHECKING:
    from tests.simulation.world.observer import Change, Seen
    from tests.simulation.world.world import World

_PAUSES = "select kind, name from rota_pause"
_UNDER_RATES = """
select l.key from rota_limit l left join rota_limit b on b.key = l.blocked_by
where coalesce(l.period, b.period) is not null
"""
_ONE_AT_A_TIME = ("skip", "queue_one", "queue_all", "cancel_previous")


def of_commits(world: World) -> list[Callable[[], Iterator[Finding]]]:
    lanes = Lanes(world)
    return [lanes.limits, lanes.unique, lanes.pauses, lanes.one_at_a_time, lanes.nothing_astray]


def of_changes(world: World) -> list[Callable[[Change], Iterator[Finding]]]:
    return [Lanes(world).overlap]


class Lanes:
    def __init__(self, world: World) -> None:
        self._world = world
        self._policies: dict[str, tuple[str, dict[str, Any]]] = {}
        self._steady = _steady(world)
        self._has_quotas = any(isinstance(entry, SetQuota) for entry in world.script.entries)
        self._paused: set[tuple[str, str]] = set()
        self._held: set[tuple[str, int]] = set()

    def limits(self) -> Iterator[Finding]:
        """Never more leases of a key than its limit."""
        held = [seen for seen in self._live() if seen.lease]
        narrow = [seen for seen in held if seen.job == "narrow"]
        if len(narrow) > 2:
            yield "P6", f"{len(narrow)} runs of a job with a limit of 2 at once: {_ids(narrow)}"
        nested = [seen for seen in held if seen.job == "nested"]
        if len(nested) > 2:
            yield "P6", f"{len(nested)} runs of a job with a limit of 2 at once: {_ids(nested)}"
        scopes = Counter((seen.job, seen.scope) for seen in held if seen.job in ("keyed", "nested"))
        for (job, scope), count in scopes.items():
            if count > 1:
                yield "P6", f"{count} runs of {job} for {scope} with a limit of 1 at once"
        for id, count in Counter(seen.schedule_id for seen in held if seen.schedule_id).items():
            name, options = self._schedule(str(id))
            parallel = options.get("overlap", {}).get("mode") == "parallel"
            if count > 1 and options.get("limit", {}).get("max") == 1 and name in self._steady and not parallel:
                yield "P6", f"{count} runs of {name} with a limit of 1 at once"

    def unique(self) -> Iterator[Finding]:
        """P8: never two live runs with the same key."""
        live = Counter((seen.job, seen.scope, seen.key) for seen in self._live() if seen.key and not seen.retry_of)
        for key, count in live.items():
            if count > 1:
                yield "P8", f"{count} live runs of {key}"

    def _live(self) -> Iterable[Seen]:
        return self._world.observer.live.values()

    def pauses(self) -> Iterator[Finding]:
        """What is paused is not claimed."""
        if not any(isinstance(entry, Hold | ChangeJob) for entry in self._world.script.entries):
            return
        paused, self._paused = self._paused, {(kind, name) for kind, name in self._world.backend.look(_PAUSES)}
        for seen in self._live():
            held = (seen.id, seen.lease.fence) if seen.lease else None
            places = {("job", seen.job), ("queue", JOBS[seen.job].get("queue", "default"))}
            if held is not None and held not in self._held:
                self._held.add(held)
                if places & paused:
                    yield "pause", f"claimed though {places & paused} is paused: {seen}"

    def one_at_a_time(self) -> Iterator[Finding]:
        """Unless a policy lets them, two runs of a lane are not held at once."""
        lanes = Counter((seen.schedule_id, seen.scope) for seen in self._live() if _held(seen))
        for (id, scope), count in lanes.items():
            name, definition = self._schedule(str(id))
            mode = definition.get("overlap", {}).get("mode", "skip")
            if count > 1 and mode in _ONE_AT_A_TIME and name in self._steady:
                yield "P6", f"{count} runs of {name} for {scope} at once, though overlap is {mode}"

    def nothing_astray(self) -> Iterator[Finding]:
        """P12: what ends a run, or lets one wait, leaves nothing for the reaper to put right.

        Where transactions come one after the other; on PostgreSQL, some may fall between two. What ran already when a
        quota came, ends without knowing of it.
        """
        if self._world.backend.dialect is SQLITE and not self._has_quotas:
            found = self._world.backend.do("read", look_astray)
            forgotten = {row[0] for row in found.forgotten}
            if forgotten:  # a rate has a place again as time passes; that it is opened then is checked elsewhere
                forgotten -= {row[0] for row in self._world.backend.look(_UNDER_RATES)}
            if found.ended or found.again or forgotten or found.awaited or found.idle:
                yield "P12", f"left astray: {found}"

    def overlap(self, change: Change) -> Iterator[Finding]:
        """What a plan time gets depends on the runs of its lane that were not final before the commit."""
        seen = change.after
        if change.before is not None or seen is None or seen.plan_time is None or seen.schedule_id is None:
            return
        if change.op not in ("PlanningStore.plan", "quieten"):  # whoever catches up by hand wants them all
            return
        name, definition = self._schedule(seen.schedule_id)
        if seen.backfilled or seen.retry_of or name not in self._steady or _is_limited(definition):
            return
        mode = definition.get("overlap", {}).get("mode", "skip")
        others = [one for one in self._live() if _live_beside(one, seen)]
        created = seen.end is None
        if created and mode == "skip" and others:
            yield "P6", f"a run beside {_ids(others)}, though overlap is skip"
        if created and mode == "queue_one" and any(_waits(one) for one in others):
            yield "P6", f"a third run in the lane of {_ids(others)}, though overlap is queue_one"
        if created and mode == "parallel" and len(others) > 1:
            yield "P6", f"a third run beside {_ids(others)}, though at most 2 may be at once"
        if not created and self._reason(seen).startswith("overlap: ") and not _in_the_way(mode, others):
            yield "P6", f"skipped though nothing is in its way: {self._reason(seen)}"
        if not created and mode in ("allow", "queue_all", "cancel_previous"):
            reason = self._reason(seen)
            if not reason.startswith(("failure", "superseded")):
                yield "P6", f"skipped, though overlap is {mode}: {reason}"

    def _reason(self, seen: Seen) -> str:
        ((reason,),) = self._world.backend.look(f"select reason from rota_run where id = '{seen.id}'")
        return str(reason)

    def _schedule(self, id: str) -> tuple[str, dict[str, Any]]:
        if id not in self._policies:
            sql = f"select name, definition from rota_schedule where id = '{id}'"
            ((name, definition),) = self._world.backend.look(sql)
            self._policies[id] = (name, msgspec.json.decode(definition))
        return self._policies[id]


def _steady(world: World) -> set[str]:
    """Schedules whose runs come from their rule alone, and whose rule is never changed."""
    entries = world.script.entries
    touched = {
        entry.name
        for entry in entries
        if isinstance(entry, ChangeSchedule) and entry.verb in ("update", "trigger", "backfill")
    }
    return {entry.name for entry in entries if isinstance(entry, AddSchedule)} - touched


def _is_limited(definition: dict[str, Any]) -> bool:
    """Whether its own limit has a say; not if all that are under it make way."""
    makes_way = definition.get("overlap", {}).get("mode") == "cancel_previous" and not definition.get("scopes")
    return "limit" in definition and not makes_way


def _held(seen: Seen) -> bool:
    return seen.lease is not None and seen.schedule_id is not None and seen.retry_of is None


def _live_beside(one: Seen, seen: Seen) -> bool:
    same = (one.schedule_id, one.scope) == (seen.schedule_id, seen.scope)
    return same and one.id != seen.id and one.end is None


def _in_the_way(mode: str, others: list[Seen]) -> bool:
    """Whether these keep a plan time from its run; with `parallel`, two may be at once."""
    if mode == "queue_one":
        return any(_waits(one) for one in others)
    return len(others) >= (2 if mode == "parallel" else 1)


def _waits(seen: Seen) -> bool:
    return seen.place is not None and seen.place.fence == 0


def _ids(runs: list[Seen]) -> str:
    return ", ".join(seen.id[-6:] for seen in runs)
