"""HTTP client of one worker, which connects only to allowed addresses (protection against SSRF)."""

from __future__ import annotations

import errno
import importlib.util
import socket
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import msgspec

from rota.core.jobs.allowed_addresses import Network, refusal
from rota.errors import BadPayload
from rota.values import json
from rota.values.json import Limits
from rota.version import __version__

if TYPE_CHECKING:
    import aiohttp

ADDRESS_REFUSED = "address_refused"
BAD_REQUEST = "bad_request"
CONNECTION_FAILED = "connection_failed"
_REFUSED = errno.EACCES
_KEPT_OPEN = 15.0
_SHOWN_HEADERS = ("Content-Type", "ETag", "Last-Modified", "Location", "Retry-After", "X-Request-Id")
_LONGEST_HEADER = 500
_UNSHOWN = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127], "\N{REPLACEMENT CHARACTER}")


class NotSent(Exception):
    """A request failed. The message names no more of the URL than the host: the rest may be a secret."""

    def __init__(self, why: str, code: str = CONNECTION_FAILED) -> None:
        super().__init__(why)
        self.code = code


class Answer(msgspec.Struct):
    """A response, with as much of its body as may be stored."""

    status: int
    headers: dict[str, str]
    content: bytes
    truncated: bool
    location: str | None
    charset: str | None

    @property
    def text(self) -> str:
        try:
            text = self.content.decode(self.charset or "utf-8", "replace")
        except LookupError:
            text = self.content.decode("utf-8", "replace")
        return text.translate(_UNSHOWN)

    def body(self, limits: Limits) -> Any:
        """Return the body as JSON if the response declares it and it can be stored, else as text."""
        if not self.content:
            return None
        if "json" in self.headers.get("content-type", "") and not self.truncated:
            try:
                return json.decode(self.content, limits)
            except BadPayload:
                pass
        return self.text


def can_send() -> bool:
    """Return whether `aiohttp` is installed; it is an optional dependency."""
    return importlib.util.find_spec("aiohttp") is not None


class HttpClient:
    """Client whose session is created on first use. `room` is the largest response that can be stored, in bytes."""

    def __init__(self, allowed: Sequence[Network], room: int) -> None:
        self.room = room
        self._allowed = tuple(allowed)
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._open()
        return self._session

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, most_read: int
    ) -> Answer:
        """Send one request and return the response, also if it is a redirect.

        Read at most `most_read` bytes of its body.
        """
        import aiohttp

        try:
            response = await self.session.request(method, url, headers=headers, data=body, allow_redirects=False)
            try:
                content, truncated = await _read(response, most_read)
                return _answer(response, content, truncated=truncated)
            finally:
                response.release()
        except ValueError as error:  # an impossible host name, which aiohttp detects late
            reason = "the URL cannot be used" if isinstance(error, aiohttp.InvalidURL) else str(error)
            raise NotSent(reason, BAD_REQUEST) from None
        except (aiohttp.ClientError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno == _REFUSED:
                raise NotSent(_refused(error), ADDRESS_REFUSED) from None
            raise NotSent(str(error) or type(error).__name__) from None

    def _open(self) -> aiohttp.ClientSession:
        """Create a session without state shared between runs: no cookies, no proxies from the environment."""
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
        """Create a socket, or refuse the address.

        Called for each connection with the address actually used, after name resolution: DNS rebinding cannot evade it.
        """
        family, kind, protocol, _, address = info
        if (reason := refusal(str(address[0]), self._allowed)) is not None:
            raise OSError(_REFUSED, reason)
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


worker_client: ContextVar[HttpClient | None] = ContextVar("rota_worker_client", default=None)
"""The worker's client, in the context that all its attempts begin with."""


@asynccontextmanager
async def current_client(allowed: Sequence[Network] = ()) -> AsyncIterator[HttpClient]:
    """Yield the worker's client. Without a worker, yield one that may also connect to the `allowed` networks."""
    client = worker_client.get()
    if client is not None:
        yield client
        return
    own = HttpClient(allowed, Limits().max_bytes)
    try:
        yield own
    finally:
        await own.close()


def _refused(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"address not allowed: {reason} (allow it with ROTA_HTTP_ALLOW)"


async def _read(response: aiohttp.ClientResponse, cap: int) -> tuple[bytes, bool]:
    """Return at most `cap` bytes of the body and whether it was longer. The connection is closed if it was."""
    unpacked = _unpacker(response.headers.get("Content-Encoding", ""))
    content = bytearray()
    while chunk := await response.content.readany():
        content += unpacked(chunk, cap + 1 - len(content))
        if len(content) > cap:
            response.close()
            return bytes(content[:cap]), True
    return bytes(content), False


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    """Return a function that decompresses at most a given number of bytes: protection against decompression bombs."""
    if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        return lambda chunk, most: chunk[:most]
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress


def _answer(response: aiohttp.ClientResponse, content: bytes, *, truncated: bool) -> Answer:
    headers = response.headers
    return Answer(
        response.status,
        {
            name.lower(): headers[name][:_LONGEST_HEADER].translate(_UNSHOWN)
            for name in _SHOWN_HEADERS
            if name in headers
        },
        content,
        truncated,
        headers.get("Location"),
        response.charset,
    )
