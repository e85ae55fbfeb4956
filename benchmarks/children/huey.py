"""huey on SQLite in a measured process, every commit synced to disk."""

import asyncio

from huey import SqliteHuey
from huey.consumer import Consumer

from benchmarks.children.protocol import OnJob


class Peer:
    def __init__(self, url: str) -> None:
        self._huey = SqliteHuey(filename=url.removeprefix("sqlite:///"), fsync=True)
        self._on_job: OnJob = lambda sent: None

        @self._huey.task()
        def noop(sent: int | None = None) -> None:
            self._on_job(sent)

        self._noop = noop

    async def prepare(self) -> None:
        """The tables are made by the first connection."""

    async def open(self, connections: int) -> None:
        """Connections are huey's own affair."""

    async def enqueue_many(self, count: int) -> None:
        for _ in range(count):
            self._noop()

    async def enqueue(self, connection: int, sent: int | None) -> None:
        self._noop(sent)

    async def work(self, on_job: OnJob) -> None:
        self._on_job = on_job
        Consumer(self._huey, workers=1, periodic=False).start()
        await asyncio.Event().wait()
