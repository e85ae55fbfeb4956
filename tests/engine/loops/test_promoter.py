"""Test the promoter: runs become claimable on time, by its own timer or by a hint."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from rota import Rota, RunState
from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.engine.loop import Loop
from rota.engine.loops.promoter import Promoter
from rota.store import Store, open_database
from rota.testing import Harness
from tests.support.runs.runs import claim_limited, finish_all, make
from tests.support.wait import PATIENCE, until

POLL = timedelta(seconds=1)
NEVER = timedelta(hours=1)


async def test_a_delayed_run_is_promoted_when_due_and_not_before(either: Harness) -> None:
    run = await either.enqueue("job", {"delay": "10m"})
    either.clock.advance("9m")
    await either.promoter.step()
    assert await either.state(run) is RunState.SCHEDULED
    either.clock.advance("1m")
    await either.promoter.step()
    assert await either.state(run) is RunState.QUEUED


async def test_a_run_at_an_instant_is_promoted_at_it(either: Harness) -> None:
    at = either.clock.now() + timedelta(days=400)
    run = await either.enqueue("job", {"run_at": at})
    assert (await either.run(run)).run_at == at
    either.clock.advance("400d")
    await either.promoter.step()
    assert await either.state(run) is RunState.QUEUED


async def test_an_instant_in_the_past_is_due_at_once(either: Harness) -> None:
    run = await either.enqueue("job", {"run_at": either.clock.now() - timedelta(days=1)})
    assert await either.state(run) is RunState.QUEUED


async def test_it_rests_until_the_next_run_is_due_but_not_longer_than_it_polls(harness: Harness) -> None:
    promoter = Promoter(harness.store, POLL)
    assert await promoter.step() == POLL
    await harness.enqueue("job", {"delay": "300ms"})
    assert await promoter.step() == timedelta(milliseconds=300)
    await harness.enqueue("job", {"delay": "100ms"})
    assert await promoter.step() == timedelta(milliseconds=100)
    harness.clock.advance("100ms")
    assert await promoter.step() == timedelta(milliseconds=200)
    harness.clock.advance("200ms")
    assert await promoter.step() == POLL


async def test_a_hint_wakes_it_for_a_run_due_sooner_than_it_looks(database_url: str) -> None:
    app = Rota(database_url)
    migrating = Store(open_database(database_url))
    await migrating.migrate()
    await migrating.close()

    @app.job
    async def soon() -> None: ...

    client = await app.connect()
    loop = Loop("promoter", Promoter(client.store, NEVER))
    unlisten = client.store.listen(loop.wake)
    loop.start()
    await asyncio.sleep(0)
    run = await soon.options(delay="50ms").aenqueue()

    async def queued() -> bool:
        return (await client.get(run.id)).state is RunState.QUEUED

    await until(queued)
    unlisten()
    await loop.stop()
    await app.aclose()


async def test_a_worker_starts_a_delayed_run_on_time_without_polling(sqlite_url: str) -> None:
    app = Rota(sqlite_url, poll="1h")
    started: asyncio.Queue[Any] = asyncio.Queue()

    @app.job
    async def soon() -> None:
        started.put_nowait(await (await app.connect()).time())

    async with app.running() as client:
        run = await soon.options(delay="60ms").aenqueue()
        async with asyncio.timeout(PATIENCE):
            at = await started.get()
        assert at >= (await client.get(run.id)).run_at
        await client.wait(run.id, f"{PATIENCE:g}s")


async def test_it_rests_until_a_rate_opens_and_tells(harness: Harness) -> None:
    told: list[bool] = []
    promoter = Promoter(harness.store, POLL, opened=lambda: told.append(True))
    limited = JobDefinition(name="job", limits=(Limit(max=1, per=timedelta(milliseconds=300)),))
    await harness.store.enqueue([make(limited) for _ in range(2)])
    await finish_all(harness.store, await claim_limited(harness.store, known={"job": 1}))
    harness.clock.advance("100ms")
    assert await promoter.step() == timedelta(milliseconds=200)
    assert told == []
    harness.clock.advance("200ms")
    assert await promoter.step() == POLL
    assert told == [True]
    held = await claim_limited(harness.store, known={"job": 1})
    assert len(held) == 1
    await finish_all(harness.store, held)


async def test_an_engine_that_would_poll_seldom_keeps_pace_with_a_rate(database_url: str) -> None:
    app = Rota(database_url, poll="1h")
    migrating = Store(open_database(database_url))
    await migrating.migrate()
    await migrating.close()

    @app.job(limit={"max": 3, "per": "100ms"})
    async def often() -> None: ...

    client = await app.connect()
    runs = [await often.aenqueue() for _ in range(12)]
    await app.start()

    async def done() -> bool:
        return all(run.state.is_final for run in await client.get_many([run.id for run in runs]))

    await until(done)
    await app.stop()
    begun = sorted(run.started_at for run in await client.get_many([run.id for run in runs]) if run.started_at)
    assert begun[-1] - begun[0] >= timedelta(milliseconds=250)
    await app.aclose()
