"""Limits and unique keys in a simulation, as if there were no other runs than those of one schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import assert_never

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.payload_template import check_template, filled
from rota.core.jobs.unique import KeyHold, OnConflict
from rota.core.limits.limits import UNLIMITED, Gate, Rejection, admission
from rota.core.planning.overlap_and_failure import Create
from rota.core.planning.tick import ScheduleState
from rota.core.runs.options import gates_of, key_holds, with_limits_of_schedule
from rota.errors import DuplicateRun, NotRepeatable
from rota.values.scope import Scope

PLAIN = Create()


@dataclass(slots=True)
class _Place:
    gates: tuple[Gate, ...]
    running: bool = False


class _Held(msgspec.Struct, frozen=True):
    """Holder of a key: a run, until when at least, and whether its work is done once and for all."""

    run_id: str
    until: int
    done: bool = False


class SimulatedLimits:
    """Simulated limits and keys of runs that wait or run. `decides`: they have a say in what a plan time gets."""

    def __init__(self, standing: ScheduleState, job: JobDefinition | None) -> None:
        self._standing, self._job = standing, job
        definition = standing.definition
        self._templated = check_template(definition.payload, after=definition.awaited is not None)
        self._payload = msgspec.json.encode(definition.payload).decode()
        self._keyed = job is not None and (job.unique is not None or not job.repeatable)
        self._runs: dict[str, _Place] = {}
        self._runs_by_limit: dict[str, dict[str, Gate]] = {}
        self._running: Counter[str] = Counter()
        self._leaving: set[str] = set()
        self._keys: dict[str, _Held] = {}
        self._starts: dict[str, list[int]] = {}
        limits = [*(() if definition.limit is None else (definition.limit,)), *(job.limits if job else ())]
        self.decides = self._keyed or any(limit.decides for limit in limits)

    def gates(self, run_id: str) -> tuple[Gate, ...]:
        return self._runs[run_id].gates

    def enter(self, run_id: str, scope: Scope, at: int, create: Create = PLAIN) -> None:
        place = self._runs[run_id] = _Place(self._gates(scope, at, create))
        for gate in place.gates:
            self._runs_by_limit.setdefault(gate.key, {})[run_id] = gate

    def begin(self, run_id: str, now: int) -> None:
        self._runs[run_id].running = True
        for gate in self._runs[run_id].gates:
            self._running[gate.key] += 1
            if gate.period is not None:
                self._starts.setdefault(gate.key, []).append(now)

    def wait(self, run_id: str) -> None:
        """Free the slots of a run that waits for its retry."""
        self._runs[run_id].running = False
        for gate in self._runs[run_id].gates:
            self._running[gate.key] -= 1

    def stay(self, run_id: str) -> None:
        """Count a run again that was to make way, but cannot be stopped."""
        self._leaving.discard(run_id)

    def leave(self, run_id: str, *, succeeded: bool) -> None:
        place = self._runs.pop(run_id)
        self._leaving.discard(run_id)
        for gate in place.gates:
            del self._runs_by_limit[gate.key][run_id]
            self._running[gate.key] -= place.running
        for key, held in list(self._keys.items()) if succeeded and self._keyed else ():
            if held.run_id == run_id:
                self._keys[key] = msgspec.structs.replace(held, done=True)

    def refuse(self, run_id: str, scope: Scope, plan_time: int, create: Create, now: int) -> str | tuple[str, ...]:
        """Return why a run is refused; or admit it, and return the runs that give way to it besides those it displaces.

        Once admitted, it counts for all that come after it.
        """
        gates = self._gates(scope, plan_time, create)
        answer = admission(gates, {gate.key: self._counted(gate, create, now) for gate in gates if gate.decides})
        if isinstance(answer, Rejection):
            return answer.reason
        if self._keyed and (reason := self._take_keys(run_id, scope, plan_time, create, now)) is not None:
            return reason
        stops: dict[str, None] = {}
        for key, count in answer.stops:
            stops.update(dict.fromkeys([other for other in self._others(key, create) if other not in stops][:count]))
        self._leaving |= {*create.displaces, *stops}
        self.enter(run_id, scope, plan_time, create)
        return tuple(stops)

    def opens_at(self, run_id: str, now: int) -> int | None:
        """Return when its limits have room: now, at the end of a span of a rate, or (None) when another run ends."""
        gates = self._runs[run_id].gates
        if any(self._running[gate.key] >= gate.max for gate in gates if gate.period is None):
            return None
        return max([now, *(begun[0] + gate.period for gate, begun in self._full_rates(gates, now) if gate.period)])

    def _full_rates(self, gates: tuple[Gate, ...], now: int) -> Iterator[tuple[Gate, list[int]]]:
        for gate in gates:
            begun = self._recent(gate, now)
            if gate.period is not None and len(begun) >= gate.max:
                yield gate, begun[-gate.max :]

    def _gates(self, scope: Scope, at: int, create: Create) -> tuple[Gate, ...]:
        own = self._standing.definition.gates(self._standing.id, unlimited=create.unlimited)
        if self._job is None:
            return own
        gates = gates_of(self._job, scope, self._text(scope, at), unlimited=create.unlimited)
        return with_limits_of_schedule(gates, own)

    def _text(self, scope: Scope, at: int) -> str:
        if not self._templated or self._standing.definition.awaited is not None:
            return self._payload
        value = filled(self._standing.definition.payload, self._standing.name, scope, at)
        return msgspec.json.encode(value).decode()

    def _counted(self, gate: Gate, create: Create, now: int) -> int:
        """Count the runs under a limit as the database does.

        Runs that make way do not count. Under a rate, or where only waiting runs are limited, running ones do not
        count; but under a rate, starts count for the length of its period.
        """
        waits_only = gate.period is not None or gate.max >= UNLIMITED
        others = self._others(gate.key, create)
        return sum(not (waits_only and self._runs[run_id].running) for run_id in others) + self._spent(gate, now)

    def _others(self, key: str, create: Create) -> list[str]:
        """Return the other runs under a limit, the oldest first."""
        going = self._leaving.union(create.displaces)
        return [run_id for run_id in self._runs_by_limit.get(key, ()) if run_id not in going]

    def _recent(self, gate: Gate, now: int) -> list[int]:
        if gate.period is None or gate.key not in self._starts:
            return []
        self._starts[gate.key] = starts = [at for at in self._starts[gate.key] if at > now - gate.period]
        return starts

    def _spent(self, gate: Gate, now: int) -> int:
        return min(gate.max, len(self._recent(gate, now)))

    def _take_keys(self, run_id: str, scope: Scope, at: int, create: Create, now: int) -> str | None:
        assert self._job is not None
        holds = key_holds(self._job, scope, None, self._text(scope, at), {})
        for hold in holds:
            if (reason := self._conflict(hold, create.displaces, now)) is not None:
                return reason
        for hold in holds:
            self._keys[hold.key] = _Held(run_id, now + (hold.period or 0))
        return None

    def _conflict(self, hold: KeyHold, displaced: Collection[str], now: int) -> str | None:
        held = self._keys.get(hold.key)
        if held is None:
            return None
        there = self._runs.get(held.run_id)
        if held.run_id in displaced and not (hold.once and there is not None and there.running):
            return None
        if there is None and held.until <= now and not (hold.once and held.done):
            return None
        assert self._job is not None
        if hold.once:
            return str(NotRepeatable(self._job.name, held.run_id))
        match hold.on_conflict:
            case OnConflict.REJECT:
                return str(DuplicateRun(self._job.name, held.run_id))
            case OnConflict.EXISTING | OnConflict.REPLACE:
                return f"unique: run {held.run_id} does this work"
            case _:
                assert_never(hold.on_conflict)
