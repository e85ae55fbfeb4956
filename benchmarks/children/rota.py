"""rota in a measured process, on either database."""

import asyncio
from typing import Any

from benchmarks.children.protocol import OnJob
from rota import Rota
from rota.store import Store, open_database

CONCURRENCY = 100  # as many as graphile-worker tuned


class Peer:
    """Each of its connections is an application of its own.

    One application would gather what is enqueued through it at the same moment into one transaction. The peers commit
    every job by itself, so a comparison over eight connections has to do the same.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._on_job: OnJob = lambda sent: None
        self._jobs: list[Any] = []

    async def prepare(self) -> None:
        store = Store(open_database(self._url))
        await store.migrate()
        await store.close()

    async def open(self, connections: int) -> None:
        self._jobs = [self._declare(Rota(self._url)) for _ in range(connections)]
        await asyncio.gather(*(job.app.connect() for job in self._jobs))

    async def enqueue_many(self, count: int) -> None:
        await self._jobs[0].aenqueue_many([{}] * count)

    async def enqueue(self, connection: int, sent: int | None) -> None:
        await self._jobs[connection].aenqueue(sent)

    async def work(self, on_job: OnJob) -> None:
        self._on_job = on_job
        app = Rota(self._url, concurrency=CONCURRENCY)
        self._declare(app)
        await app.start()
        await asyncio.Event().wait()

    def _declare(self, app: Rota) -> Any:
        @app.job(name="noop")
        async def noop(sent: int | None = None) -> None:
            self._on_job(sent)

        return noop
