"""Test that SIGTERM ends the process in time, though handlers refuse to stop, block the loop or leave threads."""

from __future__ import annotations

import time

from rota import Config, Outcome, RunState
from rota.server import BEYOND_GRACE
from tests.support.processes.rota_process import RotaProcess
from tests.system.site import Site

GRACE = 1.0
KUBERNETES_KILLS_AFTER = 30.0


async def test_a_handler_that_refuses_to_be_cancelled(sqlite_site: Site) -> None:
    """The stop itself is complete: the run is handed back, and only the handler is left."""
    run, worker = await begun(sqlite_site, "ignore")
    assert ended(worker) == 0
    left = await sqlite_site.run(run)
    assert (left.state, left.attempt) == (RunState.QUEUED, 0)
    assert await sqlite_site.outcomes(run) == [Outcome.HANDED_BACK]


async def test_a_handler_that_blocks_the_loop(sqlite_site: Site) -> None:
    """Nothing could be reported: the exit code says so, and a reaper finds the run."""
    run, worker = await begun(sqlite_site, "block_the_loop", seconds=60.0)
    assert ended(worker) == 1
    assert "forced exit" in worker.log
    assert (await sqlite_site.run(run)).state is RunState.RUNNING


async def test_a_handler_that_leaves_a_thread_behind(sqlite_site: Site) -> None:
    """Python waits for it after the event loop has ended."""
    run, worker = await begun(sqlite_site, "leave_a_thread")
    await sqlite_site.all_succeed([run])
    assert ended(worker) == 0


def test_by_default_it_fits_into_the_time_that_kubernetes_gives() -> None:
    assert Config().shutdown_grace.total_seconds() + BEYOND_GRACE <= KUBERNETES_KILLS_AFTER - 2


async def begun(site: Site, job: str, **payload: object) -> tuple[str, RotaProcess]:
    worker = site.worker(settings={"ROTA_SHUTDOWN_GRACE": f"{GRACE}s"})
    run = await site.enqueue(job, **payload)
    await site.begun(run)
    return run, worker


def ended(worker: RotaProcess) -> int:
    """Return the exit code, if it comes in time."""
    began = time.monotonic()
    worker.terminate()
    code = worker.wait(20)
    assert time.monotonic() - began < GRACE + BEYOND_GRACE + 1
    return code
