"""Manual retry: a new run of the same work with the same options, which respects unique keys."""

import asyncio

import pytest

from rota import Conflict, Fail, Invalid, Rota, RunState, Unavailable, every
from rota.core.runs.bulk import Counted
from rota.errors import BadPayload, DuplicateRun, KeyReused
from rota.testing import Harness, adrain


@pytest.fixture
def app(sqlite_url: str) -> Rota:
    return Rota(sqlite_url)


async def test_it_keeps_what_the_first_run_was_given(app: Rota) -> None:
    @app.job
    async def upload(name: str) -> None:
        raise Fail("no")

    first = await upload.options(queue="slow", priority=3, timeout="1m", tags=["a"], max_attempts=2).aenqueue("x")
    client = await app.connect()
    await client.cancel(first.id)
    again = await client.get((await client.retry(first.id)).id)
    old = await client.get(first.id)
    assert (again.retry_of, again.state) == (first.id, RunState.QUEUED)
    assert [again.queue, again.priority, again.tags, again.max_attempts, again.payload] == [
        *(old.queue, old.priority, old.tags, old.max_attempts, old.payload)
    ]
    assert (await client.store.copy_of(again.id)).overrides == (await client.store.copy_of(first.id)).overrides
    await app.aclose()


async def test_within_its_unique_period_it_may_follow_at_once(app: Rota) -> None:
    @app.job
    async def send(to: str) -> None:
        raise Fail("no")

    unique = {"fields": ["to"], "period": "1h", "on_conflict": "reject"}
    first = await send.options(unique=unique).aenqueue(to="ada")
    await adrain(app)
    client = await app.connect()
    with pytest.raises(DuplicateRun):
        await send.options(unique=unique).aenqueue(to="ada")
    again = await client.retry(first.id)
    with pytest.raises(Conflict):  # now that one is the holder, and active
        await client.retry(first.id)
    assert again.created
    await app.aclose()


async def test_a_unique_field_that_no_payload_has_is_refused(app: Rota) -> None:
    async def send(to: str) -> None: ...

    with pytest.raises(Invalid, match="no field 'too'"):
        app.job(unique=["too"])(send)
    job = app.job(send)
    with pytest.raises(Invalid, match="did you mean 'to'"):
        await job.options(unique="too").aenqueue(to="ada")
    await app.aclose()


def test_an_event_loop_that_ends_closes_its_client(app: Rota) -> None:
    @app.job
    async def noop() -> None: ...

    asyncio.run(noop.aenqueue())
    assert not app._clients
    asyncio.run(noop.aenqueue())
    app.close()


async def test_it_does_not_become_unique_if_the_first_run_was_not(app: Rota) -> None:
    @app.job
    async def send(to: str) -> None: ...

    first = await send.options(key="k", unique=False).aenqueue(to="ada")
    client = await app.connect()
    await client.cancel(first.id)
    again = [await client.retry(first.id) for _ in range(2)]
    assert all(run.created for run in again)
    await app.aclose()


async def test_a_start_that_failed_can_be_repeated(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.job
    async def noop() -> None: ...

    client = await app.connect()

    async def away(_definitions: object) -> None:
        raise Unavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(client.store, "save_jobs", away)
        with pytest.raises(Unavailable):
            await app.start()
    await app.start()
    await app.stop()
    await app.aclose()


async def test_it_is_under_the_limit_of_its_schedule() -> None:
    async with Harness() as harness:
        await harness.declare("report")
        await harness.client.schedules.create("s", "report", every("1m"), overlap="allow", max_concurrency=1)
        worker = harness.worker()
        harness.clock.advance("1m")
        await harness.planner.step()
        (first,) = (await worker.claim()).claims
        await worker.fail(first, Fail("no"))
        harness.clock.advance("1m")
        await harness.planner.step()
        running = await harness.worker("second").claim()
        assert len(running.claims) == 1
        again = await harness.client.retry(first)
        assert not (await harness.worker("third").claim()).claims, "one at a time"
        await running.finish()
        assert list((await harness.worker("third").claim()).claims) == [again.id]


async def test_with_another_payload_it_is_checked_and_audited(app: Rota) -> None:
    @app.job
    async def fetch(url: str, token: str, tries: int = 1) -> None:
        raise Fail("no")

    first = await fetch.aenqueue("a", token="hush-hush")
    await adrain(app)
    client = await app.connect()
    for payload, words in (
        ({"url": 7, "token": "…"}, "url"),
        ({"url": "b"}, "token"),
        ({"url": "b", "token": "…", "more": 1}, "more"),
    ):
        with pytest.raises(BadPayload, match=words):
            await client.retry(first.id, payload=payload)
    assert await client.count() == Counted(1, exact=True)
    again = await client.retry(first.id, payload={"url": "b", "token": "…"}, actor="cli:ann", idempotency_key="once")
    assert again.payload == {"url": "b", "token": "hush-hush"}
    same = await client.retry(first.id, payload={"url": "b", "token": "…"}, idempotency_key="once")
    assert (same.id, same.created) == (again.id, False)
    with pytest.raises(KeyReused):
        await client.retry(first.id, payload={"url": "c", "token": "…"}, idempotency_key="once")
    event = next(event for event in await client.events(again.id) if event.details.get("retry_of"))
    assert (event.actor, event.details["edited"]) == ("cli:ann", ["url"])
    with pytest.raises(Invalid, match="cannot be kept"):
        await client.retry(first.id, payload={"url": "b", "token": "x"}, keep_steps=True)
    await app.aclose()


async def test_another_payload_decides_what_is_unique(app: Rota) -> None:
    @app.job(unique=["to"])
    async def send(to: str) -> None:
        raise Fail("no")

    first = await send.aenqueue(to="ada")
    await adrain(app)
    await send.aenqueue(to="bob")
    client = await app.connect()
    with pytest.raises(Conflict):
        await client.retry(first.id, payload={"to": "bob"})
    assert (await client.retry(first.id, payload={"to": "eve"})).payload == {"to": "eve"}
    await app.aclose()
