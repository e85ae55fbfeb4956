"""Small transaction pooler: clients share server connections, which change owner after every transaction."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

Message = tuple[bytes, bytes]

_TERMINATE = b"X"


class Pooler:
    """Like its grown-up sisters, it knows nothing of prepared statements and of LISTEN."""

    def __init__(self, host: str, port: int, startup: bytes) -> None:
        self._host, self._port = host, port
        self._startup = startup
        self._idle: asyncio.LifoQueue[Streams] = asyncio.LifoQueue()
        self._greeting = b""
        self._writers: list[asyncio.StreamWriter] = []
        self._clients: set[asyncio.Task[None]] = set()
        self.handovers = 0

    async def open(self, size: int) -> None:
        for _ in range(size):
            reader, writer = await asyncio.open_connection(self._host, self._port)
            self._writers.append(writer)
            writer.write(self._startup)
            self._greeting = b""
            while not self._greeting.endswith(b"Z\x00\x00\x00\x05I"):
                kind, body = await _message(reader)
                self._greeting += kind + body
            self._idle.put_nowait((reader, writer))

    async def close(self) -> None:
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        client = asyncio.create_task(self._serve(reader, writer))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._greet(reader, writer)
            asked = asyncio.create_task(_message(reader))
            while (await asked)[0] != _TERMINATE:
                asked = await self._transaction(asked, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack("!I", await reader.readexactly(4))
        (code,) = struct.unpack("!I", await reader.readexactly(4))
        if code == 80877103:  # it asks for TLS first
            writer.write(b"N")
            await self._greet(reader, writer)
            return
        await reader.readexactly(size - 8)
        writer.write(self._greeting)

    async def _transaction(
        self, asked: asyncio.Task[Message], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> asyncio.Task[Message]:
        """Relay from a client's message until the server is idle again; return the client's next one, pending."""
        server = await self._idle.get()
        self.handovers += 1
        answer = asyncio.create_task(_relay_until_idle(server[0], writer))
        try:
            while not answer.done():
                if asked.done():
                    server[1].write(b"".join(asked.result()))
                    asked = asyncio.create_task(_message(reader))
                await asyncio.wait([asked, answer], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            asked.cancel()
            answer.cancel()
            raise
        await answer
        self._idle.put_nowait(server)
        return asked


async def _relay_until_idle(server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        kind, body = await _message(server)
        writer.write(kind + body)
        if kind == b"Z" and body.endswith(b"I"):
            return


async def _message(reader: asyncio.StreamReader) -> Message:
    kind = await reader.readexactly(1)
    size = await reader.readexactly(4)
    return kind, size + await reader.readexactly(struct.unpack("!I", size)[0] - 4)


def _startup_message(user: str, database: str) -> bytes:
    body = struct.pack("!I", 196608) + b"".join(part.encode() + b"\0" for part in ("user", user, "database", database))
    return struct.pack("!I", len(body) + 5) + body + b"\0"


@asynccontextmanager
async def pooled(url: str, size: int = 3) -> AsyncIterator[tuple[str, Pooler]]:
    """A URL that leads to the same database through a pooler."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    pooler = Pooler(parts.hostname, parts.port, _startup_message(parts.username or "postgres", parts.path[1:]))
    await pooler.open(size)
    server = await asyncio.start_server(pooler.accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        netloc = f"{parts.username or 'postgres'}@127.0.0.1:{port}"
        yield urlunsplit(parts._replace(netloc=netloc, query="pooler=transaction")), pooler
    finally:
        server.close()
        await pooler.close()
