"""Limits when a run comes: read what decides whether it may wait at all, and the rows under which it then does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import (
    NO_RANK,
    UNLIMITED,
    Gate,
    LimitedRun,
    is_of_jobs,
    job_key,
    keys_prefix,
    rate_prefixes,
)
from rota.core.limits.lines import in_line
from rota.core.limits.turns import Allowed, Shut
from rota.core.runs.admit import Applicant, Facts, superseded_by
from rota.store.databases.database import Row, Tx
from rota.store.limits import rates
from rota.store.runs import cancel
from rota.values import actor

POLICY = f"{actor.POLICY}limit"


async def lock(tx: Tx, runs: Sequence[LimitedRun], followed: Iterable[str] = ()) -> None:
    """Lock the limits that have a say in an enqueue: all at once and in the order of keys, so that none deadlock.

    Before that the runs that will have to give way, and those that are `followed`: whoever ends one holds it, and comes
    to its limits last.
    """
    gates = {gate.key: (run.claimed_as, gate) for run in runs for gate in run.gates if gate.decides}
    if gates:
        # Lock order: runs before limits. Whoever ends a run holds its row while it waits for the run's limits, so a run
        # that was first locked under a limit's lock would deadlock with its end.
        stops = await _runs_to_stop(tx, runs)
        await cancel.reserve(tx, [*followed, *stops, *await cancel.entangled(tx, stops)])
        rows = [_limit_row(gate, job, Shut.NOBODY_WAITS, NO_RANK) for _, (job, gate) in sorted(gates.items())]
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
            run_ids += [str(id) for id, _ in await tx.fetch("oldest_under", key=gate.key, count=over)]
    return run_ids


async def read(tx: Tx, runs: Sequence[Applicant], fixed: Collection[str] = (), replaced: Collection[str] = ()) -> Facts:
    """Read what decides about these runs, whose limits are locked. The holders of their keys are added by `enqueue`.

    `fixed`: those of the runs that are to make way which cannot be stopped. `replaced`: holders of keys that may come
    under other limits.
    """
    # A statement of its own: the one that waited for the locks may not see what their holders did.
    gates = {gate for run in runs for gate in run.gates if gate.decides}
    facts = Facts(counts=await _live(tx, gates) if gates else {}, fixed=set(fixed))
    displaced = {id for run in runs for id in run.displaces}
    claimed: list[str] = []
    coming = Counter(gate for run in runs for gate in run.gates if gate.stops_oldest)
    for gate, count in coming.items():
        over = facts.counts.get(gate.key, 0) + count - gate.max
        if over > 0:
            # Some of the oldest may be displaced: they give way anyway, so as many more are looked at.
            rows = await tx.fetch("oldest_under", key=gate.key, count=over + len(displaced))
            facts.oldest[gate.key] = [str(id) for id, _ in rows]
            claimed += [str(id) for id, is_claimed in rows if is_claimed]
    touched = displaced.union(replaced, *facts.oldest.values())
    if touched and gates:
        for run_id, key in await tx.fetch("counted_runs", [(id, UNLIMITED) for id in sorted(touched)]):
            facts.places[str(run_id)] = (*facts.places.get(str(run_id), ()), key)
    if claimed:
        facts.fixed = {*facts.fixed, *await cancel.fixed_among(tx, claimed)}
    return facts


async def give_way(tx: Tx, run: Applicant, stops: Iterable[str]) -> None:
    """Stop the runs that give way to an admitted one by its limits."""
    # The limits are locked, so no run may be waited for now: `give_way` skips one that was not reserved and is held.
    for run_id in stops:
        await cancel.give_way(tx, run_id, superseded_by(run.id), POLICY)


async def _live(tx: Tx, gates: Iterable[Gate]) -> dict[str, int]:
    by_key = {gate.key: gate for gate in gates}
    rows = await tx.fetch("live_under", [(key, UNLIMITED) for key in sorted(by_key)])
    live = {key: int(count) for key, count in rows}
    counted = await rates.count(tx, {key: Allowed(gate.max, gate.period) for key, gate in by_key.items()})
    return live | {key: live.get(key, 0) + by_key[key].max - rate.free for key, rate in counted.items()}


def _limit_row(gate: Gate, job: str | None, shut: int, rank: int) -> Row:
    return gate.key, None if is_of_jobs(gate.key) else job, gate.max, shut, gate.period, rank


async def install(tx: Tx, runs: Iterable[LimitedRun]) -> None:
    """Put admitted runs, whose rows are there, under their limits."""
    runs = list(runs)
    await place(tx, runs)
    await open_for(tx, runs)


async def place(tx: Tx, runs: Iterable[LimitedRun]) -> None:
    """Put runs under their limits: they count from now on. The limits learn of it with `open_for`."""
    gates = [
        (run.id, gate.key, place, gate.max, gate.period)
        for run in runs
        for place, gate in enumerate(in_line(run.gates) if run.gates[1:] else run.gates)
    ]
    if gates:
        await tx.fetch("insert_gates", gates)


async def open_for(tx: Tx, runs: Iterable[LimitedRun]) -> None:
    """Open the limits of these runs. Once in a transaction: the limits are locked in the order of keys."""
    await open_gates(
        tx,
        [
            (place, run.claimed_as, gate, run.rank)
            for run in runs
            for place, gate in enumerate(in_line(run.gates) if run.gates[1:] else run.gates)
        ],
    )


async def open_gates(
    tx: Tx, placed: Iterable[tuple[int, str | None, Gate, int]], kept: Collection[str] = frozenset()
) -> None:
    """The same, of these gates; each with its place among its run's, the run's job and its rank. The limits in `kept`
    allow what they allow now.
    """
    limits: dict[str, Row] = {}
    ranks: dict[str, int] = {}
    for place, job, gate, rank in placed:
        if place:
            if gate.key not in limits:
                limits[gate.key] = _limit_row(gate, job, Shut.NOBODY_WAITS, NO_RANK)
        elif rank < ranks.get(gate.key, NO_RANK + 1):
            ranks[gate.key] = rank
            limits[gate.key] = _limit_row(gate, job, Shut.OPEN, rank)
    if limits:
        # In the order of keys, as everybody locks limits. `adjust_limits` locks only rows that are to change: most
        # enqueues come under a limit that is open already, and must not stand in the way of claims.
        keys = sorted(limits)
        await tx.fetch("adjust_limits", [(*limits[key], int(key in kept)) for key in keys])
        await tx.fetch("make_limits", [limits[key] for key in keys])


async def declare(tx: Tx, definition: JobDefinition) -> None:
    """A job's limits have another maximum now: that goes for the runs that wait, too."""
    for limit, rate in zip(definition.limits, rate_prefixes(definition.limits), strict=True):
        key = None if limit.by else rate + job_key(definition.name)
        prefix = rate + keys_prefix(definition.name, limit.by) if limit.by else None
        changed = await tx.fetch("change_max", key=key, prefix=prefix, max=limit.max, period=limit.period)
        for (name,) in changed:
            await rates.unblock(tx, name, limit.max)
