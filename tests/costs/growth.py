"""Compare what operations cost beside a small crowd and beside one that is a hundred times larger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rota.store import Store
from rota.store.databases.database import Database
from rota.store.databases.sqlite.sqlite import SqliteDatabase
from tests.conftest import migrated
from tests.costs import crowd
from tests.costs.crowd import Sizes
from tests.costs.measure import Cost, Meter, meter
from tests.costs.operations import KEYED, LIMITED, OPERATIONS, Operation, World
from tests.costs.trial import SETTINGS, arrange_history
from tests.support.clock import ManualClock
from tests.support.databases import deep_queues
from tests.support.databases.deep_queues import QuietDatabase, Reading
from tests.support.databases.postgres import PostgresCluster
from tests.support.runs.runs import LEASE_MICROS, WORK, WORKER

STATISTICS = ("fresh", "stale", "absent")
_IN_TURN = ("stale", "absent", "fresh")
Plant = Callable[[Store], Awaitable[object]]
_LOOSE = 150
"""Rows, pages and calls by which two trials may differ: dead rows of earlier operations, levels of an index."""


class Measured(msgspec.Struct, frozen=True):
    cost: Cost
    reading: Reading | None


class Grown(msgspec.Struct, frozen=True):
    """An operation that costs more beside a larger crowd. `tables`: of which PostgreSQL read more."""

    operation: str
    knows: str
    field: str
    small: int
    large: int
    reading: Reading | None
    tables: frozenset[str]
    plans: str = ""

    def __str__(self) -> str:
        costs = f"{self.field} {self.small} beside few, {self.large} beside many"
        tables = "" if self.reading is None else f"; {self.reading}"
        return f"{self.operation} ({self.knows}): {costs}{tables}\n{self.plans}"


class Trial:
    """One database with a crowd, and operations that are measured in it one after the other."""

    def __init__(self, store: Store, clock: ManualClock, counts: Meter) -> None:
        self.store = store
        self.world = World(store, clock)
        self._counts = counts

    async def costs(self, operations: Sequence[Operation]) -> dict[str, Measured]:
        return {operation.name: await self._measured(operation) for operation in operations}

    async def _measured(self, operation: Operation) -> Measured:
        world = self.world
        await operation.act(world, await operation.arrange(world))
        act = partial(operation.act, world, await operation.arrange(world))
        return Measured(*await self._counts.measure(self.store, act, vacuum=False))

    async def plans_of(self, operation: Operation, patch: Any) -> str:
        """Return the plans of its statements as PostgreSQL makes them now."""
        subject = await operation.arrange(self.world)
        with deep_queues.explaining(patch) as plans:
            await operation.act(self.world, subject)
        return "\n\n".join(plans)


@asynccontextmanager
async def _trial(database: Database, clock: ManualClock, counts: Meter, sizes: Sizes) -> AsyncIterator[Trial]:
    store = Store(database)
    try:
        await store.save_jobs([WORK, LIMITED, KEYED])
        await crowd.fill(store, sizes)
        await store.extend(WORKER, [], LEASE_MICROS)
        trial = Trial(store, clock, counts)
        await arrange_history(trial.world)
        yield trial
    finally:
        await store.close()


def sqlite_growth(
    folder: Path, patch: Any, factor: int, operations: Sequence[Operation] = OPERATIONS, plant: Plant | None = None
) -> list[Grown]:
    """Compare on SQLite. `plant` spoils something before anything is measured."""

    async def costs(sizes: Sizes, counts: Meter) -> dict[str, Measured]:
        path, clock = folder / f"{sizes.waiting}.db", ManualClock()
        await migrated(f"sqlite:///{path}")
        async with _trial(SqliteDatabase(str(path), clock), clock, counts, sizes) as trial:
            if plant is not None:
                await plant(trial.store)
            return await trial.costs(operations)

    with meter(patch) as counts:
        small = asyncio.run(costs(crowd.SMALL, counts))
        large = asyncio.run(costs(crowd.SMALL.times(factor), counts))
    return grown(small, large, "SQLite")


def postgres_growth(
    patch: Any,
    factor: int,
    operations: Sequence[Operation] = OPERATIONS,
    *,
    binaries: Path | None = None,
    statistics: Sequence[str] = STATISTICS,
    expected: Callable[[Grown], bool] = lambda _: True,
) -> list[Grown]:
    """Compare on PostgreSQL, with statistics that are fresh, collected when the tables were empty, and absent.

    What is not `expected` comes with its plans.
    """
    acts = {operation.name: operation for operation in operations}

    async def small_costs(url: str, counts: Meter) -> dict[str, Measured]:
        async with _postgres_trial(url, counts, crowd.SMALL) as trial:
            await deep_queues.execute(url, "vacuum analyze")
            return await trial.costs(operations)

    async def compared(url: str, small: dict[str, Measured], counts: Meter) -> list[Grown]:
        lines = []
        async with _postgres_trial(url, counts, crowd.SMALL.times(factor)) as trial:
            for kind in sorted(statistics, key=_IN_TURN.index):
                if kind != "stale":
                    await deep_queues.execute(url, deep_queues.FORGET if kind == "absent" else "vacuum analyze")
                for line in grown(small, await trial.costs(operations), f"statistics {kind}"):
                    plans = "" if expected(line) else await trial.plans_of(acts[line.operation], patch)
                    lines.append(msgspec.structs.replace(line, plans=plans))
        return lines

    with PostgresCluster(settings={**SETTINGS, "shared_buffers": "256MB"}, binaries=binaries) as cluster:
        template = cluster.create_database()
        asyncio.run(migrated(template))
        few, many = (cluster.create_database(template) for _ in range(2))
        with meter(patch) as counts:
            small = asyncio.run(small_costs(few, counts))
            return asyncio.run(compared(many, small, counts))


@asynccontextmanager
async def _postgres_trial(url: str, counts: Meter, sizes: Sizes) -> AsyncIterator[Trial]:
    clock = ManualClock()
    await deep_queues.execute(url, "vacuum analyze")  # while the tables are empty: these statistics are stale
    async with _trial(QuietDatabase(url, clock, deadline=timedelta(hours=1)), clock, counts, sizes) as trial:
        yield trial


def grown(small: dict[str, Measured], large: dict[str, Measured], knows: str) -> list[Grown]:
    """Return where the large crowd costs more: any transaction or statement, or a third more of anything else."""
    lines = []
    for name, few in small.items():
        many = large[name]
        tables = _tables_read_more(few.reading, many.reading)
        for field in ("transactions", "statements", "calls", "read", "pages", "dead", "scanned"):
            before, after = getattr(few.cost, field), getattr(many.cost, field)
            exact = field in ("transactions", "statements")
            if after > before if exact else _is_more(before, after, 2 * _LOOSE if field == "pages" else _LOOSE):
                lines.append(Grown(name, knows, field, before, after, many.reading, tables))
    return lines


def _is_more(before: int, after: int, loose: int = _LOOSE) -> bool:
    return after > 1.34 * before + loose


def _tables_read_more(few: Reading | None, many: Reading | None) -> frozenset[str]:
    if few is None or many is None:
        return frozenset()
    return frozenset(table for table, rows in many.rows.items() if _is_more(few.rows.get(table, 0), rows))
