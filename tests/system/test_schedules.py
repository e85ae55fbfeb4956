"""Test schedules planned by processes that are killed, cut off, or have wrong clocks: every plan time once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import RunState
from rota.core.calendar.triggers import after
from rota.store import Store
from tests.support.databases.network_proxy import proxy_to
from tests.support.databases.pooler import pooled
from tests.support.databases.postgres import PostgresCluster
from tests.support.jobs.system_schedules import WANTED
from tests.support.processes.rota_process import RotaProcess
from tests.support.runs.runs import WORK
from tests.support.schedules.ledger_oracle import check_account, named_by_revisions, rows
from tests.support.schedules.schedules import get_schedule, make_schedule, runs_of
from tests.support.wait import until
from tests.system.site import GENEROUS, LEASE, REAPER, Site, opened
from tests.system.test_clock_skew import CLOCKS, wrong_clock

APP = "tests.support.jobs.system_schedules:app"


def start(site: Site, name: str, wanted: str = "ticks:3", **settings: str) -> RotaProcess:
    environment = site.environment(**{WANTED: wanted, **settings})
    return site.processes.rota("worker", "--name", name, APP, environment=environment)


def started(site: Site, name: str, wanted: str = "ticks:3", **settings: str) -> RotaProcess:
    return start(site, name, wanted, **settings).until_said(f" runs {APP}")


async def planned(store: Store, seconds: int, name: str = "tick0") -> None:
    """Wait until the schedule has been planned so much further."""
    ((cursor,),) = await rows(store, "select cursor_at from rota_schedule_now where name = :name", name=name)

    async def further() -> bool:
        ((now,),) = await rows(store, "select cursor_at from rota_schedule_now where name = :name", name=name)
        return int(now - cursor) >= seconds * 1_000_000

    async with asyncio.timeout(GENEROUS):
        while not await further():
            await asyncio.sleep(0.02)


async def ended(*workers: RotaProcess) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        assert await asyncio.to_thread(worker.wait, 20) == 0, worker.log


async def check(store: Store, count: int = 3) -> None:
    """Nobody plans any more: up to its cursor, each second is answered once."""
    names = await store.schedules.names()
    assert names == sorted(f"tick{number}" for number in range(count))
    for name in names:
        schedule = await get_schedule(store, name)
        cursor = int(schedule.cursor_at.timestamp() * 1_000_000)
        await check_account(store, schedule.id, await named_by_revisions(store, schedule.id, cursor))
        assert schedule.revision == 1


async def test_workers_killed_and_replaced_plan_every_second_once(site: Site) -> None:
    store = site.client.store
    first, second = started(site, "first"), started(site, "second")
    await planned(store, 2)
    first.kill()
    third = started(site, "third")
    await planned(store, 2)
    second.kill()
    await planned(store, 2)
    await ended(third)
    await check(store)


@pytest.fixture
async def crashing(own_postgres_cluster: PostgresCluster, tmp_path: Path) -> AsyncIterator[Site]:
    async with opened(own_postgres_cluster.create_database(), tmp_path) as site:
        yield site


async def test_a_crash_of_postgres_while_it_is_planned_doubles_nothing(
    crashing: Site, own_postgres_cluster: PostgresCluster
) -> None:
    site, store = crashing, crashing.client.store
    workers = [started(site, name, "ticks:60") for name in ("first", "second")]
    for pause in (0.0, 0.3, 0.7):
        await planned(store, 1)
        await asyncio.sleep(pause)
        await asyncio.to_thread(own_postgres_cluster.restart, "immediate")
        await until(lambda: answers(store))
    await planned(store, 2)
    await ended(*workers)
    await check(store, 60)


async def answers(store: Store) -> bool:
    try:
        await store.now()
    except Exception:
        return False
    return True


async def test_hosts_with_wrong_clocks_plan_nothing_early_and_nothing_twice(postgres_site: Site) -> None:
    site, store = postgres_site, postgres_site.client.store
    workers = [started(site, clock, **wrong_clock(clock)) for clock in CLOCKS]
    await planned(store, 4)
    await ended(*workers)
    await check(store)


async def test_without_notifications_only_the_poll_is_waited_for(postgres_url: str, tmp_path: Path) -> None:
    with proxy_to(postgres_url) as proxy:
        proxy.swallows_notifications = True
        async with opened(postgres_url, tmp_path, through=proxy.url) as site:
            worker = started(site, "deaf", ROTA_POLL="500ms")
            await planned(site.client.store, 3)
            began = time.monotonic()
            await make_schedule(site.client.store, "new", after("1h"), job=WORK)
            while not await runs_of(site.client.store, "new"):
                await asyncio.sleep(0.02)
            assert time.monotonic() - began < 3
            await site.client.store.schedules.delete("new", None)
            await ended(worker)
            await check(site.client.store)


async def test_behind_a_transaction_pooler_schedules_are_planned(postgres_url: str, tmp_path: Path) -> None:
    async with opened(postgres_url, tmp_path) as site, pooled(postgres_url) as (url, _):
        # The pooler lives on this event loop, and is slow where others use the processor: little else than planning.
        calm = {"ROTA_LEASE": "60s", "ROTA_HEARTBEAT": "10s", "ROTA_REAPER": "5s", "ROTA_POLL": "1s"}
        workers = [start(site, name, ROTA_DATABASE_URL=url, **calm) for name in ("first", "second")]
        for worker in workers:
            await asyncio.to_thread(worker.until_said, f" runs {APP}")
        await planned(site.client.store, 3)
        await ended(*workers)
        await check(site.client.store)


async def test_river_1251_a_stalled_socket_does_not_stop_planning(postgres_url: str, tmp_path: Path) -> None:
    with proxy_to(postgres_url) as proxy:
        async with opened(postgres_url, tmp_path, through=proxy.url) as site:
            worker = started(site, "only", ROTA_DEADLINE="1s")
            await planned(site.client.store, 1)
            for _ in range(2):
                proxy.stall()
                await planned(site.client.store, 2)
            await ended(worker)
            await check(site.client.store)


async def test_dkron_349_a_run_whose_worker_was_killed_forbids_nothing_for_ever(site: Site) -> None:
    """Overlap is skipped, the run has one attempt, and its worker dies: planned again after lease and reaper."""
    store = site.client.store
    doomed = started(site, "doomed", "hang")
    await until(lambda: bool(site.ledger.entries("begin")))
    orphan = site.ledger.entries("begin")[0].run_id
    heir = started(site, "heir", "hang")
    await asyncio.sleep(LEASE)  # its reaper is past the caution of one that has just started
    doomed.kill()
    killed_at = time.monotonic()
    await until(lambda: bool(site.ledger.entries("end")))
    assert site.ledger.entries("end")[0].at - killed_at <= LEASE + REAPER + 1 + 2, "lease, reaper, next plan time"
    assert (await site.run(orphan)).state is RunState.EXPIRED
    assert len(site.ledger.entries("begin", orphan)) == 1
    await ended(heir)
    assert [run.state for run in await runs_of(store, "hang")].count(RunState.EXPIRED) == 1


async def test_ten_processes_that_start_at_once_make_each_schedule_once(site: Site) -> None:
    workers = [start(site, f"worker{number}") for number in range(10)]
    for worker in workers:
        await asyncio.to_thread(worker.until_said, f" runs {APP}")
    store = site.client.store
    await planned(store, 2)
    await ended(*workers)
    found = await rows(store, "select count(*), count(distinct schedule_id) from rota_revision")
    assert found == [(3, 3)], "one revision each"
    await check(store)


async def test_oban_1488_a_process_that_was_frozen_fires_nothing_again(site: Site) -> None:
    frozen, other = started(site, "frozen"), started(site, "other")
    store = site.client.store
    await planned(store, 1)
    for _ in range(2):
        frozen.pause()
        await asyncio.sleep(1.5)
        frozen.resume()
        await planned(store, 2)
    await ended(frozen, other)
    await check(store)
