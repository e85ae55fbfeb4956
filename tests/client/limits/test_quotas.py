"""Quotas declared in code and changed by people: with enqueue, manual retry, and batches."""

import apsw
import pytest

from rota import Conflict, Fail, Invalid, Rota, RunFilter, RunState
from rota.errors import QuotaExceeded
from rota.testing import adrain


@pytest.fixture
def app(sqlite_url: str) -> Rota:
    return Rota(sqlite_url)


async def test_declared_ones_are_stored_when_an_engine_starts(app: Rota) -> None:
    app.quota("tenant", max_concurrency=5, max_queued=100, rate=(1000, "1h"))
    with pytest.raises(Conflict, match="twice"):
        app.quota("tenant", max_concurrency=1)
    async with app.running() as client:
        (found,) = await client.quotas.list()
        assert (found.kind, found.id, found.owner) == ("tenant", None, "code")
        assert (found.max_concurrency, found.max_queued, found.rate) == (5, 100, "1000/1h")
        await client.quotas.update("tenant", max_concurrency=9, actor="ann")
    async with app.running() as client:
        assert (await client.quotas.get("tenant")).max_concurrency == 9


def test_what_limits_nothing_or_nobody_is_refused(app: Rota) -> None:
    with pytest.raises(Invalid, match="limits nothing"):
        app.quota("tenant")
    with pytest.raises(Invalid, match="without a scope"):
        app.quota("global", max_concurrency=1)


async def test_enqueues_one_by_one_and_many_at_once(app: Rota) -> None:
    @app.job
    async def work(n: int) -> None: ...

    client = await app.connect()
    await client.quotas.update("tenant", "42", max_queued=2)
    mine, other = work.options(scope=("tenant", "42")), work.options(scope=("tenant", "7"))
    await mine.aenqueue(1)
    await mine.aenqueue(2)
    with pytest.raises(QuotaExceeded):
        await mine.aenqueue(3)
    await other.aenqueue(3)
    await adrain(app)
    await mine.aenqueue(4)
    await app.aclose()


async def test_retries_by_hand_and_in_bulk(app: Rota) -> None:
    @app.job(max_attempts=1)
    async def work() -> None:
        raise Fail("no")

    client = await app.connect()
    for _ in range(3):
        await work.options(scope=("tenant", "42")).aenqueue()
    await adrain(app)
    await client.quotas.update("tenant", max_queued=1)
    failed = [run.id for run in await client.list(RunFilter(states=(RunState.FAILED,)))]
    await client.retry(failed[0])
    with pytest.raises(QuotaExceeded):
        await client.retry(failed[1])
    with pytest.raises(QuotaExceeded):
        await client.retry(failed[1], keep_steps=True)
    result = await client.retry_many(RunFilter(states=(RunState.FAILED,)), everything=True)
    assert [(one.code, one.count) for one in result.refused] == [("quota-exceeded", 2)]
    await app.aclose()


async def test_inside_a_transaction_of_ones_own_the_declared_one_holds(app: Rota, sqlite_url: str) -> None:
    work = app.external("work")
    app.quota("tenant", max_concurrency=1, max_queued=0)
    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    connection = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    with connection:
        mine = [work.options(scope=("tenant", "42")).enqueue_in(connection) for _ in range(2)]
        others = work.enqueue_in(connection)
    connection.close()
    await client.store.promote(100)
    claimed = {held.run_id for held in await client.external.claim("somebody", max=9)}
    assert claimed == {mine[0], others}
    await app.aclose()
