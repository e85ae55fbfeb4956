"""Test operators' requests to real worker processes: drain, resume, settings, stop; alone and supervised."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from rota import RunState
from rota.core.workers.worker import Worker, WorkerState
from tests.support.processes.rota_process import ROOT
from tests.system.site import APP, GENEROUS, Site


async def rota(site: Site, *arguments: str) -> Any:
    """The answer of a command."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "rota", *arguments, "--json", "--database", site.url],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def shown(site: Site, name: str, condition: Callable[[Worker], bool]) -> None:
    async with asyncio.timeout(GENEROUS):
        while not any(condition(worker) for worker in await site.client.workers.list() if worker.name == name):
            await asyncio.sleep(0.02)


async def test_a_worker_is_drained_resumed_changed_and_stopped_from_outside(site: Site, tmp_path: Path) -> None:
    first, last = tmp_path / "first", tmp_path / "last"
    process = site.worker("far", concurrency=1)
    await shown(site, "far", lambda worker: worker.state is WorkerState.WORKING)
    running = await site.enqueue("hold", until=str(first))
    await site.begun(running)
    (asked,) = (await rota(site, "workers", "drain", "far"))["items"]
    assert (asked["pid"], asked["slots"], asked["asked"]["state"]) == (process.pid, 1, "draining")
    await shown(site, "far", lambda worker: worker.state is WorkerState.DRAINING and worker.held == 1)
    waiting = await site.enqueue("quick")
    first.touch()
    assert (await site.final(running)).state is RunState.SUCCEEDED
    await asyncio.sleep(1.0)  # several polls and heartbeats
    assert (await site.run(waiting)).state is RunState.QUEUED
    await shown(site, "far", lambda worker: worker.state is WorkerState.DRAINING and worker.held == 0)

    await rota(site, "workers", "resume", "far")
    assert (await site.final(waiting)).state is RunState.SUCCEEDED

    await rota(site, "workers", "update", "far", "--slots", "3", "--heartbeat", "200ms", "--queues", "default:2,other")
    await shown(site, "far", lambda worker: worker.slots == 3 and worker.heartbeat == timedelta(milliseconds=200))
    held = [await site.enqueue("hold", {"queue": "other"}, until=str(last)) for _ in range(3)]
    for run in held:
        await site.begun(run)
    await shown(site, "far", lambda worker: worker.held == 3 and worker.queues == {"default": 2, "other": 1})

    await rota(site, "workers", "stop", "far")
    left = await site.enqueue("quick")
    await asyncio.to_thread(process.until_said, "asked to stop")
    last.touch()
    assert await asyncio.to_thread(process.wait) == 0
    assert [(await site.run(run)).state for run in held] == [RunState.SUCCEEDED] * 3
    assert (await site.run(left)).state in (RunState.QUEUED, RunState.SUCCEEDED)
    assert await site.client.workers.list() == []


async def test_a_supervisor_starts_no_other_in_place_of_one_that_was_stopped(sqlite_site: Site) -> None:
    site = sqlite_site
    flags = ("--processes", "2", "--name", "crew")
    supervisor = site.processes.rota("worker", *flags, APP, environment=site.environment())
    for name in ("crew-1", "crew-2"):
        await shown(site, name, lambda worker: worker.state is WorkerState.WORKING)
    await site.client.workers.stop("crew-1")
    await asyncio.to_thread(supervisor.until_said, "no other takes its place")
    run = await site.enqueue("quick")
    assert (await site.final(run)).state is RunState.SUCCEEDED
    assert [worker.name for worker in await site.client.workers.list()] == ["crew-2"]
    assert supervisor.exit_code is None
    await site.client.workers.stop("crew-2")
    assert await asyncio.to_thread(supervisor.wait) == 0
