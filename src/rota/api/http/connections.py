"""Connections: limits on the time and size of incoming requests, and responses written in one piece."""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from rota.api.http.headers import WHOLE

_HEAD_WITHIN = 10.0
# Longer than an operation waits for the body: a refused body is still read, otherwise the caller would see a reset
# connection instead of the response.
_BODY_WITHIN = 60.0
_LARGEST_HEAD = 65_536
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class DeadlineProtocol(HttpToolsProtocol):
    """uvicorn's protocol with deadlines and a limit on headers. Without them, a client that sends a byte a minute keeps
    a connection for days (slowloris), and one header can fill the memory."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: TimerHandle | None = None
        self._until: float | None = None
        self._timer_at = 0.0
        self._in_head = True
        self._head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(_HEAD_WITHIN)

    def connection_lost(self, exc: Exception | None) -> None:
        self._until = None
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > _LARGEST_HEAD and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        self._in_head, self._head = True, 0
        self._wait(_HEAD_WITHIN)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._wait(_BODY_WITHIN)
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:  # a new request, whose task has not started and so sees the extension
            self.scope["extensions"] = {WHOLE: Whole(self.cycle)}  # type: ignore[dict-item]

    def on_message_complete(self) -> None:
        self._in_head, self._head = True, 0
        self._wait(None)
        super().on_message_complete()

    def _wait(self, seconds: float | None) -> None:
        """Set the deadline for the next part of a request; None: nothing is awaited.

        A timer that is already set stays: re-checking it now and then costs less than setting three for each request.
        """
        self._until = None if seconds is None else self.loop.time() + seconds
        if self._until is None or (self._timer is not None and self._timer_at <= self._until):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._until
        self._timer = self.loop.call_at(self._until, self._check)

    def _check(self) -> None:
        """Close the connection if the deadline has passed, otherwise set the timer again."""
        self._timer = None
        if self._until is None or self.transport.is_closing():
            return
        if self._until <= self.loop.time():
            self.transport.close()
        else:
            self._timer_at = self._until
            self._timer = self.loop.call_at(self._until, self._check)


class Whole:
    """Writer of complete responses: same bytes as uvicorn's, but in one write and without checking each header."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def __call__(self, status: int, head: bytes, body: bytes) -> bool:
        """Write the response; `head` has the header lines, including the body's length. Return False, with nothing
        written, if it cannot be written now."""
        cycle = self._cycle
        if cycle.disconnected or cycle.response_started or cycle.flow.write_paused:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        server_headers = b"".join([b"%b: %b\r\n" % header for header in cycle.default_headers])
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        cycle.transport.write(b"".join((STATUS_LINE[status], server_headers, head, end, body)))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True
