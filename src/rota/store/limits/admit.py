"""Limits when a run comes: may it wait at all, and the rows under which it then does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import (
    UNLIMITED,
    Gate,
    LimitedRun,
    Rejection,
    admission,
    is_quota,
    job_key,
    keys_prefix,
    rate_prefixes,
)
from rota.store.databases.database import Row, Tx
from rota.store.limits import rates
from rota.store.limits.rates import Allowed
from rota.store.runs import cancel
from rota.values import actor

POLICY = f"{actor.POLICY}limit"
SUPERSEDED = "superseded"
_OPEN, _NOBODY_WAITS = 0, 1

Displaced = Mapping[str, Collection[str]]
"""By new runs: the runs that make way for each of them, if it is let be."""
Unless = Callable[[str], Awaitable[str | None]]
"""Asked last of each run that its limits let be: why it is not, nevertheless. If it is, those that it displaces end."""


_NONE_DISPLACED: Displaced = {}


class Admitted(msgspec.Struct, frozen=True):
    run: LimitedRun


class Skipped(msgspec.Struct, frozen=True):
    run: LimitedRun
    reason: str


class Refused(msgspec.Struct, frozen=True):
    run: LimitedRun
    gate: Gate
    reason: str


async def lock(tx: Tx, runs: Sequence[LimitedRun], followed: Iterable[str] = ()) -> None:
    """Lock the limits that have a say in an enqueue: all at once and in the order of keys, so that none deadlock.

    Before that the runs that will have to give way, and those that are `followed`: whoever ends one holds it, and comes
    to its limits last.
    """
    gates = {gate.key: (run.claimed_as, gate) for run in runs for gate in run.gates if gate.decides}
    if gates:
        # Lock order: runs before limits. Whoever ends a run holds its row while it waits for the run's limits, so a run
        # that was first locked under a limit's lock would deadlock with its end.
        await cancel.reserve(tx, [*followed, *await _runs_to_stop(tx, runs)])
        rows = [_limit_row(gate, job, _NOBODY_WAITS) for _, (job, gate) in sorted(gates.items())]
        # A missing row cannot be locked: two first enqueues under a key would both count nobody, and both be admitted.
        await tx.fetch("make_limits", rows)
        await tx.fetch("lock_limits", [(key,) for key in sorted(gates)])


async def _runs_to_stop(tx: Tx, runs: Sequence[LimitedRun]) -> list[str]:
    """List runs that would have to give way as it looks now. Under the lock it may be others: these are stopped if
    nobody has them at that moment.
    """
    coming = Counter(gate for run in runs for gate in run.gates if gate.stops_oldest)
    live = await _live(tx, coming) if coming else {}
    run_ids: list[str] = []
    for gate, count in coming.items():
        over = live.get(gate.key, 0) + count - gate.max
        if over > 0:
            run_ids += [str(id) for (id,) in await tx.fetch("oldest_under", key=gate.key, count=over)]
    return run_ids


async def admit(
    tx: Tx,
    runs: Sequence[LimitedRun],
    *,
    refuse: bool,
    locked: bool = False,
    displaced: Displaced = _NONE_DISPLACED,
    unless: Unless | None = None,
) -> list[Admitted | Skipped | Refused]:
    """One answer for each run, in order, each seeing those before it. Nothing is written of the runs themselves.

    Those that give way to one are stopped. Unless told to `refuse`, what would be refused is skipped. `locked`: the
    caller did that, with all that it has to lock.
    """
    if not runs:
        return []
    if not locked:
        await lock(tx, runs)
    live = await _live(tx, {gate for run in runs for gate in run.gates if gate.decides})
    answers: list[Admitted | Skipped | Refused] = []
    coming: dict[str, list[int]] = {}
    places = await _places(tx, displaced) if displaced else {}
    for run in runs:
        # Whoever makes way counts no more, though it may not have stopped yet: whether its slot is free, a claim sees.
        freed = Counter(key for run_id in displaced.get(run.id, ()) for key in places.get(run_id, ()))
        decision = admission(run.gates, {gate.key: live.get(gate.key, 0) - freed[gate.key] for gate in run.gates})
        if isinstance(decision, Rejection):
            refused = refuse and decision.refused
            answers.append(Refused(run, decision.gate, decision.reason) if refused else Skipped(run, decision.reason))
            continue
        # After the limits have let it be: it takes the run's unique key, which a run that is skipped must not keep.
        if unless is not None and (reason := await unless(run.id)) is not None:
            answers.append(Skipped(run, reason))
            continue
        for key, count in freed.items():
            live[key] = live.get(key, 0) - count
        for key, count in decision.stops:
            for run_id in await _stop(tx, key, count, coming, answers, live):
                places.pop(run_id, None)  # whoever was to displace it finds its place taken
        for gate in run.gates:
            live[gate.key] = live.get(gate.key, 0) + 1
            coming.setdefault(gate.key, []).append(len(answers))
        answers.append(Admitted(run))
    return answers


async def _places(tx: Tx, displaced: Displaced) -> dict[str, list[str]]:
    """The limits under which each of these counts; after the locks, as `_live`."""
    places: dict[str, list[str]] = {}
    touched = sorted({run_id for run_ids in displaced.values() for run_id in run_ids})
    for run_id, key in await tx.fetch("counted_runs", [(run_id, UNLIMITED) for run_id in touched]):
        places.setdefault(str(run_id), []).append(key)
    return places


async def _live(tx: Tx, gates: Iterable[Gate]) -> dict[str, int]:
    # A statement of its own: the one that waited for the locks may not see what their holders did.
    by_key = {gate.key: gate for gate in gates}
    rows = await tx.fetch("live_under", [(key, UNLIMITED) for key in sorted(by_key)])
    live = {key: int(count) for key, count in rows}
    counted = await rates.count(tx, {key: Allowed(gate.max, gate.period) for key, gate in by_key.items()})
    return live | {key: live.get(key, 0) + by_key[key].max - rate.free for key, rate in counted.items()}


def _limit_row(gate: Gate, job: str | None, shut: int) -> Row:
    return gate.key, None if is_quota(gate.key) else job, gate.max, shut, gate.period


async def _stop(
    tx: Tx,
    key: str,
    count: int,
    coming: dict[str, list[int]],
    answers: list[Admitted | Skipped | Refused],
    live: dict[str, int],
) -> list[str]:
    """The oldest give way: first those that are there, which it returns, then those that came with this very call."""
    oldest = [str(id) for (id,) in await tx.fetch("oldest_under", key=key, count=count)]
    # The limits are locked, so no run may be waited for now: `give_way` skips one that was not reserved and is held.
    for run_id in oldest:
        await cancel.give_way(tx, run_id, SUPERSEDED, POLICY)
    live[key] -= len(oldest)
    for place in coming.get(key, [])[: count - len(oldest)]:
        answers[place] = Skipped(answers[place].run, SUPERSEDED)
        for gate in answers[place].run.gates:
            live[gate.key] -= 1
            coming[gate.key].remove(place)
    return oldest


async def install(tx: Tx, runs: Iterable[LimitedRun]) -> None:
    """Put admitted runs, whose rows are there, under their limits."""
    runs = list(runs)
    await place(tx, runs)
    await open_for(tx, runs)


async def place(tx: Tx, runs: Iterable[LimitedRun]) -> None:
    """Put runs under their limits: they count from now on. The limits learn of it with `open_for`."""
    gates = [(run.id, gate.key, place, gate.max, gate.period) for run in runs for place, gate in enumerate(run.gates)]
    if gates:
        await tx.fetch("insert_gates", gates)


async def open_for(tx: Tx, runs: Iterable[LimitedRun]) -> None:
    """Open the limits of these runs. Once in a transaction: the limits are locked in the order of keys."""
    await open_gates(tx, [(place, run.claimed_as, gate) for run in runs for place, gate in enumerate(run.gates)])


async def open_gates(tx: Tx, placed: Iterable[tuple[int, str | None, Gate]]) -> None:
    """The same, of these gates; each with its place among its run's, and the run's job."""
    limits: dict[str, Row] = {}
    for place, job, gate in placed:
        if place == 0 or gate.key not in limits:
            limits[gate.key] = _limit_row(gate, job, _NOBODY_WAITS if place else _OPEN)
    if limits:
        # In the order of keys, as everybody locks limits. `adjust_limits` locks only rows that are to change: most
        # enqueues come under a limit that is open already, and must not stand in the way of claims.
        rows = [limits[key] for key in sorted(limits)]
        await tx.fetch("adjust_limits", rows)
        await tx.fetch("make_limits", rows)


async def declare(tx: Tx, definition: JobDefinition) -> None:
    """A job's limits have another maximum now: that goes for the runs that wait, too."""
    for limit, rate in zip(definition.limits, rate_prefixes(definition.limits), strict=True):
        key = None if limit.by else rate + job_key(definition.name)
        prefix = rate + keys_prefix(definition.name, limit.by) if limit.by else None
        changed = await tx.fetch("change_max", key=key, prefix=prefix, max=limit.max, period=limit.period)
        for (name,) in changed:
            await tx.fetch("unblock_limits", key=name, count=limit.max)
