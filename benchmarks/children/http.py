"""HTTP jobs in a measured process, the bare client, and the server that both talk to.

role     does                                                    says
serve    answers every request with the same small JSON          port
bare     so many requests with aiohttp alone                     took (seconds, and of CPU)
rota     the same as runs of an HTTP job, through a worker       took (from the worker's start to the last end)
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp

from benchmarks.children.protocol import run_with_quick_loop, say, told_to_go
from rota import Order, Rota, RunState
from rota.store import Store, open_database

_BODY = b'{"ok": true, "items": [1, 2, 3]}'
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
_BATCH = 1_000


def run(role: str, parameters: dict[str, Any]) -> None:
    roles: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {"serve": _serve, "bare": _bare, "rota": _rota}
    run_with_quick_loop(roles[role](**parameters))


class _Server(asyncio.Protocol):
    """Enough of HTTP for requests without a body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._unread = b""

    def data_received(self, data: bytes) -> None:
        *asked, self._unread = (self._unread + data).split(b"\r\n\r\n")
        self._transport.write(_ANSWER * len(asked))  # type: ignore[attr-defined]


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
    say(ready=True)
    say(port=server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()


async def _bare(port: int, n: int, concurrency: int) -> None:
    url, left = f"http://127.0.0.1:{port}/", n
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                async with session.get(url) as response:
                    await response.json()

        await told_to_go()
        begins, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(ask() for _ in range(concurrency)))
        say(took=(time.perf_counter() - begins, time.process_time() - used))
        await asyncio.Event().wait()


async def _rota(url: str, port: int, n: int, concurrency: int) -> None:
    store = Store(open_database(url))
    await store.migrate()
    await store.close()
    app = Rota(url, concurrency=concurrency, http_allow="127.0.0.1")
    app.http_job("ping", url=f"http://127.0.0.1:{port}/")
    client = await app.connect()
    for _ in range(0, n, _BATCH):
        await client.enqueue_many([Order("ping", {})] * _BATCH)
    await told_to_go()
    begins, used = time.perf_counter(), time.process_time()
    await app.start()
    while app.meters.total(RunState.SUCCEEDED) < n:  # counted when it is committed
        await asyncio.sleep(0.01)
    say(took=(time.perf_counter() - begins, time.process_time() - used))
    await asyncio.Event().wait()
