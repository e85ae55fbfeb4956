"""Jobs to look at: quick, slow, failing, in steps, with secrets."""

from __future__ import annotations

import asyncio
import contextlib

from rota import Context, Fail, Rota
from tests.support.wait import forever, until


class NoSuchPage(Exception):
    pass


def declare(app: Rota) -> None:
    @app.job(description="Says hello")
    def hello(name: str = "world", times: int = 1) -> str:
        return f"hello, {name}" * times

    @app.job(max_attempts=1)
    def crawl(url: str, token: str = "") -> None:
        raise NoSuchPage(f"no page at {url}")

    @app.job(max_attempts=1)
    def refuse() -> None:
        raise Fail("never", code="never")

    _long(app)


async def _some_calls(app: Rota) -> None:
    """Take as long as a few calls of the database, so that the page sees how it goes on."""
    client = await app.connect()
    for _ in range(20):
        await client.time()


def _long(app: Rota) -> None:
    @app.job(steps=["fetch", "count", "publish"])
    async def index(ctx: Context, pages: int = 3) -> dict[str, int]:
        async def fetch() -> int:
            for number in range(pages):
                await ctx.progress(number * 100 / pages, f"page {number}", step="fetch")
                ctx.log.info("page %d is here", number)
                await _some_calls(app)
            return pages

        async def count() -> int:
            return 12345678901234567890

        found = await ctx.step("fetch", fetch)
        words = await ctx.step("count", count)
        await ctx.step("publish", count)
        return {"pages": found, "words": words}

    @app.job
    async def endless(ctx: Context) -> None:
        await until(ctx.checkpoint)

    @app.job(cancel_grace="20s")
    async def stubborn() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await forever()
        await forever()
