"""Test hosts whose clocks are wrong, or jump: on PostgreSQL only the server's clock counts."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from rota import Outcome
from tests.support.processes.rota_process import ROOT
from tests.system.site import LEASE, REAPER, Site

HOUR = 3_600
CLOCKS = {"fast": f"{HOUR}", "slow": f"-{HOUR}", "jumping": f"{HOUR} -{HOUR} 0"}
MARGIN = 2.0


def wrong_clock(name: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "tests" / "support" / "processes" / "shifted_clock"), str(ROOT)])
    return {"SHIFTED_CLOCK": CLOCKS[name], "PYTHONPATH": path}


@pytest.mark.parametrize("clock", CLOCKS)
async def test_delays_and_backoffs_are_kept(postgres_site: Site, clock: str) -> None:
    site = postgres_site
    site.worker(settings=wrong_clock(clock))
    enqueued_at = time.monotonic()
    later = await site.enqueue("quick", {"delay": "1500ms"})
    retried = await site.enqueue("fail_at_first")
    await site.all_succeed([later, retried])
    assert 1.5 <= (await site.begun(later)).at - enqueued_at <= 1.5 + MARGIN
    first, second = site.ledger.entries("begin", retried)
    assert 1.5 <= second.at - first.at <= 1.5 + MARGIN


async def test_no_lease_is_lost_or_kept_by_a_wrong_clock(postgres_site: Site) -> None:
    site = postgres_site
    doomed = site.worker("fast", wrong_clock("fast"))
    run = await site.enqueue("nap", seconds=[60.0, 0.0])
    await site.begun(run)
    for clock in ("slow", "jumping"):
        site.worker(clock, wrong_clock(clock))
    await asyncio.sleep(2 * LEASE)
    assert await site.outcomes(run) == [None], "nobody took it away"
    doomed.kill()
    killed_at = time.monotonic()
    second = await site.begun(run, times=2)
    assert second.at - killed_at <= LEASE + REAPER + 1
    await site.all_succeed([run])
    assert await site.outcomes(run) == [Outcome.LOST, Outcome.SUCCEEDED]


async def test_workers_of_different_times_share_the_work(postgres_site: Site) -> None:
    site = postgres_site
    for clock in CLOCKS:
        site.worker(clock, wrong_clock(clock))
    runs = await site.enqueue_many(60, "nap_in_thread", seconds=[0.1])
    await site.all_succeed(runs)
    await site.agree(runs)
    assert site.begins_once(runs)
