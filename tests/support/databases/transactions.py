"""Counting of transactions: how many a database is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from rota.store.databases.database import Database

_COUNTED = ("transact", "alone", "glance", "read")


class Transactions:
    """Names of the methods that opened a transaction, in order."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def __len__(self) -> int:
        return len(self.opened)


@contextmanager
def counted(database: Database) -> Iterator[Transactions]:
    """Count the transactions of a database within this block. A method that calls another one counts once."""
    transactions = Transactions()
    inside: ContextVar[bool] = ContextVar("inside", default=False)

    def counting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        async def call(*positional: Any, **named: Any) -> Any:
            if inside.get():
                return await method(*positional, **named)
            transactions.opened.append(name)
            before = inside.set(True)
            try:
                return await method(*positional, **named)
            finally:
                inside.reset(before)

        return call

    def session(*positional: Any, **named: Any) -> AbstractAsyncContextManager[Any]:
        transactions.opened.append("session")
        return original_session(*positional, **named)

    original_session = database.session
    patched = {name: counting(name, getattr(database, name)) for name in _COUNTED} | {"session": session}
    for name, method in patched.items():
        setattr(database, name, method)
    try:
        yield transactions
    finally:
        for name in patched:
            delattr(database, name)
