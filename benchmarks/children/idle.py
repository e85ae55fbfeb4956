"""One idle process of rota in a measured process: it counts the transactions that it begins, by operation.

role      does                                                        says
worker    an engine with a worker, and nothing to do                  counts (operation → transactions), when told to go
server    an engine without a worker, as a server has it              the same
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks.children.protocol import run_with_quick_loop, say, told_to_go
from benchmarks.harness.fleet import declared
from rota.engine.engine import Engine
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.store.databases.sqlite.sqlite import SqliteDatabase

WAYS = ("transact", "alone", "glance", "read", "heed")


def run(role: str, parameters: dict[str, Any]) -> None:
    run_with_quick_loop(_rest(working=role == "worker", **parameters))


async def _rest(url: str, name: str, working: bool) -> None:
    counts: Counter[str] = Counter()
    for database in (PostgresDatabase, SqliteDatabase):
        _count(database, counts)
    app = declared(url)
    client = await app.connect()
    engine = Engine(client.store, app.registry, app.config, name=name, working=working)
    await engine.start()
    while True:
        await told_to_go()
        say(counts=dict(counts))


def _count(database: type[Any], counts: Counter[str]) -> None:
    """Count at the class: the heartbeat has a database of its own, in another thread."""
    for way in WAYS:
        ask = getattr(database, way, None)
        if ask is not None:
            setattr(database, way, _counting(ask, counts))


def _counting(ask: Callable[..., Any], counts: Counter[str]) -> Callable[..., Any]:
    async def counted(self: object, work: Any, **options: Any) -> Any:
        counts[_operation(work)] += 1
        return await ask(self, work, **options)

    return counted


def _operation(work: Any) -> str:
    name = getattr(work, "__qualname__", None) or getattr(getattr(work, "func", None), "__qualname__", "?")
    return str(name).partition(".<locals>")[0]
