"""The faults of `benchmark chaos`: how each is done to a database with two workers, and when it is healed."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tests.chaos.cluster import Target
from tests.support.databases.connection_exhaustion import crowd
from tests.support.databases.network_proxy import Proxy
from tests.support.databases.postgres import PostgresCluster, database_name

DOWN = 2.0
CUTS = 5
HELD = 5.0
SILENT = 10.0
SUPERVISOR = 2.0
KILLS, KILL_EVERY, RESTART_AFTER = 5, 3.0, 0.5
"""Seconds, and how often."""


@dataclass(frozen=True)
class Scene:
    server: PostgresCluster
    url: str
    workers: list[Target]
    proxy: Proxy | None


@dataclass(frozen=True)
class Fault:
    """`strike` returns when it is healed. `part`: of the rate before, what can be there afterwards."""

    title: str
    strike: Callable[[Scene], Awaitable[None]]
    seconds: float
    kills: bool = False
    network: bool = False
    part: float = 1.0


async def _stopped(scene: Scene, mode: Literal["fast", "immediate"]) -> None:
    await asyncio.to_thread(scene.server.stop, mode)
    await asyncio.sleep(DOWN)
    await asyncio.to_thread(scene.server.start)


async def _terminated(scene: Scene) -> None:
    began = time.monotonic()
    for cut in range(CUTS + 1):
        await asyncio.sleep(max(0.0, began + cut - time.monotonic()))
        await asyncio.to_thread(scene.server.terminate_backends, scene.url)


async def _crowded(scene: Scene) -> None:
    await crowd(scene.server.url, database_name(scene.url), HELD)


async def _late(scene: Scene) -> None:
    assert scene.proxy is not None
    scene.proxy.holding = True
    await asyncio.sleep(SILENT)
    scene.proxy.holding = False


async def _half_open(scene: Scene) -> None:
    """Connections that were there, or were begun meanwhile, never come back, and nobody is told."""
    assert scene.proxy is not None
    scene.proxy.stalling = True
    scene.proxy.stall()
    await asyncio.sleep(SILENT)
    scene.proxy.stalling = False


async def _forgotten(scene: Scene) -> None:
    """Healed at once: whoever connects again is served."""
    assert scene.proxy is not None
    scene.proxy.stall()


async def _killed(scene: Scene) -> None:
    await asyncio.to_thread(scene.workers[0].kill)


async def _killed_and_back(scene: Scene) -> None:
    await _killed(scene)
    await asyncio.sleep(SUPERVISOR)
    scene.workers[0].start()


async def _killed_again_and_again(scene: Scene) -> None:
    """In turn, each started again at once."""
    for number in range(KILLS):
        worker = scene.workers[number % len(scene.workers)]
        await asyncio.to_thread(worker.kill)
        await asyncio.sleep(RESTART_AFTER)
        worker.start()
        if number < KILLS - 1:
            await asyncio.sleep(KILL_EVERY - RESTART_AFTER)


FAULTS = {
    "restart": Fault(f"PostgreSQL stopped, started after {DOWN:.0f} s", partial(_stopped, mode="fast"), 5),
    "crash": Fault(f"PostgreSQL crashed, started after {DOWN:.0f} s", partial(_stopped, mode="immediate"), 5),
    "terminated": Fault(f"all backends terminated, each second for {CUTS} s", _terminated, CUTS),
    "crowded": Fault(f"every connection held by another for {HELD:.0f} s", _crowded, HELD),
    "late": Fault(f"network silent for {SILENT:.0f} s, then all arrives", _late, SILENT, network=True),
    "half-open": Fault(f"network silent for {SILENT:.0f} s, connections lost", _half_open, SILENT, network=True),
    "forgotten": Fault("network forgets every connection, new ones work", _forgotten, 0, network=True),
    "killed": Fault("one of two workers killed, to one worker's rate", _killed, 0, kills=True, part=0.5),
    "replaced": Fault(f"one of two killed, back after {SUPERVISOR:.0f} s", _killed_and_back, SUPERVISOR, kills=True),
    "kills": Fault(f"a worker killed every {KILL_EVERY:.0f} s, {KILLS} times", _killed_again_and_again, 13, kills=True),
}
