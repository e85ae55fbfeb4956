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
HOUR = timedelta(hours=1)
AT_ONCE = timedelta(0)
FREQUENT = {"heartbeat": BEAT, "poll": timedelta(milliseconds=50)}
RARE = {"heartbeat": HOUR, "poll": HOUR, "lease": 3 * HOUR}


class Working:
    """Started late, so that tests can declare jobs and enqueue runs first.

    A `deaf` one hears of cancels and lost leases only from what it asks for a handler: it sends the heartbeat of its
    start, and none after it.
    """

    def __init__(
        self,
        harness: Harness,
        *,
        store: Store | None = None,
        queues: list[str] | None = None,
        deaf: bool = False,
        **settings: Any,
    ) -> None:
        self.config = msgspec.structs.replace(harness.config, **{**(RARE if deaf else FREQUENT), **settings})
        self.deaf = deaf
        self.store = store or harness.store
        self.harness = harness
        registry = harness.app.registry
        info = worker_info(registry, self.config, "real", queues)
        self.worker = Worker(self.store, registry, info, self.config, meters=harness.app.meters)
        if deaf:
            self.worker._inbox = "nobody's"

    async def __aenter__(self) -> Self:
        await self.harness.store.save_jobs(self.harness.app.registry.definitions())
        await self.worker.start()
        if self.deaf:  # on a busy machine that heartbeat might come after what it must not hear of
            await until(self.harness.client.workers.list)
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
