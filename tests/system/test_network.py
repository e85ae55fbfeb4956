"""Test a bad network between workers and PostgreSQL: half-open sockets, lost answers, lost notifications."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from rota import Enqueued, Order, Outcome, RunState, Unavailable
from tests.support.databases.network_proxy import Loss, Proxy, proxy_to
from tests.support.wait import until
from tests.system.site import HEARTBEAT, LEASE, Producer, Site, connected, opened

DEADLINE = "3s"  # longer than a busy machine takes for a call
NEVER = "60s"
losses = pytest.mark.parametrize("loss", ["broken", "silent"])

ENQUEUE = "insert into rota_run"
CLAIM = "insert into rota_lease"
FINISH = "delete from rota_lease"


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with proxy_to(postgres_url) as proxy:
        yield proxy


@pytest.fixture
async def site(postgres_url: str, proxy: Proxy, tmp_path: Path) -> AsyncIterator[Site]:
    """A site whose workers are behind the proxy; its client is not."""
    async with opened(postgres_url, tmp_path, through=proxy.url) as site:
        yield site


@losses
async def test_an_enqueue_whose_answer_is_lost_is_there_once(site: Site, proxy: Proxy, loss: Loss) -> None:
    async with connected(proxy.url, deadline=3.0) as client:
        proxy.lose_answer(ENQUEUE, loss)
        order = Order("quick", {"number": 1})
        if loss == "broken":
            answer: Enqueued = await client.enqueue(order)
        else:
            prepared = await client.prepare(order)
            with pytest.raises(Unavailable, match="within 3s"):
                await client.store.enqueue([prepared])
            (answer,) = await client.store.enqueue([prepared])
    assert proxy.lost_answers == 1
    assert [run.id for run in await site.client.list()] == [answer.id]
    site.worker()
    await site.all_succeed([answer.id])
    assert site.begins_once([answer.id])


@losses
async def test_a_claim_whose_answer_is_lost_is_handed_back_for_nothing(site: Site, proxy: Proxy, loss: Loss) -> None:
    worker = site.worker(settings={"ROTA_DEADLINE": DEADLINE, "ROTA_LEASE": "60s", "ROTA_HEARTBEAT": "1s"})
    proxy.lose_answer(CLAIM, loss)
    run = await site.enqueue("quick")
    await site.all_succeed([run])
    assert proxy.lost_answers == 1
    assert await site.outcomes(run) == [Outcome.HANDED_BACK, Outcome.SUCCEEDED]
    assert (await site.run(run)).attempt == 1
    assert site.begins_once([run])
    assert worker.exit_code is None


@losses
async def test_a_finish_whose_answer_is_lost_is_said_again(site: Site, proxy: Proxy, loss: Loss) -> None:
    worker = site.worker(settings={"ROTA_DEADLINE": DEADLINE, "ROTA_LEASE": "60s", "ROTA_HEARTBEAT": "1s"})
    proxy.lose_answer(FINISH, loss)
    runs = await site.enqueue_many(5, "quick")
    await site.all_succeed(runs)
    assert proxy.lost_answers == 1
    await site.agree(runs)
    assert site.begins_once(runs)
    await asyncio.sleep(2)
    assert "refused" not in worker.log, "the store answers a repeated report alike"
    await site.all_succeed(await site.enqueue_many(5, "quick"))


async def test_a_half_open_socket_costs_no_lease(site: Site, proxy: Proxy, postgres_url: str) -> None:
    site.worker("cut off", {"ROTA_DEADLINE": "8s", "ROTA_LEASE": "6s", "ROTA_HEARTBEAT": "1600ms"})
    run = await site.enqueue("nap", seconds=[12.0])
    await site.begun(run)
    site.worker("rival", {"ROTA_DATABASE_URL": postgres_url})
    proxy.stall()
    await site.all_succeed([run])
    assert await site.outcomes(run) == [Outcome.SUCCEEDED]
    assert site.begins_once([run])


async def test_one_deadline_is_enough_to_give_up_all_half_open_connections(proxy: Proxy, site: Site) -> None:
    async with connected(proxy.url, deadline=3.0) as client:
        await asyncio.gather(*[client.time() for _ in range(8)])
        proxy.stall()
        with pytest.raises(Unavailable):
            await client.time()
        await client.time()


async def test_after_a_silent_network_everything_goes_on(site: Site, proxy: Proxy) -> None:
    workers = [site.worker(name, {"ROTA_DEADLINE": DEADLINE}) for name in ("one", "two")]
    async with connected(proxy.url, deadline=8.0) as client:
        producer = Producer(client)
        async with producer.producing():
            await until(lambda: len(producer.acknowledged) > 20)
            proxy.stalling = True
            proxy.stall()
            refused = producer.refused
            await asyncio.sleep(2 * LEASE)
            await until(lambda: producer.refused > refused)
            proxy.stalling = False
            before = len(producer.acknowledged)
            await until(lambda: len(producer.acknowledged) > before + 20)
    await site.all_succeed(producer.acknowledged)
    await site.agree(producer.acknowledged)
    assert [worker.exit_code for worker in workers] == [None, None]


async def test_a_worker_behind_a_half_open_socket_stops_in_time(site: Site, proxy: Proxy) -> None:
    worker = site.worker(settings={"ROTA_SHUTDOWN_GRACE": "500ms"})
    await site.begun(await site.enqueue("nap", seconds=[60.0]))
    proxy.stalling = True
    proxy.stall()
    worker.terminate()
    assert await asyncio.to_thread(worker.wait) == 0


async def test_a_slow_network_only_slows(site: Site, proxy: Proxy) -> None:
    proxy.delay = 0.1
    site.worker(settings={"ROTA_LEASE": "60s"})
    runs = await site.enqueue_many(30, "quick")
    await site.all_succeed(runs)
    await site.agree(runs)
    assert site.begins_once(runs)


POLL = 1.0
SLACK = 5.0  # of a busy machine; what does not come by polling or a heartbeat comes never


async def slowest_pickup(site: Site) -> float:
    slowest = 0.0
    for _ in range(3):
        enqueued_at = time.monotonic()
        run = await site.enqueue("quick")
        slowest = max(slowest, (await site.begun(run)).at - enqueued_at)
        await asyncio.sleep(0.3)
    return slowest


async def test_without_notifications_polling_finds_the_work(site: Site, proxy: Proxy) -> None:
    proxy.swallows_notifications = True
    site.worker(settings={"ROTA_POLL": f"{POLL}s"})
    assert await slowest_pickup(site) <= POLL + SLACK


async def test_a_half_open_listener_only_costs_time(site: Site, proxy: Proxy) -> None:
    site.worker(settings={"ROTA_POLL": f"{POLL}s"})
    await site.all_succeed([await site.enqueue("quick")])
    proxy.stall(only_listeners=True)
    assert await slowest_pickup(site) <= POLL + SLACK


async def test_a_listener_that_is_cut_off_listens_again(site: Site, postgres_url: str) -> None:
    site.worker(settings={"ROTA_POLL": NEVER})
    await until(lambda: terminate_listeners(postgres_url))
    run = await site.enqueue("quick")
    assert (await site.final(run)).state is RunState.SUCCEEDED


async def terminate_listeners(url: str) -> bool:
    connection = await asyncpg.connect(url)
    # Its last query is the LISTEN, or the end of a look of an idle process, which asks on the same connection.
    statement = """
        select pg_terminate_backend(pid) from pg_stat_activity
        where query ilike any(array['listen%', 'commit%']) and pid <> pg_backend_pid() and datname = $1
    """
    cut = await connection.fetch(statement, url.rpartition("/")[2])
    await connection.close()
    return bool(cut)


async def test_without_notifications_a_cancel_still_arrives(site: Site, proxy: Proxy) -> None:
    proxy.swallows_notifications = True
    site.worker(settings={"ROTA_POLL": NEVER})
    run = await site.enqueue("listen")
    await site.begun(run)
    asked_at = time.monotonic()
    await site.client.cancel(run)
    await site.final(run)
    assert site.ledger.entries("stop", run)[0].at - asked_at <= HEARTBEAT + SLACK
