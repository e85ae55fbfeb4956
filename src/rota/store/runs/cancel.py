"""Cancel live runs: asked for by people, or superseded by policies."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.ledger.audit import CANCEL_ASKED
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.run import RunError
from rota.core.states import RunState, end_unclaimed_as
from rota.core.workers.worker import inbox_of
from rota.errors import NotCancellable, RunIsFinal, Unavailable, UnknownRun
from rota.store.databases.database import Tx
from rota.store.ledger import audit
from rota.store.runs.end import EndedRuns, end
from rota.store.workers import replicas
from rota.values.actor import is_policy
from rota.values.durations import in_micros

_TRIES = 5
# Leases are looked at first: a handler may hand its run over between the two statements, but nobody hands one back.
_HOLDERS = (
    (RunState.RUNNING, "lock_lease", "ask_to_cancel"),
    (RunState.WAITING, "lock_cancel_outside", "ask_outside_to_cancel"),
)

# Where a live run may be, in lock order: whoever has it, and only then the row that waits to be claimed.
_LOCKS = ("lock_leases_of", "lock_outside_of", "lock_conducts", "lock_waiting")


async def cancel(tx: Tx, run_id: str, reason: str | None, actor: str | None) -> RunState:
    """End an unclaimed run at once; ask the worker of a claimed one to stop, which has its grace to do so."""
    await _reserve_entangled(tx, run_id)
    for _ in range(_TRIES):  # between two statements a run may move from ready to leased, or back
        facts = await tx.fetch("cancel_facts", id=run_id)
        if not facts:
            raise UnknownRun(run_id)
        ((job, state, definition),) = facts
        if state == RunState.CANCELLED:
            return RunState.CANCELLED  # repeated after an unknown outcome, or by somebody else: it is what was wanted
        if state is not None:
            raise RunIsFinal(run_id, state, "cancelled")
        # Each look locks what it finds, so that the run stays there. If none of them finds it, it moved between two of
        # them, and the loop looks again.
        if await _end_unclaimed(tx, run_id, RunState.CANCELLED, reason, actor):
            return RunState.CANCELLED
        policy = cancel_policy(definition)
        if not policy.supported:
            raise NotCancellable(run_id, job)
        if await _ask_to_stop(tx, run_id, reason, actor, in_micros(policy.grace)):
            return RunState.CANCELLING
        if await replicas.cancel_conducted(tx, run_id, reason, actor):
            return RunState.CANCELLING
    raise Unavailable(f"run {run_id} kept changing while it was being cancelled", hint="try again")


async def _ask_to_stop(tx: Tx, run_id: str, reason: str | None, actor: str | None, grace: int) -> bool:
    """Ask whoever has the run, a worker or an external party, to stop; return False if nobody has it."""
    for state, lock, ask in _HOLDERS:
        for asked_at, fence, *worker in await tx.fetch(lock, id=run_id):
            if asked_at is None or not is_policy(actor):  # what a person asked for stays theirs
                # Lease before run: the order of a report, which may end this run at the same moment.
                await tx.fetch(ask, id=run_id, grace=grace)
                await tx.fetch("note_cancel", id=run_id, reason=reason, actor=actor)
            if asked_at is None:
                change = {"from": state, "to": RunState.CANCELLING, "reason": reason}
                tx.wake(*map(inbox_of, worker))
                await audit.note(tx, "run", run_id, CANCEL_ASKED, actor, change, fence=fence)
            return True
    return False


async def expire_unclaimed(tx: Tx, run_id: str, reason: str, actor: str) -> bool:
    """A run that only one worker may have, which is gone for good. False: somebody has it by now."""
    await _reserve_entangled(tx, run_id)
    return await _end_unclaimed(tx, run_id, RunState.EXPIRED, reason, actor) is not None


async def cancel_unclaimed(tx: Tx, run_id: str, reason: str | None, actor: str | None) -> bool:
    """Cancel a run that nobody has; return False if it is final, or somebody has it by now."""
    await _reserve_entangled(tx, run_id)
    return await _end_unclaimed(tx, run_id, RunState.CANCELLED, reason, actor) is not None


async def cancel_all_unclaimed(tx: Tx, run_ids: Iterable[str], reason: str | None, actor: str | None) -> set[str]:
    """Cancel those of these runs that nobody has, by as many statements for all of them as for one; return which.

    Left alone are those that wait for the turn of another run, since whoever waits for them takes over what they wait
    for (`cancel_unclaimed`).
    """
    rows = [(id,) for id in sorted(run_ids)]
    found = [(str(id), str(other), first) for id, other, first in await tx.fetch("entangled", rows)]
    chosen = {id for (id,) in rows} - {id for id, _, first in found if first}
    # Those that depend on them, too: they end later, and by then a cancel of one may have its row and wait for ours.
    waiting = [(id,) for id in sorted(chosen.union(other for _, other, first in found if not first))]
    # Ready rows in the order of ids, as dependents are taken, and only then runs, in the same order: `mark_followed`
    # takes runs without their ready rows.
    ready = [str(id) for (id,) in await tx.fetch("lock_waiting", waiting)] if chosen else []
    locked = [(id,) for id in ready if id in chosen]
    if not locked:
        return set()
    dropped = [(str(id), *facts) for id, *facts in await tx.fetch("drop_ready_each", locked)]
    await tx.fetch("lock_runs", locked)
    state = RunState.CANCELLED
    ends = [(id, state.value, attempt, fence + 1, reason) for id, attempt, fence, _ in sorted(dropped)]
    await tx.fetch("end_each", ends, actor=actor)
    notes = [
        (id, actor, fence + 1, {"from": audit.waiting_state(hold), "to": state, "reason": reason})
        for id, _, fence, hold in sorted(dropped)
    ]
    states = dict.fromkeys((id for id, *_ in dropped), state.value)
    await end(tx, EndedRuns(states, unclaimed=True, alone=True, notes={state.value: notes}))
    return set(states)


async def supersede(tx: Tx, run_id: str, reason: str, actor: str) -> RunState | None:
    """Like `cancel`, but a run that has not begun is skipped. None: it is final, or cannot be stopped.

    The caller has reserved it, with those that are `entangled`: for one after the other, it would be too late.
    """
    if ended := await _end_unclaimed(tx, run_id, RunState.SKIPPED, reason, actor):
        return ended
    try:
        return await cancel(tx, run_id, reason, actor)
    except (NotCancellable, RunIsFinal, UnknownRun):
        return None


async def give_way(tx: Tx, run_id: str, reason: str, actor: str) -> RunState | None:
    """Like `supersede`, but never wait for a run: the caller holds a limit lock that the run's end also needs
    (deadlock).

    One that somebody else has at this moment, and that was not reserved before, is left alone.
    """
    # None of these locks waits (each statement skips what somebody has), so they need not keep to the order.
    awaited = [(str(id),) for (id,) in await tx.fetch("awaited_by", id=run_id)]
    if awaited and len(await tx.fetch("lock_free_runs", awaited)) < len(awaited):
        return None
    for lock in ("lock_free_ready", "lock_free_lease", "lock_free_outside"):
        if await tx.fetch(lock, id=run_id):
            return await supersede(tx, run_id, reason, actor)
    return None


async def fixed_among(tx: Tx, run_ids: Iterable[str]) -> set[str]:
    """Return those of these claimed runs that cannot be stopped, because their jobs do not support it."""
    rows = await tx.fetch("cancel_policies", [(id,) for id in run_ids])
    supported = {definition: cancel_policy(definition).supported for definition in {text for _, text in rows}}
    return {str(id) for id, definition in rows if not supported[definition]}


async def _reserve_entangled(tx: Tx, run_id: str) -> None:
    # All of them now, leases first: `bequeath` marks the awaited runs later, and a completion of one of them would
    # by then hold it and wait for our ready row (deadlock). Whoever waits is locked later, too, in the order of
    # ids, which need not be that of the chain: a cancel further down would have its own row and wait for ours.
    if others := await entangled(tx, [run_id]):
        await reserve(tx, [run_id, *others])


async def entangled(tx: Tx, run_ids: Iterable[str]) -> list[str]:
    """Return what these runs wait for, since others come to wait for that in their place; and who waits for them, or
    for one that would end with them. To be reserved together with them before they end.
    """
    rows = [(id,) for id in sorted(set(run_ids))]
    return [str(other) for _, other, _ in await tx.fetch("entangled", rows)] if rows else []


async def reserve(tx: Tx, run_ids: Iterable[str]) -> None:
    """Wait for whoever has these runs, and keep them, before a limit is locked.

    In the order of everybody else: a completion goes from leases to their runs, then to runs that waited for them, and
    to limits last; a cancel from what is ready, or the lease, to the run.
    """
    ids = missing = sorted(set(run_ids))
    for lock in _LOCKS:
        if missing:
            locked = {str(id) for (id,) in await tx.fetch(lock, [(id,) for id in missing])}
            missing = [id for id in missing if id not in locked]
    # One that was claimed after the leases were looked at. Whoever reports it would have its lease, and meet us over
    # its run or a limit; but with what is ready in hand, a lease must not be waited for.
    for id in missing:
        await tx.fetch("lock_free_lease", id=id)
    # After leases and ready rows, before limits. From here on nobody else can end one of these.
    if ids:
        await tx.fetch("lock_runs", [(id,) for id in ids])


async def _end_unclaimed(
    tx: Tx, run_id: str, target: RunState, reason: str | None, actor: str | None
) -> RunState | None:
    """End a run that nobody has; return how: as `target`, unless it has begun and was to be skipped. None: somebody has
    it.
    """
    # The delete decides the race with a claim: whichever comes second finds no row.
    ready = await tx.fetch("drop_ready", id=run_id)
    if not ready:
        return None
    ((attempt, fence, hold),) = ready
    state = end_unclaimed_as(target, fence)
    if state is RunState.SKIPPED:  # one that its schedule retries sets out from a later attempt, but has had none
        attempt = 0
    error = _worker_gone(reason or "") if state is RunState.EXPIRED else None
    # The end gets a fence of its own (the statement adds one), so that whatever is said under an older one is stale.
    values = {"state": state.value, "attempt": attempt, "fence": fence, "reason": reason, "actor": actor}
    await tx.fetch("end_unclaimed", id=run_id, error=error, **values)
    event = "superseded" if state is RunState.SKIPPED else state.value
    change = {"from": audit.waiting_state(hold), "to": state, "reason": reason}
    notes = {event: [(run_id, actor, fence + 1, change)]}
    await end(tx, EndedRuns({run_id: state.value}, unclaimed=True, notes=notes))
    return state


def _worker_gone(reason: str) -> str:
    return stored_error(RunError(type="WorkerGone", message=reason, code="worker_gone"), telling="")


def cancel_policy(definition: str | None) -> CancelPolicy:
    return msgspec.json.decode(definition, type=JobDefinition).cancel if definition else CancelPolicy()
