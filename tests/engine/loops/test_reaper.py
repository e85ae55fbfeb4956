"""Test the reaper: which leases it reclaims, and when it waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rota import Rota, RunState
from rota.engine.loops.reaper import Reaper
from rota.testing import Harness
from tests.support.runs.real_worker import SECOND

INTERVAL = timedelta(seconds=5)
HEARTBEAT = timedelta(seconds=10)


@pytest.fixture
def reaper(harness: Harness) -> Reaper:
    return Reaper(harness.store, INTERVAL, HEARTBEAT)


async def rest(harness: Harness, reaper: Reaper, span: timedelta) -> None:
    """Let it step at its own pace for so long."""
    end = harness.clock.now() + span
    while harness.clock.now() < end:
        pause = await reaper.step()
        harness.clock.advance(min(max(pause, timedelta(milliseconds=1)), end - harness.clock.now()))


async def test_one_that_has_just_started_waits_a_heartbeat_first(harness: Harness, reaper: Reaper) -> None:
    run = await harness.enqueue("job")
    worker = await harness.worker().claim()
    harness.clock.advance("1h")  # everything was down; the worker comes back with its next heartbeat
    await rest(harness, reaper, HEARTBEAT)
    assert await harness.state(run) is RunState.RUNNING
    await worker.heartbeat()
    await rest(harness, reaper, 2 * INTERVAL)
    assert await harness.state(run) is RunState.RUNNING


async def test_after_its_wait_it_takes_what_nobody_renewed(harness: Harness, reaper: Reaper) -> None:
    run = await harness.enqueue("job")
    await harness.worker().claim()
    harness.clock.advance("1h")
    await rest(harness, reaper, HEARTBEAT + 2 * SECOND)
    await reaper.step()
    assert await harness.state(run) is RunState.QUEUED
    assert reaper.taken == 1


async def seasoned(harness: Harness, reaper: Reaper) -> None:
    await rest(harness, reaper, HEARTBEAT + INTERVAL)


async def test_a_dead_workers_run_is_claimable_within_a_lease_an_interval_and_a_second(
    harness: Harness, reaper: Reaper
) -> None:
    await seasoned(harness, reaper)
    run = await harness.enqueue("job")
    await harness.worker().claim()
    await rest(harness, reaper, harness.lease + INTERVAL + SECOND)
    assert await harness.state(run) is RunState.QUEUED


async def test_after_an_outage_it_waits_again(harness: Harness, reaper: Reaper) -> None:
    await seasoned(harness, reaper)
    run = await harness.enqueue("job")
    worker = await harness.worker().claim()
    harness.clock.advance(harness.lease + SECOND)
    reaper.on_error()
    await reaper.step()
    assert await harness.state(run) is RunState.RUNNING
    await worker.heartbeat()
    await rest(harness, reaper, HEARTBEAT + INTERVAL)
    assert await harness.state(run) is RunState.RUNNING


async def test_one_that_slept_itself_waits_again(harness: Harness, reaper: Reaper) -> None:
    await seasoned(harness, reaper)
    run = await harness.enqueue("job")
    await harness.worker().claim()
    harness.clock.advance("1h")
    await reaper.step()
    assert await harness.state(run) is RunState.RUNNING


@pytest.mark.parametrize("jump", [timedelta(hours=1), -timedelta(hours=1)])
async def test_when_the_clock_is_set_it_waits_again(harness: Harness, reaper: Reaper, jump: timedelta) -> None:
    run = await harness.enqueue("job")
    worker = await harness.worker().claim()
    await seasoned(harness, reaper)
    await worker.heartbeat()
    harness.clock.jump(jump)
    await reaper.step()
    assert await harness.state(run) is RunState.RUNNING
    await worker.heartbeat()
    await rest(harness, reaper, HEARTBEAT + INTERVAL)
    assert await harness.state(run) is RunState.RUNNING


async def test_a_full_batch_does_not_block_it(either: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.loops.reaper._BATCH", 3)
    reaper = Reaper(either.store, INTERVAL, HEARTBEAT)
    await seasoned(either, reaper)
    runs = [await either.enqueue("job") for _ in range(7)]
    await either.worker().claim(len(runs))
    await rest(either, reaper, either.lease + INTERVAL + SECOND)
    assert {await either.state(run) for run in runs} == {RunState.QUEUED}
    assert reaper.taken == 7


async def test_it_frees_runs_of_jobs_it_has_no_handler_for(either: Harness) -> None:
    run = await either.enqueue("known-elsewhere")
    await either.worker().claim()
    either.clock.advance(either.lease + SECOND)
    async with Harness(Rota("sqlite:///unused.db"), url=either.config.database_url, clock=either.clock) as stranger:
        assert "known-elsewhere" not in stranger.app.registry.newest
        await stranger.reaper.step()
    assert await either.state(run) is RunState.QUEUED


async def test_any_number_of_reapers_take_a_lease_once(either: Harness) -> None:
    run = await either.enqueue("job")
    zombie = await either.worker().claim()
    either.clock.advance(either.lease + SECOND)
    for _ in range(3):
        await either.reaper.step()
    assert (await either.run(run)).fence == zombie.fence() + 1
    assert len(await either.attempts(run)) == 1


async def test_a_process_that_is_always_late_reaps_all_the_same(harness: Harness) -> None:
    """Its event loop is blocked for longer than the reaper's patience, again and again."""
    reaper = Reaper(harness.store, INTERVAL, HEARTBEAT)
    await reaper.step()
    run = await harness.enqueue("job")
    await harness.worker().claim()
    for _ in range(6):
        harness.clock.advance(max(harness.lease, 3 * INTERVAL + HEARTBEAT))
        await reaper.step()
    assert await harness.state(run) is RunState.QUEUED
