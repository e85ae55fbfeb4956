"""Test `ctx.transaction()`: a handler's rows and the end of its run are committed together, or neither is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rota import Context, LeaseLost, Order, Outcome, Rota, RunState, SyncContext
from rota.core.progress.notes import Notes
from rota.engine.worker.heartbeat import Heartbeat
from rota.errors import Invalid
from rota.store import Store, open_database
from rota.store.databases.database import Row, Tx
from rota.testing import Harness, adrain
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import SECOND, Working
from tests.support.wait import until

Start = Callable[..., Awaitable[Working]]


@pytest.fixture
async def books(either: Harness) -> Harness:
    await either.store.database.transact(lambda tx: tx.script("create table account (name text, cents integer)"))
    return either


async def accounts(harness: Harness) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return [tuple(row) for row in await tx.fetch_sql("select name, cents from account order by name")]

    return await harness.store.database.read(body)


async def test_rows_and_the_end_of_the_run_are_committed_together(books: Harness) -> None:
    async def pay(ctx: Context) -> str:
        async with ctx.transaction() as tx:
            await tx.execute("insert into account values ('ada', 5)")
            assert await tx.execute("select cents from account") == [(5,)]
            tx.finish({"paid": 5})
        return "not heard any more"

    books.app.job(pay)
    run = await books.enqueue("pay")
    await books.drain()
    paid = await books.run(run)
    assert (paid.state, paid.result) == (RunState.SUCCEEDED, {"paid": 5})
    assert await accounts(books) == [("ada", 5)]
    assert [attempt.outcome for attempt in await books.attempts(run)] == [Outcome.SUCCEEDED]


async def test_plain_functions_have_it_too(books: Harness) -> None:
    def pay(ctx: SyncContext) -> None:
        with ctx.transaction() as tx:
            tx.execute("insert into account values ('ada', 5)")
            assert tx.execute("select count(*) from account") == [(1,)]
            tx.finish("paid")

    books.app.job(pay)
    run = await books.enqueue("pay")
    await books.drain()
    assert (await books.run(run)).result == "paid"
    assert await accounts(books) == [("ada", 5)]


async def test_an_exception_rolls_it_back(books: Harness) -> None:
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute("insert into account values ('ada', 5)")
            tx.finish()
            raise RuntimeError("no money")

    def plainly(ctx: SyncContext) -> None:
        with ctx.transaction() as tx:
            tx.execute("insert into account values ('bob', 5)")
            raise RuntimeError("no money")

    books.app.job(max_attempts=1)(pay)
    books.app.job(max_attempts=1)(plainly)
    runs = [await books.enqueue("pay"), await books.enqueue("plainly")]
    await books.drain()
    assert [await books.state(run) for run in runs] == [RunState.FAILED, RunState.FAILED]
    assert await accounts(books) == []


async def test_without_finish_the_run_goes_on(books: Harness) -> None:
    async def pay(ctx: Context) -> str:
        async with ctx.transaction() as tx:
            await tx.execute("insert into account values ('ada', 5)")
        async with ctx.transaction() as tx:
            await tx.execute("update account set cents = 6")
        return "later"

    books.app.job(pay)
    run = await books.enqueue("pay")
    await books.drain()
    assert (await books.run(run)).result == "later"
    assert await accounts(books) == [("ada", 6)]


@pytest.mark.parametrize("finishing", [True, False])
async def test_with_a_stale_fence_neither_is_committed(books: Harness, working: Start, finishing: bool) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()
    errors: list[type[BaseException]] = []

    async def pay(ctx: Context) -> None:
        reached.set()
        await go_on.wait()
        try:
            async with ctx.transaction() as tx:
                await tx.execute("insert into account values ('ada', 5)")
                if finishing:
                    tx.finish()
        except BaseException as error:
            errors.append(type(error))
            raise

    books.app.job(pay)
    run = await books.enqueue("pay")
    worker = await working(books, deaf=True)
    await until(reached.is_set)
    await books.client.pause_queue("default")
    books.clock.advance(worker.config.lease + SECOND)
    await books.reaper.step()
    go_on.set()
    await until(lambda: bool(errors))
    await worker.stop()
    assert errors == [LeaseLost]
    assert await accounts(books) == []
    assert await books.state(run) is RunState.QUEUED


async def test_a_failure_after_the_end_changes_nothing(books: Harness) -> None:
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            tx.finish(1)
        raise RuntimeError("too late")

    books.app.job(pay)
    run = await books.enqueue("pay")
    await books.drain()
    assert (await books.run(run)).result == 1


async def test_what_was_said_before_is_kept(books: Harness) -> None:
    async def pay(ctx: Context) -> None:
        await ctx.step("count", asyncio.sleep, 0, 3)
        ctx.progress(80, "paying")
        async with ctx.transaction() as tx:
            with pytest.raises(Invalid, match="inside a transaction"):
                await ctx.step("more", asyncio.sleep, 0)
            with pytest.raises(Invalid, match="the result cannot be stored"):
                tx.finish(object())
            with pytest.raises(Invalid, match="when its block is left"):
                await tx.execute(" Commit")
            tx.finish()
            with pytest.raises(Invalid, match="already"):
                tx.finish()

    books.app.job(pay)
    run = await books.enqueue("pay")
    await books.drain()
    paid = await books.run(run)
    assert paid.state is RunState.SUCCEEDED
    assert paid.progress
    assert paid.progress.summary == "paying"


async def test_what_is_said_inside_the_block_is_kept(books: Harness, working: Start) -> None:
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            ctx.log.info("inside")
            ctx.progress(90, "paying")
            ctx.count("coins", 5)
            tx.finish()

    books.app.job(pay)
    run = await books.enqueue("pay")
    worker = await working(books)
    await worker.has_state(run, RunState.SUCCEEDED)
    await worker.idle()
    assert [line.text for line in await books.client.logs(run.id)] == ["inside"]
    said = (await books.run(run)).progress
    assert said
    assert said.summary == "paying"
    assert [attempt.counters for attempt in await books.attempts(run)] == [{"coins": 5}]


async def test_after_the_end_the_handler_may_go_on(books: Harness, working: Start) -> None:
    ended, go_on = asyncio.Event(), asyncio.Event()
    interrupted: list[bool] = []

    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            tx.finish("paid")
        ctx.log.info("tidying up")
        ended.set()
        try:
            await go_on.wait()
        finally:
            interrupted.append(not go_on.is_set())

    books.app.job(pay)
    run = await books.enqueue("pay")
    worker = await working(books, deaf=True)
    await until(ended.is_set)
    await worker.worker._note_buffer.flush()
    beat = await Heartbeat(books.store, worker.worker.info, worker.worker.held, books.lease).step()
    assert beat.extended.lost == {run.id}
    worker.worker.on_heartbeat(beat)
    await asyncio.sleep(0)
    go_on.set()
    await worker.idle()
    assert interrupted == [False]
    assert worker.worker._note_buffer.refused == 0
    assert (await books.run(run)).result == "paid"
    assert await books.client.logs(run.id) == []


async def test_errors_of_the_database_are_its_own(books: Harness) -> None:
    async def pay(ctx: Context) -> str:
        try:
            async with ctx.transaction() as tx:
                await tx.execute("insert into nowhere values (1)")
        except Exception as error:
            return type(error).__module__.partition(".")[0]
        return ""

    books.app.job(pay)
    run = await books.enqueue("pay")
    await books.drain()
    assert (await books.run(run)).result in ("apsw", "asyncpg")


async def test_many_at_once(books: Harness) -> None:
    async def pay(ctx: Context, name: str) -> None:
        async with ctx.transaction() as tx:
            await tx.execute(f"insert into account values ('{name}', 1)")
            tx.finish()

    books.app.job(pay)
    runs = [await books.enqueue("pay", name=f"n{number:02}") for number in range(30)]
    await books.drain()
    assert {await books.state(run) for run in runs} == {RunState.SUCCEEDED}
    assert len(await accounts(books)) == 30


async def test_from_a_process_of_its_own(database_url: str) -> None:
    """Under the real clock, which is the only one that a process can share."""
    store = Store(open_database(database_url))
    await store.migrate()
    await store.database.transact(lambda tx: tx.script("create table account (name text, cents integer)"))
    app = Rota(database_url)
    for handler in (isolated_jobs.pay, isolated_jobs.pay_plainly):
        app.job(isolation="process")(handler)
    client = await app.connect()
    runs = [await client.enqueue(Order(name, {})) for name in ("pay", "pay_plainly")]
    await adrain(app)
    assert [(await client.get(run.id)).result for run in runs] == ["paid", "paid plainly"]
    for run in runs:
        said = (await client.get(run.id)).progress
        assert said
        assert said.summary == "paying"
        assert [line.text for line in await client.logs(run.id)] == ["inside"]
    rows = await store.database.read(lambda tx: tx.fetch_sql("select name from account order by name"))
    assert [row[0] for row in rows] == ["ada", "bob"]
    await app.aclose()
    await store.close()


async def test_what_was_on_its_way_when_the_run_ended_is_there(
    books: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite it would have to wait for the transaction, and after that the lease is gone."""
    on_its_way, ended = asyncio.Event(), asyncio.Event()
    write = books.store.notes.write

    async def late(notes: Notes) -> set[tuple[str, int]]:
        on_its_way.set()
        await ended.wait()
        return await write(notes)

    monkeypatch.setattr(books.store.notes, "write", late)

    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            ctx.progress(50, "paying")
            ctx.log.info("paid")
            await on_its_way.wait()
            tx.finish()

    books.app.job(pay)
    run = await books.enqueue("pay")
    worker = await working(books)
    paid = await worker.has_state(run, RunState.SUCCEEDED)
    ended.set()
    await worker.idle()
    assert paid.progress is not None
    assert paid.progress.summary == "paying"
    assert [line.text for line in await books.client.logs(run.id)] == ["paid"]
