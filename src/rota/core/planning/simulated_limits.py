"""Limits and unique keys of a simulated world: the facts that admission asks for, and what runs do to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.payload_template import check_template, filled
from rota.core.jobs.unique import KeyHold
from rota.core.limits.limits import UNLIMITED, Gate
from rota.core.limits.turns import Candidate, hand_out
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
        self._served: dict[str, int] = {}
        self._ages = 0
        self._freed: set[str] = set()
        self._rates: dict[str, Gate] = {}
        limits = [*(() if definition.limit is None else (definition.limit,)), *(job.limits if job else ())]
        quota_gates = [gate for gates in quotas.values() for gate in gates]
        self.decides = self._keyed or any(bound.decides for bound in (*limits, *quota_gates))

    def ask(self, run_id: str, scope: Scope, plan_time: int, create: Create, now: int) -> tuple[Applicant, Verdict]:
        """Ask whether a run may be, with the function that planning asks; return who asked, and the decision."""
        run = self._applicant(run_id, scope, plan_time, create)
        return run, decide(run, self._facts(run, now))

    def enter(self, run_id: str, gates: tuple[Gate, ...], now: int, *, begun: bool = False) -> None:
        """Put a run under its limits, or under others than before."""
        self._ages += run_id not in self._runs
        place = self._runs.get(run_id) or _Place((), self._ages, begun=begun)
        for gate in place.gates:
            del self._runs_by_limit[gate.key][run_id]
        place.gates = gates
        self._runs[run_id] = place
        for gate in gates:
            self._runs_by_limit.setdefault(gate.key, {})[run_id] = gate
            self._served.setdefault(gate.key, now)
            if gate.period is not None:
                self._rates[gate.key] = gate

    def take_keys(self, run_id: str, holds: Iterable[KeyHold], now: int) -> None:
        for hold in holds:
            until = 0 if hold.period is None else now + hold.period
            self._keys[hold.key] = HeldKey(run_id, until, hold.once)

    def take_over_facts(self, keys: Mapping[str, HeldKey], starts: Mapping[str, Iterable[int]]) -> None:
        """Take over the keys that are held at the start, and the begins that rates count."""
        self._keys.update(keys)
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
        self._note_freed(place)
        for gate in place.gates:
            self._running[gate.key] -= 1

    def stop(self, run_id: str) -> None:
        """Count a run no more that was asked to stop."""
        self._runs[run_id].leaving = True

    def leave(self, run_id: str, *, succeeded: bool) -> None:
        place = self._runs.pop(run_id)
        self._note_freed(place)
        for gate in place.gates:
            del self._runs_by_limit[gate.key][run_id]
            self._running[gate.key] -= place.running
        for key, held in list(self._keys.items()) if succeeded else ():
            if held.run_id == run_id:
                self._keys[key] = msgspec.structs.replace(held, done=True)

    def _note_freed(self, place: _Place) -> None:
        if place.gates and place.gates[0].period is None:
            self._freed.add(place.gates[0].key)

    def pass_turns(self, ready: Mapping[str, Collection[object]], now: int) -> None:
        """Let limits wait for their next turn that had room for a run, and none that waits."""
        for key in self._freed:
            if not ready.get(key):
                self._served[key] = now
        self._freed.clear()

    def key_of(self, run_id: str) -> str:
        """Return the limit by which a run is found: its narrowest; an empty one if it has none."""
        gates = self._runs[run_id].gates
        return gates[0].key if gates else ""

    def free(self, keys: Iterable[str], now: int) -> dict[str, int]:
        """Return those of these limits that have room, and for how many; the limits take turns, the first is next."""
        room = {"": UNLIMITED}
        for key in keys:
            gate = next(iter(self._runs_by_limit.get(key, {}).values()), None)
            room[key] = UNLIMITED if not key else 0 if gate is None else self._free(gate, now)
        in_turn = sorted(keys, key=lambda key: (self._served.get(key, 0), key))
        return {key: room[key] for key in in_turn}

    def begins(self, waiting: Mapping[str, list[str]], slots: int, now: int, rates_at: int) -> list[str]:
        """Choose those of the limited runs that begin now, at most so many, as a claim does: the limits take turns."""
        candidates: dict[str, list[Candidate]] = {}
        gates: dict[str, Gate] = {}
        for key, run_ids in waiting.items():
            for run_id in run_ids:
                own = self._runs[run_id].gates
                gates.update({gate.key: gate for gate in own})
                candidates.setdefault(key, []).append(Candidate(run_id, key, tuple(gate.key for gate in own[1:])))
        free = {key: self._free(gate, rates_at) for key, gate in gates.items()}
        taken = hand_out(candidates, free, slots).taken
        for candidate in taken:
            self._served[candidate.key] = now
        return [candidate.run_id for candidate in taken]

    def opens_at(self, now: int) -> int | None:
        """Return when the first of the rates that are full has a place again."""
        full = [(gate, at) for gate in self._rates.values() if len(at := self._recent(gate, now)) >= gate.max]
        return min((at[-gate.max] + (gate.period or 0) for gate, at in full), default=None)

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
