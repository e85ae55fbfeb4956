"""An HTTP server in a thread, for clients that block or have another event loop."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from rota.app import Rota
from tests.support.wait import PATIENCE


class Site(uvicorn.Server):
    """Server on a free port, without logs; `go_away` simulates an outage."""

    def __init__(self, application: ASGIApp, app: Rota | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                application, lifespan="off", log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=1
            )
        )
        self._listener = socket.create_server(("127.0.0.1", 0))
        # asyncio leaves it to sockets that know their protocol; without it, every answer waits 40 ms for a receipt.
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._app = app
        self._up = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=[self._live()], daemon=True)

    async def _live(self) -> None:
        await self.serve([self._listener])
        if self._app is not None:
            await self._app.aclose()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def begin(self) -> None:
        self._thread.start()
        assert self._up.wait(PATIENCE)

    def go_away(self) -> None:
        self.should_exit = self.force_exit = True
        self._thread.join(20)
        self._listener.close()


@contextlib.contextmanager
def serving(application: ASGIApp, app: Rota | None = None) -> Iterator[Site]:
    """`app`: whose connection of that thread is closed in the end."""
    site = Site(application, app)
    site.begin()
    try:
        yield site
    finally:
        site.go_away()
