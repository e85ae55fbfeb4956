"""Receivers of notifications on loopback: a web server and a mail server, which may refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


class Hook:
    """Received requests as (headers, body); `statuses` are returned one after the other, then 200."""

    def __init__(self) -> None:
        self.url = ""
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.came.append(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, headers={"location": self.url} if status == 302 else {})


@asynccontextmanager
async def hook() -> AsyncIterator[Hook]:
    made = Hook()
    application = web.Application()
    application.router.add_post("/hook", made.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}/hook"
    try:
        yield made
    finally:
        await runner.cleanup()


class Mailbox:
    """Received mail as (recipients, message); while `refuses`, all mail is refused."""

    def __init__(self) -> None:
        self.url = ""
        self.came: list[tuple[list[str], str]] = []
        self.refuses = False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        recipients: list[str] = []

        def say(line: str) -> None:
            writer.write(f"{line}\r\n".encode())

        say("220 here")
        while line := (await reader.readline()).decode().strip():
            word = line.split(" ")[0].upper()
            if word == "RCPT" and self.refuses:
                say("451 come back later")
            elif word == "DATA":
                say("354 go on")
                text = await reader.readuntil(b"\r\n.\r\n")
                self.came.append((recipients, text.decode()))
                say("250 taken")
            elif word == "QUIT":
                say("221 bye")
                break
            else:
                if word == "RCPT":
                    recipients.append(line.partition(":")[2].strip(" <>"))
                say("250 ok")
        writer.close()


@asynccontextmanager
async def mailbox() -> AsyncIterator[Mailbox]:
    made = Mailbox()
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    made.url = f"smtp://{host}:{port}"
    async with server:
        yield made
