"""Requests that may come again after a lost answer: known by their own key, as an enqueue is."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.jobs.unique import KeyHold
from rota.errors import KeyReused
from rota.store.databases.database import Tx


async def asked_before(tx: Tx, request: KeyHold) -> list[str]:
    """The runs that it made the first time, in their order; none: it is new. Another one under its key is refused."""
    # Without a lock: a repeated request mostly comes long after the first. Two that come at once meet in `remember`.
    run_ids: list[str] = []
    while rows := await tx.fetch("key_holders", [(_part(request, len(run_ids)),)]):
        ((_, run_id, held_until, _, fingerprint, _, _, now, _),) = rows
        if held_until <= now:
            break
        if fingerprint != request.fingerprint:
            raise KeyReused(request.label or request.key)
        run_ids.append(str(run_id))
    return run_ids


async def remember(tx: Tx, request: KeyHold, run_ids: Sequence[str]) -> None:
    """Remember what a request has made, in the transaction that made it."""
    held = {"period": request.period, "once": 0, "fingerprint": request.fingerprint}
    parts = {_part(request, place): run_id for place, run_id in enumerate(run_ids)}
    rows = [(key, run_id, *held.values()) for key, run_id in parts.items()]
    # Keys are last in the lock order. This waits for another request under the same key that has not committed yet;
    # what that one made is then read by a statement of its own, with a snapshot that sees it.
    fresh = {key for (key,) in await tx.fetch("lock_keys", rows)}
    if parts.keys() - fresh and await asked_before(tx, request):
        raise KeyReused(request.label or request.key)  # for something else, just now
    for key in parts.keys() - fresh:
        await tx.fetch("take_over_key", key=key, run_id=parts[key], **held)


def _part(request: KeyHold, place: int) -> str:
    """The request's own key for the first run, so that any other request with it meets this one."""
    return f"{request.key}:{place}" if place else request.key
