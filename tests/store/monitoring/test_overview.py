"""The overview on both databases: every live run in one count, and what needs attention."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from rota.client.monitoring.monitoring import MonitoringClient
from rota.config import Config
from rota.core.calendar.triggers import cron, every
from rota.core.jobs.job import JobDefinition
from rota.core.monitoring.attention import Attention
from rota.core.monitoring.counters import HOUR as HOUR_MICROS
from rota.core.monitoring.overview import Live, Overview
from rota.core.workers.replicas import Replicas
from rota.engine.loops.replica_conductor import ReplicaConductor
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.databases.query_plans import explained
from tests.support.runs.runs import LEASE_MICROS, WORK, WORKER, claim, put, put_and_claim
from tests.support.schedules.schedules import MINUTE, SECOND, make_schedule, plan


async def overview(store: Store) -> Overview:
    return await MonitoringClient(store, Config()).overview()


def kinds(found: Overview) -> list[tuple[str, str | None]]:
    return [(one.kind, one.subject) for one in found.attention]


async def alive(store: Store, **facts: Any) -> None:
    await store.extend(msgspec.structs.replace(WORKER, **facts), [], LEASE_MICROS)


async def count(store: Store, span: int, at: int, source: str, counted: str) -> None:
    sql = "insert into rota_count (span, at, source, counted) values (:span, :at, :source, :counted)"

    async def body(tx: Tx) -> None:
        await tx.fetch_sql(sql, span=span, at=at, source=source, counted=counted)

    await store.database.transact(body)


async def oldest_queued(store: Store) -> dict[str, datetime]:
    queues = await store.job_views.queues({}, 100, None)
    return {queue.queue: queue.oldest_at for queue in queues if queue.oldest_at is not None}


async def test_an_empty_installation(store: Store) -> None:
    found = await overview(store)
    assert found.live == Live()
    assert (found.attention, found.next_fires, found.last_day.runs) == ([], [], {})
    assert found.at == instant(await store.now())


async def test_every_live_run_is_counted_once(store: Store, clock: ManualClock) -> None:
    both = JobDefinition(name="both", replicas=Replicas(count=2))
    await store.save_jobs([WORK, both])
    await put_and_claim(store)
    stopping = await put_and_claim(store)
    await store.cancel(stopping.run_id, None, None)
    await put(store, JobDefinition(name="both", replicas=Replicas(count=2)))
    await ReplicaConductor(store, timedelta(seconds=1)).step()
    first = await put(store)
    await put(store, delay="1h")
    await put(store, after=[first])
    clock.advance(timedelta(seconds=9))
    found = await overview(store)
    due = instant(clock.micros() - 9 * SECOND)
    assert found.live == Live(running=1, cancelling=1, queued=3, scheduled=2, waiting=1, oldest_queued_at=due)
    assert (found.late.runs, found.workers.busy) == (0, 2)
    clock.advance(timedelta(seconds=2))
    assert (await overview(store)).late.runs == 3


async def test_a_very_long_queue_is_not_counted_to_its_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.store.monitoring.overview.MOST", 2)
    for _ in range(3):
        await put(store)
    assert (await overview(store)).live == Live(queued=2, capped=True, oldest_queued_at=instant(await store.now()))


async def test_a_queue_without_a_worker_and_a_job_that_nobody_knows(store: Store, clock: ManualClock) -> None:
    await put(store, queue="mail")
    await put(store, JobDefinition(name="other"))
    clock.advance(timedelta(seconds=11))
    await alive(store)
    found = await overview(store)
    assert kinds(found) == [("queue_unserved", "mail"), ("job_unknown", "other")]
    assert found.attention[0] == Attention(
        kind="queue_unserved",
        subject="mail",
        severity="problem",
        since=instant(clock.micros() - 11 * SECOND),
        text="no live worker takes from queue mail, where 1 run waits",
        hint="rota worker MODULE:APP --queues mail",
    )


async def test_the_oldest_of_each_queue(store: Store, clock: ManualClock) -> None:
    began = instant(clock.micros())
    await put(store, delay="1h")
    await put(store)
    clock.advance(timedelta(seconds=5))
    await put(store)
    await put(store, queue="mail")
    later = instant(clock.micros())
    assert await oldest_queued(store) == {"default": began, "mail": later}


async def test_pauses_with_a_backlog(store: Store, clock: ManualClock) -> None:
    await alive(store)
    await store.save_jobs([WORK])
    await store.pause_queue("default", "relay", "ada")
    await store.pause_queue("empty", None, None)
    assert kinds(await overview(store)) == []
    await put(store)
    assert kinds(await overview(store)) == [("queue_paused", "default")]


async def test_leases_that_nobody_takes_away(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    stopping = await put_and_claim(store)
    await store.cancel(stopping.run_id, None, None)
    clock.advance(timedelta(minutes=2))
    assert kinds(await overview(store)) == [
        ("run_stuck", min(held.run_id, stopping.run_id)),
        ("run_stuck", max(held.run_id, stopping.run_id)),
        ("run_lingering", stopping.run_id),
    ]


async def test_schedules_and_their_next_fires(store: Store, clock: ManualClock) -> None:
    await alive(store)
    await make_schedule(store, "hourly", every("1h"))
    await make_schedule(store, "daily", cron("0 3 * * *", tz="Europe/Berlin"))
    await make_schedule(store, "often", every("1m"))
    await make_schedule(store, "off", every("1m"), enabled=False)
    await make_schedule(store, "paused", every("1m"))
    await store.schedules.pause("paused", None, None, clock.micros() + 5 * SECOND)
    found = await overview(store)
    assert [fire.schedule for fire in found.next_fires] == ["often", "hourly", "daily"]
    assert found.next_fires[2].rule == "every day at 03:00, Europe/Berlin"
    assert found.next_fires[2].zone == "Europe/Berlin"
    assert found.schedules == {"active": 3, "paused": 1, "job_paused": 0, "disabled": 1, "ended": 0}
    clock.advance(timedelta(microseconds=2 * MINUTE))
    await alive(store)
    late = await overview(store)
    assert late.late.schedules == 2  # the pause is over as well
    assert kinds(late)[0] == ("schedule_overdue", "paused")
    await plan(store)
    await claim(store)
    assert kinds(await overview(store)) == []


async def test_the_last_day_by_whole_hours_and_what_is_before(store: Store, clock: ManualClock) -> None:
    since = clock.micros() - 24 * HOUR_MICROS
    whole = -(-since // HOUR_MICROS) * HOUR_MICROS
    assert since < whole
    one = '{"runs":{"succeeded":1}}'
    await count(store, 3_600, whole, "a", '{"runs":{"succeeded":5,"failed":2}}')
    await count(store, 3_600, whole + HOUR_MICROS, "b", '{"runs":{"failed":1}}')
    await count(store, 3_600, whole - HOUR_MICROS, "a", '{"runs":{"failed":100}}')  # only in part of that day
    await count(store, 300, whole - 5 * MINUTE, "a", one)
    await count(store, 300, whole + 5 * MINUTE, "a", one)  # within an hour that is counted
    await count(store, 300, since - 1, "a", one)
    found = await overview(store)
    assert found.last_day.runs == {"failed": 3, "succeeded": 6}
    assert found.last_day.success_rate == pytest.approx(6 / 9)


async def test_an_answer_serves_everybody_for_a_while(store: Store, clock: ManualClock) -> None:
    monitoring = MonitoringClient(store, Config())
    first = await monitoring.overview()
    await put(store)
    assert await monitoring.overview() is first
    clock.advance(timedelta(seconds=2))
    assert (await monitoring.overview()).live.queued == 1


async def test_what_is_asked_is_found_by_indexes(store: Store) -> None:
    assert "rota_cursor_due" in await explained(store, "next_fires", late=0, limit=10)
    scheduled = await explained(store, "count_scheduled", most=10)
    for index in ("due", "waiting", "due_limited", "conduct", "due_need"):
        assert f"rota_ready_{index}" in scheduled
    oldest = await explained(store, "queue_counts")
    assert "SCAN rota_ready\n" not in f"{oldest}\n"
    assert "Seq Scan on rota_ready" not in oldest
    counted = await explained(store, "counted_last_day", since=0, whole=5)
    assert "SCAN rota_count" not in counted
    assert "Seq Scan" not in counted


async def test_since_when_the_oldest_of_each_queue_waits(store: Store, clock: ManualClock) -> None:
    first = clock.micros()
    await put(store)
    await put(store, queue="mail")
    clock.advance(timedelta(minutes=1))
    await put(store)
    await put(store, queue="later", delay="1m")
    assert await oldest_queued(store) == {"default": instant(first), "mail": instant(first)}
    await claim(store, 1)
    assert await oldest_queued(store) == {"default": instant(first + MINUTE), "mail": instant(first)}
