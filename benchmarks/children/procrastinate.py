"""procrastinate in a measured process."""

import procrastinate

from benchmarks.children.protocol import OnJob

CONCURRENCY = 20  # more is slower: every job is fetched and finished by statements of its own


class Peer:
    def __init__(self, url: str) -> None:
        self._connector = procrastinate.PsycopgConnector(conninfo=url, min_size=8, max_size=CONCURRENCY)
        self._app = procrastinate.App(connector=self._connector)
        self._on_job: OnJob = lambda sent: None

        @self._app.task(name="noop")
        async def noop(sent: int | None = None) -> None:
            self._on_job(sent)

        self._noop = noop

    async def prepare(self) -> None:
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()

    async def open(self, connections: int) -> None:
        await self._app.open_async()

    async def enqueue_many(self, count: int) -> None:
        await self._noop.batch_defer_async(*[{}] * count)

    async def enqueue(self, connection: int, sent: int | None) -> None:
        await self._noop.defer_async(**({} if sent is None else {"sent": sent}))

    async def work(self, on_job: OnJob) -> None:
        self._on_job = on_job
        async with self._app.open_async():
            await self._app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)
