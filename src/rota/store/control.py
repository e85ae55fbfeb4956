"""What is done to live runs from outside: cancelled by people, superseded by policies."""

from __future__ import annotations

import msgspec

from rota.core.model import CancelPolicy, JobDefinition
from rota.core.states import RunState
from rota.durations import in_micros
from rota.errors import NotCancellable, RunIsFinal, Unavailable, UnknownRun
from rota.store import waits
from rota.store.database import Tx

_TRIES = 5


async def cancel(
    tx: Tx, run_id: str, reason: str | None, actor: str | None, queues: set[str] | None = None
) -> RunState:
    """Unclaimed: ended at once. Claimed: its worker is asked to stop, and has its grace to do so.

    `queues` gets those where runs go on that waited for it.
    """
    for _ in range(_TRIES):  # between two statements a run may move from ready to leased, or back
        facts = await tx.fetch("cancel_facts", id=run_id)
        if not facts:
            raise UnknownRun(run_id)
        job, state, definition = facts[0]
        if state == RunState.CANCELLED:
            return RunState.CANCELLED  # repeated after an unknown outcome, or by somebody else: it is what was wanted
        if state is not None:
            raise RunIsFinal(run_id, state, "cancelled")
        if await _end_unclaimed(tx, run_id, RunState.CANCELLED, reason, actor, queues):
            return RunState.CANCELLED
        policy = _cancel_policy(definition)
        if not policy.supported:
            raise NotCancellable(run_id, job)
        if await tx.fetch("ask_to_cancel", id=run_id, grace=in_micros(policy.grace)):
            await tx.fetch("note_cancel", id=run_id, reason=reason, actor=actor)
            return RunState.CANCELLING
    raise Unavailable(f"run {run_id} kept changing while it was being cancelled", hint="try again")


async def supersede(tx: Tx, run_id: str, reason: str, actor: str, queues: set[str] | None = None) -> RunState | None:
    """As `cancel`, but what was not claimed has been skipped. None: it is final, or cannot be stopped."""
    if await _end_unclaimed(tx, run_id, RunState.SKIPPED, reason, actor, queues):
        return RunState.SKIPPED
    try:
        return await cancel(tx, run_id, reason, actor, queues)
    except (NotCancellable, RunIsFinal, UnknownRun):
        return None


async def _end_unclaimed(
    tx: Tx, run_id: str, state: RunState, reason: str | None, actor: str | None, queues: set[str] | None
) -> bool:
    ready = await tx.fetch("drop_ready", id=run_id)
    if not ready:
        return False
    attempt, fence = ready[0]
    values = {"state": state.value, "attempt": attempt, "fence": fence, "reason": reason, "actor": actor}
    await tx.fetch("end_unclaimed", id=run_id, **values)
    await tx.fetch("drop_gates", [(run_id,)])
    await waits.give_up(tx, [run_id])
    released = await waits.release(tx, [run_id])
    if queues is not None:
        queues |= released
    return True


def _cancel_policy(definition: str | None) -> CancelPolicy:
    return msgspec.json.decode(definition, type=JobDefinition).cancel if definition else CancelPolicy()
