"""Test workers that are killed, frozen and replaced: nothing is lost or stuck, and zombies are refused."""

from __future__ import annotations

import asyncio
import time

from rota import Outcome, RunState
from tests.support.wait import until
from tests.system.site import LEASE, REAPER, Site


async def test_what_a_killed_worker_held_begins_elsewhere_within_its_lease(site: Site) -> None:
    doomed = site.worker("doomed")
    run = await site.enqueue("nap", seconds=[60.0, 0.0])
    await site.begun(run)
    heir = site.worker("heir")
    await asyncio.sleep(LEASE)  # its reaper is past the caution of one that has just started
    doomed.kill()
    killed_at = time.monotonic()
    second = await site.begun(run, times=2)
    assert second.at - killed_at <= LEASE + REAPER + 1
    await site.all_succeed([run])
    assert await site.outcomes(run) == [Outcome.LOST, Outcome.SUCCEEDED]
    await site.agree([run])
    assert heir.exit_code is None


async def test_a_worker_killed_among_many_runs_costs_none_of_them(site: Site) -> None:
    doomed, heir = site.worker("doomed"), site.worker("heir")
    runs = await site.enqueue_many(150, "nap", seconds=[0.15])
    await until(lambda: len({entry.pid for entry in site.ledger.entries("end")}) == 2)
    doomed.kill()
    await site.all_succeed(runs)
    await site.agree(runs)
    assert heir.exit_code is None


async def test_kills_again_and_again_cost_no_run(site: Site) -> None:
    runs = await site.enqueue_many(120, "nap_in_thread", seconds=[0.2])
    workers = [site.worker("one", concurrency=5), site.worker("two", concurrency=5)]
    for turn in range(4):
        await asyncio.sleep(0.4)
        workers[turn % 2].kill()
        workers[turn % 2] = site.worker(("one", "two")[turn % 2], concurrency=5)
    await site.all_succeed(runs)
    await site.agree(runs)


async def test_three_workers_of_one_name_are_three_workers(site: Site) -> None:
    workers = [site.worker("crawler", concurrency=4) for _ in range(3)]
    runs = await site.enqueue_many(90, "nap", seconds=[0.2])
    await until(lambda: len({entry.pid for entry in site.ledger.entries("begin")}) == 3)
    workers[0].kill()
    await site.all_succeed(runs)
    await site.agree(runs)
    pids = {worker.id: worker.pid for worker in await site.client.workers.list()}
    attempts = [attempt for run in runs for attempt in await site.client.attempts(run)]
    losers = {pids[attempt.worker_id] for attempt in attempts if attempt.outcome is Outcome.LOST}
    assert losers <= {workers[0].pid}, "the others of its name kept their leases"


async def test_a_worker_that_was_frozen_can_say_nothing_any_more(site: Site) -> None:
    zombie = site.worker("zombie")
    run = await site.enqueue("nap_in_thread", seconds=[0.5, 4.0])
    await site.begun(run)
    zombie.pause()
    heir = site.worker("heir")
    await asyncio.sleep(3 * LEASE)
    second = await site.begun(run, times=2)
    assert second.pid == heir.pid
    zombie.resume()
    await until(lambda: len(site.ledger.entries("end", run)) == 1)
    assert site.ledger.entries("end", run)[0].pid == zombie.pid
    assert (await site.run(run)).state is RunState.RUNNING, "the zombie's result was not accepted"
    await site.all_succeed([run])
    attempts = await site.client.attempts(run)
    assert [attempt.outcome for attempt in attempts] == [Outcome.LOST, Outcome.SUCCEEDED]
    assert attempts[1].worker_id.startswith("heir@")
    await site.agree([run])
    again = await site.enqueue_many(20, "nap", seconds=[0.1])
    await site.all_succeed(again)
    assert zombie.exit_code is None


async def test_a_frozen_workers_payment_is_never_begun_again(site: Site) -> None:
    zombie = site.worker("zombie")
    run = await site.enqueue("pay", seconds=[0.5])
    await site.begun(run)
    zombie.pause()
    site.worker("heir")
    await asyncio.sleep(3 * LEASE)
    zombie.resume()
    done = await site.final(run)
    assert done.state is RunState.EXPIRED
    assert done.error is not None
    assert done.error.code == "stale_timeout"
    bystander = await site.enqueue("pay", seconds=[0.0])
    await site.all_succeed([bystander])
    assert len(site.ledger.entries("begin", run)) == 1
    assert await site.outcomes(run) == [Outcome.LOST]
    assert (await site.run(run)).state is RunState.EXPIRED
