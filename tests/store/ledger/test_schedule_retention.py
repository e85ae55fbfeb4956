"""Retention of schedules on both databases: pruned runs leave exact ranges, and planning keeps what it needs."""

from datetime import timedelta

import pytest

from rota.core.calendar.triggers import after, every
from rota.core.jobs.job import Retention
from rota.core.ledger.backfill import BackfillOrder
from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, finish, tell
from tests.support.schedules.random_history import JOB, ahead
from tests.support.schedules.schedules import MINUTE, edit, get_schedule, make_schedule, minutes, plan, runs_of

NOTHING = Retention(keep=0, keep_for=timedelta(0))


@pytest.fixture
def clock() -> ManualClock:
    return ahead()


async def prune(store: Store, retention: Retention = NOTHING) -> int:
    """Prune, and verify the ledger before and after."""
    await verify(store)
    count = await store.prune(lambda _job: retention)
    await verify(store)
    return count


async def verify(store: Store) -> int:
    found = await store.ledger.verify("s")
    assert found.ok, found.findings
    return found.plan_times


async def fetch(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return [tuple(row) for row in await tx.fetch_sql(sql)]

    return await store.database.read(body)


async def ranges(store: Store) -> list[Row]:
    return await fetch(store, "select kind, reason, scope_id, count from rota_range order by kind, reason, scope_id")


async def live(store: Store, clock: ManualClock, count: int) -> None:
    for _ in range(count):
        clock.advance(minutes(1))
        await plan(store)
        for claimed in await claim(store):
            await finish(store, claimed)
    clock.advance(timedelta(seconds=1))


async def test_pruned_runs_leave_one_range_and_the_newest_stays(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    await live(store, clock, 5)
    assert await prune(store) == 4
    assert await ranges(store) == [("pruned", "ran", "global", 4)]
    assert len(await runs_of(store)) == 1
    await live(store, clock, 3)
    assert await prune(store) == 3
    assert await ranges(store) == [("pruned", "ran", "global", 7)]
    assert await prune(store) == 0
    assert await verify(store) == 8


async def test_a_run_that_planning_has_not_looked_at_since_it_ended_stays(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="allow", job=JOB)
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    for claimed in await claim(store):
        await tell(store, claimed, Outcome.FAILED)
    clock.advance(timedelta(seconds=1))
    assert await prune(store) == 0
    clock.advance(minutes(1))
    await plan(store)
    assert await prune(store) == 2


async def test_covered_plan_times_are_pruned_with_their_run(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes=[("shop", "a"), ("shop", "b")])
    clock.advance(minutes(9))
    await live(store, clock, 1)
    await live(store, clock, 1)
    assert await prune(store) == 2
    assert await ranges(store) == [("pruned", "ran", "a", 10), ("pruned", "ran", "b", 10)]


async def test_skips_fold_by_what_they_have_in_common(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1s"))
    for _ in range(130):
        clock.advance(timedelta(seconds=1))
        await plan(store)
    assert await prune(store, Retention(keep=1_000)) == 29
    assert await ranges(store) == [("skipped", "overlap", "global", 29)]
    assert await prune(store, Retention(keep=1_000)) == 0
    (first, *_, last) = await runs_of(store)
    assert (first.state, last.state) == (RunState.QUEUED, RunState.SKIPPED)
    clock.advance(timedelta(milliseconds=1))
    assert await prune(store) == 100
    assert await ranges(store) == [("skipped", "overlap", "global", 129)]


async def test_missed_ranges_become_pruned_for_each_scope(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="none", scopes=[("shop", "a")])
    clock.advance(minutes(10))
    await live(store, clock, 1)
    await edit(store, "s", catch_up="none", scopes=[("shop", "a"), ("shop", "b")])
    clock.advance(minutes(10))
    await live(store, clock, 1)
    month = Retention()
    assert await prune(store, month) == 0
    clock.advance(timedelta(days=31))
    await plan(store)
    await prune(store, month)
    assert [row for row in await ranges(store) if row[1] == "missed"] == [
        ("pruned", "missed", "a", 20),
        ("pruned", "missed", "b", 10),
    ]


async def test_backfilled_runs_are_pruned_apart_where_nothing_was_named(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="none")
    await store.schedules.pause("s", None, None, None)
    clock.advance(minutes(5))
    await store.schedules.resume("s", "skip", None)
    clock.advance(minutes(4))
    await live(store, clock, 1)
    now = clock.micros()
    assert (await store.ledger.backfill("s", BackfillOrder(now - 10 * MINUTE, now, concurrency=100))).count == 9
    for claimed in await claim_limited(store):
        await finish(store, claimed)
    await live(store, clock, 1)
    assert await prune(store) == 10
    assert await ranges(store) == [("pruned", "backfilled", "global", 5), ("pruned", "ran", "global", 5)]
    done = await store.ledger.backfill("s", BackfillOrder(now - 10 * MINUTE, now))
    assert (done.count, done.known) == (0, 10)


async def test_a_key_is_not_planned_again_after_its_run_was_pruned(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    await live(store, clock, 3)
    before = (await get_schedule(store)).cursor_at
    await prune(store)
    await plan(store)
    assert (await get_schedule(store)).cursor_at == before
    assert len(await runs_of(store)) == 1


async def test_triggered_runs_are_pruned_without_a_trace(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1d"))
    for _ in range(3):
        await store.schedules.trigger("s", None, force=False)
        for claimed in await claim(store):
            await finish(store, claimed)
        clock.advance(timedelta(seconds=1))
    assert await prune(store) in (1, 2)  # the newest stays, and the one that planning has not looked at
    assert await ranges(store) == []


async def test_a_schedule_that_follows_its_runs_goes_on(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("1m"))
    for _ in range(4):
        await live(store, clock, 2)
        await prune(store)
    before = (await get_schedule(store)).fired
    await live(store, clock, 3)
    assert (await get_schedule(store)).fired > before


async def test_a_schedule_deleted_long_ago_leaves_nothing(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="none")
    clock.advance(minutes(5))
    await live(store, clock, 3)
    await store.schedules.delete("s", "me")
    await store.prune(lambda _job: NOTHING)
    assert await fetch(store, "select count(*) from rota_schedule") == [(1,)]
    clock.advance(timedelta(days=31))
    await store.prune(lambda _job: NOTHING)
    for table in ("schedule", "cursor", "revision", "range", "scope_span", "lane", "lane_run", "run"):
        assert await fetch(store, f"select count(*) from rota_{table}") == [(0,)], table


async def test_scopes_that_are_not_named_any_more_leave_nothing(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes="shops", job=JOB, catch_up="none", overlap="allow")
    stays = Scope("shop", "stays")
    day = Retention(keep=0, keep_for=timedelta(days=1))
    for turn in range(5):
        clock.advance(minutes(3))
        await plan(store, shops=(stays, *(Scope("shop", f"{turn}-{place}") for place in range(3))))
        for claimed in await claim(store):
            await tell(store, claimed, Outcome.FAILED)
    clock.advance(minutes(1))
    await plan(store, shops=(stays,))
    await prune(store, day)
    assert (await fetch(store, "select count(*) from rota_scope_span where until is not null")) == [(15,)]
    clock.advance(timedelta(days=2))
    await plan(store, shops=(stays,))
    await prune(store, day)
    await prune(store, day)
    assert await fetch(store, "select scope_id from rota_scope_span") == [("stays",)]
    assert await fetch(store, "select scope_id from rota_lane") == [("stays",)]
    assert await fetch(store, "select distinct scope_id from rota_run") == [("stays",)]
    assert await fetch(store, "select distinct scope_id from rota_range where scope_id not in ('', 'stays')") == []


async def test_a_scope_that_is_named_again_keeps_its_past(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes="shops", job=JOB, overlap="allow")
    a, b = Scope("shop", "a"), Scope("shop", "b")
    day = Retention(keep=0, keep_for=timedelta(days=1))
    for scopes in ((a, b), (a, b), (b,), (a, b)):
        clock.advance(minutes(1))
        await plan(store, shops=scopes)
        for claimed in await claim(store):
            await finish(store, claimed)
    for _ in range(3):
        clock.advance(timedelta(days=1))
        await plan(store, shops=(a, b))
        for claimed in await claim(store):
            await finish(store, claimed)
        await prune(store, day)
    assert len(await fetch(store, "select since from rota_scope_span where scope_id = 'a'")) == 2


async def test_a_scope_that_a_revision_lists_keeps_its_past(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes=[("shop", "a")], job=JOB, overlap="allow")
    await live(store, clock, 3)
    await edit(store, "s", scopes="shops", overlap="allow")
    for scopes in ((Scope("shop", "a"),), ()):
        clock.advance(minutes(1))
        await plan(store, shops=scopes)
        for claimed in await claim(store):
            await finish(store, claimed)
    day = Retention(keep=0, keep_for=timedelta(days=1))
    clock.advance(timedelta(days=2))
    await plan(store, shops=())
    await prune(store, day)
    await prune(store, day)
    assert len(await fetch(store, "select since from rota_scope_span")) == 1
    assert await verify(store) == 4
