"""Test lifespans: entered before the first claim, left after the last handler, whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from rota import Conflict, Context, Invalid, Rota, RunState, SyncContext, Unavailable, injected
from rota.engine.engine import Engine
from rota.testing import Harness
from tests.support.wait import PATIENCE, until

PATIENT = timedelta(seconds=PATIENCE)


@dataclass
class Pool:
    name: str = "pool"
    open: bool = True


@dataclass
class Mail:
    sent: int = 0


class PoolOfTests(Pool):
    pass


def engine_of(harness: Harness, *, working: bool = True) -> Engine:
    return Engine(harness.store, harness.app.registry, harness.config, name="real", working=working)


async def test_a_worker_enters_before_it_claims_and_leaves_after_its_last_handler(either: Harness) -> None:
    seen: list[str] = []

    @either.app.lifespan
    async def first(app: Rota) -> AsyncIterator[Pool]:
        assert app is either.app
        seen.append("enter first")
        pool = Pool()
        yield pool
        pool.open = False
        seen.append("leave first")

    @either.app.lifespan
    @asynccontextmanager
    async def second(app: Rota) -> AsyncIterator[Mail]:
        seen.append("enter second")
        yield Mail()
        seen.append("leave second")

    @either.app.job
    async def work(ctx: Context, n: int, pool: Pool = injected, mail: Mail = injected) -> bool:
        mail.sent += n
        seen.append(f"work {mail.sent}")
        await until(lambda: ctx.shutting_down)
        seen.append("worked")
        return pool.open

    run = await either.enqueue(work, n=3)
    engine = engine_of(either)
    await engine.start()
    await until(lambda: "work 3" in seen)
    await engine.stop(PATIENT)
    entered, left = ["enter first", "enter second"], ["leave second", "leave first"]
    assert seen == [*entered, "work 3", "worked", *left]
    assert (await either.run(run)).result is True


async def test_handlers_in_threads_take_the_state_too(either: Harness) -> None:
    @either.app.lifespan
    async def open_pool(app: Rota) -> AsyncIterator[Pool]:
        yield PoolOfTests("from the lifespan")

    @either.app.job
    def by_type(pool: Pool = injected, *, suffix: str = "!") -> str:
        return pool.name + suffix

    @either.app.job
    def by_context(ctx: SyncContext) -> Any:
        return ctx.state.name

    runs = [await either.enqueue(by_type, suffix="?"), await either.enqueue(by_context)]
    await either.drain()
    assert [(await either.run(run)).result for run in runs] == ["from the lifespan?", "from the lifespan"]
    assert by_type(Pool("by hand")) == "by hand!"


async def test_each_drain_is_a_worker_of_its_own(harness: Harness) -> None:
    seen: list[str] = []

    @harness.app.lifespan
    async def noting(app: Rota) -> AsyncIterator[None]:
        seen.append("enter")
        yield
        seen.append("leave")

    @harness.app.job
    def work() -> None:
        seen.append("work")

    for _ in range(2):
        await harness.enqueue(work)
        await harness.drain()
    assert seen == ["enter", "work", "leave"] * 2


async def test_a_server_without_a_worker_enters_nothing(harness: Harness) -> None:
    @harness.app.lifespan
    async def unused(app: Rota) -> AsyncIterator[None]:
        raise AssertionError
        yield  # type: ignore[unreachable]

    engine = engine_of(harness, working=False)
    await engine.start()
    await engine.stop()


async def test_an_error_on_entering_stops_the_worker_and_leaves_what_was_entered(
    either: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    @either.app.lifespan
    async def fine(app: Rota) -> AsyncIterator[None]:
        yield
        seen.append("left")

    @either.app.lifespan
    async def broken(app: Rota) -> AsyncIterator[None]:
        raise ConnectionRefusedError("no cache at 127.0.0.1")
        yield  # type: ignore[unreachable]

    run = await either.enqueue("anything")
    with pytest.raises(Unavailable, match="lifespan broken could not be entered: ConnectionRefusedError: no cache"):
        await engine_of(either).start()
    assert seen == ["left"]
    assert "Traceback" in caplog.text
    assert await either.state(run) is RunState.QUEUED


async def test_an_error_of_ours_keeps_its_class(harness: Harness) -> None:
    @harness.app.lifespan
    async def broken(app: Rota) -> AsyncIterator[None]:
        raise Conflict("another one is running")
        yield  # type: ignore[unreachable]

    with pytest.raises(Conflict, match="another one is running"):
        await engine_of(harness).start()


async def test_an_error_on_leaving_is_logged_and_the_others_are_left(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    @harness.app.lifespan
    async def outer(app: Rota) -> AsyncIterator[None]:
        yield
        seen.append("left")

    @harness.app.lifespan
    async def broken(app: Rota) -> AsyncIterator[None]:
        yield
        raise ValueError("cannot close")

    engine = engine_of(harness)
    await engine.start()
    await engine.stop()
    assert seen == ["left"]
    assert "the lifespan broken could not be left" in caplog.text
    assert "cannot close" in caplog.text


async def test_a_start_that_is_cancelled_leaves_what_was_entered(harness: Harness) -> None:
    seen: list[str] = []

    @harness.app.lifespan
    async def fine(app: Rota) -> AsyncIterator[None]:
        yield
        seen.append("left")

    @harness.app.lifespan
    async def slow(app: Rota) -> AsyncIterator[None]:
        seen.append("waits")
        await asyncio.Event().wait()
        yield

    starting = asyncio.create_task(engine_of(harness).start())
    await until(lambda: seen == ["waits"])
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert seen == ["waits", "left"]


async def test_a_stop_that_is_cut_short_interrupts_a_lifespan_that_hangs(harness: Harness) -> None:
    seen: list[str] = []

    @harness.app.lifespan
    async def outer(app: Rota) -> AsyncIterator[None]:
        try:
            yield
        finally:
            seen.append("left")

    @harness.app.lifespan
    async def hangs(app: Rota) -> AsyncIterator[None]:
        yield
        seen.append("hangs")
        await asyncio.Event().wait()

    engine = engine_of(harness)
    await engine.start()
    stopping = asyncio.create_task(engine.stop())
    await until(lambda: seen == ["hangs"])
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert seen == ["hangs", "left"]
    await engine.stop()


async def test_a_task_group_may_stay_open_for_the_worker_s_life(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """Start and stop come from different tasks, and a group belongs to one. If its task fails, the worker stops."""
    fail = asyncio.Event()

    @harness.app.lifespan
    async def grouped(app: Rota) -> AsyncIterator[None]:
        async def watch() -> None:
            await fail.wait()
            raise OSError("the watcher failed")

        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(watch())
            yield
            watcher.cancel()

    engine = engine_of(harness)
    await asyncio.create_task(engine.start())
    await asyncio.create_task(engine.stop())
    assert not caplog.records

    crashing = engine_of(harness)
    await crashing.start()
    fail.set()
    await asyncio.wait_for(crashing.stop_asked.wait(), PATIENCE)
    await crashing.stop()
    assert "the watcher failed" in caplog.text
    assert "a lifespan ended before its worker" in caplog.text


async def test_a_worker_whose_handlers_ask_in_vain_does_not_start(harness: Harness) -> None:
    @harness.app.job
    def work(pool: Pool = injected) -> None: ...

    with pytest.raises(Invalid, match=r"job 'work': parameter 'pool': no lifespan yields a Pool"):
        await engine_of(harness).start()

    left: list[str] = []
    for name in ("one", "two"):

        @harness.app.lifespan
        async def open_pool(app: Rota, name: str = name) -> AsyncIterator[Pool]:
            yield PoolOfTests(name)
            left.append(name)

    with pytest.raises(Invalid, match="several lifespans yield a Pool"):
        await engine_of(harness).start()
    assert left == ["two", "one"]


async def test_the_exact_class_comes_before_its_subclasses(harness: Harness) -> None:
    @harness.app.lifespan
    async def subclass(app: Rota) -> AsyncIterator[Pool]:
        yield PoolOfTests("subclass")

    @harness.app.lifespan
    async def exact(app: Rota) -> AsyncIterator[Pool]:
        yield Pool("exact")

    @harness.app.job
    def name_of(pool: Pool = injected) -> str:
        return pool.name

    @harness.app.job(max_attempts=1)
    def ambiguous(ctx: SyncContext) -> None:
        ctx.state.name  # noqa: B018

    runs = [await harness.enqueue(name_of), await harness.enqueue(ambiguous)]
    await harness.drain()
    assert (await harness.run(runs[0])).result == "exact"
    assert "several lifespans yield a state" in str((await harness.run(runs[1])).error)


async def test_without_a_lifespan_there_is_no_state(harness: Harness) -> None:
    @harness.app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        ctx.state.name  # noqa: B018

    run = await harness.enqueue(work)
    await harness.drain()
    assert "no lifespan yields a state" in str((await harness.run(run)).error)


async def no_generator(app: Rota) -> None: ...


def no_coroutine(app: Rota) -> Iterator[None]:
    yield


async def no_parameter() -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize("wrong", [no_generator, no_coroutine, no_parameter])
def test_what_is_no_lifespan_is_refused(wrong: Any) -> None:
    with pytest.raises(Invalid, match=f"the lifespan {wrong.__name__} .*async def lifespan"):
        Rota("sqlite:///never-opened.db").lifespan(wrong)
