"""What people do to runs: cancel."""

from __future__ import annotations

import msgspec

from rota.core.model import CancelPolicy, JobDefinition
from rota.core.states import RunState
from rota.durations import in_micros
from rota.errors import NotCancellable, RunIsFinal, Unavailable, UnknownRun
from rota.store.database import Tx

_TRIES = 5


async def cancel(tx: Tx, run_id: str, reason: str | None, actor: str | None) -> RunState:
    """Unclaimed: ended at once. Claimed: its worker is asked to stop, and has its grace to do so."""
    for _ in range(_TRIES):  # between two statements a run may move from ready to leased, or back
        facts = await tx.fetch("cancel_facts", id=run_id)
        if not facts:
            raise UnknownRun(run_id)
        job, state, definition = facts[0]
        if state == RunState.CANCELLED:
            return RunState.CANCELLED  # repeated after an unknown outcome, or by somebody else: it is what was wanted
        if state is not None:
            raise RunIsFinal(run_id, state, "cancelled")
        ready = await tx.fetch("drop_ready", id=run_id)
        if ready:
            attempt, fence = ready[0]
            await tx.fetch("cancel_unclaimed", id=run_id, attempt=attempt, fence=fence, reason=reason, actor=actor)
            return RunState.CANCELLED
        policy = _cancel_policy(definition)
        if not policy.supported:
            raise NotCancellable(run_id, job)
        if await tx.fetch("ask_to_cancel", id=run_id, grace=in_micros(policy.grace)):
            await tx.fetch("note_cancel", id=run_id, reason=reason, actor=actor)
            return RunState.CANCELLING
    raise Unavailable(f"run {run_id} kept changing while it was being cancelled", hint="try again")


def _cancel_policy(definition: str | None) -> CancelPolicy:
    return msgspec.json.decode(definition, type=JobDefinition).cancel if definition else CancelPolicy()
