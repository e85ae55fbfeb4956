"""A bad network between a client and PostgreSQL: silent, cut, slow, without notifications, or losing one answer.

It reads PostgreSQL's protocol just as far as it must: where messages end, which statement is bound, whose commit it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit, urlunsplit

T = TypeVar("T")

_SSL_REQUEST, _CANCEL_REQUEST = 80_877_103, 80_877_102
_READY = b"Z"
_NOTIFICATION = b"A"
_ROUND_TRIPS = (b"Q", b"S", b"H")  # query, sync, flush: what the server answers

Loss = Literal["broken", "silent"]
"""How an answer is lost: the connection breaks instead, or nothing ever comes."""


class Proxy:
    """Runs on a loop in a thread of its own, so that it works while the test blocks. All methods are thread-safe."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._links: set[_Link] = set()
        self._server = self._call(self._listen())
        port = self._server.sockets[0].getsockname()[1]
        self.url = urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}"))
        self.refusing = False
        self.stalling = False
        self.holding = False  # what is said meanwhile arrives afterwards, as over a network that was away for a while
        self.delay = 0.0  # seconds, for each round trip
        self.swallows_notifications = False
        self.lost_answers = 0
        self._to_lose: tuple[bytes, Loss] | None = None

    def stall(self, *, only_listeners: bool = False) -> None:
        """The connections there are become half-open for good: nothing passes, and nobody is told."""
        for link in list(self._links):
            link.stalled = link.stalled or not only_listeners or link.listening

    def lead_to(self, upstream: str) -> None:
        """Lead to another server from now on, as the address of a cluster does after a failover."""
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self.cut()

    def cut(self) -> None:
        """Break every connection."""
        for link in list(self._links):
            self._loop.call_soon_threadsafe(link.close)

    def lose_answer(self, statement: str, loss: Loss) -> None:
        """The next transaction that holds a statement with this text commits, and its client never hears of it."""
        self._to_lose = (statement.encode(), loss)

    def forget_loss(self) -> None:
        """Should no such transaction have come."""
        self._to_lose = None

    def take_loss(self, statement: bytes) -> Loss | None:
        if self._to_lose is None or self._to_lose[0] not in statement:
            return None
        (_, loss), self._to_lose = self._to_lose, None
        return loss

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(self, writer, server_writer)
        link.stalled = self.stalling
        self._links.add(link)
        try:
            with suppress(asyncio.CancelledError):  # by the proxy's own end; the task is done with it
                await _first_of(link.upward(reader), link.downward(server_reader))
        finally:
            self._links.discard(link)
            link.close()

    def close(self) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)


class _Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.stalled = False
        self.listening = False
        self._proxy = proxy
        self._client = client
        self._server = server
        self._statements: dict[bytes, bytes] = {}
        self._in_transaction = False
        self._at_commit: Loss | None = None
        self._losing: Loss | None = None

    async def upward(self, reader: asyncio.StreamReader) -> None:
        """Relay from the client to the server."""
        await self._greet(reader)
        while True:
            kind, body = await _message(reader)
            self._look_at(kind, body)
            if self._proxy.delay and kind in _ROUND_TRIPS:
                await asyncio.sleep(self._proxy.delay)
            await self._pass(self._server, kind + (len(body) + 4).to_bytes(4) + body)

    async def _greet(self, reader: asyncio.StreamReader) -> None:
        """The messages before authentication have no kind; an offer of TLS is declined."""
        while True:
            body = await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
            code = int.from_bytes(body[:4])
            if code == _SSL_REQUEST:
                await self._pass(self._client, b"N")
                continue
            await self._pass(self._server, (len(body) + 4).to_bytes(4) + body)
            if code != _CANCEL_REQUEST:
                return

    def _look_at(self, kind: bytes, body: bytes) -> None:
        if kind == b"P":
            name, text = body.split(b"\0")[:2]
            self._statements[name] = text
        elif kind == b"B":
            self._bound(self._statements.get(body.split(b"\0")[1], b""))
        elif kind == b"Q":
            self._asked(body.lower())

    def _bound(self, statement: bytes) -> None:
        loss = self._proxy.take_loss(statement)
        if self._in_transaction:
            self._at_commit = self._at_commit or loss
        else:
            self._losing = loss

    def _asked(self, text: bytes) -> None:
        self.listening = self.listening or text.startswith(b"listen")
        if text.startswith(b"begin"):
            self._in_transaction = True
        elif text.startswith((b"commit", b"rollback")):
            self._in_transaction = False
            self._losing, self._at_commit = self._at_commit, None

    async def downward(self, reader: asyncio.StreamReader) -> None:
        """Relay from the server to the client."""
        while True:
            kind, body = await _message(reader)
            if self._losing:
                if kind == _READY:
                    self._lose(self._losing)
            elif kind != _NOTIFICATION or not self._proxy.swallows_notifications:
                await self._pass(self._client, kind + (len(body) + 4).to_bytes(4) + body)

    def _lose(self, loss: Loss) -> None:
        """Cut the connection now that the server has done the work, so that its answer is lost."""
        self._losing = None
        self.stalled = True
        self._proxy.lost_answers += 1
        if loss == "broken":
            self.close()

    async def _pass(self, writer: asyncio.StreamWriter, message: bytes) -> None:
        while self._proxy.holding:
            await asyncio.sleep(0.01)
        if not self.stalled:
            writer.write(message)
            await writer.drain()

    def close(self) -> None:
        for writer in (self._client, self._server):
            writer.transport.abort()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind = await reader.readexactly(1)
    return kind, await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)


async def _first_of(*ways: Coroutine[Any, Any, None]) -> None:
    """Run both directions; when one ends, so does the connection."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def proxy_to(upstream: str) -> Iterator[Proxy]:
    proxy = Proxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
