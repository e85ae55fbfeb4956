"""Test the expectation watcher: each breach is reported once, whichever process sees it."""

import asyncio
import logging

import pytest

from rota.app import Rota
from rota.config import Config
from rota.core.calendar.triggers import every
from rota.engine.loops.expectation_watcher import ExpectationWatcher
from rota.errors import Invalid, NotExpected, UnknownJob, UnknownSchedule
from rota.testing import Harness


async def breached(harness: Harness) -> list[tuple[str, str]]:
    found = await harness.client.expectations.list(breached=True)
    return [(one.subject, breach.what) for one in found for breach in one.breaches]


async def test_a_late_run_is_noticed_and_its_begin_too(either: Harness, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rota.watchman")
    await either.declare("crawl", expect={"start_within": "5m"})
    await either.enqueue("crawl")
    assert await either.watchman.step() == either.config.expect
    either.clock.advance("6m")
    await either.watchman.step()
    assert await breached(either) == [("crawl", "start_within")]
    assert "job crawl: run" in caplog.text
    worker = await either.worker().claim()
    await either.watchman.step()
    assert await breached(either) == []
    assert "start_within is met again" in caplog.text
    await worker.finish()
    told = [event.type for event in await either.client.audit(kind="job", subject="crawl")]
    assert told == ["met", "breached"]


async def test_three_watchmen(either: Harness) -> None:
    await either.declare("crawl", expect={"success_every": "1h", "start_within": "1m"})
    watchmen = [ExpectationWatcher(either.store, either.config.expect) for _ in range(3)]
    await either.enqueue("crawl")
    either.clock.advance("2h")
    await asyncio.gather(*(one.step() for one in watchmen))
    assert await breached(either) == [("crawl", "start_within"), ("crawl", "success_every")]
    worker = await either.worker().claim()
    await worker.finish()
    await asyncio.gather(*(one.step() for one in watchmen))
    assert await breached(either) == []
    assert len(await either.client.audit(kind="job", subject="crawl")) == 4


async def test_a_schedule_that_is_declared_in_code(database_url: str) -> None:
    app = Rota(config=Config())

    @app.job
    async def crawl() -> None: ...

    app.schedule("news", crawl, every("1h"), expect={"success_every": "90m"})
    async with Harness(app, url=database_url) as harness:
        harness.clock.advance("91m")
        await harness.watchman.step()
        assert await breached(harness) == [("news", "success_every")]
        await harness.planner.step()
        await harness.drain()
        await harness.watchman.step()
        assert await breached(harness) == []
        events = [event.type for event in await harness.client.schedules.events("news")]
        assert events == ["created", "breached", "met"]


async def test_set_by_a_person(harness: Harness) -> None:
    await harness.declare("crawl", expect={"start_within": "5m"})
    verbs = harness.client.expectations
    found = await verbs.update("job", "crawl", success_every="1h", actor="ann")
    assert (found.owner, found.expect) == ("ann", {"start_within": "5m", "success_every": "1h"})
    assert await verbs.get("job", "crawl") == found
    replaced = await verbs.replace("job", "crawl", max_duration="1h")
    assert replaced.expect == {"max_duration": "1h"}
    await verbs.delete("job", "crawl")
    with pytest.raises(NotExpected):
        await verbs.delete("job", "crawl")
    assert await verbs.find("job", "crawl") is None
    with pytest.raises(NotExpected):
        await verbs.get("job", "crawl")


async def test_what_is_refused(harness: Harness) -> None:
    await harness.declare("crawl")
    verbs = harness.client.expectations
    with pytest.raises(UnknownJob):
        await verbs.update("job", "craw", start_within="5m")
    with pytest.raises(UnknownSchedule):
        await verbs.update("schedule", "news", start_within="5m")
    with pytest.raises(Invalid, match="a job or a schedule"):
        await verbs.update("queue", "default", start_within="5m")
    with pytest.raises(Invalid, match="expect is empty"):
        await verbs.update("job", "crawl")
    with pytest.raises(Invalid, match="actor"):
        await verbs.update("job", "crawl", start_within="5m", actor="code")
    assert await verbs.list() == []


async def test_it_is_a_metric(harness: Harness) -> None:
    await harness.declare("crawl", expect={"success_every": "1h"})
    harness.clock.advance("2h")
    await harness.watchman.step()
    sample = 'rota_expectations_breached{kind="job",subject="crawl",what="success_every"} 1'
    assert sample in await harness.client.metrics()
    await harness.client.expectations.delete("job", "crawl")
    harness.clock.advance("1m")
    assert sample not in await harness.client.metrics()


async def test_the_same_without_an_event_loop(harness: Harness) -> None:
    await harness.declare("crawl")

    def work() -> None:
        verbs = harness.app.blocking.expectations
        found = verbs.update("job", "crawl", start_within="5m", actor="ann")
        assert [found] == list(verbs.list()) == [verbs.get("job", "crawl")] == [verbs.find("job", "crawl")]
        assert verbs.list(breached=True) == []
        verbs.delete("job", "crawl", actor="ann")
        assert verbs.list() == []

    await asyncio.to_thread(work)
