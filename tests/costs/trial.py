"""Measure all operations on one database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from rota.core.states import Outcome
from rota.store import Store
from rota.store.databases.database import Database
from rota.store.databases.sqlite.sqlite import SqliteDatabase
from tests.conftest import migrated
from tests.costs.measure import Cost, Meter, meter
from tests.costs.operations import KEYED, LAST, LIMITED, OPERATIONS, REPLICATED, WIDE, Operation, World
from tests.support.clock import ManualClock
from tests.support.databases.deep_queues import QuietDatabase
from tests.support.databases.postgres import PostgresCluster
from tests.support.runs.runs import LEASE_MICROS, WORK, WORKER, report_of

SETTINGS = {"autovacuum": "off", "full_page_writes": "off", "jit": "on", "max_wal_size": "4GB"}
"""Nothing that happens at times of its own choosing."""
ALL = (*OPERATIONS, *LAST)
REPETITIONS = 3
"""The last one is counted: by then everything that is prepared or cached is there."""


def sqlite_costs(url: str, patch: Any, operations: Sequence[Operation] = ALL) -> dict[str, Cost]:
    """Measure operations on a migrated SQLite file."""
    clock = ManualClock()
    with meter(patch) as counts:
        return asyncio.run(_costs(SqliteDatabase(url.removeprefix("sqlite:///"), clock), clock, counts, operations))


def postgres_costs(patch: Any, binaries: Path | None = None) -> dict[str, Cost]:
    """Measure all operations on a PostgreSQL server of this version."""
    clock = ManualClock()
    with PostgresCluster(settings=SETTINGS, binaries=binaries) as cluster:
        url = cluster.create_database()
        asyncio.run(migrated(url))
        with meter(patch) as counts:
            return asyncio.run(_costs(QuietDatabase(url, clock, deadline=timedelta(minutes=1)), clock, counts))


async def _costs(
    database: Database, clock: ManualClock, counts: Meter, operations: Sequence[Operation] = ALL
) -> dict[str, Cost]:
    store = Store(database)
    try:
        await store.save_jobs([WORK, LIMITED, KEYED, WIDE, REPLICATED])
        await store.extend(WORKER, [], LEASE_MICROS)
        world = World(store, clock)
        await arrange_history(world)
        return {operation.name: await _cost(world, operation, counts) for operation in operations}
    finally:
        await store.close()


async def arrange_history(world: World) -> None:
    """Let some runs have ended, well and not."""
    claims = await world.claimed()
    await world.store.report([report_of(claim, Outcome.SUCCEEDED) for claim in claims[::2]])
    await world.store.report([report_of(claim, Outcome.FAILED) for claim in claims[1::2]])


async def _cost(world: World, operation: Operation, counts: Meter) -> Cost:
    for _ in range(REPETITIONS - 1):
        await operation.act(world, await operation.arrange(world))
    cost, _ = await counts.measure(world.store, partial(operation.act, world, await operation.arrange(world)))
    return cost
