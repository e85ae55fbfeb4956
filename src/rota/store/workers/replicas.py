"""Replicas as others meet them: claimed, one of a parent for each name of a worker; ended, freed, cleared, listed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.core.jobs.unique import CLEARED as CLEARED_OUTCOMES
from rota.core.ledger.audit import CANCEL_ASKED, CLEARED
from rota.core.runs.claim import Candidate
from rota.core.runs.run import RunError
from rota.core.states import RunState
from rota.core.workers.replicas import Replica
from rota.store.databases.database import Row, Tx
from rota.store.ledger import audit
from rota.values.actor import is_policy
from rota.values.instants import maybe_instant

CONDUCTOR = "\x01conductor"
"""Hints to it travel as those of a queue do."""


async def reserve(tx: Tx, candidates: Sequence[Candidate], name: str) -> list[Candidate]:
    """Return those that this worker gets: what it may have anyway, and replicas that are given to its name now."""
    open_to_all = {candidate.run_id: candidate.parent_id for candidate in candidates if candidate.parent_id is not None}
    ready = await lock_open(tx, open_to_all, name) if open_to_all else set()
    await give(tx, ready, name)
    return [candidate for candidate in candidates if candidate.parent_id is None or candidate.run_id in ready]


async def lock_open(tx: Tx, parent_of: Mapping[str, str], name: str) -> set[str]:
    """Lock those of these replicas of parents, in order, that may be given to that name: the first of each parent.

    Whoever gives one of a parent's replicas to a name has the lock of that parent. Which names have one is looked at
    afterwards, by a statement of its own: an older snapshot would not see what the last holder of the lock gave.
    """
    # One of each parent: a name gets no second replica of the same parent.
    first = {parent: run_id for run_id, parent in reversed(list(parent_of.items()))}
    locked = [(str(id),) for (id,) in await tx.fetch("lock_free_conducts", [(id,) for id in sorted(first)])]
    served = {str(id) for (id,) in await tx.fetch("served_parents", locked, name=name)} if locked else set()
    free = sorted((first[id],) for (id,) in locked if id not in served)
    return {str(id) for (id,) in await tx.fetch("lock_open_replicas", free)} if free else set()


async def give(tx: Tx, run_ids: Iterable[str], name: str) -> None:
    """Give replicas to a worker's name. The caller has them and their parents locked, and claims them now."""
    rows = [(id,) for id in sorted(run_ids)]
    if rows:
        await tx.fetch("give_replicas", rows, name=name)


async def look_at(tx: Tx, parents: Iterable[str]) -> None:
    """Have the conductor look at these parents, because replicas of theirs have ended."""
    rows = [(id,) for id in sorted(parents)]
    await tx.fetch("lock_conducts", rows)  # in order: two reports of replicas of the same runs must not deadlock
    # A mark, not the decision: that needs the other replicas, and the caller holds the lease of this one.
    await tx.fetch("look_at_conducts", rows)
    tx.wake(CONDUCTOR)


async def free(tx: Tx, run_ids: Sequence[str]) -> None:
    """Their workers have lost them, or gave them back: others may have them, unless they are bound to one."""
    await tx.fetch("free_replicas", [(id,) for id in sorted(run_ids)])


async def clear(tx: Tx, parent_id: str, outcomes: Sequence[str], act: str, actor: str | None) -> None:
    """Have replicas of a parent that was published again, and that ended so, done again. Once for each `act`."""
    # Before it is read who has ended: the conductor decides under the same lock, and sees either all cleared or none.
    conducts = await tx.fetch("lock_conduct", id=parent_id)
    if not conducts or await tx.fetch("was_cleared_by", id=parent_id, act=act):
        return
    values = {outcome: int(outcome in outcomes) for outcome in CLEARED_OUTCOMES}
    ((_, fence),) = conducts
    cleared = await tx.fetch("clear_replicas", id=parent_id, **values)
    if cleared:
        await tx.fetch("look_at_conducts", [(parent_id,)])
        details = {"cleared": len(cleared), "act": act}
        await audit.note(tx, "run", parent_id, CLEARED, actor, details, fence=fence)


async def cancel_conducted(tx: Tx, run_id: str, reason: str | None, actor: str | None) -> bool:
    """A run with replicas ends when they have; whoever conducts it stops them. False: it has none."""
    for asked_at, fence in await tx.fetch("lock_conduct", id=run_id):
        if asked_at is None or not is_policy(actor):  # what a person asked for stays theirs
            await tx.fetch("note_cancel", id=run_id, reason=reason, actor=actor)
        if asked_at is None:
            # The replicas are stopped by the conductor, one by one: to lock their leases here would be out of order.
            await tx.fetch("cancel_conduct", id=run_id)
            change = {"from": RunState.WAITING, "to": RunState.CANCELLING, "reason": reason}
            await audit.note(tx, "run", run_id, CANCEL_ASKED, actor, change, fence=fence)
        tx.wake(CONDUCTOR)
        return True
    return False


async def of_run(tx: Tx, parent_id: str) -> list[Replica]:
    """List the replicas of a run in the order in which they were made."""
    return [_replica(row) for row in await tx.fetch("replicas_of", id=parent_id)]


async def worker_of(tx: Tx, run_id: str) -> str | None:
    """The name of whose it is, if it is a replica and somebody's."""
    for (worker,) in await tx.fetch("replica_of", id=run_id):
        return None if worker is None else str(worker)
    return None


def _replica(row: Row) -> Replica:
    run_id, worker, state, attempt, error, reason, result, finished_at, bound, cleared = row
    failure = msgspec.json.decode(error, type=RunError) if error else None
    return Replica(
        run_id=str(run_id),
        worker=worker,
        state=RunState(state),
        attempt=attempt,
        error=f"{failure.type}: {failure.message}" if failure else reason,
        result=msgspec.json.decode(result) if result else None,
        finished_at=maybe_instant(finished_at),
        bound=bool(bound),
        cleared=bool(cleared),
    )
