"""Plan and run everything that is due in this process, with the real worker but without its loops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from rota.app import Rota
from rota.core.runs.run import Run
from rota.engine.engine import worker_info
from rota.engine.loops.declare import declare_notifications, declare_schedules
from rota.engine.loops.planner import Planner
from rota.engine.observability.log_capture import capture
from rota.engine.worker.lifetime import Lifetime
from rota.store import Store
from rota.testing.harness.faults import MortalWorker

_BATCH = 1_000


async def adrain(app: Rota) -> Sequence[Run]:
    """Run until nothing can be claimed any more; return the runs that ran, as they are now, each once.

    A run that failed and waits for its retry is not due: advance the clock and drain again.
    """
    return await drain_with(app, lambda _worker: None)


async def drain_with(app: Rota, begun: Callable[[MortalWorker], None]) -> Sequence[Run]:
    """Drain like `adrain`. `begun` receives the worker, and may kill it."""
    store = (await app.connect()).store
    await store.save_jobs(app.registry.definitions())
    await declare_schedules(store, app.registry.schedules, app.registry.schedules.providers)
    hooks = [(name, told) for name, told in app.registry.notifications if told.hook]
    if hooks:  # other notifications are not sent by tests
        await declare_notifications(store, hooks)
    ran: dict[str, None] = {}
    planner = Planner(store, app.registry.schedules.providers, app.config.poll)
    async with AsyncExitStack() as exiting:
        lifetime = Lifetime(app.registry)
        states = await lifetime.enter()
        exiting.push_async_callback(lifetime.leave)
        worker = await exiting.enter_async_context(_worker(app, store))
        worker.use(states)
        exiting.push_async_callback(planner.close)
        begun(worker)
        while claimed := await _once(worker, store, planner):
            ran.update(dict.fromkeys(claimed))
    return await store.get_runs(list(ran))


@asynccontextmanager
async def _worker(app: Rota, store: Store) -> AsyncIterator[MortalWorker]:
    in_use = {queue for queue, *_ in await store.queue_counts()}
    queues = sorted({*app.registry.queues(), *in_use})
    worker = MortalWorker(store, app.registry, worker_info(app.registry, app.config, "drain", queues), app.config)
    capture.install()
    try:
        yield worker
    finally:
        await (worker.bury() if worker.dead else worker.stop())
        capture.remove()


async def _once(worker: MortalWorker, store: Store, planner: Planner) -> list[str]:
    """Plan, promote and run once; return the ids claimed. Empty if nothing was left or the worker is dead."""
    if worker.dead:
        return []
    while (await store.signals.look()).signals and (await store.signals.deliver(_BATCH)).signals:
        pass
    while not await planner.step():
        pass
    while (await store.promote(_BATCH)).count:
        pass
    await store.workers.beat(worker.info)  # replicas go only to workers with a recent heartbeat
    while (await store.conducts.step(absent=False)).count:
        pass
    return await worker.drain_once()


def drain(app: Rota) -> Sequence[Run]:
    """Run `adrain` for code without an event loop."""

    async def drained() -> Sequence[Run]:
        try:
            return await adrain(app)
        finally:
            await app.aclose()

    return asyncio.run(drained())
