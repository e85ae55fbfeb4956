"""A real worker inside a harness: its loops run and its heartbeats are frequent, while the clock stands still."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

import msgspec

from rota.core.runs.run import Run
from rota.core.states import RunState
from rota.engine.engine import worker_info
from rota.engine.worker.worker import Worker
from rota.store import Store
from rota.testing import Harness
from rota.testing.harness.manual_worker import RunReference
from tests.support.wait import until

BEAT = timedelta(milliseconds=50)
SECOND = timedelta(seconds=1)
AT_ONCE = timedelta(0)


class Working:
    """Started late, so that tests can declare jobs and enqueue runs first."""

    def __init__(
        self, harness: Harness, *, store: Store | None = None, queues: list[str] | None = None, **settings: Any
    ) -> None:
        defaults: dict[str, Any] = {"heartbeat": BEAT, "poll": timedelta(milliseconds=50)}
        self.config = msgspec.structs.replace(harness.config, **{**defaults, **settings})
        self.store = store or harness.store
        self.harness = harness
        registry = harness.app.registry
        info = worker_info(registry, self.config, "real", queues)
        self.worker = Worker(self.store, registry, info, self.config, meters=harness.app.meters)

    async def __aenter__(self) -> Self:
        await self.harness.store.save_jobs(self.harness.app.registry.definitions())
        await self.worker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.worker.stop(AT_ONCE)

    async def stop(self, grace: timedelta | None = None) -> None:
        await self.worker.stop(grace)

    async def has_state(self, run: RunReference, state: RunState) -> Run:
        await until_state(self.harness, run, state)
        return await self.harness.run(run)

    async def idle(self) -> None:
        await until(lambda: not self.worker.held)


async def until_state(harness: Harness, run: RunReference, state: RunState) -> None:
    async def reached() -> bool:
        return await harness.state(run) is state

    await until(reached)
