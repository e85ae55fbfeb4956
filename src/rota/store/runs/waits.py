"""Runs that wait: for their time, and for the end of others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rota.core.ledger.audit import RELEASED
from rota.core.runs.admission import Hold, is_queued
from rota.core.runs.payload import MOST_FILLED, filled, size_of
from rota.core.states import RunState
from rota.store.databases.database import Row, Tx
from rota.store.ledger import audit
from rota.store.workers import replicas
from rota.values.actor import POLICY

DEPENDENCY = f"{POLICY}dependency"
"""Who ends runs whose dependencies went wrong."""


async def follow(tx: Tx, pairs: Iterable[tuple[str, str]]) -> set[str]:
    """(run, the run whose end it waits for). Returns the runs that have something to wait for: they are to be BLOCKED.

    A completion of the same run either comes first, and then there is nothing to wait for, or it waits for this
    transaction, sees the mark, and looks for whoever waits. One that was cancelled before it began leaves what it
    waited for: who came to follow it waits for that, or would overtake.
    """
    pending, waiting = set(pairs), set[tuple[str, str]]()
    # Each round goes one step back along a chain of cancelled runs, whose waits were left behind for this.
    while pending:
        rows = [(after,) for after in sorted({after for _, after in pending})]
        # An update, and so a lock, in the order of ids: a completion either has committed, or finds the mark.
        live = {str(id) for (id,) in await tx.fetch("mark_followed", rows)}
        waiting |= {(run, after) for run, after in pending if after in live}
        over = [(after,) for (after,) in rows if after not in live]
        inherited = [(str(run), str(after)) for run, after in await tx.fetch("awaited_by_each", over)] if over else []
        pending = {(run, awaited) for run, after in pending for ended, awaited in inherited if ended == after}
    if waiting:
        await tx.fetch("insert_waits", sorted(waiting))
    return {run for run, _ in waiting}


async def bequeath(tx: Tx, run_id: str) -> None:
    """Let whoever waits for the turn of this run, which ended before it began, wait for what it waited for."""
    pairs = [(str(waiting), run_id) for (waiting,) in await tx.fetch("waiting_for", id=run_id)]
    if pairs:
        await follow(tx, pairs)


async def go_on(
    tx: Tx, run_ids: Sequence[str], after: Mapping[str, str] | None = None, takers: Collection[str] = ()
) -> None:
    """Let those of these runs go on that wait for no other; `after` says whose end they waited for, where known.

    `takers` may have arguments that are results: they are there when the run goes on, and not before.
    """
    rows = [(id,) for id in run_ids]
    # Two predecessors that end at once must not each see the other's wait: the second one waits here for the first.
    await tx.fetch("lock_waiting", rows)
    gone_on = await tx.fetch("go_on", rows)
    if takers:
        await fill(tx, {str(id) for id, *_ in gone_on} & {*takers})
    # Limits come after the runs that wait, as everywhere.
    limited = [(id, key, rank) for id, _, hold, key, _, rank in gone_on if hold == Hold.LIMITED and key is not None]
    await _wake_limits(tx, limited)
    await _note_released(tx, gone_on, after or {})
    tx.wake(*[queue for _, queue, *_ in gone_on])
    if any(hold == Hold.PARENT for _, _, hold, *_ in gone_on):
        tx.wake(replicas.CONDUCTOR)


async def too_large(tx: Tx, takers: Iterable[str]) -> set[str]:
    """Return those of these runs whose arguments would be too large, by the results that are there."""
    sizes: dict[str, int] = {}
    for id, places, length in await tx.fetch("sizes_passed", [(id,) for id in sorted(takers)]):
        sizes[str(id)] = sizes.get(str(id), 0) + size_of(places, int(length))
    return {id for id, size in sizes.items() if size > MOST_FILLED}


async def fill(tx: Tx, run_ids: Collection[str]) -> None:
    """Fill the arguments of these runs that are results of the runs they followed, all of which succeeded."""
    if run_ids:
        rows = await tx.fetch("results_passed", [(id,) for id in sorted(run_ids)])
        payloads = {str(id): payload for id, payload, _, _ in rows}
        results: dict[str, list[tuple[str, str | None]]] = {id: [] for id in payloads}
        for id, _, places, result in rows:
            results[str(id)].append((places, result))
        await tx.fetch("fill_payloads", [(id, filled(payloads[id], results[id])) for id in sorted(payloads)])


async def _note_released(tx: Tx, gone_on: Sequence[Row], after: Mapping[str, str]) -> None:
    """Note releases in the trail: when that was cannot be read off anything. Those that wait for their time now are due
    when it comes.
    """
    change = {"from": RunState.SCHEDULED, "to": RunState.QUEUED}
    released = [(str(id), fence) for id, _, hold, _, fence, _ in gone_on if is_queued(hold)]
    rows = [(id, None, fence, {**change, "after": after.get(id)}) for id, fence in released]
    await audit.note_runs(tx, RELEASED, rows)


async def promote(tx: Tx, limit: int, *, needed: bool = True) -> int:
    """Promote runs whose time has come, `limit` of those with limits and of those without; return how many.

    `needed`: there are such with requirements, too.
    """
    # Rows that somebody has (a cancel, another promoter) are skipped: the next look meets those that still wait.
    promoted = [*await tx.fetch("promote", limit=limit), *await tx.fetch("promote_limited", limit=limit)]
    promoted += await tx.fetch("promote_needed", limit=limit) if needed else []
    await _wake_limits(tx, [(id, key, rank) for id, _, key, rank in promoted if key is not None])
    tx.wake(*[queue for _, queue, *_ in promoted])
    return len(promoted)


async def _wake_limits(tx: Tx, runs: Sequence[tuple[object, str, int]]) -> None:
    """Runs (id, limit key, rank) that nothing but their limits holds back any more."""
    if runs:
        ranks: dict[str, int] = {}
        for _, key, rank in runs:
            ranks[key] = min(rank, ranks.get(key, rank))
        # A limit that nobody used for a while was dropped, perhaps while these runs waited. This comes first: somebody
        # else may make it at the same moment, and is to be told, too.
        await tx.fetch("make_limits_of", [(str(id),) for id, *_ in runs])
        await tx.fetch("wake_limits", sorted(ranks.items()))
