"""Keys: those of new runs are locked; by its own a request is known that comes again after a lost answer."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.jobs.unique import KeyHold
from rota.core.runs.run import NewRun
from rota.errors import KeyReused
from rota.store.databases.columns import Column, Columns, column
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


async def lock_keys(tx: Tx, runs: Sequence[NewRun]) -> dict[str, str]:
    """Lock every key of the call: a free one goes to the first run that wants it. Returns those, key to run."""
    claims: dict[str, tuple[str, KeyHold]] = {}
    for run in runs:
        for hold in run.holds:
            claims.setdefault(hold.key, (run.id, hold))
    # All at once and in the order of keys, whatever the callers' orders: two bulk enqueues cannot deadlock.
    keys = sorted(claims)
    taken = [claims[key] for key in keys]
    holds = [hold for _, hold in taken]
    columns: list[Column] = [
        keys,
        [run_id for run_id, _ in taken],
        column([hold.period for hold in holds]),
        column([int(hold.once) for hold in holds]),
        column([hold.fingerprint for hold in holds]),
    ]
    return {key: claims[key][0] for (key,) in await tx.fetch("lock_keys", Columns(len(keys), columns))}


def hold_values(run_id: str, hold: KeyHold) -> dict[str, object]:
    return {"run_id": run_id, "period": hold.period, "once": int(hold.once), "fingerprint": hold.fingerprint}
