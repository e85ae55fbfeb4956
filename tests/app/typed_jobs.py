"""Statements about jobs for the type checker.

An expected error is ignored by its code, and an ignore that nothing needs is an error itself.
"""

from collections.abc import Awaitable, Coroutine
from typing import Any, assert_type

from rota import Context, Enqueued, Job, Rota

app = Rota("sqlite:///never-opened.db")


@app.job
def crawl(ctx: Context, url: str, depth: int = 1) -> str:
    return url * depth


@app.job(max_attempts=5, timeout="10m")
async def fetch(ctx: Context, url: str) -> bytes:
    return url.encode()


@app.job(queue="slow")
def add(a: int, b: int) -> int:
    return a + b


@app.job
async def idle() -> None:
    """Takes nothing."""


def kinds() -> None:
    assert_type(crawl.enqueue("a"), Enqueued)
    assert_type(fetch(None, "a"), Awaitable[bytes])
    assert_type(idle, Job[[], Coroutine[Any, Any, None]])
    assert_type(add(1, 2), int)
    assert_type(add.options(priority=5).enqueue(1, b=2), Enqueued)


async def awaited() -> None:
    assert_type(await fetch.aenqueue(url="a"), Enqueued)
    assert_type(await idle.aenqueue(), Enqueued)


def refused() -> None:
    crawl.enqueue(url=1)  # type: ignore[arg-type]
    crawl.enqueue()  # type: ignore[call-arg]
    crawl.enqueue("a", ctx=None)  # type: ignore[call-arg]
    crawl.enqueue("a", 1, 2)  # type: ignore[call-arg]
    crawl.enqueue("a", deepth=2)  # type: ignore[call-arg]
    add.enqueue(1, "b")  # type: ignore[arg-type]
    idle.enqueue(1)  # type: ignore[call-arg]
    add.options(priority="high")  # type: ignore[arg-type]
    add.options(prioritty=1)  # type: ignore[call-arg]
    app.job(timeot="1s")  # type: ignore[call-overload]
