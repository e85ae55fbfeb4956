"""Gauges: every live run in one queue and state, workers and schedules by their state."""

from datetime import timedelta

import msgspec
import pytest

from rota.core.calendar.triggers import once
from rota.core.jobs.job import JobDefinition
from rota.core.monitoring.counters import Gauges, QueueGauge
from rota.core.states import Outcome, RunState
from rota.core.workers.replicas import Replicas
from rota.engine.loops.replica_conductor import ReplicaConductor
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, make, put, put_and_claim, report_of
from tests.support.schedules.schedules import HOUR, MINUTE, SECOND, make_schedule, plan

SILENCE = 30 * SECOND


async def test_an_empty_installation(store: Store) -> None:
    states = dict.fromkeys(("active", "paused", "job_paused", "disabled", "ended"), 0)
    assert await store.levels(SILENCE) == Gauges(queues=[], schedules=states)


async def test_live_runs_by_queue_and_state_and_the_age_of_the_oldest(store: Store, clock: ManualClock) -> None:
    await put_and_claim(store)
    stopping = await put_and_claim(store)
    await store.cancel(stopping.run_id, None, None)
    await put(store, queue="mail")
    clock.advance(timedelta(seconds=5))
    await put(store, queue="mail")
    await put(store, queue="mail", delay="1h")
    clock.advance(timedelta(seconds=2))
    assert (await store.levels(SILENCE)).queues == [
        QueueGauge("default", "cancelling", 1, 7 * SECOND),
        QueueGauge("default", "running", 1, 7 * SECOND),
        QueueGauge("mail", "queued", 2, 7 * SECOND),
        QueueGauge("mail", "scheduled", 1, None),
    ]


async def test_runs_that_wait_for_their_replicas_are_counted(store: Store, clock: ManualClock) -> None:
    both = JobDefinition(name="work", replicas=Replicas(count=2))
    await store.save_jobs([both])
    await put(store, both)
    await ReplicaConductor(store, timedelta(seconds=1)).step()
    clock.advance(timedelta(seconds=3))
    assert (await store.levels(SILENCE)).queues == [
        QueueGauge("default", "queued", 2, 3 * SECOND),
        QueueGauge("default", "waiting", 1, 3 * SECOND),
    ]


async def test_what_has_ended_is_not_counted(store: Store) -> None:
    held = await put_and_claim(store)
    await store.report([report_of(held, Outcome.SUCCEEDED)])
    assert (await store.levels(SILENCE)).queues == []


async def test_a_very_long_queue_is_not_counted_to_its_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.store.monitoring.gauges.MOST", 3)
    await store.enqueue([make() for _ in range(5)])
    assert [level.runs for level in (await store.levels(SILENCE)).queues] == [3]


async def test_workers_by_their_last_sign_of_life(store: Store, clock: ManualClock) -> None:
    await store.extend(msgspec.structs.replace(WORKER, id="old", slots=3), [], LEASE_MICROS)
    clock.advance(timedelta(seconds=31))
    for id in ("a", "b"):
        await store.extend(msgspec.structs.replace(WORKER, id=id, slots=20), [], LEASE_MICROS)
    levels = await store.levels(SILENCE)
    assert (levels.workers_alive, levels.workers_silent, levels.slots) == (2, 1, 40)


async def test_schedules_by_what_planning_does_with_them(store: Store, clock: ManualClock) -> None:
    now = await store.now()
    for name in ("active", "paused", "gone"):
        await make_schedule(store, name)
    await make_schedule(store, "disabled", enabled=False)
    await make_schedule(store, "ended", once(instant(now + SECOND)))
    await store.schedules.pause("paused", None, None, None)
    await store.schedules.delete("gone", None)
    clock.advance(timedelta(seconds=5))
    await plan(store)
    levels = await store.levels(SILENCE)
    assert levels.schedules == {"active": 1, "paused": 1, "job_paused": 0, "disabled": 1, "ended": 1}
    assert levels.overdue == 0
    clock.advance(timedelta(microseconds=HOUR))
    assert (await store.levels(SILENCE)).overdue == 1
    await store.pause_job("work", None, None)
    assert (await store.levels(SILENCE)).schedules["job_paused"] == 2  # the one that has ended, too


async def test_a_report_tells_how_runs_ended_that_did_not_succeed(store: Store) -> None:
    await store.enqueue([make() for _ in range(4)])
    fine, failed, again, stopped = await claim(store)
    await store.cancel(stopped.run_id, None, None)
    reports = [
        report_of(fine, Outcome.SUCCEEDED),
        report_of(failed, Outcome.FAILED),
        report_of(again, Outcome.TIMED_OUT, retry_in=MINUTE),
        report_of(stopped, Outcome.FAILED),
    ]
    told = await store.report(reports)
    assert sorted(told.settled, key=str) == [
        (Outcome.FAILED, RunState.CANCELLED, "work", "default"),
        (Outcome.FAILED, RunState.FAILED, "work", "default"),
        (Outcome.TIMED_OUT, None, "work", "default"),
    ]
    assert (await store.report(reports)).settled == []


async def test_the_reaper_tells_how_runs_ended(store: Store, clock: ManualClock) -> None:
    await put_and_claim(store, max_attempts=1)
    await put_and_claim(store)
    clock.advance(timedelta(microseconds=LEASE_MICROS + SECOND))
    reaped = await store.reap(10)
    assert (reaped.requeued, reaped.ended) == (1, 1)
    assert {(attempt.state, attempt.job) for attempt in reaped.settled} == {(RunState.EXPIRED, "work"), (None, "work")}


async def test_metadata_in_the_order_that_it_is_asked_for(store: Store) -> None:
    one, two = await put(store), await put(store, metadata={"a": 1})
    assert await store.metadata_of([two, one, two]) == ['{"a":1}', None, '{"a":1}']
