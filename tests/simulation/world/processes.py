"""Processes of a world: engines, which are rota's own from the planner to the worker, and clients."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from rota.client.client import Client
from rota.config import Config
from rota.engine.engine import Engine, Simulated
from rota.engine.worker.heartbeat import Answer, HeartbeatThread
from rota.errors import RotaError
from rota.store import Store
from tests.simulation.application.coordination_jobs import LABELS
from tests.simulation.application.jobs import registry
from tests.simulation.world.gate import Gate, NodeClock
from tests.simulation.world.loop import Node

if TYPE_CHECKING:
    from tests.simulation.world.world import World

CONFIG = Config(
    lease=timedelta(seconds=9),
    heartbeat=timedelta(seconds=3),
    reaper=timedelta(seconds=2),
    poll=timedelta(seconds=2),
    janitor=timedelta(seconds=10),
    deadline=timedelta(seconds=15),
    shutdown_grace=timedelta(seconds=3),
    concurrency=3,
    enable_command=True,
)
_TROUBLE = 1.0


class HeartbeatTask(HeartbeatThread):
    """The same on the process's own loop: a thread would have a time of its own."""

    _task: asyncio.Task[None] | None = None

    def start(self, answer: Answer) -> None:
        self._task = asyncio.get_running_loop().create_task(self.beat(answer))

    async def stop(self) -> None:
        self._stopping = True
        self.renew_now()
        if self._task:
            await asyncio.wait([self._task], timeout=2.0)


class Process(Node):
    """One boot of a named process."""

    def __init__(self, world: World, name: str, boot: int, offset: float = 0.0) -> None:
        super().__init__(name)
        self.world = world
        self.boot = boot
        self.thaws_at = 0.0
        self.stopping = False
        self.random = random.Random(f"{world.script.seed}/{name}/{boot}")
        self.clock = NodeClock(world, offset)
        self._ids = random.Random(f"{world.script.seed}/{name}/{boot}/ids")
        self._last_id = (0, 0)
        self.store = Store(Gate(world, self, self.clock, self.random), self.new_id)
        self.store.planning.writers = 2  # on both databases: they have to go alike

    @property
    def worker_id(self) -> str:
        return f"{self.name}@{self.boot}"

    def new_id(self) -> str:
        """Like a uuid7, but of this process's clock and draws: it grows."""
        millis, noise = self.clock.micros() // 1_000, self._ids.getrandbits(74)
        if millis == self._last_id[0]:
            noise = self._last_id[1] + 1 + noise % 1_000
        self._last_id = (millis, noise)
        number = millis << 80 | 7 << 76 | (noise >> 62) << 64 | 2 << 62 | noise & (1 << 62) - 1
        digits = f"{number:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class EngineProcess(Process):
    engine: Engine | None = None

    async def live(self) -> None:
        """As a server does: try until the database lets it start."""
        while True:
            simulated = Simulated(str(self.boot), HeartbeatTask)
            config = msgspec.structs.replace(CONFIG, worker_labels=LABELS.get(self.name, ""))
            engine = Engine(self.store, registry(), config, name=self.name, simulated=simulated)
            try:
                await engine.start()
            except RotaError:
                with contextlib.suppress(RotaError):
                    await engine.stop(timedelta(0))
                await asyncio.sleep(_TROUBLE)
            else:
                self.engine = engine
                return

    async def stop(self, then: Callable[[], None]) -> None:
        self.stopping = True
        if self.engine:
            await self.engine.stop()
        then()


class ClientProcess(Process):
    def __init__(self, world: World, name: str, boot: int, offset: float = 0.0) -> None:
        super().__init__(world, name, boot, offset)
        self.client = Client(self.store, registry(), CONFIG)
