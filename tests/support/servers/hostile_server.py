"""A server on loopback that answers as told, also in ways that no server should."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import zlib
from collections.abc import Awaitable, Callable
from typing import Self

MEGABYTE = 1 << 20


class Asked:
    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = first.split(" ", 2)
        self.path = self.target.partition("?")[0]
        self.headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
        }
        self.body = body


Answering = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def whole(status: str, body: bytes = b"", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class HostileServer:
    """`answers` maps a path to bytes, or to a coroutine that writes what it likes; `asked` is what came."""

    def __init__(self, answers: dict[str, bytes | Answering] | None = None) -> None:
        self.answers: dict[str, bytes | Answering] = {
            "/ok": whole("200 OK", b'{"ok": true}', "Content-Type: application/json"),
            "/endless": endless,
            "/huge": huge,
            "/loris": loris,
            "/bomb": bomb,
            **(answers or {}),
        }
        self.asked: list[Asked] = []
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while True:
                    await self._answer(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked = Asked(head[:-4], b"")
        asked.body = await reader.readexactly(int(asked.headers.get("content-length", "0")))
        self.asked.append(asked)
        answer = self.answers.get(asked.path, whole("404 Not Found", b"nothing here"))
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
        else:
            await answer(asked, writer)


async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await writer.drain()


async def huge(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
    while True:
        writer.write(b"x" * 0x10000)
        await writer.drain()


async def loris(_: Asked, writer: asyncio.StreamWriter) -> None:
    """A byte now and then, and never the last one."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


async def bomb(_: Asked, writer: asyncio.StreamWriter) -> None:
    """64 megabytes of zeros, in as many kilobytes."""
    packer = zlib.compressobj(9, wbits=31)
    packed = packer.compress(bytes(64 * MEGABYTE)) + packer.flush()
    writer.write(whole("200 OK", packed, "Content-Encoding: gzip", "Content-Type: text/plain"))
    await writer.drain()


def packed(body: bytes, *headers: str) -> bytes:
    return whole("200 OK", gzip.compress(body), "Content-Encoding: gzip", *headers)
