"""Test the sample task that first defined the policies, planned and run by real processes."""

from __future__ import annotations

from datetime import timedelta

from rota import Run, RunState
from tests.support.processes.rota_process import RotaProcess
from tests.support.schedules.ledger_oracle import rows
from tests.support.schedules.schedules import get_schedule, runs_of
from tests.support.wait import until
from tests.system.site import Site
from tests.system.test_schedules import ended, started

TASK = "demo-task"
CADENCE = timedelta(seconds=2)


def at_work(site: Site, name: str, wanted: str = "demo") -> RotaProcess:
    """A worker that does not wait long for its handlers when it is told to stop."""
    return started(site, name, wanted, ROTA_SHUTDOWN_GRACE="1s")


def begun(site: Site) -> int:
    return len(site.ledger.entries("begin"))


async def finished(site: Site) -> list[Run]:
    """Return the ended runs of the task, without those replaced before they began."""
    return [run for run in await runs_of(site.client.store, TASK) if run.state.is_final and run.attempt]


async def test_the_run_before_is_cancelled_and_the_new_one_begins(site: Site) -> None:
    worker = at_work(site, "worker")
    await until(lambda: begun(site) >= 4)
    await ended(worker)
    runs = await runs_of(site.client.store, TASK)
    assert [run.state for run in runs].count(RunState.CANCELLED) >= 3
    for run in runs:  # some may be skipped, if this machine was so busy that several plan times were due at once
        assert run.reason is None or run.reason.startswith("superseded by run "), "no limit was full"
    entries = [entry.what for entry in site.ledger.entries()]
    assert entries == ["begin", "stop"] * (len(entries) // 2), "never two at once"


async def test_after_a_failure_the_next_one_is_the_next_attempt(site: Site) -> None:
    worker = at_work(site, "worker", "demo:failing")

    async def third_time() -> bool:
        return any(run.state is RunState.SUCCEEDED for run in await finished(site))

    await until(third_time)
    await ended(worker)
    runs = await finished(site)
    last = next(place for place, run in enumerate(runs) if run.state is RunState.SUCCEEDED)
    assert [(run.state.value, run.attempt) for run in runs[last - 2 : last + 1]] == [
        ("failed", 1),
        ("failed", 2),
        ("succeeded", 3),
    ]


async def test_after_a_pause_of_the_planner_the_last_three_are_caught_up_with(sqlite_site: Site) -> None:
    site = sqlite_site
    store = site.client.store
    first = at_work(site, "first")
    await until(lambda: begun(site) >= 1)
    await ended(first)
    cursor = (await get_schedule(store, TASK)).cursor_at

    async def four_are_due() -> bool:
        return await store.now() >= (cursor.timestamp() + 4 * CADENCE.total_seconds()) * 1_000_000

    await until(four_are_due)
    second = at_work(site, "second")
    await until(lambda: begun(site) >= 2)
    await ended(second)
    ((from_at, to_at, count),) = await rows(store, "select from_at, to_at, count from rota_range")
    step = CADENCE // timedelta(microseconds=1)
    assert (from_at, to_at) == (int(cursor.timestamp() * 1_000_000) + step, from_at + (count - 1) * step)
    kept = [run for run in await runs_of(store, TASK) if run.plan_time and run.plan_time.timestamp() * 1e6 > to_at]
    late = (kept[0].created_at - kept[0].plan_time) if kept[0].plan_time else timedelta(0)
    assert 2 * CADENCE <= late < 3 * CADENCE, "the oldest of three"
    assert all((run.reason or "").startswith("superseded by run ") for run in kept[:2]), "they gave way to the last"
