"""Test cancels from another process: delivered within a heartbeat, final after the grace."""

from __future__ import annotations

import time

import pytest

from rota import Outcome, RunState
from tests.support.wait import until
from tests.system.site import HEARTBEAT, REAPER, Site

GRACE = 1.0


@pytest.mark.parametrize("job", ["listen", "listen_in_thread", "listen_in_process"])
async def test_a_handler_that_listens_is_told_within_a_heartbeat(site: Site, job: str) -> None:
    site.worker()
    run = await site.enqueue(job)
    await site.begun(run)
    asked_at = time.monotonic()
    assert (await site.client.cancel(run)).state is RunState.CANCELLING
    await until(lambda: len(site.ledger.entries("stop", run)) == 1)
    assert site.ledger.entries("stop", run)[0].at - asked_at <= HEARTBEAT + 1
    assert (await site.final(run)).state is RunState.CANCELLED
    assert await site.outcomes(run) == [Outcome.CANCELLED]


@pytest.mark.parametrize("job", ["ignore", "ignore_in_thread", "ignore_in_process"])
async def test_a_handler_that_ignores_everything_is_final_after_its_grace(site: Site, job: str) -> None:
    worker = site.worker()
    run = await site.enqueue(job)
    await site.begun(run)
    asked_at = time.monotonic()
    await site.client.cancel(run)
    assert (await site.final(run)).state is RunState.CANCELLED
    assert time.monotonic() - asked_at <= HEARTBEAT + GRACE + REAPER + 1
    await site.all_succeed(await site.enqueue_many(3, "quick"))
    assert len(site.ledger.entries("begin", run)) == 1
    assert worker.exit_code is None


async def test_a_process_that_ignores_everything_is_killed(site: Site) -> None:
    site.worker()
    run = await site.enqueue("ignore_in_process")
    begun = await site.begun(run)
    await site.client.cancel(run)
    await until(lambda: not is_alive(begun.pid))


async def test_what_was_cancelled_before_its_claim_never_begins(site: Site) -> None:
    run = await site.enqueue("quick")
    assert (await site.client.cancel(run)).state is RunState.CANCELLED
    site.worker()
    await site.all_succeed(await site.enqueue_many(3, "quick"))
    assert site.ledger.entries(run_id=run) == []
    assert await site.outcomes(run) == []


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or before it was read
        return False
