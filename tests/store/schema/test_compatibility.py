"""Old and new programs on one database: who may start, and whom a migration leaves behind."""

from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from rota.core.states import Outcome, RunState
from rota.core.workers.worker import Pace, WorkerInfo, WorkerState
from rota.errors import SchemaOutdated
from rota.store import Store, open_database, open_store
from rota.store.databases.statements import SQLITE, Dialect, Migration, migrations, schema_version
from rota.store.schema import migrate
from rota.store.schema.compatibility import WorkersAlive
from tests.support.clock import MINUTE, ManualClock
from tests.support.runs.runs import claim, finish, put, state_of, tell

NEWEST = schema_version()
ADDS = Migration(NEWEST + 1, "adds", "create table added (n integer)", NEWEST)
CHANGES = Migration(NEWEST + 1, "changes", "create table changed (n integer)", NEWEST + 1)
LATER = Migration(NEWEST + 2, "later", "create table later (n integer)", NEWEST)


@pytest.fixture
async def store(new_database_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    store = Store(open_database(new_database_url, clock))
    await store.migrate()
    yield store
    await store.close()


async def migrate_to(store: Store, *more: Migration, force: bool = False) -> list[str]:
    """Migrate like a program that knows more migrations than this one."""

    def known(dialect: Dialect) -> list[Migration]:
        return [*migrations(dialect), *more]

    with pytest.MonkeyPatch.context() as future:
        future.setattr(migrate, "migrations", known)
        return await store.migrate(force=force)


def somebody(name: str = "old") -> WorkerInfo:
    pace = Pace(heartbeat=timedelta(seconds=10), poll=timedelta(seconds=1), lease=timedelta(seconds=30))
    return WorkerInfo(
        id=f"{name}@1", name=name, host="here", pid=1, version="0.1", queues=("default",), jobs=(), slots=1, pace=pace
    )


async def test_a_program_starts_on_a_newer_schema_that_serves_it(store: Store, new_database_url: str) -> None:
    assert await migrate_to(store, ADDS) == ["adds"]
    opened = await open_store(new_database_url)
    await opened.require_schema()
    assert await opened.migrate() == []
    assert await migrate.check(opened.database) == (NEWEST + 1, NEWEST)
    assert await migrate.oldest_served(opened.database) == NEWEST
    await opened.close()


async def test_one_that_is_not_served_is_refused_and_told_what_is(store: Store, new_database_url: str) -> None:
    await migrate_to(store, CHANGES)
    for ask in (store.require_schema, store.migrate):
        with pytest.raises(SchemaOutdated, match=rf"schema {NEWEST + 1} and newer[\s\S]*install a newer rota"):
            await ask()
    with pytest.raises(SchemaOutdated):
        await open_store(new_database_url)


async def test_what_one_migration_broke_a_later_one_does_not_mend(store: Store) -> None:
    await migrate_to(store, CHANGES, LATER)
    assert await migrate.oldest_served(store.database) == NEWEST + 1
    with pytest.raises(SchemaOutdated):
        await store.require_schema()


async def test_a_promotion_wants_its_own_version(store: Store) -> None:
    await migrate_to(store, ADDS)
    with pytest.raises(SchemaOutdated):
        await migrate.require_own(store.database)


async def test_workers_that_are_served_are_left_alone(store: Store) -> None:
    await store.workers.beat(somebody())
    assert await migrate_to(store, ADDS) == ["adds"]
    (worker,) = await store.workers.list()
    assert worker.asked is None


async def test_workers_that_would_be_left_behind_are_told_of_before_the_first_step(store: Store) -> None:
    await store.workers.beat(somebody("first"))
    await store.workers.beat(somebody("second"))
    narrow = msgspec.structs.replace(LATER, serves=NEWEST + 1)
    with pytest.raises(WorkersAlive, match=r"first, second[\s\S]*rota workers drain first"):
        await migrate_to(store, ADDS, narrow)
    assert await migrate.check(store.database) == (NEWEST, NEWEST)


async def test_a_forced_migration_asks_them_to_stop_and_waits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.workers.beat(somebody())
    looks: list[int] = []

    async def stop_at_the_third_look(_: float) -> None:
        looks.append(await store.database.read(migrate.current_version))
        if len(looks) == 3:
            (worker,) = await store.workers.list()
            assert worker.asked is not None
            assert (worker.asked.state, worker.asked_by) == (WorkerState.STOPPING, f"migration {NEWEST + 1}")
            await store.worker_gone("old@1")

    monkeypatch.setattr("rota.store.schema.migrate.asyncio.sleep", stop_at_the_third_look)
    assert await migrate_to(store, CHANGES, force=True) == ["changes"]
    assert looks == [NEWEST] * 3, "nothing changes before they have stopped"


async def test_a_forced_migration_fences_out_whoever_does_not_stop(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.workers.beat(somebody())
    run_id = await put(store)
    (claimed,) = await claim(store, worker="old@1")
    monkeypatch.setattr(migrate, "_STOPPED_WITHIN", timedelta(0))
    assert await migrate_to(store, CHANGES, force=True) == ["changes"]
    assert not await tell(store, claimed, Outcome.SUCCEEDED)
    assert (await store.reap(10)).requeued == 1
    assert await state_of(store, run_id) is RunState.QUEUED
    (again,) = await claim(store, worker="new@1")
    assert again.fence > claimed.fence + 1
    await finish(store, again)


async def test_those_that_are_gone_are_in_nobodys_way(store: Store, clock: ManualClock) -> None:
    await store.workers.beat(somebody())
    clock.advance(MINUTE)
    assert await migrate_to(store, CHANGES) == ["changes"]


async def test_a_worker_that_does_not_say_is_taken_for_the_oldest(store: Store) -> None:
    await store.workers.beat(somebody())
    await store.database.transact(lambda tx: tx.script("update rota_worker set schema = null"))
    own = msgspec.structs.replace(ADDS, serves=NEWEST - 1)
    with pytest.raises(WorkersAlive):
        await migrate_to(store, own)
    served = msgspec.structs.replace(ADDS, serves=await migrate.oldest_served(store.database))
    assert await migrate_to(store, served) == ["adds"]


async def test_a_database_older_than_this_rule_knows_its_workers(new_database_url: str, clock: ManualClock) -> None:
    """Each worker is of the database's own schema, or of an older one."""
    store = Store(open_database(new_database_url, clock))

    def until(version: int) -> None:
        patch.setattr(migrate, "migrations", lambda dialect: [*migrations(dialect)[:version]])

    with pytest.MonkeyPatch.context() as patch:
        until(2)
        await store.migrate()
        sql = "insert into rota_worker values ('old@1', 'old', 'here', 1, '0.1', '[]', '[]', 1, :now, :now)"
        await store.database.transact(lambda tx: tx.fetch_sql(sql))
        until(3)
        with pytest.raises(WorkersAlive, match="old"):
            await store.migrate()
        clock.advance(MINUTE)
        assert await store.migrate() == ["control"]
    await store.close()


def test_a_migration_serves_itself_and_says_so_in_its_first_line() -> None:
    served = {one.version: one.serves for one in migrations(SQLITE)}
    assert all(1 <= serves <= version for version, serves in served.items())
    assert [served[version] for version in (1, 5, 6, 7)] == [1, 5, 5, 5]
