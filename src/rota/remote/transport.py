"""HTTP requests to a server, with a deadline and with retries where they are safe; problems become exceptions."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

import msgspec

from rota.errors import BadConfig, DeadlineExceeded, Invalid, RotaError, Unavailable
from rota.remote.problems import ServerTrouble, error_of, retry_after
from rota.values.durations import Duration, parse_duration
from rota.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

API = "/api/v1"
Query = Mapping[str, Any]
Pause = Callable[[float], Awaitable[object]]

_REPEATS = (0.1, 0.5)
"""Seconds before each retry, unless the server sends `Retry-After`."""
_TRANSIENT = ("unavailable", "deadline")
_KEEP_ALIVE = (
    2.0  # shorter than servers' keep-alive, to avoid the race of sending on a connection they have just closed
)
_LONGEST_SILENCE = 45.0  # servers send a keep-alive every 15 s


class Answer(msgspec.Struct, frozen=True):
    """Response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """Connection to one server. The token is sent in each request's header, and nowhere else."""

    def __init__(self, url: str, token: str | None, timeout: Duration, *, pause: Pause = asyncio.sleep) -> None:
        self.url = checked_url(url)
        self.seconds = parse_duration(timeout).total_seconds()
        if self.seconds <= 0:
            raise Invalid("timeout must be positive")
        self._headers = {"User-Agent": f"rota/{__version__}", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {checked_token(token)}"
        self._pause = pause
        self._session: ClientSession | None = None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ask(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        again: bool = False,
        waits: float = 0.0,
    ) -> Answer:
        """Send a request and return its response. GET and requests with an `Idempotency-Key` are repeated if the server
        is briefly unavailable.

        `again` marks another idempotent request. `waits` is how many seconds the server is asked to wait, on top of the
        timeout.
        """
        safe = again or method == "GET" or "Idempotency-Key" in (headers or {})
        try:
            async with asyncio.timeout(self.seconds + waits) as deadline:
                for pause in (*(_REPEATS if safe else ()), None):
                    try:
                        return await self._once(method, path, query, body, headers)
                    except Unavailable as error:
                        delay = _delay_after(error, pause)
                        now, end = asyncio.get_running_loop().time(), deadline.when()
                        if delay is None or end is None or now + delay >= end:
                            raise
                    await self._pause(delay)
        except TimeoutError:
            raise DeadlineExceeded(f"{method} {path} at {self.url}", self.seconds) from None
        raise AssertionError("the last try has either answered or raised")

    async def _once(
        self, method: str, path: str, query: Query | None, body: object, headers: Mapping[str, str] | None
    ) -> Answer:
        async with self._request(method, path, query, body, headers) as response:
            content = await response.read()
            return Answer(response.status, _lowered(response.headers), content)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
        *,
        accept: str,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the lines of a response as they arrive. It may take any time in total, but not stay silent for long."""
        headers = {"Accept": accept}
        async with self._request(method, path, query, body, headers, silence=_LONGEST_SILENCE) as response:
            yield _lines(response)

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: object,
        headers: Mapping[str, str] | None,
        silence: float | None = None,
    ) -> AsyncIterator[ClientResponse]:
        _require_library()
        import aiohttp

        extra = dict(headers or {})
        if body is not None:
            extra["Content-Type"] = "application/json"
        try:
            async with self._open_session().request(
                method,
                self._address(path, query),
                data=None if body is None else msgspec.json.encode(body),
                headers=extra,
                allow_redirects=False,  # the token must not go to another server
                timeout=aiohttp.ClientTimeout(total=None, sock_read=silence),
            ) as response:
                if not 200 <= response.status < 300:
                    content = await response.read()
                    raise _refused(response.status, content, _lowered(response.headers), self.url)
                yield response
        except aiohttp.ClientSSLError as error:
            hint = "its certificate must be valid for this name; SSL_CERT_FILE adds certificate authorities"
            raise ServerTrouble(f"the certificate of {self.url} is not trusted: {error}", hint=hint) from None
        except (aiohttp.ClientError, aiohttp.ServerTimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ServerTrouble(
                f"{self.url} cannot be reached: {reason}", hint="check that the server is running there"
            ) from None

    def _open_session(self) -> ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=_KEEP_ALIVE),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _address(self, path: str, query: Query | None) -> Any:
        from yarl import URL

        return URL(f"{self.url}{path}{_query_string(query)}", encoded=True)


def _require_library() -> None:
    if importlib.util.find_spec("aiohttp") is None:
        raise BadConfig("connecting to a server needs aiohttp", hint="pip install 'rota[http]'")


def once(key: str | None = None) -> dict[str, str]:
    """Return the header that makes a command safe to repeat: the caller's key, or a new one."""
    return {"Idempotency-Key": key or str(uuid4())}


def path_of(*parts: str) -> str:
    """Return the path of `path_of("runs", id)`; slashes within a part are escaped."""
    return "/".join([API, *(quote(part, safe=":") for part in parts)])


def checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        parts, usable = urlsplit(""), False
    if not usable:
        raise Invalid(
            f"{url.rpartition('@')[2]!r:.200} is not a server's address", hint="for example http://127.0.0.1:7682"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        hint = "for example https://rota.example.com; pass a token separately: ROTA_TOKEN"
        raise Invalid("the address of a server must only have a host and a path", hint=hint)
    return url.rstrip("/")


def checked_token(token: str) -> str:
    """Return the token, or raise `Invalid` without quoting it."""
    text = token.strip()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise Invalid("the token contains invalid characters", hint="it looks like rota_…_…")
    return text


def _refused(status: int, body: bytes, headers: Mapping[str, str], where: str) -> RotaError:
    error = error_of(status, body, headers, where)
    vars(error)["retry_after"] = retry_after(headers)
    return error


def _delay_after(error: Unavailable, pause: float | None) -> float | None:
    """Return how long to rest before the next try; None: do not try again."""
    if pause is None or (not isinstance(error, ServerTrouble) and error.code not in _TRANSIENT):
        return None
    retry_after_seconds: float | None = vars(error).get("retry_after")
    return pause if retry_after_seconds is None else retry_after_seconds


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _query_string(query: Query | None) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        pairs += [(name, _text(item)) for item in values if item is not None]
    return f"?{urlencode(pairs)}" if pairs else ""


def _text(value: object) -> str:
    """Return the value as JSON, without quotes around text."""
    plain = msgspec.to_builtins(value)
    return plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()


async def _lines(response: ClientResponse) -> AsyncIterator[bytes]:
    """Split the response into lines of any length; `readline` would refuse long ones."""
    partial = b""
    async for chunk in response.content.iter_any():
        *whole, partial = (partial + chunk).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r")
