"""Many runs at once: counted and found by filter, cancelled and retried a bite at a time."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.bulking import Found
from rota.core.model import NewRun, RunFilter
from rota.core.states import RunState
from rota.errors import AlreadyRetried, RotaError
from rota.store import control, enqueueing
from rota.store.database import Database, Tx
from rota.store.selecting import selection_of

_CLAIMED = (RunState.RUNNING, RunState.WAITING, RunState.CANCELLING)

Refusals = dict[str, RotaError]
"""Why not, by run."""


class BulkStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, wanted: RunFilter, most: int) -> int:
        """Up to `most`: it stops there."""

        async def body(tx: Tx) -> int:
            chosen = selection_of(wanted, self._database.clock)
            sql = f"select count(*) from (select 1 from rota_run_now {chosen.where} limit :most) as matching"
            return int((await tx.fetch_sql(sql, most=most, **chosen.values))[0][0])

        return await self._database.read(body)

    async def find(self, wanted: RunFilter, after: str, limit: int) -> list[Found]:
        """Oldest first, from that id on."""

        async def body(tx: Tx) -> list[Found]:
            chosen = selection_of(wanted, self._database.clock).narrowed("id > :after", after=after)
            sql = f"select id, state from rota_run_now {chosen.where} order by id limit :limit"
            rows = await tx.fetch_sql(sql, limit=limit, **chosen.values)
            return [Found(str(id), state in _CLAIMED) for id, state in rows]

        return await self._database.read(body)

    async def cancel_waiting(self, run_ids: Sequence[str], reason: str | None, actor: str | None) -> list[str]:
        """In one transaction, those that nobody has; returns the others."""
        queues: set[str] = set()

        async def body(tx: Tx) -> list[str]:
            return [id for id in run_ids if not await control.cancel_unclaimed(tx, id, reason, actor, queues)]

        left = await self._database.transact(body)
        self._database.notify(queues)
        return left

    async def retry(self, runs: Sequence[NewRun]) -> Refusals:
        """In one transaction, which fails as a whole if a key or a limit refuses one of them.

        A run that was retried already, by this or by anybody else, is not retried again: two that do so at once wait
        for each other at the old run.
        """

        async def body(tx: Tx) -> Refusals:
            old = [(id,) for id in sorted(str(run.retry_of) for run in runs)]
            await tx.fetch("lock_runs", old)
            retries: dict[str, set[str]] = {}
            for run_id, retry in await tx.fetch("retries_of", old):
                retries.setdefault(str(run_id), set()).add(str(retry))
            await enqueueing.enqueue(tx, [run for run in runs if run.retry_of not in retries], hints=hints)
            return {
                str(run.retry_of): AlreadyRetried(str(run.retry_of), min(retries[str(run.retry_of)]))
                for run in runs
                if run.id not in retries.get(str(run.retry_of), {run.id})  # its own: this was done before
            }

        hints = {enqueueing.where_of(run) for run in runs}
        refused = await self._database.transact(body)
        self._database.notify(hints)
        return refused
