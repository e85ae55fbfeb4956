"""Test middleware around handlers: entered where the handler runs, left however it ends."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from rota import Call, Context, Invalid, Rota, RunState, SyncContext, injected
from rota.testing import Harness, inline
from tests.support.jobs import middleware_jobs


async def test_functions_are_surrounded_in_their_thread(harness: Harness) -> None:
    seen: list[str] = []

    @harness.app.around
    def noting() -> Iterator[None]:
        seen.append(f"enter {threading.current_thread().name}")
        try:
            yield
        finally:
            seen.append("leave")

    @harness.app.job(max_attempts=1)
    def divide(by: int) -> float:
        seen.append(f"call {threading.current_thread().name}")
        return 1 / by

    run = await harness.enqueue("divide", by=0)
    await harness.drain()
    name = seen[1].removeprefix("call ")
    assert seen == [f"enter {name}", f"call {name}", "leave"]
    assert name != threading.current_thread().name
    failed = await harness.run(run)
    assert failed.error is not None
    assert (failed.error.type, "surrounding.py" in (failed.error.traceback or "")) == ("ZeroDivisionError", False)


async def test_coroutines_are_surrounded_by_what_is_asynchronous_only(harness: Harness) -> None:
    seen: list[str] = []

    @harness.app.job
    async def work() -> None:
        seen.append("call")

    @harness.app.around  # after the job: it counts all the same
    async def noting() -> AsyncIterator[None]:
        seen.append("enter")
        yield
        seen.append("leave")

    @harness.app.around
    @contextmanager
    def for_functions() -> Iterator[None]:
        seen.append("wrong")
        yield

    await harness.enqueue("work")
    await harness.drain()
    assert seen == ["enter", "call", "leave"]


async def test_a_class_surrounds_what_it_can(harness: Harness) -> None:
    seen: list[str] = []

    class Session:
        async def __aenter__(self) -> None:
            seen.append("enter")

        async def __aexit__(self, *_: object) -> None:
            seen.append("leave")

    harness.app.around(Session)
    harness.app.job(name="work")(lambda: seen.append("function"))

    @harness.app.job
    async def awork() -> None:
        seen.append("coroutine")

    for job in ("work", "awork"):
        await harness.enqueue(job)
        await harness.drain()
    assert seen == ["function", "enter", "coroutine", "leave"]


async def test_isolated_handlers_are_surrounded_in_their_process() -> None:
    async with Harness(middleware_jobs.app) as harness:
        for job in ("is_inside", "is_inside_too"):
            run = await harness.enqueue(job)
            await harness.drain()
            ended = await harness.run(run)
            assert (job, ended.state, ended.result) == (job, RunState.SUCCEEDED, True)


def test_inline_calls_are_surrounded_and_direct_ones_are_not() -> None:
    app = Rota("sqlite:///never-opened.db")

    @app.job
    def inside() -> bool:
        return middleware_jobs.inside.get()

    app.around(contextmanager(middleware_jobs.surroundings))
    with inline(app) as inlined:
        inside.enqueue()
    assert inlined.runs[0].result is True
    assert inside() is False


async def test_middleware_that_takes_the_call_sees_arguments_results_and_errors(harness: Harness) -> None:
    seen: list[object] = []

    def noted(call: Call) -> Iterator[None]:
        seen.append((call.job, call.run_id, call.attempt, call.max_attempts, call.arguments, call.result))
        try:
            yield
        except ZeroDivisionError as error:
            seen.append((type(error).__name__, call.result))
            raise
        seen.append(call.result)

    @harness.app.around
    async def around_coroutines(call: Call) -> AsyncIterator[None]:
        with contextmanager(noted)(call):
            yield

    harness.app.around(noted)

    @harness.app.lifespan
    async def state(app: Rota) -> AsyncIterator[set[int]]:
        yield {7}

    @harness.app.job(max_attempts=1)
    def divide(ctx: SyncContext, by: int, state: set[int] = injected) -> float:
        return 1 / by

    @harness.app.job(max_attempts=1)
    async def adivide(by: int, ctx: Context, state: set[int] = injected) -> float:
        return 1 / by

    for job in ("divide", "adivide"):
        run = await harness.enqueue(job, by=2)
        await harness.drain()
        assert (await harness.run(run)).result == 0.5
        assert seen == [(job, run.id, 1, 1, {"by": 2}, None), 0.5]
        seen.clear()
        run = await harness.enqueue(job, by=0)
        await harness.drain()
        assert await harness.state(run) is RunState.FAILED
        assert seen == [(job, run.id, 1, 1, {"by": 0}, None), ("ZeroDivisionError", None)]
        seen.clear()


async def test_isolated_handlers_have_their_call() -> None:
    async with Harness(middleware_jobs.app) as harness:
        run = await harness.enqueue("called_as")
        await harness.drain()
        assert (await harness.run(run)).result == ["called_as", run.id]


async def test_middleware_cannot_change_the_arguments(harness: Harness) -> None:
    @harness.app.around
    def meddling(call: Call) -> Iterator[None]:
        call.arguments = {"by": 0}
        yield

    @harness.app.job
    def divide(by: int) -> float:
        return 1 / by

    run = await harness.enqueue(divide, by=2)
    await harness.drain()
    assert (await harness.run(run)).result == 0.5


def test_middleware_that_takes_more_than_the_call_is_refused() -> None:
    def greedy(call: Call, session: object) -> Iterator[None]:
        yield

    with pytest.raises(Invalid, match="the middleware greedy takes call, session"):
        Rota("sqlite:///never-opened.db").around(greedy)
