"""Limits and unique keys of a simulated world: the facts that admission asks for, and what runs do to them.

Which runs begin is decided as in the database: by the functions of `core.limits.turns`, from limits that are opened and
shut by the same events as the rows of the store (`store.limits.slots`, `store.limits.rates`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.payload_template import check_template, filled
from rota.core.jobs.unique import KeyHold
from rota.core.limits.limits import UNLIMITED, Gate
from rota.core.limits.lines import in_line
from rota.core.limits.turns import Candidate, KeyHead, Shut, changes, hand_out, in_turn
from rota.core.planning.overlap_and_failure import Create
from rota.core.planning.tick import ScheduleState
from rota.core.runs.admit import Applicant, Facts, Holder, Verdict, decide
from rota.core.runs.options import gates_of, key_holds, with_limits_of_schedule
from rota.values.scope import Scope


@dataclass(slots=True)
class _Place:
    gates: tuple[Gate, ...]
    age: int
    running: bool = False
    begun: bool = False
    leaving: bool = False

    def counts(self, gate: Gate) -> bool:
        """Return whether it counts under a limit, as in the database: not if it was asked to stop; under a rate, or
        where only waiting runs are limited, not if it runs.
        """
        waits_only = gate.period is not None or gate.max >= UNLIMITED
        return not self.leaving and not (waits_only and self.running)


class StandingLimit(msgspec.Struct, frozen=True):
    """Limit as it is at the start of a simulation: as the last claims left it."""

    key: str
    max: int
    period: int | None
    shut: int
    served_at: int
    blocked_by: str | None
    opens_at: int | None


@dataclass(slots=True)
class _Limit:
    gate: Gate
    served_at: int
    shut: Shut = Shut.OPEN
    blocked_by: str | None = None
    opens_at: int | None = None

    def open(self) -> None:
        self.shut, self.blocked_by = Shut.OPEN, None


Waiting = tuple[int, int, str]
"""Run that waits for a worker: since when, its number, its id. In the order of claims: all have the same priority."""
FirstUnder = Callable[[str], Waiting | None]
"""First run that is due and waits under a limit."""


class HeldKey(msgspec.Struct, frozen=True):
    """Key of a run, until when it is held at least, and whether its work is done once and for all."""

    run_id: str
    until: int = 0
    once: bool = False
    done: bool = False


class SimulatedLimits:
    """Limits and keys of all runs of a simulated world. `decides`: they have a say in what a plan time gets."""

    def __init__(
        self, standing: ScheduleState, job: JobDefinition | None, quotas: Mapping[Scope, tuple[Gate, ...]]
    ) -> None:
        self._standing, self._job, self._quotas = standing, job, quotas
        definition = standing.definition
        self._templated = check_template(definition.payload, after=definition.awaited is not None)
        self._payload = msgspec.json.encode(definition.payload).decode()
        self._keyed = job is not None and (job.unique is not None or not job.repeatable)
        self._stoppable = job is None or job.cancel.supported
        self._runs: dict[str, _Place] = {}
        self._runs_by_limit: dict[str, dict[str, Gate]] = {}
        self._running: Counter[str] = Counter()
        self._keys: dict[str, HeldKey] = {}
        self._starts: dict[str, list[int]] = {}
        self._limits: dict[str, _Limit] = {}
        self._ages = 0
        self._freed: set[str] = set()
        limits = [*(() if definition.limit is None else (definition.limit,)), *(job.limits if job else ())]
        quota_gates = [gate for gates in quotas.values() for gate in gates]
        self.decides = self._keyed or any(bound.decides for bound in (*limits, *quota_gates))

    def ask(self, run_id: str, scope: Scope, plan_time: int, create: Create, now: int) -> tuple[Applicant, Verdict]:
        """Ask whether a run may be, with the function that planning asks; return who asked, and the decision."""
        run = self._applicant(run_id, scope, plan_time, create)
        for gate in run.gates:
            if gate.decides:
                self._limits.setdefault(gate.key, _Limit(gate, now))  # whoever asks makes it, to lock it
        return run, decide(run, self._facts(run, now))

    def enter(self, run_id: str, gates: tuple[Gate, ...], now: int, *, begun: bool = False) -> None:
        """Put a run under its limits, or under others than before."""
        self._ages += run_id not in self._runs
        place = self._runs.get(run_id) or _Place((), self._ages, begun=begun)
        for gate in place.gates:
            del self._runs_by_limit[gate.key][run_id]
        place.gates = in_line(gates)
        self._runs[run_id] = place
        for gate in place.gates:
            self._runs_by_limit.setdefault(gate.key, {})[run_id] = gate
            self._limits.setdefault(gate.key, _Limit(gate, now))

    def take_keys(self, run_id: str, holds: Iterable[KeyHold], now: int) -> None:
        for hold in holds:
            until = 0 if hold.period is None else now + hold.period
            self._keys[hold.key] = HeldKey(run_id, until, hold.once)

    def take_over_facts(
        self,
        keys: Mapping[str, HeldKey],
        starts: Mapping[str, Iterable[int]],
        limits: Iterable[StandingLimit],
    ) -> None:
        """Take over the keys that are held at the start, the begins that rates count, and the limits."""
        self._keys.update(keys)
        for known in limits:
            # Under which nobody waits: it is as good as open, because the next run that is due opens it.
            shut = Shut.OPEN if known.shut == Shut.NOBODY_WAITS else Shut(known.shut)
            gate = Gate(known.key, known.max, period=known.period)
            self._limits[known.key] = _Limit(gate, known.served_at, shut, known.blocked_by, known.opens_at)
        self._starts.update({key: sorted(begun) for key, begun in starts.items()})

    def begin(self, run_id: str, at: int, *, counted: bool = False) -> None:
        """Take the slots of a run; `counted`: rates know of its begin."""
        place = self._runs[run_id]
        place.running = place.begun = True
        for gate in place.gates:
            self._running[gate.key] += 1
            if gate.period is not None and not counted:
                self._starts.setdefault(gate.key, []).append(at)

    def wait(self, run_id: str) -> None:
        """Free the slots of a run that waits for its retry."""
        place = self._runs[run_id]
        place.running = False
        for number, gate in enumerate(place.gates):
            self._running[gate.key] -= 1
            if gate.period is None or number == 0:
                self._freed.add(gate.key)

    def stop(self, run_id: str) -> None:
        """Count a run no more that was asked to stop."""
        self._runs[run_id].leaving = True

    def leave(self, run_id: str, *, succeeded: bool) -> None:
        place = self._runs.pop(run_id)
        for gate in place.gates:
            del self._runs_by_limit[gate.key][run_id]
            self._running[gate.key] -= place.running
            if place.running and gate.period is None:
                self._freed.add(gate.key)
        for key, held in list(self._keys.items()) if succeeded else ():
            if held.run_id == run_id:
                self._keys[key] = msgspec.structs.replace(held, done=True)

    def open_freed(self, now: int, first: FirstUnder) -> None:
        """Open the limits of attempts that ended, and of those that waited for these as many as there is room for."""
        freed, self._freed = sorted(self._freed), set()
        for key in freed:
            if self._limits[key].shut == Shut.FULL:
                self._limits[key].open()
        for key in freed:
            self._unblock(key, self._free(self._limits[key].gate, now), first)

    def open_due(self, now: int, first: FirstUnder) -> None:
        """Open the rates that have a place again."""
        due = sorted((limit.opens_at, key) for key, limit in self._limits.items() if limit.opens_at is not None)
        for _, key in [(at, key) for at, key in due if at <= now]:
            limit = self._limits[key]
            limit.opens_at = None
            free = self._free(limit.gate, now)
            if free > 0 and limit.shut == Shut.FOR_A_WHILE:
                limit.shut = Shut.OPEN
            if not free > 0 or self._unblock(key, free, first):
                limit.opens_at = self._opening(limit.gate, now)

    def _unblock(self, key: str, count: int, first: FirstUnder) -> bool:
        """Open the next limits that wait for this one, as many, and those without anybody who waits; return whether
        others are left.
        """
        if count <= 0:
            return False
        blocked = {name: first(name) for name, limit in self._limits.items() if limit.blocked_by == key}
        waiting = self._in_turn({name: head for name, head in blocked.items() if head is not None})
        for name in blocked.keys() - waiting[count:]:
            self._limits[name].open()
        return len(waiting) > count

    def _in_turn(self, heads: Mapping[str, Waiting]) -> list[str]:
        served = sorted(heads, key=lambda key: (self._limits[key].served_at, key))
        return in_turn(KeyHead(key, 0, heads[key][0], _sortable(heads[key])) for key in served)

    def key_of(self, run_id: str) -> str:
        """Return the limit by which a run is found: its narrowest; an empty one if it has none."""
        gates = self._runs[run_id].gates
        return gates[0].key if gates else ""

    def is_open(self, key: str) -> bool:
        return self._limits[key].shut == Shut.OPEN

    def claim(
        self, heads: Mapping[str, Waiting], first: Callable[[str, int], list[Waiting]], slots: int, now: int
    ) -> list[str]:
        """Choose the limited runs that begin now, at most so many, as a claim does; change the limits as it does.

        `heads`: the first run under each open limit under which one waits. `first` has so many of a limit.
        """
        keys = self._in_turn(heads)
        free = {key: self._free(self._limits[key].gate, now) for key in keys}
        ids: dict[str, str] = {}
        waiting: dict[str, list[Candidate]] = {}
        for key in keys:
            waiting[key] = []
            for run in first(key, min(free[key], slots)):
                wider = tuple(gate.key for gate in self._runs[run[2]].gates[1:])
                ids[_sortable(run)] = run[2]
                waiting[key].append(Candidate(_sortable(run), key, wider, run_at=run[0]))
                free.update({name: self._free(self._limits[name].gate, now) for name in wider if name not in free})
        handed = hand_out(waiting, free, slots)
        begun = Counter(key for run in handed.taken for key in (run.key, *run.wider))
        gates = {key: self._limits[key].gate for key in free if handed.left[key] <= 0}
        opening = {key: self._opening(gate, now, begun[key]) for key, gate in gates.items() if gate.period is not None}
        for change in changes(handed, opening):
            limit = self._limits[change.key]
            if change.shut is not None:
                limit.shut, limit.blocked_by = change.shut, change.blocked_by
            limit.served_at = now if change.served else limit.served_at
            limit.opens_at = limit.opens_at if change.opens_at is None else change.opens_at
        return [ids[run.run_id] for run in handed.taken]

    def opens_at(self) -> int | None:
        """Return when the first of the rates that are full has a place again."""
        return min((limit.opens_at for limit in self._limits.values() if limit.opens_at is not None), default=None)

    def _opening(self, gate: Gate, now: int, begun: int = 0) -> int:
        """Return when a rate has a place again; `begun`: how many begin now that are not counted yet."""
        assert gate.period is not None
        recent = [*self._recent(gate, now), *[now] * begun]
        return (recent[0] if recent else now) + gate.period

    def _free(self, gate: Gate, now: int) -> int:
        return gate.max - (self._running[gate.key] if gate.period is None else len(self._recent(gate, now)))

    def _applicant(self, run_id: str, scope: Scope, at: int, create: Create) -> Applicant:
        own = self._standing.definition.gates(self._standing.id, self._standing.name, unlimited=create.unlimited)
        quota = self._quotas.get(scope, ())
        if self._job is None:
            return Applicant(run_id, self._standing.definition.job, (*own, *quota), displaces=create.displaces)
        payload = self._text(scope, at)
        gates = with_limits_of_schedule(gates_of(self._job, scope, payload, unlimited=create.unlimited), own)
        holds = key_holds(self._job, scope, None, payload, {}) if self._keyed else ()
        return Applicant(run_id, self._job.name, (*gates, *quota), holds, create.displaces)

    def _text(self, scope: Scope, at: int) -> str:
        if not self._templated or self._standing.definition.awaited is not None:
            return self._payload
        value = filled(self._standing.definition.payload, self._standing.name, scope, at)
        return msgspec.json.encode(value).decode()

    def _facts(self, run: Applicant, now: int) -> Facts:
        """Return what the database would be read for, under its locks."""
        facts = Facts(now=now)
        for gate in run.gates:
            if gate.decides:
                under = self._runs_by_limit.get(gate.key, {})
                there = [id for id, own in under.items() if self._runs[id].counts(own)]
                facts.counts[gate.key] = len(there) + len(self._recent(gate, now))
                if gate.stops_oldest:
                    facts.oldest[gate.key] = sorted(there, key=lambda id: self._runs[id].age)
        touched = {id for id in run.displaces if id in self._runs}.union(*facts.oldest.values())
        for id in touched:
            place = self._runs[id]
            facts.places[id] = tuple(gate.key for gate in place.gates if place.counts(gate))
        facts.fixed = {id for id in touched if not self._stoppable and self._runs[id].running}
        facts.holders = {hold.key: self._holder(held) for hold in run.holds if (held := self._keys.get(hold.key))}
        return facts

    def _holder(self, held: HeldKey) -> Holder:
        place = self._runs.get(held.run_id)
        # What was superseded by the same tick waits no more, though it is still there.
        live = place is not None and (place.running or not place.leaving)
        waits, begun = (live and not place.running, place.begun) if place is not None else (False, False)
        return Holder(held.run_id, held.until, held.once, live=live, waits=waits, begun=begun, done=held.done)

    def _recent(self, gate: Gate, now: int) -> list[int]:
        if gate.period is None or gate.key not in self._starts:
            return []
        self._starts[gate.key] = starts = [at for at in self._starts[gate.key] if at > now - gate.period]
        return starts


def _sortable(run: Waiting) -> str:
    """Return an id that sorts as the runs were made, as those of the database do."""
    return f"{run[1]:016d}"
