"""Provide a database for each test by copying a template, which is much faster than migrating each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rota.client.blocking import LoopThread
from rota.store import Store, dialect_of, open_database
from rota.store.databases.statements import POSTGRES
from rota.store.databases.temporary import Server

T = TypeVar("T")
Copies = Callable[[Path], AbstractContextManager[str]]
"""Context manager that takes the test's folder and yields the URL of a database that exists inside the block."""


@contextmanager
def copies(url: str | None, folder: Path) -> Iterator[Copies]:
    """Yield a factory of databases: on the PostgreSQL server of `url`, or as SQLite files.

    `folder` holds the template.
    """
    if url is not None and dialect_of(url) is POSTGRES:
        with _on_server(url) as factory:
            yield factory
    else:
        template = folder / "rota.db"
        complete(_migrated(f"sqlite:///{template}"))
        yield lambda own: _file(template, own)


@contextmanager
def _file(template: Path, own: Path) -> Iterator[str]:
    shutil.copy(template, own / "rota.db")
    yield f"sqlite:///{own / 'rota.db'}"


@contextmanager
def _on_server(url: str) -> Iterator[Copies]:
    server = Server(url)
    template = complete(server.create())

    @contextmanager
    def copy(_own: Path) -> Iterator[str]:
        database_url = complete(server.create(template))
        try:
            yield database_url
        finally:
            complete(server.drop(database_url))

    try:
        complete(_migrated(template))
        yield copy
    finally:
        complete(server.drop(template))


async def _migrated(url: str) -> None:
    store = Store(open_database(url))
    try:
        await store.migrate()
        await forget_place(store)
    finally:
        await store.close()


async def forget_place(store: Store) -> None:
    """Let the database not know where it is: else what is made from this template would be held as a copy."""
    await store.database.transact(lambda tx: tx.fetch_sql("delete from rota_epoch"))


def complete(act: Coroutine[Any, Any, T]) -> T:
    """Run `act` on an event loop of its own: a fixture may be set up while another loop runs."""
    loop = LoopThread()
    try:
        return loop.call(act)
    finally:
        loop.stop()
