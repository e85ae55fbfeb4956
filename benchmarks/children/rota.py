"""rota in a measured process, on either database."""

import asyncio
from typing import Any

from benchmarks.children.protocol import OnJob
from rota import Rota
from rota.client.client import Order
from rota.store import Store, open_database

CONCURRENCY = 100  # as many as graphile-worker tuned
CUSTOMERS = 50
KINDS: dict[str, dict[str, Any]] = {
    "limited": {"limit": {"max": CONCURRENCY}},
    "rated": {"limit": {"max": 100_000, "per": "1s"}},
    "keyed": {"limit": {"max": CONCURRENCY, "by": "customer"}},
    "labelled": {"labels": ["gpu"]},
    "unique": {"unique": True},
}


class Peer:
    """Each of its connections is an application of its own.

    One application would gather what is enqueued through it at the same moment into one transaction. The peers commit
    every job by itself, so a comparison over eight connections has to do the same.
    """

    def __init__(self, url: str, kind: str = "plain") -> None:
        self._url = url
        self._kind = kind
        self._sent = 0
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
        job, first = self._jobs[0], self._sent
        self._sent += count
        numbers = range(first, self._sent)
        match self._kind:
            case "keyed":
                await job.aenqueue_many([{"customer": number % CUSTOMERS} for number in numbers])
            case "unique":
                await job.aenqueue_many([{"customer": number} for number in numbers])
            case "idempotent":
                orders = [Order(job.name, {}, {"idempotency_key": str(number)}) for number in numbers]
                await (await job.app.connect()).enqueue_many(orders)
            case _:
                await job.aenqueue_many([{}] * count)

    async def enqueue(self, connection: int, sent: int | None) -> None:
        await self._jobs[connection].aenqueue(sent)

    async def work(self, on_job: OnJob) -> None:
        self._on_job = on_job
        app = Rota(self._url, concurrency=CONCURRENCY)
        self._declare(app)
        await app.start(labels=["gpu"])
        await asyncio.Event().wait()

    def _declare(self, app: Rota) -> Any:
        @app.job(name=f"noop-{self._kind}", **KINDS.get(self._kind, {}))
        async def noop(sent: int | None = None, customer: int | None = None) -> None:
            self._on_job(sent)

        return noop
