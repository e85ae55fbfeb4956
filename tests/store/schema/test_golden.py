"""Golden databases of every schema version, as the programs of their time left them, are migrated and used."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rota.core.runs.run import Run, RunFilter
from rota.core.states import FINAL_STATES, RunState
from rota.store import Store, open_database
from rota.store.databases.database import Database, Tx
from rota.store.databases.statements import schema_version
from rota.store.promotion.catalogue import catalogue_of, quoted
from rota.store.schema import migrate
from rota.testing import Harness, ManualClock
from rota.testing.databases import forget_place
from tests.golden import life
from tests.support.databases.golden import kept, restore, shape_of

Rows = dict[str, list[tuple[Any, ...]]]
NEWEST = schema_version()
VERSIONS = range(1, NEWEST + 1)


@pytest.fixture
def clock() -> ManualClock:
    """Some time after the last of them was used: its leases have expired, and plan times were missed."""
    clock = ManualClock(life.START)
    clock.advance("50m")
    return clock


@pytest.fixture(params=VERSIONS, ids=lambda version: f"schema-{version}")
async def old(request: pytest.FixtureRequest, new_database_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    await restore(request.param, new_database_url)
    store = Store(open_database(new_database_url, clock, accepts_copies=True))
    yield store
    await store.close()


@pytest.fixture(scope="session")
def fresh_shapes(sqlite_template: Path, postgres_template: str) -> dict[str, dict[str, str]]:
    async def shape(url: str) -> dict[str, str]:
        database = open_database(url)
        try:
            shape = await shape_of(database)
            await forget_place(Store(database))
            return shape
        finally:
            await database.close()

    return {
        "sqlite": asyncio.run(shape(f"sqlite:///{sqlite_template}")),
        "postgres": asyncio.run(shape(postgres_template)),
    }


async def columns_of(database: Database) -> dict[str, tuple[str, ...]]:
    tables = (await database.read(catalogue_of)).tables
    return {name: table.columns for name, table in tables.items()}


async def rows_of(database: Database, columns: dict[str, tuple[str, ...]]) -> Rows:
    async def body(tx: Tx) -> Rows:
        found = {}
        for table, names in columns.items():
            rows = await tx.fetch_sql(f"select {quoted(names)} from {table}")
            found[table] = sorted((tuple(row) for row in rows), key=repr)
        found["states"] = sorted(tuple(row) for row in await tx.fetch_sql("select id, state from rota_run_now"))
        return found

    return await database.read(body)


def test_every_version_is_kept_also_the_newest() -> None:
    """Fails after a new migration: run `python -m tests.golden.make`."""
    names = ("sqlite", "postgres.sql")
    assert [(version, name) for version in VERSIONS for name in names if not kept(version, name).exists()] == []


async def test_it_loses_nothing_and_becomes_what_a_new_one_is(
    old: Store, fresh_shapes: dict[str, dict[str, str]]
) -> None:
    version, _ = await migrate.check(old.database)
    columns = await columns_of(old.database)
    before = await rows_of(old.database, columns)
    assert len(before["rota_run"]) > 15
    assert len(await old.migrate()) == NEWEST - version
    assert await rows_of(old.database, columns) == before
    assert await shape_of(old.database) == fresh_shapes[old.database.dialect.name]


# Tables and rows are the same after an upgrade, so what a program makes of them differs little from one to the other.
USED_ON = [*(("sqlite", version) for version in VERSIONS), *(("postgres", version) for version in (2, 5, NEWEST))]


@pytest.mark.parametrize(("new_database_url", "old"), USED_ON, indirect=True)
async def test_what_waited_is_done_and_plan_times_are_accounted_for(
    old: Store, new_database_url: str, clock: ManualClock
) -> None:
    version, _ = await migrate.check(old.database)
    await old.migrate()
    async with Harness(life.make_app(NEWEST), new_database_url, clock) as harness:
        waited = [run.id for run in await open_runs(harness) if is_for_anybody(run, version)]
        assert len(waited) >= 5
        await harness.reaper.step()
        await harness.drain()
        ended = await harness.client.get_many(waited)
        assert {run.state for run in ended if not run.payload.get("fail")} <= {RunState.SUCCEEDED, RunState.CANCELLED}
        assert all(run.attempt > 1 for run in ended if run.payload.get("fail"))
        if version in (1, NEWEST):
            await live_on(harness)
        names = [one.name for one in await harness.client.schedules.list()]
        assert sorted(names) == ["hasty", "minutely", "nightly", "paused", "shops"]
        for name in names:
            verified = await harness.store.ledger.verify(name, thorough=True)
            assert verified.ok, verified


async def live_on(harness: Harness) -> None:
    """Do something of every kind, as in a new database."""
    for chapter in (life.first_hours, life.with_schedules, life.under_control, life.work_elsewhere, life.counted):
        await chapter(harness)
    await life.with_strangers(harness, "new")


async def open_runs(harness: Harness) -> list[Run]:
    states = tuple(state for state in RunState if state not in FINAL_STATES)
    return await harness.client.list(RunFilter(states=states), limit=500)


def is_for_anybody(run: Run, version: int) -> bool:
    """Return whether any worker may claim the run: not paused, not restricted by labels, not external."""
    kept_back = (run.queue == "mail" and version > 1) or run.payload.get("name") == "for some workers only"
    return run.job in ("upload", "slow", "stepped", "narrow") and not kept_back
