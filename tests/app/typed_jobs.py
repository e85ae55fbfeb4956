"""Statements about jobs for the type checker.

An expected error is ignored by its code, and an ignore that nothing needs is an error itself.
"""

from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any, assert_type

from rota import (
    AsyncJob,
    Call,
    Context,
    Enqueue,
    Enqueued,
    Exponential,
    Handle,
    Rota,
    Run,
    RunState,
    chain,
    cron,
    every,
    group,
    injected,
)

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


@app.lifespan
async def opened(app: Rota) -> AsyncIterator[list[str]]:
    yield []


@app.lifespan
@asynccontextmanager
async def decorated(app: Rota) -> AsyncIterator[None]:
    yield


@app.job
async def shared(ctx: Context, url: str, log: list[str] = injected) -> int:
    return len(log)


@app.around
def observed(call: Call) -> Iterator[None]:
    assert_type(call.job, str)
    yield


@app.around_enqueue
async def tagged(enqueue: Enqueue) -> AsyncIterator[None]:
    yield
    assert_type(enqueue.run_id, str | None)


@app.on("run.failed", "schedule.missed", jobs=[crawl, "fetch"], max_attempts=2)
async def paged(event: dict[str, Any]) -> int:
    return len(event)


def hooks(call: Call) -> None:
    assert_type(observed(call), Iterator[None])
    assert_type(paged({}), Coroutine[Any, Any, int])  # type: ignore[unused-coroutine]
    app.on("run.faild")  # type: ignore[arg-type]
    app.on("run.failed", max_attempts="2")  # type: ignore[arg-type]
    app.around(5)  # type: ignore[type-var]
    app.around_enqueue("x")  # type: ignore[type-var]


def names_of_other_libraries() -> None:
    crawl.delay("a")  # type: ignore[attr-defined]
    crawl.enqueue("a").get()  # type: ignore[attr-defined]
    crawl.s("a").delay()  # type: ignore[attr-defined]
    app.middleware(5)  # type: ignore[attr-defined]


def lifespans() -> None:
    assert_type(shared.enqueue("a"), Handle[int])
    manager: AbstractAsyncContextManager[None] = decorated(app)
    assert manager

    def blocking(app: Rota) -> Iterator[None]:
        yield

    app.lifespan(blocking)  # type: ignore[type-var]


def kinds() -> None:
    assert_type(crawl.enqueue("a"), Handle[str])
    assert_type(fetch.enqueue("a"), Handle[bytes])
    assert_type(idle, AsyncJob[[], None])
    assert_type(add(1, 2), int)
    assert_type(add.options(priority=5).enqueue(1, b=2), Handle[int])
    assert_type(fetch.options(priority=5).enqueue("a"), Handle[bytes])
    assert_type(add.enqueue_many([{"a": 1, "b": 2}]), Sequence[Handle[int]])


def handles() -> None:
    handle = add.enqueue(1, 2)
    assert_type(handle.result(timeout="5s"), int)
    assert_type(handle.wait(), Run)
    assert_type(handle.status(), RunState)
    assert_type(fetch.handle(handle.id).result(), bytes)
    enqueued: Enqueued = handle
    numbers: Handle[float] = handle  # a result is only read
    assert enqueued == numbers


async def awaited() -> None:
    assert_type(fetch(None, "a"), Coroutine[Any, Any, bytes])  # type: ignore[unused-coroutine]
    assert_type(await fetch.aenqueue(url="a"), Handle[bytes])
    assert_type(await idle.aenqueue(), Handle[None])
    assert_type(await (await fetch.aenqueue(url="a")), bytes)
    assert_type(await (await add.aenqueue(1, 2)).aresult(timeout="5s"), int)


def refused() -> None:
    crawl.enqueue(url=1)  # type: ignore[arg-type]
    crawl.enqueue()  # type: ignore[call-arg]
    crawl.enqueue("a", ctx=None)  # type: ignore[call-arg]
    crawl.enqueue("a", 1, 2)  # type: ignore[call-arg]
    crawl.enqueue("a", deepth=2)  # type: ignore[call-arg]
    add.enqueue(1, "b")  # type: ignore[arg-type]
    idle.enqueue(1)  # type: ignore[call-arg]
    text: str = add.enqueue(1, 2).result()  # type: ignore[assignment]
    add.enqueue(1, 2).reslt()  # type: ignore[attr-defined]
    assert text
    add.options(priority="high")  # type: ignore[arg-type]
    add.options(prioritty=1)  # type: ignore[call-arg]
    app.job(timeot="1s")  # type: ignore[call-overload]
    app.job(on_lost="fial")  # type: ignore[call-overload]
    app.job(isolation="thred")  # type: ignore[call-overload]
    app.job(retry_on=(int,))  # type: ignore[arg-type]
    app.schedule("news", crawl, every("1h"), overlap="skipp")  # type: ignore[arg-type]
    app.schedule("news", crawl, every("1h"), catch_up="newest")  # type: ignore[arg-type]
    app.schedule("news", crawl, every("1h"), failure="wait")  # type: ignore[arg-type]
    app.schedule("news", crawl, every("1h"), when_full="drop")  # type: ignore[arg-type]
    Exponential(base=10)  # type: ignore[arg-type]


@app.job(schedule=cron("0 7 * * *"), retry_on=(ConnectionError,), no_retry_on=ValueError, on_lost="fail")
def news() -> None:
    """Options that are accepted."""


app.schedule("more news", news, every("1h"), overlap="queue_one", catch_up="latest", failure="skip", when_full="skip")
assert Exponential(base="10s", cap=timedelta(minutes=10)).base == timedelta(seconds=10)


@app.job
def crawled(url: str) -> list[str]:
    return [url]


@app.job
async def counted(ctx: Context, pages: list[str], times: int = 1) -> int:
    return len(pages) * times


@app.job
def summed(counts: list[int]) -> float:
    return sum(counts) / 2


def chains() -> None:
    one = chain(crawled.s("a"), counted.s())
    assert_type(one.enqueue(), Handle[int])
    assert_type(one.enqueue().result(), int)
    many = chain(group(one, chain(crawled.s("b"), counted.s(times=2))), summed.s())
    assert_type(many.enqueue(), Handle[float])
    assert_type(group(crawled.s("a"), crawled.s("b")).enqueue(), list[Handle[list[str]]])
    assert_type(chain(crawled.s("a"), idle.s()).options(priority=3).enqueue(), Handle[None])
    assert_type(chain(crawled.s("a"), counted.s(), add.s(2)).enqueue(), Handle[int])
    chain(crawled.s("a"), summed.s())  # pyright: ignore[reportArgumentType] (mypy does not tell what summed takes)
    chain(crawled.s("a"), counted.s(times="x"))  # type: ignore[call-overload]
    chain(counted.s(), idle.s()).enqueue()  # type: ignore[misc]
    one.options(prioritty=3)  # type: ignore[call-arg]


async def awaited_chains() -> None:
    assert_type(await (await chain(crawled.s("a"), counted.s()).aenqueue()), int)
