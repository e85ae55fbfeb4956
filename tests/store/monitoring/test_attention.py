"""The night of somebody on call, on both databases: what went wrong is noticed without an expectation."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.client.monitoring.attention import AttentionClient
from rota.client.monitoring.overview_reader import OverviewReader
from rota.config import Config
from rota.core.alerts.notifications import WEBHOOK
from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.monitoring.attention import Attention
from rota.core.monitoring.statistics import Tally, day_of
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from rota.errors import UnknownAttention
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.databases.query_plans import explained
from tests.support.runs.runs import LEASE_MICROS, WORK, WORKER, claim, finish, put, put_and_claim, tell
from tests.support.schedules.schedules import MINUTE, SECOND, make_schedule, plan

BACKUP = msgspec.structs.replace(WORK, name="backup")


def client(store: Store) -> AttentionClient:
    return AttentionClient(store, OverviewReader(store, Config()))


async def items(store: Store, kind: str) -> Sequence[Attention]:
    return await client(store).list(kind=kind)


async def execute(store: Store, sql: str, **values: Any) -> None:
    async def body(tx: Tx) -> None:
        await tx.fetch_sql(sql, **values)

    await store.database.transact(body)


async def alive(store: Store, id: str = WORKER.id, **facts: Any) -> None:
    await store.extend(msgspec.structs.replace(WORKER, id=id, name=id.partition("@")[0], **facts), [], LEASE_MICROS)


async def week_of(store: Store, job: str, tally: Tally) -> None:
    sql = "insert into rota_job_stats (job, day, stats) values (:job, :day, :stats)"
    text = msgspec.json.encode(tally).decode()
    await execute(store, sql, job=job, day=day_of(await store.now()) - 1, stats=text)


async def fail_times(store: Store, clock: ManualClock, times: int, name: str = "backup") -> None:
    """Let a schedule of a minute fail so often in a row."""
    await make_schedule(store, name, job=WORK, max_attempts=1)
    for _ in range(times):
        clock.advance(timedelta(minutes=1))
        await plan(store)
        (held,) = await claim(store)
        await tell(store, held, Outcome.FAILED, error=stored_error(RunError("Full", "no space left")))
    clock.advance(timedelta(minutes=1))
    await plan(store)


async def test_a_schedule_that_fails_in_a_row(store: Store, clock: ManualClock) -> None:
    began = clock.micros() + MINUTE
    await fail_times(store, clock, 18)
    (found,) = await items(store, "schedule_failing")
    assert (found.subject, found.weight, found.severity) == ("backup", 18, "problem")
    assert found.text == "the last 18 runs of schedule backup failed: Full: no space left"
    assert found.since == instant(began)
    await make_schedule(store, "well", every("1h"))
    for state, names in (("failing", ["backup"]), ("late", []), ("active", ["backup", "well"]), ("paused", [])):
        assert [schedule.name for schedule in await store.schedules.list(state=state)] == names
    (held,) = await claim(store)
    await finish(store, held)
    clock.advance(timedelta(minutes=1))
    await plan(store)
    assert await items(store, "schedule_failing") == []
    clock.advance(timedelta(hours=2))
    assert [schedule.name for schedule in await store.schedules.list(state="late")] == ["backup", "well"]


async def test_a_schedule_fails_since_the_first_failure_after_its_last_success(
    store: Store, clock: ManualClock
) -> None:
    await make_schedule(store, "backup", job=WORK, max_attempts=1)
    began = clock.micros() + 6 * MINUTE
    for outcome in "fffsfffff":
        clock.advance(timedelta(minutes=1))
        await plan(store)
        (held,) = await claim(store)
        error = stored_error(RunError("Full", f"no space left at {outcome}"))
        ends = Outcome.SUCCEEDED if outcome == "s" else Outcome.FAILED
        await tell(store, held, ends, error=None if outcome == "s" else error)
    clock.advance(timedelta(minutes=1))
    await plan(store)
    (found,) = await items(store, "schedule_failing")
    assert (found.weight, found.since) == (5, instant(began - MINUTE))


async def test_plan_times_that_were_missed(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "backup", every("1h"), catch_up="none")
    clock.advance(timedelta(hours=3, minutes=30))
    await plan(store)
    (found,) = await items(store, "schedule_missed")
    assert (found.subject, found.weight) == ("backup", 3)
    assert found.action is not None
    assert found.action.verb == "schedules.backfill"
    clock.advance(timedelta(days=2))
    await execute(store, "update rota_cursor set next_at = null")
    assert await items(store, "schedule_missed") == []


async def test_a_run_that_was_skipped(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "invoices", every("12h"), overlap="skip")
    await make_schedule(store, "news", every("1m"), overlap="skip")
    clock.advance(timedelta(hours=12))
    await plan(store)
    await claim(store)
    clock.advance(timedelta(hours=12))
    await plan(store)
    (found,) = [it for it in await items(store, "schedule_skipped") if it.subject == "invoices"]
    assert (found.weight, found.severity) == (1, "warning")
    assert found.text.startswith("schedule invoices skipped 1 run within a day: ")


async def test_a_worker_that_was_killed_with_a_run(store: Store, clock: ManualClock) -> None:
    await alive(store)
    await alive(store, "other@1")
    held = await put_and_claim(store)
    clock.advance(timedelta(microseconds=LEASE_MICROS + SECOND))
    await alive(store, "other@2")
    found = {it.subject: it for it in await items(store, "worker_gone")}
    assert [*found] == [WORKER.id]
    assert f"it holds 1 run ({held.run_id})" in found[WORKER.id].text
    await store.reap(100)
    (gone,) = await items(store, "worker_gone")
    assert (gone.severity, gone.weight) == ("problem", 1)
    assert f"it lost 1 run ({held.run_id})" in gone.text


async def test_runs_that_take_much_longer_than_theirs_usually_do(store: Store, clock: ManualClock) -> None:
    await week_of(store, "work", Tally(durations={30 * SECOND: 100}, timed=100, states={"succeeded": 100}))
    first, second = await put_and_claim(store), await put_and_claim(store)
    await put_and_claim(store, BACKUP)
    assert await items(store, "run_slow") == []
    clock.advance(timedelta(minutes=19))
    found = await items(store, "run_slow")
    assert sorted(it.subject or "" for it in found) == sorted([first.run_id, second.run_id])
    assert "is at work for 19m" in found[0].text


@pytest.mark.parametrize(("week", "expected"), [({"succeeded": 990, "failed": 10}, ["work"]), ({"failed": 500}, [])])
async def test_a_job_that_fails_far_more_often_than_in_its_week(
    store: Store, week: dict[str, int], expected: list[str]
) -> None:
    await week_of(store, "work", Tally(states=week))
    for number in range(24):
        held = await put_and_claim(store, max_attempts=1)
        outcome = Outcome.FAILED if number % 2 else Outcome.SUCCEEDED
        await tell(store, held, outcome, error=stored_error(RunError("Timeout", "no answer")) if number % 2 else None)
    assert [it.subject for it in await items(store, "failure_rate")] == expected


async def test_a_queue_that_grows(store: Store) -> None:
    now = await store.now()
    sql = "insert into rota_count (span, at, source, counted) values (300, :at, '', :counted)"
    for no, runs in enumerate((10, 40, 120, 300)):
        at = now - (4 - no) * 5 * MINUTE
        await execute(store, sql, at=at, counted=msgspec.json.encode({"levels": {"mail": [runs, 1, 0]}}).decode())
    (found,) = await items(store, "queue_growing")
    assert (found.subject, found.text) == ("mail", "queue mail grew from 10 to 300 waiting runs")


async def test_a_limit_that_starves_somebody(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", limits=(Limit(max=1),))
    await store.save_jobs([job])
    for _ in range(3):
        await put(store, job)
    clock.advance(timedelta(minutes=16))
    (found,) = await items(store, "limit_starves")
    assert (found.subject, found.weight) == ("job:work", 3)


async def test_a_schedule_that_was_forgotten_paused(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "news")
    await store.schedules.pause("news", "the site is down", "ann", None)
    clock.advance(timedelta(hours=24))
    assert await items(store, "schedule_paused") == []
    clock.advance(timedelta(minutes=1))
    (found,) = await items(store, "schedule_paused")
    assert found.text == "schedule news is paused for 1d by ann (the site is down)"


async def test_versions_that_differ(store: Store) -> None:
    await alive(store)
    assert await items(store, "versions_apart") == []
    await alive(store, "old@1", version="0.0.1")
    (found,) = await items(store, "versions_apart")
    assert "0.0.1 (1 process)" in found.text


async def test_messages_that_nobody_takes(store: Store) -> None:
    held = await put_and_claim(store, msgspec.structs.replace(WEBHOOK, queue="default"), tags=["ops"])
    await tell(store, held, Outcome.FAILED, error=stored_error(RunError("HttpError", "answered 404")))
    (found,) = await items(store, "delivery_refused")
    assert found.subject == "ops"
    assert found.text == "1 message of notification ops could not be sent: HttpError: answered 404"


async def test_a_snooze_is_noted_and_ends(store: Store, clock: ManualClock) -> None:
    await fail_times(store, clock, 3)
    attention = client(store)
    snoozed = await attention.snooze("schedule_failing", "backup", "2h", reason="known", actor="ann")
    assert (snoozed.snoozed_by, snoozed.snooze_reason) == ("ann", "known")
    assert await attention.list(kind="schedule_failing") == []
    assert [it.subject for it in await attention.list(snoozed=True)] == ["backup"]
    assert (await attention.unsnooze("schedule_failing", "backup", actor="ann")).was_snoozed
    assert not (await attention.unsnooze("schedule_failing", "backup")).was_snoozed
    assert [it.subject for it in await attention.list(kind="schedule_failing")] == ["backup"]
    events = await store.events.audit({"kind": "attention"}, 10, None)
    assert [(event.subject, event.type, event.actor) for event in events] == [
        ("backup", "unsnoozed", "ann"),
        ("backup", "snoozed", "ann"),
    ]
    await attention.snooze("schedule_failing", "backup", "1m")
    clock.advance(timedelta(minutes=2))
    assert [it.subject for it in await client(store).list(kind="schedule_failing")] == ["backup"]
    with pytest.raises(UnknownAttention):
        await attention.snooze("run_slow", "backup")


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        ("failing_lanes", {"limit": 10}, "rota_lane_failing"),
        ("failures_of_lanes", {"walk": 20}, "rota_run_plan"),
        ("missed_since", {"since": 0, "limit": 10}, "rota_range_missed"),
    ],
)
async def test_what_is_read_has_an_index(store: Store, statement: str, values: dict[str, Any], index: str) -> None:
    assert index in await explained(store, statement, **values)
