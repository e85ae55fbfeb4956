"""Test the messenger: it rests when idle, and a signal that cannot be processed blocks no other."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.app import Rota
from rota.client.client import Order
from rota.config import Config
from rota.core.alerts.signals import Signal
from rota.core.calendar.triggers import following
from rota.core.runs.run import RunFilter
from rota.core.states import RunState
from rota.engine.engine import Engine
from rota.engine.loops.declare import declare_schedules
from rota.engine.loops.messenger import Messenger
from rota.errors import FollowingRing
from rota.store import Store, open_database
from rota.store.alerts import notifications
from rota.testing import Harness
from tests.support.servers.notification_receivers import Hook, hook
from tests.support.wait import until

POLL = timedelta(seconds=1)
NOW = timedelta(0)


async def wish(harness: Harness, *subjects: str) -> None:
    for subject in subjects:
        await harness.store.signals.add(Signal(0, 0, "breached", "job", subject, subject))


async def types(harness: Harness) -> list[str]:
    return [event.type for event in await harness.store.events.audit({}, 100, None)]


async def sent(harness: Harness) -> list[str]:
    runs = await harness.client.list(limit=100)
    return sorted(run.payload["event"]["job"] for run in runs if run.queue == "rota")


async def test_idle_it_rests(either: Harness) -> None:
    noticed: list[None] = []
    messenger = Messenger(either.store, POLL, lambda: noticed.append(None))
    assert await messenger.step() == POLL
    assert noticed == []
    await either.client.notifications.create("ops", on=["breached"], to="https://example.com")
    assert await messenger.step() == POLL
    assert noticed == [None]
    await wish(either, "a")
    assert await messenger.step() == NOW
    assert await messenger.step() == POLL
    assert await sent(either) == ["a"]


async def test_one_that_cannot_be_processed_blocks_nobody(either: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = notifications.tell

    async def tell(tx: Any, heard: Sequence[tuple[Signal, Any]], *more: Any) -> int:
        if any(signal.subject == "bad" for signal, _ in heard):
            raise ValueError("cannot be told")
        return await whole(tx, heard, *more)

    monkeypatch.setattr("rota.store.alerts.signals.notifications.tell", tell)
    await either.client.notifications.create("ops", on=["breached"], to="https://example.com")
    await wish(either, "a", "bad", "b", "c")
    messenger = Messenger(either.store, POLL)
    while await messenger.step() == NOW:
        pass
    assert await sent(either) == ["a", "b", "c"]
    assert (await either.store.signals.look()).signals
    for _ in range(2):
        assert "signal_dropped" not in await types(either)
        either.clock.advance("11s")
        while await messenger.step() == NOW:
            pass
    assert "signal_dropped" in await types(either)
    assert not (await either.store.signals.look()).signals


async def test_schedules_in_code_that_follow(sqlite_url: str) -> None:
    app = Rota(config=Config())

    @app.job
    async def extract() -> int:
        return 7

    @app.job
    async def load(n: int) -> int:
        return n + 1

    app.schedule("load", load, following("extract"), payload={"n": "{after.result}"})
    with pytest.raises(FollowingRing, match="load → extract → load"):
        app.schedule("again", extract, following("load"))
    async with Harness(app, url=sqlite_url) as harness:
        first = await harness.enqueue(extract)
        ran = await harness.drain()
        assert [(run.job, run.result) for run in ran] == [("extract", 7), ("load", 8)]
        told = await harness.client.explain(ran[1].id)
        assert f"because run {first.id} of extract succeeded" in " ".join(told.words)
        report = await harness.client.schedules.simulate("load")
        assert (report.fires, report.counts["run"]) == ((), 0)
        harness.clock.advance("1m")
        verdict = await harness.client.schedules.explain("load", harness.clock.now())
        assert "after each success of extract" in " ".join(verdict.words)


async def test_a_ring_with_a_persons_schedule_stops_nobody(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = Rota(config=Config())
    for name in ("extract", "load"):

        async def work() -> None: ...

        app.job(name=name)(work)
    async with Harness(app, url=sqlite_url) as harness:
        await harness.client.schedules.create("mine", "extract", following("load"))
        app.schedule("codes", "load", following("extract"))
        await declare_schedules(harness.store, app.registry.schedules)
        assert "load → extract" in caplog.text
        assert [one.name for one in await harness.client.schedules.list()] == ["mine"]


async def migrated(url: str) -> None:
    store = Store(open_database(url))
    await store.migrate()
    await store.close()


def app_of(url: str, receiver: Hook) -> Rota:
    app = Rota(url, http_allow="127.0.0.0/8", poll="50ms")
    app.notify("ops", on=["success"], to=receiver.url)

    @app.job
    async def work() -> None: ...

    return app


@pytest.mark.parametrize(("queues", "served"), [(None, True), (["default"], False), (["default", "rota"], True)])
async def test_who_serves_what_is_to_be_sent(database_url: str, queues: list[str] | None, served: bool) -> None:
    await migrated(database_url)
    async with hook() as receiver, app_of(database_url, receiver).running(queues=queues) as client:
        await client.enqueue(Order("work", {}))

        async def reached(*states: RunState) -> bool:
            return any(run.queue == "rota" and run.state in states for run in await client.list())

        await until(lambda: reached(RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED))
        if served:
            await until(lambda: reached(RunState.SUCCEEDED))
        (worker,) = await client.workers.list()
        assert ("rota" in worker.queues) is served
        assert len(receiver.came) == int(served)


async def test_three_engines_send_one(database_url: str) -> None:
    await migrated(database_url)
    async with hook() as receiver, AsyncExitStack() as stack:
        apps = [app_of(database_url, receiver) for _ in range(3)]
        clients = [await stack.enter_async_context(app.running()) for app in apps]
        wanted = {(await clients[0].enqueue(Order("work", {}))).id for _ in range(20)}

        async def all_done() -> bool:
            runs = await clients[0].list(RunFilter(queue="rota"), limit=100)
            return len(runs) >= 20 and all(run.state.is_final for run in runs)

        await until(all_done)
        told = [msgspec.json.decode(body)["run"]["id"] for _, body in receiver.came]
        assert sorted(told) == sorted(wanted)


async def test_a_server_that_runs_nobodys_jobs_sends(sqlite_url: str) -> None:
    await migrated(sqlite_url)
    async with hook() as receiver:
        app = app_of(sqlite_url, receiver)
        client = await app.connect()
        engine = Engine(client.store, app.registry, app.config, working=False)
        await engine.start()
        run = await client.enqueue(Order("work", {}))
        await client.cancel(run.id)
        await client.notifications.create("cancels", on=["cancelled"], to=receiver.url)
        await client.cancel((await client.enqueue(Order("work", {}))).id)

        async def came() -> bool:
            return bool(receiver.came)

        await until(came)
        assert [worker.jobs for worker in await client.workers.list()] == [("rota.webhook", "rota.email")]
        await engine.stop()
        await app.aclose()
    assert len(receiver.came) == 1
