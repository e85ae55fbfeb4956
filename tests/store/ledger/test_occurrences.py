"""The ledger on both databases: exact whatever is done to a schedule, and damage is found."""

from datetime import datetime, timedelta

import msgspec
import pytest

from rota.core.calendar.triggers import cron, every
from rota.core.ledger.backfill import BackfillOrder, Ran
from rota.core.ledger.occurrences import Occurrence, OccurrenceQuery, PagePosition, Replacement, place_after
from rota.core.ledger.verify import Verification
from rota.core.states import Outcome
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.instants import instant, micros_at
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import LEASE_MICROS, claim, claim_limited, finish, tell
from tests.support.schedules.random_history import JOB, Life, ahead
from tests.support.schedules.schedules import MINUTE, edit, get_schedule, make_schedule, minutes, plan


@pytest.fixture
def clock() -> ManualClock:
    return ahead()


@pytest.mark.parametrize("seed", range(12))
async def test_every_plan_time_is_accounted_for(store: Store, clock: ManualClock, seed: int) -> None:
    life = Life(store, clock, seed)
    await life.begin()
    for _ in range(60):
        await life.step()
        await life.verify()


@pytest.mark.parametrize("seed", range(100, 104))
async def test_explanations_agree_with_the_ledger(store: Store, clock: ManualClock, seed: int) -> None:
    start = clock.micros()
    life = Life(store, clock, seed)
    await life.begin()
    for _ in range(60):
        await life.step()
    records = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 10_000))
    own = {(r.plan_time, r.scope) for r in records if r.plan_time is not None}
    for record in records:
        if record.kind != "paused":
            continue
        for at in {record.from_at, record.to_at}:
            assert at is not None
            assert (at, record.scope) not in own
            found = await store.ledger.explain("s", micros_at(at), LEASE_MICROS)
            if not any(time == at for time, _ in own):  # else it tells of the run that another scope has
                assert (found.verdict, found.facts["reason"]) == ("paused", record.reason)


async def outage(store: Store, clock: ManualClock) -> None:
    """Make two runs, an hour of nothing of which the last ten minutes are caught up with, a skip, and two runs."""
    await make_schedule(store, catch_up={"mode": "latest", "window": "10m"})
    for passed in (1, 1, 60, 1):
        clock.advance(minutes(passed))
        await plan(store)
        if passed != 60:
            for claimed in await claim(store):
                await finish(store, claimed)
    clock.advance(minutes(1))
    await plan(store)


async def damage(store: Store, sql: str, **values: object) -> Verification:
    async def body(tx: Tx) -> None:
        await tx.fetch_sql(sql, **values)

    await store.database.transact(body)
    return await store.ledger.verify("s")


def told(found: Verification) -> list[tuple[str, int | None, int | None]]:
    return sorted((finding.problem, finding.expected, finding.found) for finding in found.findings)


async def test_what_happened_is_told_in_order(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await outage(store, clock)
    records = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros() + 2 * MINUTE, 100))
    assert [(r.kind, r.count, r.state) for r in records] == [
        ("ran", 1, "succeeded"), ("ran", 1, "succeeded"), ("missed", 49, None), ("coalesced", 10, None),
        ("ran", 1, "succeeded"), ("skipped", 1, "skipped"), ("ran", 1, "queued"), ("pending", 1, None),
        ("pending", 1, None),
    ]  # fmt: skip
    assert [r.plan_time for r in records[:2]] == [instant(start + MINUTE), instant(start + 2 * MINUTE)]
    assert records[3].run_id == records[4].run_id
    assert records[3].to_at == instant(start + 61 * MINUTE)
    assert {r.revision for r in records} == {1}
    assert (await store.ledger.verify("s")).plan_times == 64
    assert len(await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 3))) == 3


@pytest.mark.parametrize("size", [1, 2, 3, 5])
async def test_page_after_page_tells_the_same(store: Store, clock: ManualClock, size: int) -> None:
    start = clock.micros()
    await make_schedule(
        store, scopes=[("shop", "a"), ("shop", "b"), ("shop", "c")], catch_up={"mode": "latest", "window": "10m"}
    )
    for passed in (1, 30, 1):
        clock.advance(minutes(passed))
        await plan(store)
    await store.schedules.pause("s", "moving", "me", None)
    clock.advance(minutes(10))
    await store.schedules.resume("s", "skip", "me")
    clock.advance(minutes(1))
    await plan(store)
    end = clock.micros() + 2 * MINUTE
    whole = await store.ledger.occurrences("s", OccurrenceQuery(start, end, 100))
    assert {one.kind for one in whole} == {"ran", "missed", "coalesced", "skipped", "paused", "pending"}
    found: list[Occurrence] = []
    place: PagePosition | None = None
    while True:
        past = (0, 0) if place is None else (micros_at(place.at), place.told)
        page = await store.ledger.occurrences("s", OccurrenceQuery(start, end, size, *past))
        found += page
        place = place_after(page, place)
        if len(page) < size:
            break
    assert found == whole


async def test_a_pause_is_told_with_its_reason(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await make_schedule(store, scopes=[("shop", "a"), ("shop", "b")])
    await store.schedules.pause("s", "moving", "me", None)
    clock.advance(minutes(10))
    (record,) = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100))
    assert (record.kind, record.count, record.reason, record.scope) == ("paused", 10, "paused: moving", None)
    await store.schedules.resume("s", "skip", "me")
    (record,) = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100))
    assert (record.kind, record.count, record.revision) == ("paused", 10, 2)
    assert (await store.ledger.verify("s")).ok


async def test_what_held_a_schedule_is_told_though_its_job_was_paused_too(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await make_schedule(store)
    await store.schedules.pause("s", "mine", "ann", None)
    clock.advance(minutes(2))
    await store.pause_job("work", "noisy", "bob")
    clock.advance(minutes(2))
    await store.resume_job("work", "skip", "bob")
    clock.advance(minutes(2))
    await edit(store, "s", priority=3)
    clock.advance(minutes(2))
    records = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100))
    assert [(r.kind, r.count, r.reason) for r in records] == [("paused", 2, "paused: mine")] * 4
    said = "paused: mine by ann, since " + instant(start).isoformat().replace("+00:00", "Z")
    for minute in (1, 3, 5):
        found = await store.ledger.explain("s", start + minute * MINUTE, LEASE_MICROS)
        assert found.words == (f"The schedule was not active then: {said}.",)


async def test_a_job_that_is_still_paused_holds_a_schedule_that_was_resumed(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await make_schedule(store)
    await store.pause_job("work", None, "bob")
    await store.schedules.pause("s", "mine", "ann", None)
    clock.advance(minutes(2))
    await store.schedules.resume("s", "skip", "ann")
    clock.advance(minutes(2))
    records = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100))
    assert [(r.count, r.reason) for r in records] == [(2, "paused: mine"), (2, "job paused")]


async def test_what_was_made_up_for_is_told_with_the_run_that_did(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await make_schedule(store, job=JOB)
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    (claimed,) = await claim(store)
    await tell(store, claimed, Outcome.FAILED)
    records = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100))
    assert [(r.kind, r.state, r.again) for r in records] == [("ran", "failed", None), ("skipped", "skipped", None)]
    made = (await store.ledger.backfill("s", BackfillOrder(start + MINUTE, clock.micros(), ran=Ran.FAILED))).runs
    await finish(store, *await claim_limited(store))
    (held,) = await claim_limited(store)
    await tell(store, held, Outcome.FAILED)
    last = (await store.ledger.backfill("s", BackfillOrder(start + MINUTE, clock.micros(), ran=Ran.FAILED))).runs
    again = [Replacement(made[0], "succeeded"), Replacement(last[0], "queued")]
    records = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100))
    assert [(r.kind, r.state, r.again) for r in records] == [
        ("ran", "failed", again[0]), ("skipped", "skipped", again[1]),
    ]  # fmt: skip
    for minute, one in enumerate(again, 1):
        found = await store.ledger.explain("s", start + minute * MINUTE, LEASE_MICROS)
        assert found.words[-1].endswith(f" Run {one.run_id}, which replaces it, is {one.state}.")
        assert found.facts["runs"][0]["again"] == {"run_id": one.run_id, "state": one.state}
        assert found.verdict == records[minute - 1].kind
    assert (await store.ledger.verify("s")).ok


async def test_a_retry_of_a_retry_is_the_newest(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, job=JOB)
    clock.advance(minutes(1))
    await plan(store)
    (claimed,) = await claim(store)
    await tell(store, claimed, Outcome.FAILED)
    last = claimed.run_id
    for _ in range(2):
        copy = msgspec.structs.replace(await store.copy_of(last), id=store.new_id(), retry_of=last)
        await store.enqueue([copy])
        last = copy.id
        (claimed,) = await claim(store)
        await tell(store, claimed, Outcome.FAILED)
    (record,) = await store.ledger.occurrences("s", OccurrenceQuery(clock.micros() - MINUTE, clock.micros(), 100))
    assert record.again == Replacement(last, "failed")


@pytest.mark.parametrize("limit", [100, 4, 2])
async def test_what_was_backfilled_is_no_part_of_the_pause(store: Store, clock: ManualClock, limit: int) -> None:
    start = clock.micros()
    await make_schedule(store, job=JOB, failure="pause")
    clock.advance(minutes(1))
    await plan(store)
    (claimed,) = await claim(store)
    await tell(store, claimed, Outcome.FAILED)
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(minutes(10))
    await store.ledger.backfill("s", BackfillOrder(start + 4 * MINUTE, start + 6 * MINUTE))
    records = await store.ledger.occurrences("s", OccurrenceQuery(start + 3 * MINUTE, clock.micros(), limit))
    told_in_order = [("paused", 1, 3, 3), ("ran", 1, 4, 4), ("ran", 1, 5, 5), ("ran", 1, 6, 6), ("paused", 6, 7, 12)]
    assert [
        (r.kind, r.count, minute_of(r.plan_time or r.from_at, start), minute_of(r.plan_time or r.to_at, start))
        for r in records
    ] == told_in_order[:limit]
    assert (await store.ledger.verify("s")).ok


def minute_of(at: datetime | None, start: int) -> int:
    assert at is not None
    return (micros_at(at) - start) // MINUTE


async def test_a_deleted_run_is_found(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await outage(store, clock)
    found = await damage(store, "delete from rota_run where plan_time = :at", at=start + 2 * MINUTE)
    assert told(found) == [("count", 64, 63)]
    assert found.findings[0].plan_times == (instant(start + 2 * MINUTE),)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("update rota_range set count = count - 1", [("count", 64, 63), ("range", 49, 48)]),
        (
            ("insert into rota_range select schedule_id, from_at, to_at, scope_kind, scope_id, kind, 'again', count "
            "from rota_range"),
            [("count", 64, 113), ("double", 1, 2)],
        ),
        ("update rota_run set missed_count = 9 where missed_count = 10", [("count", 64, 63), ("range", 10, 9)]),
        ("delete from rota_range", [("count", 64, 15)]),
        (
            "update rota_run set plan_time = plan_time + 1000000 where state = 'skipped'",
            [("unnamed", 0, 1)],
        ),
        ("update rota_run set scope_id = 'else' where state = 'skipped'", [("count", 64, 63), ("unnamed", 0, 1)]),
    ],
)  # fmt: skip
async def test_damage_is_found(
    store: Store, clock: ManualClock, sql: str, expected: list[tuple[str, int, int]]
) -> None:
    await outage(store, clock)
    assert told(await damage(store, sql)) == expected


async def test_a_run_in_a_missed_range_is_found_though_the_count_is_right(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await outage(store, clock)
    found = await damage(
        store, "update rota_run set plan_time = :to where plan_time = :at", at=start + MINUTE, to=start + 5 * MINUTE
    )
    assert told(found) == [("double", 1, 2)]


async def test_a_backfilled_run_in_a_missed_range_is_found(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await outage(store, clock)
    await store.ledger.backfill("s", BackfillOrder(start + 5 * MINUTE, start + 5 * MINUTE))
    assert (await store.ledger.verify("s")).ok
    found = await damage(store, "update rota_run set plan_time = plan_time + :step where backfilled = 1", step=MINUTE)
    assert told(found) == [("double", 1, 2)]


async def test_runs_at_plan_times_of_a_provider_count_from_when_it_named_their_scope(
    store: Store, clock: ManualClock
) -> None:
    a, b = Scope("shop", "a"), Scope("shop", "b")
    await make_schedule(store, scopes="shops", overlap="allow")
    total = 0
    for scopes in ((a,), (a, b), (b,), (), (a, b)):
        clock.advance(minutes(7))
        await plan(store, shops=scopes)
        found = await store.ledger.verify("s")
        assert found.ok, found.findings
        total = found.plan_times
    assert total == 7 + (7 + 1) + 7 + 0 + 1 + 1


async def test_time_zone_data_that_is_not_known_any_more_is_not_verified(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=cron("*/5 * * * *", "Europe/Berlin"))
    clock.advance(minutes(30))
    await plan(store)
    found = await damage(store, "update rota_revision set tzdata = '1999a'")
    assert found.ok
    assert found.plan_times == 0
    assert found.unverified == ("revision 1 was planned with time zone data 1999a",)


async def test_what_could_not_be_planned_before_an_edit_is_missed(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store)
    clock.advance(minutes(5))
    await damage(store, "delete from rota_job")
    await store.schedules.pause("s", None, None, None)
    found = await store.ledger.verify("s")
    assert found.ok
    assert found.plan_times == 5
    assert schedule.id == (await get_schedule(store)).id


async def test_catching_up_that_pauses_again(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1m"), job=JOB, failure="pause")
    clock.advance(minutes(1))
    await plan(store)
    (claimed,) = await claim(store)
    await store.schedules.pause("s", None, None, None)
    await tell(store, claimed, Outcome.FAILED)
    clock.advance(minutes(5))
    await store.schedules.resume("s", "all", "me")
    schedule = await get_schedule(store)
    assert (schedule.state, schedule.pause_reason) == ("paused", "failure: the last run failed")
    assert (await store.ledger.verify("s")).ok


@pytest.mark.parametrize("mode", ["skip", "all"])
async def test_max_runs_ends_what_it_names(store: Store, clock: ManualClock, mode: str) -> None:
    start = clock.micros()
    await make_schedule(store, max_runs=2, overlap="allow")
    for _ in range(5):
        clock.advance(timedelta(minutes=1))
        await plan(store)
    whole = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100))
    assert [record.kind for record in whole] == ["ran", "ran"]
    await store.schedules.pause("s", None, None, None)
    clock.advance(timedelta(minutes=5))
    assert await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100)) == whole
    await store.schedules.resume("s", mode, None)
    clock.advance(timedelta(minutes=5))
    await store.pause_job("work", None, "me")
    clock.advance(timedelta(minutes=5))
    await store.resume_job("work", mode, "me")
    clock.advance(timedelta(minutes=5))
    await plan(store)
    assert await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100)) == whole
    found = await store.ledger.verify("s")
    assert (found.ok, found.plan_times) == (True, 2)


async def test_a_schedule_that_ended_goes_on_when_it_may(store: Store, clock: ManualClock) -> None:
    start = clock.micros()
    await make_schedule(store, max_runs=1, overlap="allow")
    clock.advance(timedelta(minutes=1))
    await plan(store)
    await store.schedules.pause("s", "mine", "me", None)
    clock.advance(timedelta(minutes=4))
    await edit(store, "s", max_runs=2, overlap="allow")
    clock.advance(timedelta(minutes=3))
    await store.schedules.resume("s", "skip", "me")
    clock.advance(timedelta(minutes=2))
    await plan(store)
    records = await store.ledger.occurrences("s", OccurrenceQuery(start, clock.micros(), 100))
    assert [(r.kind, r.count, r.reason) for r in records if r.kind != "coalesced"] == [
        ("ran", 1, None), ("paused", 3, "paused: mine"), ("ran", 1, None),
    ]  # fmt: skip
    assert (await store.ledger.verify("s")).ok
