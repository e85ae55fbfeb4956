"""Requests of tools to the API: in this process, as a caller of one role, or over HTTP, as the owner of a token."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import unquote, urlencode

import msgspec

from rota.api import asgi
from rota.app import Rota
from rota.core.access.roles import Identity
from rota.errors import RotaError
from rota.remote.transport import Transport


class Reply(msgspec.Struct, frozen=True):
    """Response: its status, what it says, and the headers that matter here."""

    status: int
    content: Any
    etag: str | None = None

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


class Connection(Protocol):
    """Way to the API."""

    async def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; problems are replies, too."""

    async def close(self) -> None:
        """Close the connection."""


class InProcess:
    """The API itself, called as a server calls it. It answers `identity`, whatever `auth` says."""

    def __init__(self, app: Rota, identity: Identity) -> None:
        self._app = app
        self._api = asgi(app, trusted=True, caller=identity)

    async def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request, and return the whole response."""
        content = b"" if body is None else msgspec.json.encode(body)
        given = {"host": "localhost", "content-type": "application/json", "content-length": str(len(content))}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": urlencode(_flat(query), doseq=True).encode(),
            "headers": [(key.lower().encode(), value.encode()) for key, value in {**given, **(headers or {})}.items()],
            "client": ("127.0.0.1", 0),
            "server": ("localhost", 80),
        }
        waiting = [{"type": "http.request", "body": content, "more_body": False}]
        parts: list[bytes] = []
        start: dict[str, Any] = {}

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop()
            await asyncio.Event().wait()  # the caller stays until it has its answer
            raise AssertionError

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        await self._api(scope, receive, send)
        answered = {key.decode().lower(): value.decode() for key, value in start["headers"]}
        return Reply(start["status"], _content(b"".join(parts), answered), answered.get("etag"))

    async def close(self) -> None:
        """Close the database's connections."""
        await self._app.aclose()


class OverHttp:
    """A server. What it refuses is a reply, as it is in this process."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; only what is safe to repeat is repeated."""
        try:
            answer = await self._transport.ask(method, path, _flat(query), body, headers)
        except RotaError as error:
            facts = {"code": error.code, "detail": error.message, "hint": error.hint}
            return Reply(error.status, {key: fact for key, fact in facts.items() if fact is not None})
        return Reply(answer.status, _content(answer.body, answer.headers), answer.headers.get("etag"))

    async def close(self) -> None:
        """Close the connection."""
        await self._transport.close()


def _flat(query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return query parameters as text; a list is a parameter that is given several times."""
    return {key: _text(value) for key, value in (query or {}).items() if value is not None}


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return [_text(item) for item in value] if isinstance(value, list) else str(value)


def _content(body: bytes, headers: Mapping[str, str]) -> Any:
    if not body:
        return None
    if "json" in headers.get("content-type", ""):
        return msgspec.json.decode(body)
    return body.decode(errors="replace")
