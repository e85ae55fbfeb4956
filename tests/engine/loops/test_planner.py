"""Test the planner's loop: it rests until something is due, wakes on changes, and isolates errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from rota.core.calendar.triggers import after, every, once
from rota.core.runs.run import RunFilter
from rota.engine import loop as loops
from rota.engine.loop import Loop
from rota.engine.loops import planner
from rota.engine.loops.planner import Planner
from rota.errors import Invalid
from rota.registry import scope_providers
from rota.store import Store, open_database
from rota.store.databases.database import Row
from rota.store.planning import fast_path, make_runs
from rota.store.planning.make_runs import RunTemplate
from rota.store.planning.plan import Planning, Providers
from rota.store.schedules.schedule_operations import PLANNER
from rota.store.schedules.schedule_row import ScheduleRow
from rota.testing import Harness
from rota.values.instants import instant
from rota.values.names import checked_name
from rota.values.scope import Scope
from tests.support.databases.transaction_crashes import Deaths
from tests.support.schedules.schedules import get_schedule, make_schedule, runs_of
from tests.support.wait import until

POLL = timedelta(seconds=10)
NEVER = timedelta(hours=1)
EAGER: dict[str, Any] = {"overlap": "allow", "catch_up": "all"}


async def test_it_rests_until_the_next_plan_time_but_not_longer_than_it_polls(harness: Harness) -> None:
    stepping = Planner(harness.store, {}, POLL)
    assert await stepping.step() == POLL
    now = await harness.store.now()
    await make_schedule(harness.store, "late", once(instant(now + 7_000_000)))
    assert await stepping.step() == timedelta(seconds=7)
    await make_schedule(harness.store, "soon", once(instant(now + 3_000_000)))
    assert await stepping.step() == timedelta(seconds=3)
    harness.clock.advance("3s")
    assert await stepping.step() == timedelta(seconds=4)
    harness.clock.advance("4s")
    assert await stepping.step() == POLL
    assert stepping.runs == 2


async def test_it_reads_what_will_be_due_before_it_rests(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "_SMALLEST", 2)
    now = await harness.store.now()
    for number in range(5):
        await make_schedule(harness.store, f"soon{number}", once(instant(now + 3_000_000)))
    await make_schedule(harness.store, "just after", once(instant(now + 4_000_000)))
    await make_schedule(harness.store, "later", once(instant(now + 5_000_000)))
    stepping = Planner(harness.store, {}, POLL)
    while not (rest := await stepping.step()):
        pass
    assert rest == timedelta(seconds=3)
    assert len(harness.store.planning._definitions) == 6


async def test_reading_ahead_only_helps(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> bool:
        raise OSError("the disk is gone")

    monkeypatch.setattr(harness.store.planning, "read_ahead", fails)
    await make_schedule(harness.store, "soon", once(instant(await harness.store.now() + 3_000_000)))
    stepping = Planner(harness.store, {}, POLL)
    assert await stepping.step() == timedelta(seconds=3)
    harness.clock.advance("3s")
    await stepping.step()
    assert stepping.runs == 1


async def test_it_does_not_read_ahead_when_the_time_has_come(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bite takes long here."""
    monkeypatch.setattr(planner, "_SMALLEST", 2)
    read_ahead = harness.store.planning.read_ahead

    async def slow(until: int, limit: int) -> bool:
        harness.clock.advance("900ms")
        return await read_ahead(until, limit)

    monkeypatch.setattr(harness.store.planning, "read_ahead", slow)
    now = await harness.store.now()
    for number in range(20):
        await make_schedule(harness.store, f"s{number}", once(instant(now + 3_000_000)))
    stepping = Planner(harness.store, {}, POLL)
    for known in (2, 4, 6, 8):
        assert await stepping.step() == timedelta(0), "it is not done"
        assert len(harness.store.planning._definitions) == known
    while not await stepping.step():
        pass
    assert stepping.runs == 20


async def test_one_slow_answer_does_not_keep_followers_waiting(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepping, look, asked = Planner(harness.store, {}, POLL), harness.store.planning.look, list[bool]()

    async def slow(providers: Sequence[str], *, followers: bool) -> Any:
        asked.append(followers)
        harness.clock.advance("3s" if len(asked) == 1 else "1ms")
        return await look(providers, followers=followers)

    monkeypatch.setattr(harness.store.planning, "look", slow)
    await stepping.step()
    await stepping.step()
    harness.clock.advance("2s")
    await stepping.step()
    assert asked == [True, False, True]


@asynccontextmanager
async def real(url: str) -> AsyncIterator[Store]:
    """A store with the machine's clock."""
    opened = Store(open_database(url))
    await opened.migrate()
    yield opened
    await opened.close()


@asynccontextmanager
async def planning(store: Store, poll: timedelta, *, hints: bool) -> AsyncIterator[Loop]:
    loop = Loop("planner", Planner(store, {}, poll))
    unlisten = store.listen(loop.wake) if hints else lambda: None
    loop.start()
    yield loop
    unlisten()
    await loop.stop()


def has_runs(store: Store, name: str) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        return bool(await runs_of(store, name))

    return found


@pytest.mark.parametrize(("poll", "hints"), [(NEVER, True), (timedelta(milliseconds=50), False)])
async def test_a_change_is_seen_by_a_hint_or_by_looking(database_url: str, poll: timedelta, hints: bool) -> None:
    async with real(database_url) as store, real(database_url) as other, planning(store, poll, hints=hints):
        await asyncio.sleep(0)
        for name in ("new", "newer", "newest"):
            await make_schedule(other, name, after("1h"))
            await until(has_runs(store, name))
        await make_schedule(other, "asleep", after("1h"), enabled=False)
        await other.schedules.pause("asleep", None, None, None)
        await other.schedules.delete("new", None)
        await make_schedule(other, "new", every("1s"))
        await until(has_runs(store, "new"))
        assert await runs_of(store, "asleep") == []


async def test_it_rests_while_nothing_that_it_can_plan_is_due(harness: Harness) -> None:
    """A schedule whose provider only other processes know stays due: it neither spins nor makes others late."""
    await make_schedule(harness.store, "foreign", scopes="elsewhere")
    stepping = Planner(harness.store, {}, POLL)
    harness.clock.advance("5m")
    assert await stepping.step() == POLL
    assert await stepping.step() == POLL
    now = await harness.store.now()
    await make_schedule(harness.store, "mine", once(instant(now + 2_000_000)))
    assert await stepping.step() == timedelta(seconds=2), "not when it polls"
    harness.clock.advance("2s")
    assert await stepping.step() == POLL
    assert len(await runs_of(harness.store, "mine")) == 1


async def test_its_own_schedules_are_found_behind_a_batch_that_it_cannot_plan(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As river#1318, where a reaper was blocked behind a batch that it could not rescue."""
    monkeypatch.setattr(planner, "_SMALLEST", 3)
    for number in range(5):
        await make_schedule(harness.store, f"foreign{number}", every("1s"), scopes="elsewhere")
    await make_schedule(harness.store, "mine", every("1m"), scopes="tenants")
    stepping = Planner(harness.store, {"tenants": lambda: [("tenant", "a")]}, POLL)
    harness.clock.advance("2m")
    await stepping.step()
    assert len(await runs_of(harness.store, "mine")) == 1


@pytest.mark.parametrize(("writers", "batches"), [(1, [2, 8, 12, 12]), (2, [2, 4, 4, 6, 6, 6, 6])])
async def test_batches_grow_while_there_is_more_to_do(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, writers: int, batches: list[int]
) -> None:
    monkeypatch.setattr(planner, "_SMALLEST", 2)
    monkeypatch.setattr(planner, "_LARGEST", 12)
    harness.store.planning.writers = writers
    for number in range(28):
        await make_schedule(harness.store, f"s{number}")
    stepping = Planner(harness.store, {}, POLL)
    asked: list[int] = []
    plan = harness.store.planning.plan

    async def noted(limit: int, providers: Providers) -> Planning:
        asked.append(limit)
        return await plan(limit, providers)

    monkeypatch.setattr(harness.store.planning, "plan", noted)
    for runs in (28, 56):  # small again the second time
        asked.clear()
        harness.clock.advance("1m")
        while not await stepping.step():
            pass
        assert (stepping.runs, asked) == (runs, batches)


async def test_the_loop_survives_a_database_that_is_away(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_TROUBLE", timedelta(milliseconds=10))
    async with real(database_url) as store, real(database_url) as on_error:
        deaths = Deaths(on_error)
        for number, moment in enumerate(["before", "after", "unanswered"]):
            deaths.at(0, moment)  # type: ignore[arg-type]
            async with planning(on_error, timedelta(milliseconds=20), hints=False):
                await make_schedule(store, f"s{number}", after("1h"))
                await until(has_runs(store, f"s{number}"))
                await until(lambda: deaths.died)
        runs = await store.list_runs(RunFilter(), 100)
        assert sorted(run.schedule or "" for run in runs) == ["s0", "s1", "s2"]


def test_the_hint_for_planners_is_no_queue() -> None:
    with pytest.raises(Invalid):
        checked_name(PLANNER, "queue")


class Tenants:
    """A provider that a test changes."""

    def __init__(self) -> None:
        self.answer: Any = [("tenant", "a")]
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


BAD_ANSWERS: dict[str, Any] = {
    "raises": RuntimeError("no connection"),
    "twice the same": [("tenant", "a"), ("tenant", "a")],
    "no list": 7,
    "nothing": None,
    "no pairs": ["tenant", 3],
    "bad names": [("tenant", "")],
}


@pytest.mark.parametrize("bad", BAD_ANSWERS)
async def test_a_provider_in_trouble_advances_nothing_and_says_so(either: Harness, bad: str) -> None:
    tenants = Tenants()
    stepping = Planner(either.store, {"tenants": tenants}, POLL)
    await make_schedule(either.store, "s", scopes="tenants", **EAGER)
    await make_schedule(either.store, "other", **EAGER)
    cursor = (await get_schedule(either.store)).cursor_at
    tenants.answer = BAD_ANSWERS[bad]
    either.clock.advance("2m")
    for _ in range(3):
        await stepping.step()
    assert len(await runs_of(either.store, "other")) == 2, "others do not wait for it"
    schedule = await get_schedule(either.store)
    assert schedule.cursor_at == cursor
    assert "scope provider 'tenants'" in (schedule.trouble or "")
    assert tenants.asked == 1, "it is left alone for a while"
    tenants.answer = [("tenant", "a"), ("tenant", "b")]
    either.clock.advance("1m")
    await stepping.step()
    assert len(await runs_of(either.store)) == 6
    assert (await get_schedule(either.store)).trouble is None


async def test_a_slow_provider_is_given_up(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_providers, "TIMEOUT", 0.02)

    async def slow() -> list[Scope]:
        await asyncio.Event().wait()
        return []

    stepping = Planner(harness.store, {"slow": slow}, POLL)
    await make_schedule(harness.store, "s", scopes="slow")
    await make_schedule(harness.store, "other")
    harness.clock.advance("1m")
    await stepping.step()
    assert len(await runs_of(harness.store, "other")) == 1
    assert "TimeoutError" in ((await get_schedule(harness.store)).trouble or "")


async def test_a_provider_that_is_one_processs_trouble_is_planned_by_another(either: Harness) -> None:
    await make_schedule(either.store, "s", scopes="tenants", **EAGER)
    broken, fine = Tenants(), Tenants()
    broken.answer = RuntimeError("no")
    either.clock.advance("1m")
    await Planner(either.store, {"tenants": broken}, POLL).step()
    await Planner(either.store, {"tenants": fine}, POLL).step()
    assert len(await runs_of(either.store)) == 1
    assert (await get_schedule(either.store)).trouble is None


async def test_a_schedule_that_breaks_planning_is_set_aside(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is that nobody thought of: the others go on."""
    await make_schedule(harness.store, "bad", every("1m"))
    harness.clock.advance("1s")
    await make_schedule(harness.store, "good", every("1m"))
    plain_facts = make_runs.plain_facts

    def breaks(row: ScheduleRow, pattern: RunTemplate, plan_time: int) -> Row:
        if row.name == "bad":
            raise ZeroDivisionError("nobody thought of it")
        return plain_facts(row, pattern, plan_time)

    monkeypatch.setattr(fast_path, "plain_facts", breaks)
    stepping = Planner(harness.store, {}, POLL)
    harness.clock.advance("1m")
    for _ in range(10):
        try:
            await stepping.step()
        except ZeroDivisionError:
            stepping.on_error()
    assert len(await runs_of(harness.store, "good")) == 1
    assert "nobody thought of it" in str((await get_schedule(harness.store, "bad")).trouble)
