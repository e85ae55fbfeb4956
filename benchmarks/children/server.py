"""The server in a measured process, the framework alone beside it, and those who ask them.

role     does                                                           says
bare     Starlette with one route that reads JSON and answers it        port
rota     the API of an application with one job                         port
load     the same request again and again over kept connections         took (seconds), latencies_ms
listen   so many open streams of hints                                  there
bulk     batches enqueued by the client itself, without HTTP            took (seconds)
fill     finished runs, copies of one that is                           done
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import apsw
import asyncpg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks.children.protocol import run_with_quick_loop, say, told_to_go
from benchmarks.peers.rota import an_hour_ago
from rota import Order, Rota
from rota.api.operations.event_stream import Streams
from rota.server import Web, asgi, listen
from rota.store import Store, open_database
from rota.store.databases.sqlite import sqlite

_BITE = 100_000
_ENDED = "state = 'succeeded', attempt = 1, fence = 1, finished_at = run_at"
_AT_ONCE = 4


def run(role: str, parameters: dict[str, Any]) -> None:
    roles: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
        "bare": _bare,
        "rota": _rota,
        "load": _load,
        "listen": _listen,
        "bulk": _bulk,
        "fill": _fill,
    }
    run_with_quick_loop(roles[role](**parameters))


async def _bare() -> None:
    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(await request.json(), 201)

    application = Starlette(routes=[Route("/api/v1/runs", answer, methods=["POST"])])
    application.state.streams = Streams()  # which the server ends when it stops
    await _serve(application, Rota("sqlite:///nothing.db", port=0))


async def _rota(url: str) -> None:
    _wait_for_no_disk()
    app = await _application(url)
    await _serve(asgi(app), app)


def _wait_for_no_disk() -> None:
    """The goals are about requests: as the framework alone, nobody waits for SQLite's disk."""
    sqlite._PRAGMAS = sqlite._PRAGMAS.replace("synchronous = full", "synchronous = normal")


async def _serve(application: Starlette, app: Rota) -> None:
    listener = listen(app.config)
    web = Web(application, listener)
    serving = web.start()
    await web.ready.wait()
    say(ready=True)
    say(port=listener.getsockname()[1])
    await serving


async def _application(url: str) -> Rota:
    store = Store(open_database(url))
    await store.migrate()
    app = Rota(url, port=0)

    @app.job
    def hello(name: str, times: int = 1) -> None: ...

    await store.save_jobs(app.registry.definitions())
    await store.close()
    return app


async def _load(port: int, n: int, concurrency: int, method: str, path: str, body: str = "") -> None:
    """No client's library: it would take more than the server does."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    opened = await asyncio.gather(*[asyncio.open_connection("127.0.0.1", port) for _ in range(concurrency)])
    left, latencies = n, []

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            begins = time.perf_counter()
            writer.write(request)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not answer.startswith((b"http/1.1 200", b"http/1.1 201")):
                raise RuntimeError(answer.decode())
            await reader.readexactly(int(answer.partition(b"content-length: ")[2].partition(b"\r")[0]))
            latencies.append((time.perf_counter() - begins) * 1000)

    await told_to_go()
    begins = time.perf_counter()
    await asyncio.gather(*[ask(*connection) for connection in opened])
    say(took=time.perf_counter() - begins, latencies_ms=sorted(latencies))
    await asyncio.Event().wait()


async def _listen(port: int, clients: int) -> None:
    request = f"GET /api/v1/stream?topics=runs,workers HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()

    async def hear() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in answer:
            raise RuntimeError(answer.decode())
        there.release()
        while await reader.read(65_536):
            pass

    there = asyncio.Semaphore(0)
    await told_to_go()
    hearing = [asyncio.create_task(hear()) for _ in range(clients)]
    for _ in hearing:
        await there.acquire()
    say(there=clients)
    await asyncio.gather(*hearing)


async def _bulk(url: str, n: int, batch: int) -> None:
    """As many callers as there are requests at a time over HTTP."""
    _wait_for_no_disk()
    client = await (await _application(url)).connect()
    left = n

    async def send() -> None:
        nonlocal left
        while left > 0:
            left -= batch
            await client.enqueue_many([Order("hello", {"name": "Ada"}) for _ in range(batch)])

    await told_to_go()
    begins, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*[send() for _ in range(_AT_ONCE)])
    say(took=time.perf_counter() - begins, cpu=time.process_time() - used)
    await asyncio.Event().wait()


async def _fill(url: str, rows: int) -> None:
    """One run is enqueued, and ended by hand; the others are copies of its row with another id."""
    app = await _application(url)
    client = await app.connect()
    run = await client.enqueue(Order("hello", {"name": "Ada"}))
    await app.aclose()
    await told_to_go()
    end = (f"update rota_run set {_ENDED} where state is null", "delete from rota_ready")
    if url.startswith("sqlite"):
        _copied(url, rows, end)
    else:
        await _copied_there(url, run.id, rows, end)
    say(done=True)


async def _copied_there(url: str, id: str, rows: int, end: tuple[str, ...]) -> None:
    connection = await asyncpg.connect(url)
    for statement in end:
        await connection.execute(statement)
    names = [row[0] for row in await connection.fetch(_COLUMNS)]
    others = ", ".join(name for name in names if name != "id")
    for first in range(1, rows, _BITE):
        await connection.execute(
            f"insert into rota_run (id, {others})"
            f" select ('{an_hour_ago()}-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,"
            f" {others} from rota_run, generate_series($2::bigint, $3::bigint) as n where id = $1",
            id, first, min(first + _BITE, rows) - 1,
        )  # fmt: skip
    await connection.execute("vacuum analyze")
    await connection.execute("checkpoint")
    await connection.close()


_COLUMNS = (
    "select column_name from information_schema.columns"
    " where table_name = 'rota_run' and table_schema = current_schema() and is_generated = 'NEVER' order by 1"
)


def _copied(url: str, rows: int, end: tuple[str, ...]) -> None:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    for statement in end:
        connection.execute(statement)
    names = [row[1] for row in connection.execute("pragma table_info(rota_run)")]
    others = ", ".join(name for name in names if name != "id")
    connection.execute(
        f"with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < {rows - 1})"
        f" insert into rota_run (id, {others}) select '{an_hour_ago()}-7000-8000-' || printf('%012x', n), {others}"
        " from numbers, (select * from rota_run limit 1)"
    )
    connection.execute("analyze")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
