"""Isolated jobs with a lifespan, which child processes enter; it notes what happens in a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from rota import Rota, SyncContext, injected

app = Rota("sqlite:///never-opened.db")
NOTES = "ROTA_TEST_LIFESPAN_NOTES"


class Connection:
    """Something that works only on the event loop that opened it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.calls = 0

    async def call(self) -> int:
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0)
        self.calls += 1
        return self.calls


def note(text: str) -> None:
    with Path(os.environ[NOTES]).open("a") as file:
        file.write(f"{os.getpid()} {text}\n")


@app.lifespan
async def connected(app: Rota) -> AsyncIterator[Connection]:
    note("enter")
    yield Connection()
    await asyncio.sleep(0)
    note("leave")


@app.job(isolation="process")
async def call(connection: Connection = injected) -> tuple[int, int]:
    return os.getpid(), await connection.call()


@app.job(isolation="process")
def count(ctx: SyncContext) -> tuple[int, int]:
    return os.getpid(), ctx.state.calls
