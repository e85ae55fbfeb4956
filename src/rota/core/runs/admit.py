"""Admission: decide whether a new run may be, by its unique keys and its limits, from what was read under their locks.

Planning, enqueue and simulation ask the same functions. They differ in where the facts come from (the database, or a
simulated world) and in what they do with the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import assert_never

import msgspec

from rota.core.jobs.unique import KeyHold, OnConflict
from rota.core.limits.limits import UNLIMITED, Gate, WhenFull
from rota.errors import DuplicateRun, KeyReused, NotRepeatable, RotaError

SUPERSEDED = "superseded by run "


class Applicant(msgspec.Struct, frozen=True, gc=False):
    """Run that asks to be admitted. `displaces`: runs that make way for it if it is; `retry_of`: the run it repeats."""

    id: str
    job: str
    gates: tuple[Gate, ...] = ()
    holds: tuple[KeyHold, ...] = ()
    displaces: tuple[str, ...] = ()
    retry_of: str | None = None


class Holder(msgspec.Struct, frozen=True, gc=False):
    """Holder of a unique key: a run, and until when it holds the key at least.

    `live`: it is not final. `waits`: it is live, and nobody has it. `begun`: it was claimed before. `done`: it
    succeeded, or is so old that it was pruned. `once`: then the key is held for ever.
    """

    run_id: str
    until: int = 0
    once: bool = False
    fingerprint: str | None = None
    live: bool = False
    waits: bool = False
    begun: bool = False
    done: bool = False


class Admitted(msgspec.Struct, frozen=True, gc=False):
    """Decision to let a run be. It takes its keys; what it displaces makes way, and so do `stops`, by its limits."""

    stops: tuple[str, ...] = ()


class Full(msgspec.Struct, frozen=True):
    """Decision not to let a run be, because a limit is full; `refused`: an enqueue gets an error, not a skipped run."""

    gate: Gate
    refused: bool

    @property
    def reason(self) -> str:
        gate = self.gate
        waiting = "" if gate.max_queued is None else f" and {gate.max_queued} waiting"
        if gate.max == UNLIMITED:
            return f"{gate.title} is full: {gate.max_queued} waiting"
        return f"{gate.title} is full: {gate.measure}{waiting}"


class Held(msgspec.Struct, frozen=True):
    """Decision that a run is needless, because another one does its work.

    `replaces`: that one gets what this one has.
    """

    run_id: str
    hold: KeyHold
    replaces: bool = False
    live: bool = True

    @property
    def reason(self) -> str:
        return f"unique: run {self.run_id} does this work"


class Conflicting(msgspec.Struct, frozen=True):
    """Decision that a run may not be beside the holder of its key."""

    error: RotaError

    @property
    def reason(self) -> str:
        return str(self.error)


class Superseded(msgspec.Struct, frozen=True):
    """Decision about a run that was let be, and gave way to one that was decided together with it.

    `stops`: the runs that made way for it before. They stay stopped, as if it had come alone.
    """

    by: str
    stops: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        return superseded_by(self.by)


Verdict = Admitted | Full | Held | Conflicting
"""Decision about one run, given those before it."""
Decision = Verdict | Superseded


def superseded_by(run_id: str) -> str:
    """Return the reason of a run that made way for another one."""
    return f"{SUPERSEDED}{run_id}"


class Facts(msgspec.Struct):
    """Facts that decide about new runs, as they were read; an admission changes them, so that the next run sees it.

    `counts`: runs under each limit that are not final and were not asked to stop. Under a rate these are the runs that
    have not begun, and those whose begin still counts; without a concurrency limit, those that have not begun.
    `places`: the limits under which a run counts that may have to go, or be replaced. `oldest`: of limits whose oldest
    runs give way.
    `fixed`: runs that cannot be stopped. `holders`: of keys; a key that is missing is free.
    """

    now: int = 0
    counts: dict[str, int] = {}
    places: dict[str, tuple[str, ...]] = {}
    oldest: dict[str, list[str]] = {}
    fixed: Collection[str] = frozenset()
    holders: dict[str, Holder] = {}

    def admit(self, run: Applicant, stops: Iterable[str] = ()) -> None:
        """Count a run that was let be, and count those no more that make way for it."""
        gone = {id for id in (*run.displaces, *stops) if id not in self.fixed}
        for id in gone:
            for key in self.places.pop(id, ()):
                self.counts[key] = self.counts.get(key, 0) - 1
        for key, runs in self.oldest.items():
            if not gone.isdisjoint(runs):
                self.oldest[key] = [id for id in runs if id not in gone]
        for key, holder in self.holders.items():
            # Whoever has a run may still succeed with it; what waits has ended.
            if holder.run_id in gone and holder.waits:
                self.holders[key] = msgspec.structs.replace(holder, live=False, waits=False)
        for gate in run.gates:
            self.counts[gate.key] = self.counts.get(gate.key, 0) + 1
            if gate.stops_oldest:
                self.oldest.setdefault(gate.key, []).append(run.id)
        self.places[run.id] = tuple(gate.key for gate in run.gates)
        for hold in run.holds:
            until = 0 if hold.period is None else self.now + hold.period
            self.holders[hold.key] = Holder(run.id, until, hold.once, hold.fingerprint, live=True, waits=True)

    def replace(self, holder: str, run: Applicant) -> None:
        """Count the holder of a key under the limits of the run whose place it takes, and no more under its own."""
        for key in self.places.get(holder, ()):
            self.counts[key] = self.counts.get(key, 0) - 1
            if key in self.oldest:
                self.oldest[key] = [id for id in self.oldest[key] if id != holder]
        self.places[holder] = tuple(gate.key for gate in run.gates)
        for gate in run.gates:
            self.counts[gate.key] = self.counts.get(gate.key, 0) + 1
            if gate.stops_oldest:
                self.oldest[gate.key] = sorted([*self.oldest.get(gate.key, ()), holder])


def decide(run: Applicant, facts: Facts) -> Verdict:
    """Decide about one run: its keys first, then its limits.

    What makes way for it counts no more, and its keys pass on to it: slots and keys of runs that it displaces, and
    slots of those that a limit lets give way.
    """
    for hold in run.holds:
        answer = meet(hold, facts.holders.get(hold.key), run, facts.now)
        if answer is not None:
            return answer
    return _limits(run, facts)


def decide_all(runs: Sequence[Applicant], facts: Facts) -> list[Decision]:
    """Decide about runs in their order, each of which sees those before it, and may make them give way."""
    decisions: list[Decision] = []
    places: dict[str, int] = {}
    for place, run in enumerate(runs):
        decision = decide(run, facts)
        if isinstance(decision, Admitted):
            facts.admit(run, decision.stops)
            places[run.id] = place
            for id in decision.stops:
                if id in places:
                    former = decisions[places[id]]
                    assert isinstance(former, Admitted)
                    decisions[places[id]] = Superseded(run.id, former.stops)
            decision = Admitted(tuple(id for id in decision.stops if id not in places))
        elif isinstance(decision, Held) and decision.replaces and decision.run_id not in places:
            facts.replace(decision.run_id, run)
        decisions.append(decision)
    return decisions


def meet(hold: KeyHold, holder: Holder | None, run: Applicant, now: int) -> Held | Conflicting | None:
    """Decide about a key that a run wants; None: it may have it."""
    if holder is None or holder.run_id == run.id:
        return None
    # What is to be done once, and is being done, passes on to nobody: asked to stop, it may still succeed.
    if holder.run_id in run.displaces and (not hold.once or holder.waits):
        return None
    within_period = holder.until > now and holder.run_id != run.retry_of  # a run's own retry may follow at once
    if not (holder.live or within_period or (holder.once and holder.done)):
        return None
    if hold.fingerprint and holder.fingerprint != hold.fingerprint:
        return Conflicting(KeyReused(hold.label or hold.key))
    if hold.once:
        return Conflicting(NotRepeatable(run.job, holder.run_id))
    match hold.on_conflict:
        case OnConflict.REJECT:
            return Conflicting(DuplicateRun(run.job, holder.run_id))
        case OnConflict.REPLACE:
            # One that has begun stays as it is: its attempts were its own.
            return Held(holder.run_id, hold, replaces=holder.waits and not holder.begun, live=holder.live)
        case OnConflict.EXISTING:
            return Held(holder.run_id, hold, live=holder.live)
        case _:
            assert_never(hold.on_conflict)


def _limits(run: Applicant, facts: Facts) -> Admitted | Full:
    """Ask its limits: first those whose oldest runs give way, because others then count these no more."""
    gone = {id for id in run.displaces if id not in facts.fixed}
    stops: dict[str, None] = {}
    for gate in run.gates:
        over = _count(gate, facts, gone) - gate.max + 1 if gate.stops_oldest else 0
        if over > 0:
            chosen = [id for id in facts.oldest.get(gate.key, ()) if id not in gone][:over]
            stops.update(dict.fromkeys(chosen))
            gone.update(id for id in chosen if id not in facts.fixed)
    for gate in run.gates:
        if gate.decides and (full := _full(gate, _count(gate, facts, gone))) is not None:
            return full
    return Admitted(tuple(stops))


def _count(gate: Gate, facts: Facts, gone: Collection[str]) -> int:
    return facts.counts.get(gate.key, 0) - sum(gate.key in facts.places.get(id, ()) for id in gone)


def _full(gate: Gate, count: int) -> Full | None:
    match gate.when_full:
        case WhenFull.QUEUE:
            most = gate.max % UNLIMITED + (gate.max_queued or 0)
            return Full(gate, refused=True) if gate.max_queued is not None and count >= most else None
        case WhenFull.SKIP:
            return Full(gate, refused=False) if count >= gate.max else None
        case WhenFull.REJECT:
            return Full(gate, refused=True) if count >= gate.max else None
        case WhenFull.CANCEL_OLDEST:
            return None
        case _:
            assert_never(gate.when_full)
