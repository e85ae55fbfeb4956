"""pgqueuer in a measured process."""

import asyncpg
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.core.qm import QueueManager
from pgqueuer.domain.models import Job

from benchmarks.children.protocol import OnJob

BATCH = 500


class Peer:
    def __init__(self, url: str) -> None:
        self._url = url
        self._queries: list[Queries] = []

    async def prepare(self) -> None:
        await (await self._connect()).install()

    async def open(self, connections: int) -> None:
        self._queries = [await self._connect() for _ in range(connections)]

    async def enqueue_many(self, count: int) -> None:
        await self._queries[0].enqueue(["noop"] * count, [None] * count, [0] * count)

    async def enqueue(self, connection: int, sent: int | None) -> None:
        await self._queries[connection].enqueue("noop", None if sent is None else str(sent).encode())

    async def work(self, on_job: OnJob) -> None:
        manager = QueueManager(await self._connect())

        @manager.entrypoint("noop")
        async def noop(job: Job) -> None:
            on_job(int(job.payload) if job.payload else None)

        await manager.run(batch_size=BATCH)

    async def _connect(self) -> Queries:
        return Queries(AsyncpgDriver(await asyncpg.connect(self._url)))
