"""Many runs at once, a batch at a time: cancelled and retried."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.runs.bulk import BulkResult
from rota.core.runs.run import NewRun, RunFilter
from rota.errors import AlreadyRetried, RotaError
from rota.store.databases.database import Database, Tx
from rota.store.ledger import audit
from rota.store.runs import cancel, enqueue

Refusals = dict[str, RotaError]
"""Why not, by run."""


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

    async def note(self, action: str, run_filter: RunFilter, result: BulkResult, actor: str | None) -> None:
        """Note a bulk command in the audit trail: one entry, with its filter and what it did."""
        chosen = {name: value for name, value in msgspec.to_builtins(run_filter).items() if value not in (None, [], {})}
        if "payload" in chosen:  # values may be secret
            chosen["payload"] = sorted(chosen["payload"])
        details = {"filter": chosen, "matched": result.matched, "done": result.done}
        await self._database.transact(lambda tx: audit.note(tx, "bulk", "runs", action, actor, details))

    async def retry(self, runs: Sequence[NewRun]) -> Refusals:
        """Retry runs in one transaction, which fails as a whole if a key or a limit refuses one of them.

        A run that was retried already, by this or by anybody else, is not retried again: two that do so at once wait
        for each other at the old run.
        """

        async def body(tx: Tx) -> Refusals:
            await enqueue.hold_jobs(tx, runs)  # jobs before runs, as everybody
            old = [(id,) for id in sorted(str(run.retry_of) for run in runs)]
            await tx.fetch("lock_runs", old)
            # After the lock, by a statement of its own: an older snapshot would not see the retry of its last holder.
            retries: dict[str, set[str]] = {}
            for run_id, retry in await tx.fetch("retries_of", old):
                retries.setdefault(str(run_id), set()).add(str(retry))
            await enqueue.enqueue(tx, [run for run in runs if run.retry_of not in retries])
            return {
                str(run.retry_of): AlreadyRetried(str(run.retry_of), min(retries[str(run.retry_of)]))
                for run in runs
                if run.id not in retries.get(str(run.retry_of), {run.id})  # its own: this was done before
            }

        return await self._database.transact(body)
