"""The last runs of schedules on both databases, found by an index."""

from datetime import timedelta
from typing import Any

import pytest

from rota.core.calendar.triggers import every
from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.databases.query_plans import explained
from tests.support.runs.runs import claim, finish, put, tell
from tests.support.schedules.schedules import make_schedule, minutes, plan

HALF = timedelta(milliseconds=500)


async def live(store: Store, clock: ManualClock, count: int) -> None:
    """Let runs begin half a second late, and take that long."""
    for _ in range(count):
        clock.advance(minutes(1) - 2 * HALF)
        await plan(store)
        clock.advance(HALF)
        claims = await claim(store)
        clock.advance(HALF)
        for one in claims:
            assert await tell(store, one, Outcome.SUCCEEDED, busy=500_000)


async def test_the_last_runs_of_several_schedules(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "a", every("1m"))
    await make_schedule(store, "b", every("2m"))
    await live(store, clock, 4)
    await put(store)
    found = await store.monitoring.recent(["a", "b", "missing"], 3)
    assert {name: len(one.recent) for name, one in found.items()} == {"a": 3, "b": 2}
    times = [one.plan_time for one in found["a"].recent]
    assert times == sorted(times)
    assert {(one.state, one.duration_ms) for one in found["a"].recent} == {(RunState.SUCCEEDED, 500)}
    assert found["a"].p95_duration_ms == 500


async def test_lateness_is_that_of_the_first_attempt(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "s", every("1m"), delay="5s")
    clock.advance(minutes(1) + timedelta(seconds=6))
    await plan(store)
    due = (await store.monitoring.recent(["s"], 1))["s"].recent[0].plan_time + timedelta(seconds=5)
    (one,) = await claim(store)
    began = clock.micros() + 250_000
    clock.advance(HALF)
    lateness = (began - int(due.timestamp()) * 1_000_000) // 1_000
    assert await tell(store, one, Outcome.FAILED, retry_in=0, busy=250_000)
    clock.advance(minutes(1))
    await store.promote(10)
    (again,) = await claim(store)
    clock.advance(HALF)
    await finish(store, again)
    (told,) = (await store.monitoring.recent(["s"], 5))["s"].recent
    assert told.lateness_ms == lateness


async def test_live_runs_are_told_as_they_are(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "s", every("1m"))
    clock.advance(minutes(1))
    await plan(store)
    assert (await store.monitoring.recent(["s"], 5))["s"].recent[0].state is RunState.QUEUED
    await claim(store)
    clock.advance(minutes(1))
    await plan(store)
    states = [one.state for one in (await store.monitoring.recent(["s"], 5))["s"].recent]
    assert states == [RunState.RUNNING, RunState.SKIPPED]


async def test_what_was_triggered_by_hand_is_not_among_them(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "s", every("1m"))
    await store.schedules.trigger("s", None, force=True)
    assert (await store.monitoring.recent(["s"], 5))["s"].recent == []


async def test_scopes_are_merged_by_plan_time(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_schedule(store, "s", every("1m"), scopes=[Scope("t", "1"), Scope("t", "2")])
    await make_schedule(store, "p", every("1m"), scopes="tenants")
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store, tenants=(Scope("t", "8"), Scope("t", "9")))
    found = await store.monitoring.recent(["s", "p"], 4)
    for one in found.values():
        assert len({run.plan_time for run in one.recent}) == 2
        assert len(one.recent) == 4
    monkeypatch.setattr("rota.store.monitoring.recent_runs.MOST_SCOPES", 1)
    found = await store.monitoring.recent(["s", "p"], 4)
    assert [len(one.recent) for one in found.values()] == [3, 3]


async def test_no_more_is_read_than_was_allowed(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_schedule(store, "s", every("1m"), scopes=[Scope("t", "1"), Scope("t", "2"), Scope("t", "3")])
    await make_schedule(store, "p", every("1m"), scopes="tenants")
    await make_schedule(store, "q", every("1m"), scopes="tenants")
    await make_schedule(store, "plain", every("1m"))
    clock.advance(minutes(1))
    await plan(store, tenants=tuple(Scope("t", str(place)) for place in range(5)))

    async def counts() -> list[int]:
        found = await store.monitoring.recent(["s", "p", "q", "plain"], 5)
        return [len(found[name].recent) for name in ("s", "p", "q", "plain")]

    assert await counts() == [3, 5, 5, 1]
    monkeypatch.setattr("rota.core.schedules.recent_runs._MOST_RUNS", 35)
    assert await counts() == [2, 2, 2, 1]
    monkeypatch.setattr("rota.core.schedules.recent_runs._MOST_RUNS", 20)
    assert await counts() == [1, 1, 1, 1]


async def test_scopes_of_many_schedules_are_one_question(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in range(4):
        await make_schedule(store, f"p{place}", every("1m"), scopes="tenants")
    clock.advance(minutes(1))
    await plan(store, tenants=(Scope("t", "8"), Scope("t", "9")))
    asked: list[str] = []
    original = type(store.database).read

    async def reading(self: Any, work: Any, *rest: Any, **more: Any) -> Any:
        async def body(tx: Any) -> Any:
            fetch = type(tx).fetch

            async def noted(name: str, *rows: Any, **values: Any) -> Any:
                asked.append(name)
                return await fetch(tx, name, *rows, **values)

            tx.fetch = noted
            return await work(tx)

        return await original(self, body, *rest, **more)

    monkeypatch.setattr(type(store.database), "read", reading)
    found = await store.monitoring.recent([f"p{place}" for place in range(4)], 5)
    assert [len(one.recent) for one in found.values()] == [2, 2, 2, 2]
    assert asked == ["definitions_by_name", "some_scopes", "recent_runs"]


async def test_scopes_are_found_by_their_index(store: Store) -> None:
    schedule = await make_schedule(store, "p", every("1m"), scopes="tenants")
    told = await explained(store, "some_scopes", [(schedule.id,)], limit=10)
    assert "SCAN p" not in told
    assert "Seq Scan on rota_scope_span" not in told
    assert "rota_scope_span_pkey" in told or "PRIMARY KEY" in told


async def test_runs_are_found_by_their_plan_times(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, "s", every("1m"))
    told = await explained(store, "recent_runs", [(schedule.id, "global", "global")], limit=30)
    assert "rota_run_plan" in told
    for scan in ("SCAN p", "SCAN r", "SCAN n", "Seq Scan on rota_run"):
        assert scan not in told.replace("SCAN rows", "")
