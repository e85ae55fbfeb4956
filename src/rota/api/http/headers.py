"""Security headers of every response, and the way responses are sent: rota's own server takes them in one piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from starlette.types import Message, Scope, Send

WHOLE = "rota.whole"
"""ASGI extension of servers that accept a whole response at once (`connections.Whole`)."""

Headers = Sequence[tuple[bytes, bytes]]

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
_UNFIT = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_OF_CONNECTIONS = frozenset({b"connection", b"transfer-encoding"})


class Answer:
    """ASGI `send` that adds headers and, where the server supports it, sends head and body in one write."""

    __slots__ = ("_held", "_send", "_whole", "request_id", "status")

    def __init__(self, scope: Scope, send: Send, request_id: str) -> None:
        self._send = send
        self._whole: Callable[[int, bytes, bytes], bool] | None = None
        if "extensions" in scope and scope["method"] != "HEAD":
            self._whole = scope["extensions"].get(WHOLE)
        self._held: Message | None = None
        self.request_id = request_id
        self.status: int | None = None
        """Status code, or None until the response has begun."""

    async def send(self, message: Message) -> None:
        """Send a message; a bounded head is held back until its body is known."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self._whole is not None and _is_bounded(message.get("headers", ())):
                self._held = message  # the next message may complete the response
                return
            message = self._with_headers(message)
        elif self._held is not None:
            start, self._held = self._held, None
            if not message.get("more_body") and self._send_whole(start, message.get("body", b"")):
                return
            await self._send(self._with_headers(start))
        await self._send(message)

    def _send_whole(self, start: Message, body: bytes) -> bool:
        """Send the response in one piece; return False if it is irregular, so that the server's ordinary path reports
        why."""
        headers: Headers = start["headers"]
        head = _lines(headers)
        if not head.count(b"\r") == head.count(b"\n") == len(headers) or _UNFIT.search(head):
            return False
        if (b"content-length", b"%d" % len(body)) not in headers:
            return False
        ours = _OUR_LINES if _OUR_NAMES.isdisjoint([name for name, _ in headers]) else _lines(_missing_headers(headers))
        head = b"%b%bx-request-id: %b\r\n" % (head, ours, self.request_id.encode())
        return self._whole is not None and self._whole(start["status"], head, body)

    def _with_headers(self, message: Message) -> Message:
        headers: Headers = message.get("headers", ())
        message["headers"] = [*headers, *_missing_headers(headers), (b"x-request-id", self.request_id.encode())]
        return message


def _is_bounded(headers: Headers) -> bool:
    """Return whether the response has a known length and no connection headers. The head of a stream must not be held
    back."""
    names = [name for name, _ in headers]
    return b"content-length" in names and _OF_CONNECTIONS.isdisjoint(names)


def _missing_headers(headers: Headers) -> Headers:
    """Return our headers, except those that the route has set itself."""
    names = [name for name, _ in headers]
    return [header for header in _RAW_HEADERS if header[0] not in names]


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


_OUR_NAMES = frozenset(name for name, _ in _RAW_HEADERS)
_OUR_LINES = _lines(_RAW_HEADERS)
