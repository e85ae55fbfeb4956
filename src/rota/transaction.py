"""Methods that enqueue inside a transaction of the caller's. Part of `Rota`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from rota.config import Config
from rota.core.runs.options import Order, carrying, new_run
from rota.core.runs.payload import pending_of
from rota.core.runs.run import Enqueued, NewRun
from rota.observability import tracing
from rota.registry.jobs import Registry
from rota.store import new_id
from rota.store.databases.database import drive
from rota.store.databases.statements import Dialect
from rota.values.json import Limits
from rota.values.scope import Scope


class InTransactions:
    """Methods of the app that enqueue inside a transaction of the caller's."""

    registry: Registry
    config: Config
    dialect: Dialect

    def enqueue_many_in(self, connection: Any, orders: Iterable[Order]) -> list[str]:
        """Enqueue runs of any jobs inside your own transaction, as `job.enqueue_in` does. Return their ids."""
        from rota.store.databases.foreign_connection import execute_in, needs_locks, require_connection
        from rota.store.databases.foreign_transaction import enqueue_all_in

        async def write(orders: Sequence[Order]) -> Sequence[Enqueued]:  # it never suspends
            runs = self._linked_locally(orders)
            if len(runs) > 1 or any(map(needs_locks, runs)):
                return enqueue_all_in(connection, runs, self.dialect)
            for run in runs:
                execute_in(connection, self._under_quota(run), self.dialect)
            return [Enqueued(run.id, True) for run in runs]

        require_connection(connection, self.dialect, asynchronous=False)
        ids: list[str] = drive(self._surrounded(list(orders), write, suspends=False))
        return ids

    async def aenqueue_many_in(self, connection: Any, orders: Iterable[Order]) -> list[str]:
        """Enqueue runs of any jobs inside your own transaction, as `job.aenqueue_in` does. Return their ids."""
        from rota.store.databases.foreign_connection import aexecute_in, needs_locks, require_connection
        from rota.store.databases.foreign_transaction import aenqueue_all_in

        async def write(orders: Sequence[Order]) -> Sequence[Enqueued]:
            runs = self._linked_locally(orders)
            if len(runs) > 1 or any(map(needs_locks, runs)):
                return await aenqueue_all_in(connection, runs, self.dialect)
            for run in runs:
                await aexecute_in(connection, self._under_quota(run), self.dialect)
            return [Enqueued(run.id, True) for run in runs]

        require_connection(connection, self.dialect, asynchronous=True)
        return await self._surrounded(list(orders), write, suspends=True)

    async def _surrounded(
        self, orders: Sequence[Order], write: Callable[[Sequence[Order]], Awaitable[Sequence[Enqueued]]], suspends: bool
    ) -> list[str]:
        """Write runs inside the middleware around enqueues; return their ids."""
        if (around := self.registry.around_enqueue) is None:
            return [answer.id for answer in await write(orders)]
        async with around.entered(orders, suspends=suspends) as enqueues:
            answers = await write([enqueue.order for enqueue in enqueues])
            around.note(enqueues, answers)
        return [answer.id for answer in answers]

    def _linked_locally(self, orders: Sequence[Order]) -> list[NewRun]:
        runs = [self.prepare_locally(order) for order in orders]
        if not any(run.after for run in runs):
            return runs
        from rota.client.runs.enqueue import linked, no_parts

        linked_runs: list[NewRun] = drive(linked(no_parts, [order.options for order in orders], runs))
        return linked_runs

    def prepare_locally(self, order: Order) -> NewRun:
        """Build a run without accessing the database, for use inside another transaction."""
        handler = self.registry.newest[order.job]
        kind = handler.payload.without(pending_of(order.options))
        payload = kind.encode(order.arguments, Limits(self.config.max_payload))
        run = new_run(handler.definition, new_id(), payload, order.options)
        return carrying(run, tracing.traceparent()) if self.config.tracing and tracing.turn_on() else run

    def _under_quota(self, run: NewRun) -> NewRun:
        """Apply the quota declared here.

        Quotas of others, and the number of queued runs, are known only to the database.
        """
        declared = self.registry.quotas.get(run.scope_kind)
        if declared is None:
            return run
        gates = declared.gates(Scope(run.scope_kind, run.scope_id))
        quiet = tuple(msgspec.structs.replace(gate, max_queued=None) for gate in gates)
        return msgspec.structs.replace(run, gates=(*run.gates, *quiet))
