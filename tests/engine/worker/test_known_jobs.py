"""Test that workers learn of data jobs while they work, and skip those they cannot run."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from rota.core.states import Outcome, RunState
from rota.engine.worker import known_jobs
from rota.errors import Conflict
from rota.testing import Harness
from tests.support.runs.real_worker import SECOND, Working
from tests.support.runs.runs import claim, tell
from tests.support.servers.hostile_server import HostileServer, whole
from tests.support.wait import until

Start = Callable[..., Awaitable[Working]]


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer({"/1": whole("200 One"), "/2": whole("200 Two")}) as server:
        yield server


@pytest.fixture
async def either(database_url: str) -> AsyncIterator[Harness]:
    """One that declares nothing by itself: the database is asked for jobs."""
    async with Harness(url=database_url, http_allow="127.0.0.1") as harness:
        harness._declares = False
        yield harness


async def test_a_job_that_is_made_while_it_works(either: Harness, server: HostileServer, working: Start) -> None:
    worker = await working(either)
    await either.client.data_jobs.create("ping", "http", url=f"{server.url}/1")
    run = await either.enqueue("ping")
    either.clock.advance(SECOND)  # its next poll
    await worker.has_state(run, RunState.SUCCEEDED)

    async def told() -> bool:
        return "ping" in (await either.client.workers.get("real")).jobs

    await until(told)


async def test_runs_keep_the_version_they_were_enqueued_with(
    either: Harness, server: HostileServer, working: Start
) -> None:
    await either.client.data_jobs.create("ping", "http", url=f"{server.url}/1")
    runs = [await either.enqueue("ping")]
    await either.client.data_jobs.update("ping", url=f"{server.url}/2")
    runs.append(await either.enqueue("ping"))
    worker = await working(either)
    ended = [await worker.has_state(run, RunState.SUCCEEDED) for run in runs]
    assert [run.job_version for run in ended] == [1, 2]
    by_run = {asked.headers["x-rota-run-id"]: asked.path for asked in server.asked}
    assert [by_run[run.id] for run in runs] == ["/1", "/2"]


async def test_a_change_reaches_a_worker_that_knows_the_job(
    either: Harness, server: HostileServer, working: Start
) -> None:
    worker = await working(either)
    await either.client.data_jobs.create("ping", "http", url=f"{server.url}/1")
    either.clock.advance(SECOND)
    await worker.has_state(await either.enqueue("ping"), RunState.SUCCEEDED)
    await either.client.data_jobs.update("ping", url=f"{server.url}/2")
    either.clock.advance(SECOND)
    await worker.has_state(await either.enqueue("ping"), RunState.SUCCEEDED)
    assert [asked.path for asked in server.asked] == ["/1", "/2"]


async def test_a_run_that_somebody_had_during_the_drop_is_done_all_the_same(
    either: Harness, server: HostileServer, working: Start
) -> None:
    await either.client.data_jobs.create("ping", "http", url=f"{server.url}/1")
    run = await either.enqueue("ping")
    (held,) = await claim(either.store, known={"ping": 1})
    await either.store.data_jobs.delete("ping", None, force=True)
    await tell(either.store, held, Outcome.HANDED_BACK)
    worker = await working(either)
    await worker.has_state(run, RunState.SUCCEEDED)


async def test_what_is_for_others_is_left_alone(
    either: Harness,
    server: HostileServer,
    working: Start,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(known_jobs, "can_send", lambda: False)
    jobs = either.client.data_jobs
    await jobs.create("ping", "http", url=f"{server.url}/1")
    await jobs.create("tool", "command", argv=["true"])
    await jobs.create("review", "external")
    runs = [await either.enqueue(name) for name in ("ping", "tool", "review")]
    await either.declare("crawl")
    with caplog.at_level(logging.WARNING):
        worker = await working(either)
        await worker.has_state(await either.enqueue("crawl"), RunState.SUCCEEDED)
    assert [await either.state(run) for run in runs] == [RunState.QUEUED] * 3
    assert [record.message for record in caplog.records if "aiohttp" in record.message] == [
        "skipping HTTP jobs: aiohttp is not installed (pip install 'rota[http]')"
    ]


async def test_a_worker_with_commands_runs_them(either: Harness, working: Start) -> None:
    await either.client.data_jobs.create("tool", "command", argv=["echo", "{payload.word}"])
    run = await either.enqueue("tool", word="hello")
    worker = await working(either, enable_command=True)
    assert (await worker.has_state(run, RunState.SUCCEEDED)).result["output"] == "hello"


async def test_dropped_by_force_its_runs_are_cancelled(either: Harness) -> None:
    await either.client.data_jobs.create("ping", "http", url="https://example.com")
    run = await either.enqueue("ping", {"delay": "1h"})
    with pytest.raises(Conflict, match="is used by"):
        await either.client.data_jobs.delete("ping")
    await either.client.data_jobs.delete("ping", force=True, actor="me")
    ended = await either.run(run)
    assert (ended.state, ended.cancelled_by) == (RunState.CANCELLED, "me")


async def test_idle_it_asks_one_small_question(either: Harness, working: Start) -> None:
    """Nothing but two numbers, at most once a poll."""
    await either.client.data_jobs.create("ping", "http", url="https://example.com")
    jobs = known_jobs.KnownJobs(either.store, either.app.registry, either.config)
    assert jobs.due(0.0)
    assert await jobs.refresh(0.0)
    assert not jobs.due(either.config.poll.total_seconds() - 0.01)
    assert (jobs.known, await jobs.refresh(1.0)) == ({"ping": 1}, False)


@pytest.mark.parametrize("odd", ['{"name": "odd", "priority": "high"}', '{"name": "odd", "kind": "carrier pigeon"}'])
async def test_what_a_newer_rota_made_is_left_to_others(
    either: Harness, server: HostileServer, working: Start, odd: str
) -> None:
    await either.client.data_jobs.create("odd", "http", url=f"{server.url}/1")
    await either.store.database.transact(lambda tx: tx.fetch_sql(f"update rota_job set definition = '{odd}'"))
    await either.client.data_jobs.create("ping", "http", url=f"{server.url}/1")
    worker = await working(either)
    await worker.has_state(await either.enqueue("ping"), RunState.SUCCEEDED)
