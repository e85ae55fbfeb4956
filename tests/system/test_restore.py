"""Test backups that are put back under workers at work: a copy waits to be accepted, and no fence is given twice."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from rota.core.runs.run import Run
from rota.core.states import FENCES, RunState
from rota.errors import Unavailable
from tests.support.databases.postgres import ArchivedPostgres, PostgresCluster
from tests.support.wait import until
from tests.system.site import Site, opened


def fences_are_given_once(site: Site) -> bool:
    begun = [(entry.run_id, entry.fence) for entry in site.ledger.entries("begin")]
    return len(begun) == len(set(begun))


async def begun(site: Site, count: int) -> None:
    await until(lambda: len(site.ledger.entries("begin")) >= count)


def put_back(backup: Path, path: Path) -> None:
    backup.replace(path)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


async def all_ended(site: Site) -> None:
    """Wait until every run that the database has, succeeded."""

    async def look() -> bool:
        with contextlib.suppress(Unavailable):
            return {run.state for run in await site.client.list(limit=500)} == {RunState.SUCCEEDED}
        return False

    async with asyncio.timeout(100):
        while not await look():
            await asyncio.sleep(0.1)


async def known(site: Site) -> list[Run]:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(Unavailable):
                return list(await site.client.list(limit=500))
            await asyncio.sleep(0.1)


async def test_a_dump_restored_under_workers_waits(own_postgres_cluster: PostgresCluster, tmp_path: Path) -> None:
    """They stop at the next claim, say why, and go on when somebody accepts it; what they still hold is reported."""
    server = own_postgres_cluster
    url = server.create_database()
    async with opened(url, tmp_path) as site:
        workers = [site.worker(name) for name in ("first", "second")]
        await site.enqueue_many(100, "nap", seconds=[0.05])
        await begun(site, 20)
        dump = await asyncio.to_thread(server.dump, url)
        lost = await site.enqueue("nap", seconds=[60])
        await site.begun(lost)
        await asyncio.to_thread(server.restore, dump, url)
        await until(lambda: all("is a copy" in worker.log for worker in workers))
        before = len(site.ledger.entries("begin"))
        await asyncio.sleep(1)
        assert len(site.ledger.entries("begin")) == before, "a copy runs nothing"
        assert (await site.client.database.get()).held
        waiting = await site.enqueue("nap", seconds=[0.01])
        assert (await site.client.get(waiting)).state is RunState.QUEUED

        await site.client.database.accept(reason="restored")
        await all_ended(site)
        assert fences_are_given_once(site)
        assert site.ledger.entries("begin", waiting)[0].fence >= FENCES
        assert lost not in {run.id for run in await known(site)}
        await until(lambda: any(f"does not know run {lost}" in worker.log for worker in workers))
        assert (await site.client.database.get()).lost_runs >= 1


async def test_a_worker_on_a_copy_begins_when_it_is_accepted(
    own_postgres_cluster: PostgresCluster, tmp_path: Path
) -> None:
    """It says that it waits, and does not even declare its schedules."""
    server = own_postgres_cluster
    original = server.create_database()
    async with opened(original, tmp_path) as site:
        await site.enqueue("nap", seconds=[0.01])
    copy = server.create_database(original)
    async with opened(copy, tmp_path) as site:
        worker = site.worker()
        assert "is a copy" in worker.log
        await asyncio.sleep(1)
        assert not site.ledger.entries("begin")
        assert not list(await site.client.workers.list())
        await site.client.database.accept()
        await all_ended(site)
        assert "accepted as the original" in worker.log


@pytest.fixture
def archived() -> Iterator[ArchivedPostgres]:
    with ArchivedPostgres() as server:
        yield server


async def test_a_recovery_to_a_point_in_time_goes_on(archived: ArchivedPostgres, tmp_path: Path) -> None:
    """It is a later timeline of the same server, and so no copy; what only workers remember is reported."""
    url = archived.create_database()
    async with opened(url, tmp_path) as site:
        await asyncio.to_thread(archived.back_up)
        workers = [site.worker(name) for name in ("first", "second")]
        await site.enqueue_many(60, "nap", seconds=[0.05])
        await begun(site, 20)
        await asyncio.to_thread(archived.mark, "noon")
        lost = await site.enqueue("nap", seconds=[60])
        await site.begun(lost)
        await asyncio.to_thread(archived.recover, "noon")
        assert lost not in {run.id for run in await known(site)}
        await all_ended(site)
        assert fences_are_given_once(site)
        standing = await site.client.database.get()
        assert (standing.epoch, standing.held) == (1, False)
        await until(lambda: any(f"does not know run {lost}" in worker.log for worker in workers))
        assert (await site.client.database.get()).lost_runs >= 1


async def test_a_file_that_is_replaced_by_its_backup_goes_on(sqlite_url: str, tmp_path: Path) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    async with opened(sqlite_url, tmp_path) as site:
        worker = site.worker()
        await site.enqueue_many(60, "nap", seconds=[0.05])
        await begun(site, 20)
        backup = tmp_path / "backup.db"
        apsw.Connection(str(path)).execute(f"vacuum into '{backup}'")
        lost = await site.enqueue("nap", seconds=[60])
        await site.begun(lost)
        put_back(backup, path)
        await all_ended(site)
        assert fences_are_given_once(site)
        standing = await site.client.database.get()
        assert (standing.held, standing.lost_runs) == (False, 1)
        assert f"does not know run {lost}" in worker.log
