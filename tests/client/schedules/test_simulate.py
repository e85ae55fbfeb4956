"""Simulations of a schedule as the client asks for them: from what is there now."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from rota.core.calendar.triggers import every
from rota.core.planning.question import SimulationReport
from rota.core.runs.options import Order
from rota.testing import Harness

TEN = timedelta(minutes=10)


@pytest.fixture
async def either(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=database_url) as harness:
        yield harness


def kinds(report: SimulationReport) -> list[str]:
    return [event.kind for event in report.events]


async def test_a_schedule_that_is_not_planned_says_so() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"), enabled=False)
        told = await schedules.simulate("s", "1h")
        assert [(event.kind, event.reason) for event in told.events] == [("paused", "it is disabled")]
        assert kinds(await schedules.simulate("s", "1h", changes={"enabled": True})) == ["run"] * 6


async def test_a_pause_that_ends() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"))
        await schedules.pause("s", until=harness.clock.now() + timedelta(minutes=35))
        told = await schedules.simulate("s", "1h")
        assert [(event.kind, event.reason) for event in told.events[:1]] == [("paused", "it is paused")]
        begins = [event.plan_time - told.from_at for event in told.events[1:]]
        assert begins == [4 * TEN, 5 * TEN, 6 * TEN]


async def test_what_runs_now_is_in_the_way() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"))
        (run,) = await schedules.trigger("s")
        told = await schedules.simulate("s", "30m", duration="15m")
        assert kinds(told) == ["skipped", "run", "skipped"]
        assert run.id in (told.events[0].reason or "")
        at = harness.clock.now()
        fresh = await schedules.simulate("s", "30m", duration="15m", start=at)
        assert kinds(fresh) == ["run", "skipped", "run"]


async def test_the_quota_of_the_scope_counts_with_all_its_runs() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        await harness.declare("other")
        await harness.client.quotas.update("tenant", "a", max_queued=1)
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"), scopes=[("tenant", "a")], overlap="allow")
        waiting: dict[str, Any] = {"workers": 1, "duration": "25m"}
        assert kinds(await schedules.simulate("s", "30m", **waiting)) == ["run", "run", "skipped"]
        await harness.client.enqueue(Order("other", {}, {"scope": ("tenant", "a"), "delay": "1d"}))
        told = await schedules.simulate("s", "30m", **waiting)
        assert [(event.kind, event.reason) for event in told.events] == [
            ("skipped", "quota of tenant/a is full: 1 waiting")
        ] * 3


async def test_runs_take_as_long_as_the_last_ones_did(either: Harness) -> None:
    await either.declare("work")
    schedules = either.client.schedules
    await schedules.create("s", "work", every("10m"))

    async def durations(**options: Any) -> str | None:
        return (await schedules.simulate("s", "30m", **options)).schedules[0].durations

    assert await durations() == "1s assumed: the job has no run that ended"
    for minutes in (15, 1, 20):
        await either.enqueue("work")
        claimed = await either.worker("a").claim()
        either.clock.advance(timedelta(minutes=minutes))
        await claimed.finish()
    assert await durations() == "median of the last 3 runs, 15m"
    assert await durations(duration="90s") == "1m30s, as given"
    later = await schedules.simulate("s", "30m", start=either.clock.now())
    assert (later.schedules[0].durations, kinds(later)) == (await durations(), ["run", "skipped", "run"])


async def test_a_document_is_simulated_under_the_limits_that_hold_now(either: Harness) -> None:
    await either.declare("work", max_concurrency=1)
    await either.enqueue("work")
    claimed = await either.worker("a").claim()
    document = {"name": "new", "job": "work", "every": "10m", "overlap": "allow"}
    report = await either.client.schedules.simulate(documents=[document], span="1h", duration="15m")
    assert [each.kind for each in report.schedules] == ["create"]
    begins = [event.started_at - report.from_at for event in report.events if event.started_at]
    assert begins == [timedelta(minutes=minutes) for minutes in (15, 30, 45, 60)]
    await claimed.finish()


async def test_many_documents_are_told_in_the_order_of_time() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        documents = [{"name": f"s{minutes}", "job": "work", "every": f"{minutes}m"} for minutes in (20, 30)]
        report = await harness.client.schedules.simulate(documents=documents, span="1h", limit=4)
        begins = [(event.schedule, event.plan_time) for event in report.events]
        assert [name for name, _ in begins] == ["s20", "s30", "s20", "s20"]
        assert begins == [(fire.schedule, fire.plan_time) for fire in report.fires]
        assert (report.counts["run"], report.unlisted) == (5, 1)


async def test_a_cadence_that_is_too_short_is_warned_of_wherever_it_is_written() -> None:
    async with Harness() as harness:
        await harness.declare("work", max_attempts=3, backoff=["1h"])
        schedules, warned = harness.client.schedules, []
        warned.append(await schedules.create("s", "work", every("10m")))
        warned.append(await schedules.update("s", description="changed"))
        warned.append(await schedules.replace("s", "work", every("10m")))
        assert [len(schedule.warnings) for schedule in warned] == [1, 1, 1]
        (told,) = (await schedules.simulate("s", "0s")).schedules
        assert told.warnings == warned[0].warnings
        assert "a failed run waits 1h for its retry" in told.warnings[0]
        assert (await schedules.update("s", trigger=every("2h"))).warnings == ()
        assert (await schedules.get("s")).warnings == ()
