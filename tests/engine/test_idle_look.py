"""Test a whole idle process: while nothing is due it only looks, and it begins what is due on time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import Rota, every
from rota.core.runs.run import Run, RunFilter
from rota.core.states import RunState
from rota.engine.engine import Engine
from rota.engine.idle_look import INTERVAL, Held, IdleLook
from rota.engine.observability.meters import Meters
from rota.engine.rest import Rest
from rota.errors import Unavailable
from rota.store.databases.database import Hint
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.store.databases.sqlite.sqlite import SqliteDatabase
from rota.store.databases.statements import SQLITE
from rota.store.workers.due_work import DueWork
from rota.testing import Harness
from tests.conftest import migrated
from tests.support.wait import until

POLL = timedelta(milliseconds=20)
RARE = {"poll": POLL, "lease": timedelta(hours=3), "heartbeat": timedelta(hours=1), "reaper": timedelta(seconds=1)}
LOOK = "DueWorkStore.look"
NOTHING = DueWork(0, None, None, None, None, None, None, None, False, (0, 0, 0))


class Asked:
    """Operations that the databases of this process were asked for, in order."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.operations: list[str] = []
        for way in ("transact", "alone", "glance", "heed", "read"):
            self._note(patch, PostgresDatabase, way)
        for way in ("transact", "alone", "read"):  # the others are reads there
            self._note(patch, SqliteDatabase, way)

    def _note(self, patch: pytest.MonkeyPatch, database: type[Any], way: str) -> None:
        ask = getattr(database, way)

        async def noted(asked: Any, work: Any, **options: Any) -> Any:
            self.operations.append(self.operation(work))
            return await ask(asked, work, **options)

        patch.setattr(database, way, noted)

    @staticmethod
    def operation(work: Any) -> str:
        name = getattr(work, "__qualname__", None) or getattr(getattr(work, "func", None), "__qualname__", "?")
        return str(name).partition(".<locals>")[0]

    @property
    def looks(self) -> int:
        return self.operations.count(LOOK)

    def since(self, place: int) -> set[str]:
        return set(self.operations[place:])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


@asynccontextmanager
async def running(harness: Harness, *, working: bool = True) -> AsyncIterator[Engine]:
    config = msgspec.structs.replace(harness.config, **RARE)
    engine = Engine(harness.store, harness.app.registry, config, name="idle", working=working)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def at_rest(engine: Engine) -> None:
    await until(lambda: all(part.rest.is_held for part in engine._held()))


@pytest.mark.parametrize("working", [True, False])
async def test_an_idle_process_asks_for_nothing_but_one_look(either: Harness, asked: Asked, working: bool) -> None:
    """Hours of it: its clock stands still for heartbeats and janitors, not for polls."""
    await either.declare("noop")
    async with running(either, working=working) as engine:
        await at_rest(engine)
        place, looks = len(asked.operations), asked.looks
        await until(lambda: asked.looks >= looks + 3)  # sixty polls, of each of seven loops
        assert asked.since(place) == {LOOK}


async def test_what_another_process_enqueues_begins_at_once_and_rest_returns(either: Harness, asked: Asked) -> None:
    @either.app.job
    async def noop() -> None: ...

    async with running(either) as engine:
        await at_rest(engine)
        for _ in range(2):
            run = await either.enqueue(noop)
            await until(lambda run=run: _ended(either, run.id))  # type: ignore[misc]
            await at_rest(engine)


async def _ended(harness: Harness, run_id: str) -> bool:
    return (await harness.client.get(run_id)).state is RunState.SUCCEEDED


async def test_a_lost_hint_is_made_good_by_the_next_look(
    either: Harness, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    @either.app.job
    async def noop() -> None: ...

    listeners: list[Hint] = []

    def deaf(_: object, hint: Hint) -> Callable[[], None]:
        listeners.append(hint)
        return lambda: None

    monkeypatch.setattr(PostgresDatabase, "hears", property(lambda _: True))
    for database in (PostgresDatabase, SqliteDatabase):
        monkeypatch.setattr(database, "listen", deaf)
    async with running(either) as engine:
        await at_rest(engine)
        run = await either.enqueue(noop)
        await until(lambda: _ended(either, run.id))
    assert listeners


async def test_without_hints_everybody_polls(either: Harness, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a pooler that does not pass notifications on, and while the listening connection is lost."""
    for database in (PostgresDatabase, SqliteDatabase):
        monkeypatch.setattr(database, "hears", property(lambda _: False))
    async with running(either) as engine:
        place = len(asked.operations)
        polled = {"PlanningStore.look", "Store.promote", "SignalStore.look", "Store.claim_in_order"}
        if either.store.database.dialect is SQLITE:
            polled.remove("PlanningStore.look")  # from memory, while nothing is written
        for _ in range(3):
            before = len(asked.operations)
            await until(lambda before=before: polled <= set(asked.operations[before:]))  # type: ignore[misc]
        assert not any(part.rest.is_held for part in engine._held())
        assert LOOK not in asked.since(place)


async def test_a_lost_connection_releases_everybody_and_a_new_one_holds_them(postgres_url: str, asked: Asked) -> None:
    async with Harness(url=postgres_url) as harness, running(harness) as engine:
        await at_rest(engine)
        listener = harness.store.database._listener  # type: ignore[attr-defined]
        held = engine._promoter.rest
        listener._connection.terminate()
        await until(lambda: not held.is_held)
        await at_rest(engine)
        assert listener.is_connected


async def test_plan_times_are_met_while_the_planner_rests(database_url: str) -> None:
    """In real time: between plan times the planner is held, and it is never late by the time of a look."""
    await migrated(database_url)
    app = Rota(database_url, poll=POLL, lease="3h", heartbeat="1h")

    @app.job(name="noop")
    async def noop() -> None: ...

    client = await app.connect()
    await client.schedules.create("often", "noop", every("1s"))
    engine = Engine(client.store, app.registry, app.config, name="real")
    await engine.start()

    async def ended() -> list[Run]:
        return [run for run in await client.list(RunFilter(job="noop"), limit=10) if run.state.is_final]

    async def ran() -> bool:
        return len(await ended()) >= 4

    await until(ran)
    runs = await ended()
    await engine.stop()
    await app.aclose()
    late = sorted(run.created_at - run.plan_time for run in runs if run.plan_time)
    assert timedelta(0) <= late[0]
    assert late[len(late) // 2] < INTERVAL * POLL / 2, "most of them: a busy machine may delay one"


class Answering:
    """Due work for an `IdleLook`, as a test wants it."""

    def __init__(self, work: DueWork = NOTHING, during: Callable[[], None] = lambda: None) -> None:
        self.work = work
        self.during = during
        self.is_told = True
        self.error: Exception | None = None

    async def look(self, _queues: object, _providers: object) -> DueWork:
        self.during()
        if self.error:
            raise self.error
        return self.work


def looking(harness: Harness, answering: Answering, rest: Rest, monkeypatch: pytest.MonkeyPatch) -> IdleLook:
    monkeypatch.setattr(harness.store, "due_work", answering)
    held = [Held(rest, lambda work: work.promoter)]
    return IdleLook(harness.store, POLL, timedelta(minutes=1), lambda: (), (), lambda: held, Meters())


async def resting(rest: Rest) -> asyncio.Task[None]:
    task = asyncio.create_task(rest.take(POLL.total_seconds() * 100))
    await asyncio.sleep(0)
    return task


async def test_who_was_woken_during_the_look_is_not_held(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look began before whatever woke it was committed, and knows nothing of it."""
    rest = Rest()
    look = looking(harness, Answering(during=rest.wake), rest, monkeypatch)
    task = await resting(rest)
    assert await look.step() == look.after_hints
    assert not rest.is_held
    await task


@pytest.mark.parametrize(("due_in", "held"), [(None, True), (0, False), (-5, False), (10_000, False), (10**7, True)])
async def test_it_holds_until_a_poll_before_something_is_due(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, due_in: int | None, held: bool
) -> None:
    rest = Rest()
    look = looking(harness, Answering(msgspec.structs.replace(NOTHING, promoter=due_in)), rest, monkeypatch)
    task = await resting(rest)
    assert (await look.step() == INTERVAL * POLL) is held
    assert rest.is_held is held
    rest.wake()
    await task


async def test_an_error_and_silence_release(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    rest, answering = Rest(), Answering()
    look = looking(harness, answering, rest, monkeypatch)
    task = await resting(rest)
    await look.step()
    assert rest.is_held
    answering.error = Unavailable("away")
    with pytest.raises(Unavailable):
        await look.step()
    look.on_error()
    await task
    answering.error = None
    task = await resting(rest)
    await look.step()
    answering.is_told = False
    await look.step()
    await task
    assert not rest.is_held


async def test_the_reaper_is_ready_before_a_lease_expires(harness: Harness) -> None:
    """It learns of a lease with the next look, and waits for a heartbeat of a third of a lease at most."""
    lease = timedelta(seconds=3)
    look = IdleLook(harness.store, timedelta(seconds=1), lease, lambda: (), (), list, Meters())
    assert await look.step() + lease / 3 <= lease
