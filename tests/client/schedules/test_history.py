"""Verbs of `client.schedules` about past plan times, and what they refuse."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from rota.core.calendar.triggers import after, every
from rota.core.planning.simulation_report import SimulationOptions
from rota.errors import Invalid
from rota.testing import Harness

HOUR = timedelta(hours=1)


async def test_told_verified_explained_and_made_up_for() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"), catch_up="none")
        start = harness.clock.now()
        harness.clock.advance("1h")
        await harness.store.planning.plan(10, {})
        assert [(one.kind, one.count) for one in await schedules.occurrences("s")] == [("missed", 5), ("ran", 1)]
        assert (await schedules.verify("s")).ok
        assert (await schedules.explain("s", start + HOUR / 2)).verdict == "missed"
        done = await schedules.backfill("s", start, start + HOUR / 2, actor="me")
        assert (done.count, done.retried) == (4, 0)  # the rule names the instant it was made at, too
        run = await harness.client.get(done.runs[0])
        assert (run.tags, run.metadata) == (("backfill",), {"backfilled_by": "me"})
        assert (await harness.client.explain(run.id)).verdict == "queued"
        assert (await schedules.verify("s")).ok


async def test_what_is_refused() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"))
        now = harness.clock.now()
        for wrong in ({"ran": "some"}, {"concurrency": 0}):
            with pytest.raises(Invalid):
                await schedules.backfill("s", now - HOUR, now, **wrong)
        for first, last in ((now, now + HOUR), (now, now - HOUR), (datetime(2030, 1, 1), now)):  # noqa: DTZ001
            with pytest.raises(Invalid):
                await schedules.backfill("s", first, last)
        with pytest.raises(Invalid):
            await schedules.occurrences("s", limit=0)
        with pytest.raises(Invalid):
            await schedules.occurrences("s", now, now - HOUR)


async def test_what_follows_its_last_run_is_simulated_from_the_plan_time_that_is_known() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", after("1h"))
        await harness.pass_time("30m")
        known = (await schedules.get("s")).next_plan
        assert known is not None
        assert known > harness.clock.now()
        assert (await schedules.simulate("s", "3h")).events[0].plan_time == known
        assert (await schedules.simulate("s", "3h", trigger=after("2h"))).events[0].plan_time < known


async def test_outages_are_written_as_on_the_command_line() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"))
        now = harness.clock.now()
        found = await schedules.simulate("s", "3h", SimulationOptions(outages=[("+1h", "+2h")]))
        assert found.counts["covered"] > 0
        assert found == await schedules.simulate("s", "3h", SimulationOptions(outages=[(now + HOUR, now + 2 * HOUR)]))
        unlike: Any = [5, ("+1h",), ("+1h", 7), ("soon", "+1h"), ("+2h", "+1h"), (datetime(2030, 1, 1), "+1h")]  # noqa: DTZ001
        for wrong in unlike:
            with pytest.raises(Invalid):
                await schedules.simulate("s", "3h", SimulationOptions(outages=[wrong]))
        with pytest.raises(Invalid, match="must be positive, not 0s"):
            await schedules.simulate("s", "0s")


async def test_how_long_a_planner_may_be_silent_is_configured() -> None:
    async with Harness(lease=timedelta(hours=2)) as harness:
        await harness.declare("work")
        await harness.client.schedules.create("s", "work", every("10m"))
        await harness.worker().heartbeat()
        harness.clock.advance("1h")
        told = await harness.client.schedules.explain("s", harness.clock.now())
        assert "1 worker is alive, and plans other schedules" in str(told)
        assert "No worker is alive" not in str(told)
