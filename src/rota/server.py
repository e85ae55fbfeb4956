"""Run one process: the loops, a worker, the API and the dashboard, from start to graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import msgspec
import uvicorn
from starlette.applications import Starlette

from rota import api, ui
from rota.api.http.connections import DeadlineProtocol
from rota.api.http.guard import is_loopback
from rota.app import Rota
from rota.client.client import Client
from rota.config import Config
from rota.core.workers.worker import Queues
from rota.engine.engine import Engine
from rota.errors import BadConfig, Unavailable
from rota.process import tell_manager
from rota.store import dialect_of
from rota.store.databases.statements import SQLITE

T = TypeVar("T")

log = logging.getLogger("rota.server")

# Seconds beyond the grace of handlers. With the default of 20 s all of it fits into the 30 s that Kubernetes gives.
_LAST_WORDS = 4.0  # to report outcomes, if the database answers
_CLOSING = 1.0
_RETRY_START = 0.5
BEYOND_GRACE = _LAST_WORDS + _CLOSING + 0.5


def asgi(app: Rota, *, trusted: bool = False) -> Starlette:
    """Return API and dashboard as an application to mount or serve. It starts no loops and no worker."""
    return api.asgi(app, ui.routes(), ui.missing, trusted=trusted)


async def serve(
    app: Rota,
    *,
    http: bool = True,
    metrics_port: int | None = None,
    working: bool = True,
    name: str | None = None,
    queues: Queues | None = None,
    on_ready: Callable[[str], None] | None = None,
    on_signal: Callable[[float], None] | None = None,
) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. A second signal ends the process at once.

    Without `http`, it also ends when the worker is asked to stop, and a `metrics_port` serves only metrics and probes.

    `on_ready` receives the address, or an empty string if there is none. At the start, PostgreSQL and its migration are
    waited for as long as `start_wait` says. A database that goes away later is waited for without a limit.

    `on_signal` is called in a signal handler with the seconds that the shutdown may take, and must end the process by
    then: handlers that block the loop or refuse to be cancelled can keep `serve`, or the loop, from ending.
    """
    listener = listen(app.config) if http else None
    if not http and metrics_port is not None:
        listener = listen(msgspec.structs.replace(app.config, port=metrics_port))
    with contextlib.ExitStack() as stack:
        if listener:
            stack.callback(listener.close)
        grace = app.config.shutdown_grace.total_seconds()
        signals = stack.enter_context(_signals(lambda: on_signal(grace + BEYOND_GRACE) if on_signal else None))
        try:
            application = (asgi(app) if http else api.probes(app)) if listener else None
            engine = await _unless(signals.stopped, _start(app, name=name, queues=queues, working=working))
            if engine is not None:
                below = app.config.base_path if http else ""
                web = Web(application, listener, below) if application and listener else None
                await _run(web, signals, on_ready, None if http else engine.stop_asked)
                if on_signal and not http and engine.stop_asked.is_set():
                    on_signal(grace + BEYOND_GRACE)
                await _stop(engine, web, grace)
        finally:
            with contextlib.suppress(TimeoutError, Unavailable):
                async with asyncio.timeout(_CLOSING):
                    await app.aclose()
    _log_of(working).info("stopped")
    return 0


def _log_of(working: bool) -> logging.Logger:
    return logging.getLogger("rota.worker" if working else "rota.server")


async def _start(app: Rota, *, name: str | None, queues: Queues | None, working: bool) -> Engine:
    client = await _connect(app)
    engine = Engine(
        client.store, app.registry, app.config, name=name, queues=queues, working=working, meters=app.meters
    )
    await engine.start()
    return engine


async def _connect(app: Rota) -> Client:
    """Connect; wait for a database that is not there yet, or not migrated yet: everything may be starting at once.

    A wrong password or an unknown database fails immediately, because waiting does not mend a typo.
    """
    loop, limit = asyncio.get_running_loop(), app.config.start_wait.total_seconds()
    until, announced = loop.time() + limit, ""
    while True:
        try:
            return await app.connect()
        except Unavailable as error:
            if dialect_of(app.config.database_url) is SQLITE or not error.may_pass or not limit:
                raise
            if loop.time() + _RETRY_START > until:
                # Exit code 69, for which supervisors start a process again; 78 means that only a person can help.
                raise Unavailable(f"{error} (waited {limit:g}s)", hint=error.hint) from error
            if announced != str(error):
                announced = str(error)
                log.warning("waiting up to %gs (start_wait) for the database: %s", limit, error)
        await asyncio.sleep(_RETRY_START)


async def _run(
    web: Web | None, signals: _Signals, on_ready: Callable[[str], None] | None, asked: asyncio.Event | None
) -> None:
    """Wait until a signal arrives, an operator `asked` to stop, or the web server ends (never by itself)."""
    ends: list[asyncio.Task[Any]] = [asyncio.create_task(signals.stopped.wait())]
    if asked:
        ends.append(asyncio.create_task(asked.wait()))
    served = [web.start()] if web else []
    if web:
        await _unless(signals.stopped, web.ready.wait())
    if not signals.stopped.is_set():
        tell_manager("READY=1")
        if on_ready:
            on_ready(web.url if web else "")
    await asyncio.wait([*ends, *served], return_when=asyncio.FIRST_COMPLETED)
    for waiting in ends:
        waiting.cancel()


async def _stop(engine: Engine, web: Web | None, grace: float) -> None:
    tell_manager("STOPPING=1")
    _say_stopping(engine, grace)
    ending: list[Coroutine[Any, Any, None]] = [engine.stop()]
    if web:
        ending.append(web.stop())
    try:
        async with asyncio.timeout(grace + _LAST_WORDS):
            await asyncio.gather(*ending)
    except TimeoutError:
        log.warning("stopped before everything was reported: the reaper of another process will reclaim the rest")


def _say_stopping(engine: Engine, grace: float) -> None:
    count = len(engine.worker.active) if engine.worker else 0
    handlers = "1 handler has" if count == 1 else f"{count} handlers have"
    waiting = f": {handlers} {grace:g}s to finish; a second signal stops at once" if count else ""
    _log_of(engine.worker is not None).info("stopping%s", waiting)


async def _unless(stopped: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of `work`, or None if the event came first."""
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


class _Signals:
    """Handler of SIGTERM and SIGINT."""

    def __init__(self, on_first: Callable[[], None]) -> None:
        self.stopped = asyncio.Event()
        self._on_first = on_first
        self._loop = asyncio.get_running_loop()
        self._seen = False

    def arrived(self, *_: object) -> None:
        """Handle a signal. Not through the event loop: while a handler blocks it, a second signal must still work."""
        if self._seen:
            os._exit(130)
        self._seen = True
        self._on_first()
        self._loop.call_soon_threadsafe(self.stopped.set)


@contextlib.contextmanager
def _signals(on_first: Callable[[], None]) -> Iterator[_Signals]:
    signals = _Signals(on_first)
    before = {number: signal.signal(number, signals.arrived) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Web(uvicorn.Server):
    """uvicorn on a socket of ours; signals are handled by `_Signals`."""

    def __init__(self, application: Starlette, listener: socket.socket, below: str = "") -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=DeadlineProtocol,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                proxy_headers=False,  # api/http/proxies.py decides which proxies are trusted, and for what
                server_header=False,
                timeout_graceful_shutdown=2,
            )
        )
        host, port = listener.getsockname()[:2]
        self.url = (f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}") + below.rstrip("/")
        self.ready = asyncio.Event()
        self._listener = listener
        self._streams = application.state.streams
        self._task: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        self._task = asyncio.create_task(self.serve([self._listener]))
        return self._task

    async def stop(self) -> None:
        self.should_exit = True
        self._streams.over.set()
        if self._task:
            await self._task

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(config: Config) -> socket.socket:
    if not config.auth and not is_loopback(config.host.lower()):
        raise BadConfig(
            f"host {config.host!r} is reachable from other machines, and without auth everybody could do everything",
            hint="set ROTA_AUTH=on and make a token with `rota token create`; or use 127.0.0.1",
        )
    try:
        addresses = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)
        family, *_, address = min(addresses, key=lambda place: place[0] != socket.AF_INET)
        return socket.create_server((str(address[0]), config.port), family=family)
    except OSError as error:
        address_text = f"{config.host}:{config.port}"
        if error.errno == errno.EADDRINUSE:
            hint = "another rota may be running there; --port, ROTA_PORT or --metrics-port name another, 0 any free one"
            raise Unavailable(f"{address_text} is in use already", hint=hint) from None
        raise Unavailable(f"cannot listen on {address_text}: {error.strerror or error}") from None
