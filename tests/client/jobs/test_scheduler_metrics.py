"""Totals over all jobs: counted when somebody asks, kept for all servers, and never in the way of a delete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from rota import Rota
from rota.client.client import Client, Order
from rota.core.monitoring.executions import SchedulerMetrics
from rota.store import Store, open_database
from rota.testing import Harness

URL = "https://example.com/health"


@pytest.fixture
async def either(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=database_url) as harness:
        yield harness


async def test_they_are_counted_at_most_every_30_seconds(either: Harness) -> None:
    await either.client.data_jobs.create("ping", "http", url=URL, schedule={"every": "5m"})
    first = await either.client.scheduler_metrics()
    assert (first.jobs["scheduled"], first.last_metrics_update) == (1, either.clock.now())
    await either.client.data_jobs.create("pong", "http", url=URL, schedule={"every": "5m"})
    either.clock.advance(timedelta(seconds=29))
    assert await either.client.scheduler_metrics() == first
    either.clock.advance(timedelta(seconds=1))
    second = await either.client.scheduler_metrics()
    assert (second.jobs["scheduled"], second.last_metrics_update) == (2, either.clock.now())


async def test_each_server_tells_the_same(database_url: str) -> None:
    """Also one whose code declares jobs that nobody has stored."""
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    apps = [Rota(database_url), Rota(database_url)]

    @apps[1].job
    def known_here_only() -> None: ...

    told: list[SchedulerMetrics] = []
    for app in apps:
        client = await app.connect()
        await client.data_jobs.create(f"job-{len(told)}", "http", url=URL, schedule={"every": "5m"})
        told.append(await client.scheduler_metrics())
    for app in apps:
        await app.aclose()
    assert told[0] == told[1]


async def test_what_another_version_has_kept_is_counted_again(either: Harness) -> None:
    save = {"name": "counted_jobs", "value": '{"bogus": 1}'}
    await either.store.database.transact(lambda tx: tx.fetch("save_setting", **save))
    await either.client.data_jobs.create("ping", "http", url=URL, schedule={"every": "5m"})
    assert (await either.client.scheduler_metrics()).jobs["scheduled"] == 1


async def test_a_job_that_is_deleted_meanwhile_is_no_error(
    either: Harness, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.core.monitoring.executions._FRESH", 0)
    other = Rota(database_url)
    client = await other.connect()

    async def come_and_go(client: Client, job: str) -> None:
        for _ in range(8):
            await client.data_jobs.create(job, "http", url=URL, schedule={"every": "5m"})
            await client.enqueue(Order(job, {}, {}))
            await client.data_jobs.delete(job, force=True)

    async def ask(client: Client) -> list[SchedulerMetrics]:
        return [await client.scheduler_metrics() for _ in range(12)]

    changes = come_and_go(client, "a"), come_and_go(either.client, "b")
    *told, _, _ = await asyncio.gather(ask(client), ask(either.client), *changes)
    for metrics in (*told[0], *told[1]):
        assert 0 <= sum(metrics.jobs.values()) <= 2
    await other.aclose()
