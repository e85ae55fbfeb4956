"""Plans and runs everything that is due, in this process, with the real worker but without its loops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rota.app import Rota
from rota.core.model import Run
from rota.engine.capture import capture
from rota.engine.declaring import declare_schedules
from rota.engine.engine import worker_info
from rota.engine.planner import Planner
from rota.engine.worker import Worker
from rota.store import Store

_BATCH = 1_000


async def adrain(app: Rota) -> Sequence[Run]:
    """Until nothing can be claimed any more; returns the runs it ran, as they are now, each once.

    A run that fails and backs off is not due: advance the clock and drain again.
    """
    store = (await app.connect()).store
    await store.save_jobs(app.registry.definitions())
    await declare_schedules(store, app.registry.schedules)
    planner = Planner(store, app.registry.schedules.providers, app.config.poll)
    in_use = {queue for queue, *_ in await store.queue_counts()}
    queues = sorted({*app.registry.queues(), *in_use})
    worker = Worker(store, app.registry, worker_info(app.registry, app.config, "drain", queues), app.config)
    capture.install()
    try:
        return await store.get_runs(await _work_off(worker, store, planner))
    finally:
        await worker.stop()
        capture.remove()


async def _work_off(worker: Worker, store: Store, planner: Planner) -> list[str]:
    ran: dict[str, None] = {}
    while True:
        while (await store.signals.look()).signals and (await store.signals.deliver(_BATCH)).signals:
            pass
        while not await planner.step():
            pass
        while (await store.promote(_BATCH)).count:
            pass
        await store.workers.beat(worker.info)  # a run for all workers is for those that were heard of
        while (await store.conducts.step(absent=False)).count:
            pass
        claimed = await worker.drain_once()
        if not claimed:
            return list(ran)
        ran.update(dict.fromkeys(claimed))


def drain(app: Rota) -> Sequence[Run]:
    """`adrain` for code without an event loop."""

    async def drained() -> Sequence[Run]:
        try:
            return await adrain(app)
        finally:
            await app.aclose()

    return asyncio.run(drained())
