"""The timeline on both databases: attempts that go on, that ended, and those before them."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from rota.client.monitoring.monitoring import MonitoringClient
from rota.config import Config
from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition
from rota.core.monitoring.timeline import Lane
from rota.core.states import Outcome
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.databases.query_plans import explained
from tests.support.runs.runs import claim, put, put_and_claim, tell
from tests.support.schedules.schedules import make_schedule, minutes, plan

LATER = timedelta(seconds=10)


async def lanes(store: Store, by: str, until: datetime | None = None, limit: int = 500) -> list[Lane]:
    return list((await MonitoringClient(store, Config()).timeline(None, until, by=by, limit=limit)).lanes)


def told(lane: Lane) -> list[tuple[int, str, bool]]:
    return [(one.no, one.state, one.ended_at is None) for one in lane.attempts]


async def test_every_attempt_of_a_run(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    clock.advance(LATER)
    assert await tell(store, held, Outcome.FAILED, retry_in=0)
    await store.promote(10)
    (again,) = await claim(store)
    clock.advance(LATER)
    (lane,) = await lanes(store, "job")
    assert (lane.name, told(lane)) == ("work", [(2, "running", True), (1, "failed", False)])
    await tell(store, again, Outcome.SUCCEEDED)
    clock.advance(LATER)
    (lane,) = await lanes(store, "worker")
    assert (lane.name, told(lane)) == ("worker-1", [(2, "succeeded", False), (1, "failed", False)])
    assert not lane.overlaps


async def test_what_is_asked_to_stop(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    await put_and_claim(store)
    await store.cancel(held.run_id, None, None)
    clock.advance(LATER)
    (lane,) = await lanes(store, "queue")
    assert sorted(told(lane)) == [(1, "cancelling", True), (1, "running", True)]
    assert lane.overlaps


async def test_only_what_went_on_in_that_time(store: Store, clock: ManualClock) -> None:
    for _ in range(3):
        held = await put_and_claim(store)
        clock.advance(LATER)
        assert await tell(store, held, Outcome.SUCCEEDED, busy=10_000_000)
        clock.advance(minutes(10))
    now = clock.micros()
    monitoring = MonitoringClient(store, Config())
    (lane,) = (await monitoring.timeline(instant(now - 1_209_000_000), instant(now - 600_000_000), by="job")).lanes
    assert len(lane.attempts) == 1
    assert (await monitoring.timeline(instant(now - 500_000_000), by="job")).lanes == []


async def test_schedules_and_what_is_to_come(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "s", every("1m"))
    await make_schedule(store, "off", every("1m"), enabled=False)
    await put(store, JobDefinition(name="other"))
    clock.advance(minutes(1))
    await plan(store)
    await claim(store)
    clock.advance(LATER)
    until = instant(clock.micros() + 180_000_000)
    (lane,) = await lanes(store, "schedule", until)
    assert (lane.name, told(lane), len(lane.coming)) == ("s", [(1, "running", True)], 3)
    assert lane.coming == sorted(lane.coming)
    assert [len(lane.coming) for lane in await lanes(store, "queue", until)] == [0]


async def test_what_is_to_come_tomorrow(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "s", every("1m"))
    tomorrow = instant(clock.micros()) + timedelta(days=1)
    found = await MonitoringClient(store, Config()).timeline(tomorrow, tomorrow + minutes(3), by="schedule")
    (lane,) = found.lanes
    assert len(lane.coming) in (3, 4)
    assert all(tomorrow <= at <= tomorrow + minutes(3) for at in lane.coming)


async def test_not_all_are_looked_at(store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        held = await put_and_claim(store)
        clock.advance(LATER)
        assert await tell(store, held, Outcome.SUCCEEDED)
    monitoring = MonitoringClient(store, Config())
    cut = await monitoring.timeline(by="job", limit=3)
    assert (len(cut.lanes[0].attempts), cut.truncated) == (3, True)
    whole = await monitoring.timeline(by="job", limit=4)
    assert (len(whole.lanes[0].attempts), whole.truncated) == (4, False)
    monkeypatch.setattr("rota.store.monitoring.timeline.LOOKED_AT", 2)
    some = await monitoring.timeline(by="job")
    assert (len(some.lanes[0].attempts), some.truncated) == (2, True)


async def test_runs_are_found_by_id(store: Store) -> None:
    between = {"first": "00000000-0000-7000-8000-000000000000", "last": "10000000-0000-7000-8000-000000000000"}
    wanted: dict[str, Any] = {"from_at": 0, "to_at": 9, "scheduled": 1, "limit": 5, "looked": 7}
    for name in ("ended_between", "attempts_between", "more_runs", "more_attempts"):
        plan_of_it = await explained(store, name, **between, **wanted)
        assert "Seq Scan on rota_run" not in plan_of_it
        assert "Seq Scan on rota_attempt" not in plan_of_it
        assert "SCAN rota_run" not in plan_of_it
        assert "SCAN rota_attempt" not in plan_of_it
        assert "PRIMARY KEY" in plan_of_it or "Scan Backward using" in plan_of_it
    going_on = await explained(store, "attempts_going_on", **wanted)
    assert "Seq Scan on rota_run" not in going_on
    assert "SCAN r" not in going_on.replace("SCAN rota_lease", "").replace("SCAN rota_outside", "")
    assert "rota_cursor_due" in await explained(store, "upcoming_schedules", **wanted)


async def test_from_when_on_it_is_complete(store: Store, clock: ManualClock) -> None:
    for _ in range(3):
        held = await put_and_claim(store)
        clock.advance(LATER)
        assert await tell(store, held, Outcome.SUCCEEDED)
    monitoring = MonitoringClient(store, Config())
    whole = await monitoring.timeline(by="job")
    assert whole.complete_from is None
    cut = await monitoring.timeline(by="job", limit=2)
    assert cut.complete_from == whole.lanes[0].attempts[2].started_at


async def test_plan_times_that_did_not_run(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "s", every("1m"), overlap="skip")
    clock.advance(minutes(1))
    await plan(store)
    await claim(store)
    clock.advance(minutes(1))
    await plan(store)
    (lane,) = await lanes(store, "schedule")
    (gap,) = lane.gaps
    assert (gap.kind, gap.count, gap.run_id is None) == ("skipped", 1, False)
    assert "is not over" in str(gap.reason)
    assert [lane.name for lane in await lanes(store, "job") if lane.gaps] == ["work"]
    assert [len(lane.gaps) for lane in await lanes(store, "worker")] == [0]


async def test_missed_ranges_that_reach_into_the_period(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "s", every("1m"), catch_up="none")
    clock.advance(minutes(180))
    await plan(store)
    monitoring = MonitoringClient(store, Config())
    (gap,) = [gap for lane in await lanes(store, "schedule") for gap in lane.gaps]
    for ago in (0, 100, 150):
        end = instant(clock.micros()) - minutes(ago)
        found = await monitoring.timeline(end - minutes(20), end, by="schedule")
        assert [list(lane.gaps) for lane in found.lanes] == [[gap]]
    before = instant(clock.micros()) - minutes(200)
    assert (await monitoring.timeline(before - minutes(20), before, by="schedule")).lanes == []
    assert (gap.kind, gap.count > 170, gap.reason is not None) == ("missed", True, True)


async def test_ranges_are_found_by_schedule(store: Store) -> None:
    text = await explained(store, "unrun_ranges", from_at=0, to_at=9, limit=5, schedules=7)
    assert "SCAN g" not in text
    assert "Seq Scan on rota_range" not in text
