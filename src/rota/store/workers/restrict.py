"""Change who may have a live run: for one run by people, for all runs of a job by another declaration of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.ledger.audit import RESTRICTED
from rota.core.runs.run import Overrides
from rota.core.workers.replicas import Replicas, require_able
from rota.core.workers.requirements import CONDUCTS, NOTHING, REPLICA, Eligibility, Requirements, merged
from rota.core.workers.worker import name_of
from rota.errors import Conflict, RunIsFinal, Unavailable, UnknownRun
from rota.store.databases.database import Tx
from rota.store.ledger import audit
from rota.store.runs import cancel, read, report
from rota.store.workers import replicas, requirements
from rota.store.workers.replica_parents import CONDUCTING

_TRIES = 5

Marked = Mapping[str, Eligibility]
"""Live runs, and who does them from now on."""


async def restrict(tx: Tx, run_id: str, only_workers: tuple[str, ...], actor: str | None) -> None:
    """Let only these workers have the run; without names, anybody may."""
    rows = await tx.fetch("needs_of_run", id=run_id)
    if not rows:
        raise UnknownRun(run_id)
    ((_, job, state, text, mark, _, _, parent_id),) = rows
    if state is not None:
        raise RunIsFinal(run_id, state, "restricted")
    if parent_id is not None:
        raise Conflict(f"run {run_id} is a replica of run {parent_id}", hint=f"restrict that one: {parent_id}")
    # Read without a lock: whether the run is ready, leased or over is looked at again in `change`, under the locks.
    overrides = msgspec.json.decode(text, type=Overrides) if text else Overrides()
    own = msgspec.structs.replace(overrides.requirements or NOTHING, only_workers=only_workers, anyone=not only_workers)
    if own == overrides.requirements:  # repeated after an unknown outcome, or by somebody else
        return
    definition = await read.job(tx, job)
    eligibility = _eligibility(own, definition, mark)
    if eligibility.conducts:
        await _require_able(tx, run_id, eligibility, definition)
    fence = await change(tx, {run_id: eligibility})
    fence = max([fence, *(external for (external,) in await tx.fetch("fence_elsewhere", id=run_id))])
    new_overrides = msgspec.structs.replace(overrides, requirements=own)
    # Only now is the run's own row locked: one that nobody had any more, because it was ending, has ended meanwhile.
    if not await tx.fetch("override_needs", id=run_id, overrides=msgspec.json.encode(new_overrides).decode()):
        ((_, _, ended, *_),) = await tx.fetch("needs_of_run", id=run_id)
        raise RunIsFinal(run_id, ended, "restricted")
    details = {"only_workers": list(only_workers) or None}
    await audit.note(tx, "run", run_id, RESTRICTED, actor, details, fence=fence)


async def _require_able(tx: Tx, run_id: str, eligibility: Eligibility, definition: JobDefinition | None) -> None:
    """Refuse too few workers for the replicas: the run could never end."""
    begun = [msgspec.json.decode(text, type=Replicas) for (text,) in await tx.fetch("conduct_policy", id=run_id)]
    policy = begun[0] if begun else definition.replicas if definition else None
    if policy is not None:
        require_able(policy, eligibility.requirements.only_workers, await replicas.of_run(tx, run_id))


def _eligibility(own: Requirements, definition: JobDefinition | None, mark: str | None) -> Eligibility:
    """Build the eligibility of a live run. Whether it conducts was decided when it was enqueued."""
    return Eligibility(
        merged(own, definition.requirements if definition else NOTHING), bool(mark) and str(mark)[0] == CONDUCTS
    )


async def declare(tx: Tx, definition: JobDefinition) -> None:
    """Give a job's live runs that say nothing of their own the requirements that it declares now."""
    changes: dict[str, Eligibility] = {}
    need = Eligibility(definition.requirements).mark or None
    for run_id, text, mark, queue in await tx.fetch("live_with_needs", job=definition.name, need=need):
        own = (msgspec.json.decode(text, type=Overrides) if text else Overrides()).requirements
        eligibility = _eligibility(own or NOTHING, definition, mark)
        if (eligibility.mark or None) != mark and not (mark or "").startswith(REPLICA):
            changes[str(run_id)] = eligibility
            tx.wake(queue)
    if changes:
        await change(tx, changes)


async def change(tx: Tx, changes: Marked) -> int:
    """Let runs that wait, wait for others; from a worker that may not have its run any more the lease is taken away.

    Leases first, then what is ready, then runs: the order of everybody else. Returns a fence, that of the only one.
    """
    # Shared locks, which keep off only the janitor, and that skips what is locked: their place in the order is free.
    await requirements.make(tx, (eligibility.requirements for eligibility in changes.values()))
    remaining, fence = dict(changes), 0
    for _ in range(_TRIES):  # between two statements a run may move from ready to leased, or back
        rows = [(id,) for id in sorted(remaining)]
        leases = await tx.fetch("lock_leases_to_restrict", rows)
        held = {str(id): (worker, int(at)) for id, at, worker, cancel_at in leases if cancel_at is None}
        ready = {str(id): int(at) for id, at in await tx.fetch("lock_ready_of", rows)}
        # By a statement after the locks: a run that is in none of these places was moving, and is looked for again.
        gone = {str(id) for (id,) in await tx.fetch("neither_held_nor_ready", rows)}
        live = {id: eligibility for id, eligibility in remaining.items() if id in held or id in ready}
        await tx.fetch("assign_needs", [(id, eligibility.mark or None) for id, eligibility in live.items()])
        await tx.fetch("hold_for_needs", [(id, remaining[id].mark or None) for id in ready])
        away = [(id, at) for id, (worker, at) in held.items() if not _may_have(worker, remaining[id].requirements)]
        # After the requirements were written: the run is queued again by `take_away`, for those who may have it now.
        await report.take_away(tx, away)
        fence = max([fence, *ready.values(), *(int(at) for _, at, _, _ in leases)])
        remaining = {id: eligibility for id, eligibility in remaining.items() if id not in live and id not in gone}
        if not remaining:
            await _change_replicas(tx, {id: eligibility for id, eligibility in changes.items() if eligibility.conducts})
            return fence
    raise Unavailable(f"run {min(remaining)} kept changing while it was being restricted", hint="try again")


def _may_have(worker_id: str, required: Requirements) -> bool:
    """Labels and versions are looked at when a run is claimed; what runs, runs on."""
    return not required.only_workers or name_of(worker_id) in required.only_workers


async def _change_replicas(tx: Tx, parents: Marked) -> None:
    """Change live replicas of these parents. One that only a worker may have which may not any more is not wanted."""
    rows = await tx.fetch("live_replicas", [(id,) for id in sorted(parents)]) if parents else []
    if not parents:
        return
    # Leases and ready rows of the replicas, then their parents: the order in which a replica's end comes to its parent.
    ids = [(str(child),) for child, *_ in rows]
    held = {str(id): at for id, at, _, cancel_at in await tx.fetch("lock_leases_to_restrict", ids) if cancel_at is None}
    ready = {str(id) for id, _ in await tx.fetch("lock_ready_of", ids)}
    await tx.fetch("lock_conducts", [(id,) for id in sorted(parents)])
    # Again, after the locks: one that was handed back meanwhile is nobody's, and waits for those who may have it now.
    again = await tx.fetch("live_replicas", [(id,) for id in sorted(parents)])
    rows = [(child, *others) for child, *others in again if (str(child),) in ids]
    await tx.fetch("assign_needs", [(id, eligibility.mark) for id, eligibility in parents.items()])
    await tx.fetch("look_at_conducts", [(id,) for id in sorted(parents)])
    tx.wake(replicas.CONDUCTOR)
    for child, parent, worker, bound, queue in rows:
        run_id, eligibility = str(child), parents[str(parent)]
        await tx.fetch("assign_needs", [(run_id, REPLICA + eligibility.mark[1:])])
        tx.wake(queue)
        if (
            worker is not None
            and eligibility.requirements.only_workers
            and worker not in eligibility.requirements.only_workers
        ):
            if bound:
                # Before the cancel: the conductor looks at the parent after it, and must not count this as a failure.
                await tx.fetch("disown_replica", id=run_id)
                await cancel.cancel(tx, run_id, "its worker may not do it any more", CONDUCTING)
            elif run_id in held:
                await report.take_away(tx, [(run_id, held[run_id])])
            elif run_id in ready:
                await replicas.free(tx, [run_id])
                await tx.fetch("hold_for_needs", [(run_id, REPLICA + eligibility.mark[1:])])
        elif worker is None and run_id in ready:
            await tx.fetch("hold_for_needs", [(run_id, REPLICA + eligibility.mark[1:])])
