"""Test lifespans in inline mode: entered once at the first call, left when the block ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from rota import Context, Rota, SyncContext, Unavailable, injected
from rota.engine.handlers.current_run import current_run
from rota.testing import inline


class Connection:
    """Something that works only on the event loop that opened it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.calls = 0

    async def call(self) -> int:
        assert asyncio.get_running_loop() is self.loop
        self.calls += 1
        return self.calls


app = Rota("sqlite:///never-opened.db")
seen: list[str] = []


@app.lifespan
async def connected(app: Rota) -> AsyncIterator[Connection]:
    seen.append("enter")
    yield Connection()
    seen.append("leave")


@app.job
async def call(ctx: Context, connection: Connection = injected) -> int:
    claim = current_run.get()
    assert claim is not None
    assert claim.run_id == ctx.run_id
    return await connection.call()


@app.job
def count(ctx: SyncContext) -> int:
    calls: int = ctx.state.calls
    return calls


@app.job
async def twice(connection: Connection = injected) -> int:
    await call.aenqueue()
    return await connection.call()


@pytest.fixture(autouse=True)
def fresh() -> None:
    seen.clear()


def test_functions_and_coroutines_share_the_state() -> None:
    with inline(app) as inlined:
        assert seen == []
        for job in (call, count, twice):
            job.enqueue()
    assert [(run.job, run.result, run.error) for run in inlined.runs] == [
        ("call", 1, None),
        ("count", 1, None),
        ("twice", 3, None),
        ("call", 2, None),
    ]
    assert seen == ["enter", "leave"]


async def test_the_same_in_async_code() -> None:
    with inline(app) as inlined:
        for job in (call, count, twice):
            await job.aenqueue()
    assert [(run.job, run.result) for run in inlined.runs] == [("call", 1), ("count", 1), ("twice", 3), ("call", 2)]
    assert seen == ["enter", "leave"]


def test_a_lifespan_is_entered_for_its_effects_alone() -> None:
    app = Rota("sqlite:///never-opened.db")
    is_open: list[bool] = []

    @app.lifespan
    async def opened(app: Rota) -> AsyncIterator[None]:
        is_open.append(True)
        yield
        await look.aenqueue()  # inline, too: there is no database
        is_open.clear()

    @app.job
    def look() -> bool:
        return bool(is_open)

    with inline(app) as inlined:
        look.enqueue()
    assert ([run.result for run in inlined.runs], is_open) == ([True, True], [])


def test_a_lifespan_that_cannot_be_entered_fails_the_enqueue() -> None:
    app = Rota("sqlite:///never-opened.db")

    @app.lifespan
    async def broken(app: Rota) -> AsyncIterator[None]:
        raise OSError("no cache")
        yield  # type: ignore[unreachable]

    @app.job
    def work() -> None: ...

    with inline(app), pytest.raises(Unavailable, match="the lifespan broken could not be entered: OSError: no cache"):
        work.enqueue()
