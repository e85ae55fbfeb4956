"""An installation with activity of every kind, in which every name contains markup somewhere."""

from __future__ import annotations

import logging
from datetime import timedelta

from rota import Context, Fail, every
from rota.core.workers.worker import Pace, WorkerInfo
from tests.browser.conftest import Dashboard

MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
_PACE = Pace(heartbeat=timedelta(minutes=5), poll=timedelta(seconds=1), lease=timedelta(hours=1))
_SHORT = Pace(heartbeat=timedelta(milliseconds=100), poll=timedelta(seconds=1), lease=timedelta(milliseconds=200))


def info(
    name: str, queues: dict[str, int] | None = None, *, boot: str = "5be1c0ffee00", gone: bool = False
) -> WorkerInfo:
    weights = queues or {"default": 1}
    return WorkerInfo(
        id=f"{name}@{boot}",
        name=name,
        host="web.example",
        pid=4711,
        version="1.2.3",
        queues=tuple(weights),
        weights=weights,
        jobs=("hello", "crawl", "index"),
        slots=8,
        pace=_SHORT if gone else _PACE,
        labels=("gpu", "eu"),
        app_version="shop 7",
    )


async def beat(dashboard: Dashboard, name: str, queues: dict[str, int] | None = None, *, gone: bool = False) -> str:
    """A worker that says that it is there, and does nothing. Its id."""
    worker = info(name, queues, gone=gone)
    await dashboard.client.store.workers.beat(worker)
    return worker.id


async def begin(dashboard: Dashboard) -> None:
    """Runs of every kind, a paused queue and job, schedules, workers, and an audit of it all."""
    client = dashboard.client
    _declare(dashboard)
    await client.store.save_jobs(dashboard.app.registry.definitions())
    await dashboard.work()
    for name in ("Ada", MARKUP):
        await dashboard.done("hello", {"tags": [MARKUP], "key": name, "scope": (MARKUP, "1")}, name=name)
    await dashboard.done("index", pages=2)
    for number in range(3):
        await dashboard.done("crawl", url=f"{MARKUP} {number}")
    await dashboard.done("hostile")
    await client.pause_queue(MARKUP, reason=MARKUP, force=True, actor=MARKUP)
    await client.pause_job("refuse", reason=MARKUP, actor=MARKUP)
    await dashboard.enqueue("hello", {"queue": MARKUP}, name=MARKUP)
    await dashboard.enqueue("hello", {"queue": "nobody"})
    await dashboard.enqueue("hello", {"delay": "1h"})
    await dashboard.enqueue("refuse")
    await dashboard.enqueue("endless")
    cancelled = await dashboard.enqueue("hello", {"delay": "1h"})
    await client.cancel(cancelled, reason=MARKUP, actor=MARKUP)
    await client.schedules.create(MARKUP, "hello", every("1h"), description=MARKUP, actor=MARKUP)
    await beat(dashboard, "quiet-1", {"mail": 3, "default": 1})
    await beat(dashboard, MARKUP, {MARKUP: 1}, gone=True)


def _declare(dashboard: Dashboard) -> None:
    @dashboard.app.job(description=MARKUP, tags=[MARKUP], max_attempts=1)
    def hostile(ctx: Context) -> None:
        ctx.log.warning(MARKUP)
        ctx.progress(50, MARKUP)
        logging.getLogger("shop").info(MARKUP)
        raise Fail(MARKUP, code="hostile")
