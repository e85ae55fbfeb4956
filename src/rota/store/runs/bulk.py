"""Many runs at once, a batch at a time: cancelled, retried and purged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from rota.core.runs.bulk import BulkResult
from rota.core.runs.run import NewRun, RunFilter
from rota.errors import AlreadyRetried, RotaError, RunIsKept
from rota.store.databases.database import Database, Row, Tx
from rota.store.databases.statements import POSTGRES
from rota.store.ledger import audit
from rota.store.runs import cancel, enqueue, prune
from rota.values.clock import new_id

Refusals = dict[str, RotaError]
"""Why not, by run."""

_KEPT = {
    "live": "it has not ended",
    "young": "it ended later than that",
    "replica": "it goes with the run whose replica it is",
    "key": "its idempotency or unique key still leads to it",
    "follower": "a run that has not ended depends on it",
    "schedule": "its schedule's next plan time depends on it",
    "success": "it is the newest success of its job or schedule",
    "signal": "its end has not been told yet",
    "busy": "another process is at it",
}
_FREE = "select freelist_count * page_size from pragma_freelist_count, pragma_page_size"
_VACUUM_FILE = "new rows use the space; `sqlite3 FILE vacuum` shrinks the file, with as much free disk as is left in it"
_VACUUM = "autovacuum frees the space for new rows; `vacuum full` returns it to the system, and locks tables meanwhile"


class BulkStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def cancel_waiting(self, run_ids: Sequence[str], reason: str | None, actor: str | None) -> list[str]:
        """Cancel, in one transaction, those of these runs that nobody has; return the others."""

        async def body(tx: Tx) -> list[str]:
            # One commit for a whole batch. A run that somebody has is left to the caller, in a transaction of its own:
            # its lease would have to be locked before the ready rows that this one has by then.
            ended = await cancel.cancel_all_unclaimed(tx, run_ids, reason, actor)
            return [id for id in run_ids if id not in ended]

        return await self._database.transact(body)

    async def purge(self, run_ids: Sequence[str], age: int, *, dry_run: bool) -> Refusals:
        """Delete, in one transaction, those of these runs that nothing needs; return why the others are kept.

        They are deleted as retention does it: statistics, ledgers and numbers of executions keep what counts.
        """
        rows = [(id,) for id in run_ids]
        # A look before it, as of the janitor: on SQLite, nobody else can write during a transaction that deletes.
        looked = await self._database.read(lambda tx: tx.fetch("kept_runs", rows, keep_for=age))
        unneeded = [(id,) for id, _, why in looked if why is None]
        gone = {str(id) for (id,) in unneeded}
        if unneeded and not dry_run:
            gone = await self._database.transact(partial(_purge, rows=unneeded, age=age))
        kept = {str(id): why or "busy" for id, parent, why in looked if str(id) not in gone and str(parent) not in gone}
        return {id: RunIsKept(_KEPT[why]) for id, why in kept.items()}

    async def space(self) -> tuple[int | None, str]:
        """Return how many bytes of the file are free for new rows, where that is known, and how to give them back."""
        if self._database.dialect is POSTGRES:
            return None, _VACUUM
        ((free,),) = await self._database.read(lambda tx: tx.fetch_sql(_FREE))
        return free, _VACUUM_FILE

    async def note(
        self, action: str, run_filter: RunFilter, result: BulkResult, actor: str | None, **more: object
    ) -> None:
        """Note a bulk command in the audit trail: one entry, with its filter and what it did."""
        chosen = {name: value for name, value in msgspec.to_builtins(run_filter).items() if value not in (None, [], {})}
        if "payload" in chosen:  # values may be secret
            chosen["payload"] = sorted(chosen["payload"])
        # Once, also if the transaction is repeated because its answer got lost.
        details = {"act": new_id(), "filter": chosen, **more, "matched": result.matched, "done": result.done}
        await self._database.transact(lambda tx: audit.note_once(tx, "bulk", "runs", action, actor, details))

    async def retry(self, runs: Sequence[NewRun]) -> Refusals:
        """Retry runs in one transaction; return why some are refused, by the run that they would repeat.

        A run that was retried already, by this or by anybody else, is not retried again: two that do so at once wait
        for each other at the old run.
        """

        async def body(tx: Tx) -> Refusals:
            await enqueue.refused_by_jobs(tx, runs)  # their locks: jobs before runs, as everybody
            old = [(id,) for id in sorted(str(run.retry_of) for run in runs)]
            await tx.fetch("lock_runs", old)
            # After the lock, by a statement of its own: an older snapshot would not see the retry of its last holder.
            retries: dict[str, set[str]] = {}
            for run_id, retry in await tx.fetch("retries_of", old):
                retries.setdefault(str(run_id), set()).add(str(retry))
            refused = await enqueue.enqueue_admitted(tx, [run for run in runs if run.retry_of not in retries])
            return {str(run.retry_of): refused[run.id] for run in runs if run.id in refused} | {
                str(run.retry_of): AlreadyRetried(str(run.retry_of), min(retries[str(run.retry_of)]))
                for run in runs
                if run.id not in retries.get(str(run.retry_of), {run.id})  # its own: this was done before
            }

        return await self._database.transact(body)


async def _purge(tx: Tx, rows: Sequence[Row], age: int) -> set[str]:
    """Delete those of these runs that nothing needs."""

    async def unneeded(tx: Tx, locked: Sequence[Row]) -> Sequence[Row]:
        looked = await tx.fetch("kept_runs", locked, keep_for=age)
        return [(id,) for id, _, why in looked if why is None]

    return await prune.drop(tx, rows, unneeded)
