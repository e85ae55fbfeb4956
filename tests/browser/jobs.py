"""Jobs to look at: quick, slow, failing, in steps, with secrets."""

from __future__ import annotations

import asyncio
import contextlib

from rota import Context, Fail, Rota


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


def _long(app: Rota) -> None:
    @app.job(steps=["fetch", "count", "publish"])
    async def index(ctx: Context, pages: int = 3) -> dict[str, int]:
        async def fetch() -> int:
            for number in range(pages):
                await ctx.progress(number * 100 / pages, f"page {number}", step="fetch")
                ctx.log.info("page %d is here", number)
                await asyncio.sleep(0.02)
            return pages

        async def count() -> int:
            return 12345678901234567890

        found = await ctx.step("fetch", fetch)
        words = await ctx.step("count", count)
        await ctx.step("publish", count)
        return {"pages": found, "words": words}

    @app.job
    async def endless(ctx: Context) -> None:
        while True:
            ctx.checkpoint()
            await asyncio.sleep(0.05)

    @app.job(cancel_grace="20s")
    async def stubborn() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(5)
