"""The way out: the HTTP client of one worker, which connects to nothing but addresses that it may."""

from __future__ import annotations

import errno
import importlib.util
import socket
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rota.core.addresses import Network, refusal
from rota.version import __version__

if TYPE_CHECKING:
    import aiohttp

REFUSED = errno.EACCES
_KEPT_OPEN = 15.0


def can_send() -> bool:
    """`aiohttp` is needed for nothing else, and may be missing."""
    return importlib.util.find_spec("aiohttp") is not None


class Outlet:
    """Made when it is first used. `room`: the largest answer that can be kept, in bytes."""

    def __init__(self, allowed: Sequence[Network], room: int) -> None:
        self.room = room
        self._allowed = tuple(allowed)
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._open()
        return self._session

    def _open(self) -> aiohttp.ClientSession:
        """Without what would make one run's request another's business: cookies, proxies of the environment."""
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_OPEN, socket_factory=self._socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
            auto_decompress=False,
            trust_env=False,
            headers={"User-Agent": f"rota/{__version__}", "Accept-Encoding": "gzip, deflate"},
        )

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Asked for each connection, with the very address that it is made to: what a name meant before, or means
        now, does not matter."""
        family, kind, protocol, _, address = info
        if (why := refusal(str(address[0]), self._allowed)) is not None:
            raise OSError(REFUSED, why)
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


outlet: ContextVar[Outlet | None] = ContextVar("rota_outlet", default=None)
"""That of the worker, in the context that all its attempts are begun with."""
