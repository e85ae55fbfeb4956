"""Test restarts, crashes and full connections of PostgreSQL: everything acknowledged still ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from rota import Outcome
from tests.support.databases.connection_exhaustion import crowd
from tests.support.databases.network_proxy import proxy_to
from tests.support.databases.postgres import PostgresCluster
from tests.support.wait import until
from tests.system.site import Producer, Site, connected, opened

CONNECTIONS = 40


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[PostgresCluster]:
    """A PostgreSQL to stop and kill, as durable as in production; each test finds it running."""
    with PostgresCluster(fsync=True, settings={"max_connections": str(CONNECTIONS)}) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: PostgresCluster) -> PostgresCluster:
    shared_cluster.start()
    return shared_cluster


@pytest.fixture
async def site(cluster: PostgresCluster, tmp_path: Path) -> AsyncIterator[Site]:
    async with opened(cluster.create_database(), tmp_path) as site:
        yield site


def kill_and_start(cluster: PostgresCluster) -> None:
    cluster.kill9()
    cluster.start()


FAULTS: dict[str, Callable[[PostgresCluster], None]] = {
    "restart": lambda cluster: cluster.restart("fast"),
    "crash": lambda cluster: cluster.restart("immediate"),
    "kill": kill_and_start,
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_process_survives_its_end_and_goes_on(site: Site, cluster: PostgresCluster, fault: str) -> None:
    async def away() -> None:
        await asyncio.to_thread(FAULTS[fault], cluster)

    await suffer(site, away)


async def test_an_outage_longer_than_a_lease_costs_nothing(site: Site, cluster: PostgresCluster) -> None:
    worker = site.worker()
    runs = await site.enqueue_many(5, "nap", seconds=[5.0])
    await until(lambda: len(site.ledger.entries("begin")) == 5)
    cluster.stop("fast")
    await asyncio.sleep(3)
    cluster.start()
    await site.all_succeed(runs)
    assert site.begins_once(runs), "the reaper gives the holders time to come back"
    assert worker.exit_code is None


async def test_a_reaper_that_is_back_before_the_holders_takes_nothing_from_them(
    site: Site, cluster: PostgresCluster
) -> None:
    patient = {"ROTA_HEARTBEAT": "1500ms", "ROTA_LEASE": "4500ms", "ROTA_PORT": "0"}
    with proxy_to(site.url) as proxy:
        site.worker(settings={"ROTA_DATABASE_URL": proxy.url})
        run = await site.enqueue("nap", seconds=[7.0])
        await site.begun(run)
        server = site.processes.rota("server", environment=site.environment(**patient)).until_said("http://")
        proxy.refusing = True
        cluster.stop("fast")
        await asyncio.sleep(2)
        cluster.start()
        await asyncio.sleep(1.3)
        proxy.refusing = False
        await site.all_succeed([run])
        assert await site.outcomes(run) == [Outcome.SUCCEEDED]
        assert "retrying" in server.log, "the reaper was cut off, too"


async def test_connections_cut_again_and_again_cost_nothing(site: Site, cluster: PostgresCluster) -> None:
    async def cutting() -> None:
        for _ in range(15):
            await asyncio.to_thread(cluster.terminate_backends, site.url)
            await asyncio.sleep(0.1)

    await suffer(site, cutting)


async def test_a_server_out_of_connections_is_waited_for(site: Site, cluster: PostgresCluster) -> None:
    async def crowding() -> None:
        assert await crowd(cluster.url, "rota_test%", seconds=3) > CONNECTIONS / 2

    await suffer(site, crowding)


async def suffer(site: Site, fault: Callable[[], Awaitable[None]]) -> None:
    """Two workers and producers at work, the fault, and a while after it: what was acknowledged ends, once."""
    workers = [site.worker(name) for name in ("one", "two")]
    async with connected(site.url) as client:
        producer = Producer(client)
        async with producer.producing():
            await until(lambda: len(producer.acknowledged) > 100)
            await fault()
            before = len(producer.acknowledged)
            await until(lambda: len(producer.acknowledged) > before + 100)
    await site.all_succeed(producer.acknowledged)
    await site.agree(producer.acknowledged)
    assert [worker.exit_code for worker in workers] == [None, None]
