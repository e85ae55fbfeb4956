"""Test upgrades with real processes: killed migrations, two at once, old and new versions together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from rota import Client, Config, Order
from rota.store import Store, open_database, open_store
from rota.store.databases.statements import Dialect, Migration, migrations, schema_version
from rota.store.schema import migrate
from rota.store.schema.compatibility import WorkersAlive
from tests.support.databases.golden import older_program, restore_without_workers, shape_of
from tests.support.jobs import system_schedules
from tests.support.jobs.system_schedules import WANTED
from tests.support.processes.rota_process import ROOT, Processes, RotaProcess
from tests.support.schedules.ledger_oracle import check_account, named_by_revisions
from tests.support.schedules.schedules import get_schedule
from tests.support.wait import until
from tests.system.site import LEASE, Site

APP = "tests.support.jobs.system_schedules:app"
NEWEST = schema_version()
KILLS = [("inside", 2), ("after", 3), ("inside", 5)]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as processes:
        yield processes


async def version_of(url: str) -> int:
    database = open_database(url)
    try:
        return (await migrate.check(database))[0]
    finally:
        await database.close()


async def test_a_migration_killed_again_and_again_is_finished_by_two_at_once(
    new_database_url: str, processes: Processes
) -> None:
    url = new_database_url
    await restore_without_workers(1, url)
    for moment, version in KILLS:
        deadly = ["-m", "tests.support.processes.migration_crash", url, moment, str(version)]
        assert await asyncio.to_thread(processes.python(*deadly, environment={}).wait) == -9
        assert await version_of(url) == (version if moment == "after" else version - 1)
    both = [processes.rota("migrate", "--json", environment={"ROTA_DATABASE_URL": url}) for _ in range(2)]
    assert [await asyncio.to_thread(one.wait) for one in both] == [0, 0]
    applied = [name for one in both for name in json.loads(one.log)["applied"]]
    assert sorted(applied) == ["access", "attention", "insight", "operation", "order", "planning", "serving"]


async def test_a_migration_killed_while_it_waits_leaves_nothing_of_its_step(
    new_postgres_url: str, postgres_url: str, processes: Processes
) -> None:
    url = new_postgres_url
    await restore_without_workers(4, url)
    reader = await asyncpg.connect(url)
    async with reader.transaction():
        await reader.execute(
            "lock table rota_event in access share mode"
        )  # its fifth step waits for that, in its middle
        doomed = processes.rota("migrate", environment={"ROTA_DATABASE_URL": url})
        waiting = "select count(*) from pg_locks where not granted and relation = 'rota_event'::regclass"
        await until(lambda: asyncio.wait_for(_is_true(reader, waiting), 30))
        doomed.kill()
    assert await reader.fetchval("select to_regclass('rota_token')") is None
    await reader.close()
    assert await version_of(url) == 4
    assert await asyncio.to_thread(processes.rota("migrate", environment={"ROTA_DATABASE_URL": url}).wait) == 0
    # Not of the template: whoever opens a database leaves its place there, and copies of it would be held as copies.
    assert await _shape(url) == await _shape(postgres_url)


async def _is_true(connection: asyncpg.Connection, sql: str) -> bool:
    return bool(await connection.fetchval(sql))


async def _shape(url: str) -> dict[str, str]:
    database = open_database(url)
    try:
        return await shape_of(database)
    finally:
        await database.close()


@asynccontextmanager
async def opened(url: str, processes: Processes, folder: Path) -> AsyncIterator[Site]:
    client = Client(await open_store(url), system_schedules.app.registry, Config(database_url=url))
    try:
        yield Site(url, client, processes, folder)
    finally:
        await client.close()


def worker(site: Site, name: str, **settings: str) -> RotaProcess:
    environment = site.environment(**{WANTED: "ticks:2", **settings})
    return site.processes.rota("worker", "--name", name, "--concurrency", "5", APP, environment=environment)


async def test_a_version_that_is_at_work_and_the_next_one_share_everything(
    new_database_url: str, processes: Processes, tmp_path: Path
) -> None:
    """The program of schema 5, kept as it was; the new one migrates underneath, joins, and takes over."""
    url = new_database_url
    path = {"PYTHONPATH": f"{older_program(tmp_path / 'older')}:{ROOT}"}
    before = Site(url, None, processes, tmp_path)  # type: ignore[arg-type]  # nobody of the new version is there yet
    made = processes.rota("migrate", environment=before.environment(**path))
    assert await asyncio.to_thread(made.wait) == 0, made.log
    old = await asyncio.to_thread(worker(before, "old", **path).until_said, f" runs {APP}")
    assert await version_of(url) == 5
    migrated = processes.rota("migrate", environment=before.environment())
    assert await asyncio.to_thread(migrated.wait) == 0, migrated.log
    assert await version_of(url) == NEWEST
    async with opened(url, processes, tmp_path) as site:
        new = await asyncio.to_thread(worker(site, "new").until_said, f" runs {APP}")
        runs = [run.id for run in await site.client.enqueue_many([Order("nap", {"seconds": [0.1]})] * 60)]
        await until(lambda: {entry.pid for entry in site.ledger.entries("end")} == {old.pid, new.pid})
        refused = worker(site, "old-again", **path)
        assert await asyncio.to_thread(refused.wait) == 78
        assert "install a newer rota" in refused.log
        runs += [run.id for run in await site.client.enqueue_many([Order("nap", {"seconds": [0.5, 0.0]})] * 20)]
        await until(lambda: {entry.pid for entry in site.ledger.entries("begin")[-8:]} == {old.pid, new.pid})
        assert "Traceback" not in old.log
        old.kill()
        await site.all_succeed(runs)
        await site.agree(runs)
        await asyncio.sleep(LEASE)
        new.terminate()
        assert await asyncio.to_thread(new.wait) == 0
        await check_plan_times(site.client.store)


async def check_plan_times(store: Store) -> None:
    for name in await store.schedules.names():
        schedule = await get_schedule(store, name)
        cursor = int(schedule.cursor_at.timestamp() * 1_000_000)
        named = await named_by_revisions(store, schedule.id, cursor)
        assert len(named) >= 2
        await check_account(store, schedule.id, named)
        assert (await store.ledger.verify(name, thorough=True)).ok


ADDS = Migration(NEWEST + 1, "adds", "create table added (n integer)", NEWEST)
CHANGES = Migration(NEWEST + 2, "changes", "create table changed (n integer)", NEWEST + 2)


async def test_a_served_program_is_restarted_and_one_that_is_not_makes_way(
    database_url: str, processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pretend(*more: Migration) -> None:
        def known(dialect: Dialect) -> list[Migration]:
            return [*migrations(dialect), *more]

        monkeypatch.setattr(migrate, "migrations", known)

    async with opened(database_url, processes, tmp_path) as site:
        pretend(ADDS)
        assert await site.client.store.migrate() == ["adds"]
        served = await asyncio.to_thread(worker(site, "served").until_said, f" runs {APP}")
        await site.all_succeed([await site.enqueue("nap", seconds=[0.0])])
        pretend(ADDS, CHANGES)
        with pytest.raises(WorkersAlive, match="served"):
            await site.client.store.migrate()
        assert await site.client.store.migrate(force=True) == ["changes"]
        assert await asyncio.to_thread(served.wait) == 0, "it was asked to stop, and did"
        refused = worker(site, "again")
        assert await asyncio.to_thread(refused.wait) == 78
        assert f"schema {NEWEST + 2} and newer" in refused.log
