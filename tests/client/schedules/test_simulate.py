"""Simulations of a schedule as the client asks for them: from what is there now."""

from datetime import timedelta

from rota.core.calendar.triggers import every
from rota.core.planning.simulation_report import SimulationOptions, SimulationReport
from rota.core.runs.options import Order
from rota.testing import Harness

TEN = timedelta(minutes=10)


def kinds(report: SimulationReport) -> list[str]:
    return [event.kind for event in report.events]


async def test_a_schedule_that_is_not_planned_says_so() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"), enabled=False)
        told = await schedules.simulate("s", "1h")
        assert [(event.kind, event.reason) for event in told.events] == [("paused", "it is disabled")]
        assert kinds(await schedules.simulate("s", "1h", enabled=True)) == ["run"] * 6


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
        told = await schedules.simulate("s", "30m", SimulationOptions(duration="15m"))
        assert kinds(told) == ["skipped", "run", "skipped"]
        assert run.id in (told.events[0].reason or "")
        at = harness.clock.now()
        assert kinds(await schedules.simulate("s", "30m", SimulationOptions(duration="15m"), start=at)) == [
            "run",
            "skipped",
            "run",
        ]


async def test_the_quota_of_the_scope_counts_with_all_its_runs() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        await harness.declare("other")
        await harness.client.quotas.update("tenant", "a", max_queued=1)
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"), scopes=[("tenant", "a")], overlap="allow")
        waiting = SimulationOptions(workers=1, duration="25m")
        assert kinds(await schedules.simulate("s", "30m", waiting)) == ["run", "run", "skipped"]
        await harness.client.enqueue(Order("other", {}, {"scope": ("tenant", "a"), "delay": "1d"}))
        told = await schedules.simulate("s", "30m", waiting)
        assert [(event.kind, event.reason) for event in told.events] == [
            ("skipped", "quota of tenant/a is full: 1 waiting")
        ] * 3
