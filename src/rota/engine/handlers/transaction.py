"""`ctx.transaction()`: commit a handler's own SQL and the end of its run together, under the fence, or neither."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rota.core.progress.notes import Notes
from rota.core.runs.claim import Claim
from rota.core.runs.outcome import Report
from rota.errors import BadPayload, Invalid
from rota.store.databases.database import Session
from rota.values import json
from rota.values.json import Limits

if TYPE_CHECKING:
    from rota.store import Store

T = TypeVar("T")

Rows = list[tuple[Any, ...]]

_CONTROL = re.compile(r"\s*(begin|start\s+transaction|commit|end|rollback|abort)\b(?!\s+to\b)", re.IGNORECASE)


class Transaction:
    """The transaction as an async handler sees it."""

    def __init__(self, session: Session, limits: Limits) -> None:
        self._session = session
        self._limits = limits
        self.result: str | None = None
        self.is_finished = False

    @property
    def connection(self) -> Any:
        """The driver's connection inside the open transaction: asyncpg's on PostgreSQL, apsw's on SQLite."""
        return self._session.connection

    async def execute(self, sql: str, *values: object) -> Rows:
        """Execute SQL and return its rows, if any.

        Placeholders are the database's: `$1` on PostgreSQL, `?` on SQLite.
        """
        if _CONTROL.match(sql):
            raise Invalid("the transaction is committed when its block is left", hint="an exception rolls it back")
        return await self._session.execute(sql, values)

    def finish(self, result: object = None) -> None:
        """End the run as succeeded, with this result, when the transaction commits."""
        if self.is_finished:
            raise Invalid("this transaction finishes its run already")
        try:
            self.result = None if result is None else json.encode(result, self._limits)
        except BadPayload as error:
            raise Invalid(f"the result cannot be stored: {error.problem}") from error
        self.is_finished = True


class SyncTransaction:
    """The transaction as a handler sees it that is not a coroutine."""

    def __init__(self, transaction: Transaction, wait: _Wait) -> None:
        self._transaction = transaction
        self._wait = wait

    @property
    def connection(self) -> Any:
        """The driver's connection. apsw's can be used here; asyncpg's belongs to an event loop: use `execute`."""
        return self._transaction.connection

    def execute(self, sql: str, *values: object) -> Rows:
        return self._wait(self._transaction.execute(sql, *values))

    def finish(self, result: object = None) -> None:
        self._transaction.finish(result)


class _Wait(Protocol):
    def __call__(self, act: Coroutine[Any, Any, T], /) -> T: ...


@contextlib.asynccontextmanager
async def transaction(
    store: Store, claim: Claim, limits: Limits, end: Callable[[str | None], Awaitable[tuple[Report, Notes]]]
) -> AsyncIterator[Transaction]:
    """Open a transaction. `end` returns what is committed with it if the handler finishes the run."""
    async with store.database.session() as session:
        tx = Transaction(session, limits)
        yield tx
        report, notes = await end(tx.result) if tx.is_finished else (None, None)
        from rota.store.databases.held_transaction import seal  # few programs have such handlers

        # `seal` checks the fence and writes the report last, in the same transaction: a worker that lost its lease
        # rolls everything back.
        await session.within(lambda inner: seal(inner, (claim.run_id, claim.fence), report, notes))


@contextlib.contextmanager
def sync_transaction(
    opening: contextlib.AbstractAsyncContextManager[Transaction], wait: _Wait
) -> Iterator[SyncTransaction]:
    """Enter and leave `opening` through `wait`, which runs coroutines on another event loop."""
    inner = wait(_entered(opening))
    try:
        yield SyncTransaction(inner, wait)
    except BaseException as error:
        if not wait(_left(opening, error)):
            raise
    else:
        wait(_left(opening, None))


async def _entered(opening: contextlib.AbstractAsyncContextManager[Transaction]) -> Transaction:
    return await opening.__aenter__()


async def _left(opening: contextlib.AbstractAsyncContextManager[Any], error: BaseException | None) -> bool:
    kind = None if error is None else type(error)
    return bool(await opening.__aexit__(kind, error, None if error is None else error.__traceback__))
