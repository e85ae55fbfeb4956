"""An older program, which knows no limits, on the same database: what it does is harmless, or corrected."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.runs.run import RunFilter
from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.store.limits import strays
from rota.store.runs import waits
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import claim, claim_limited, finish, ids, put, put_and_claim, state_of, tell

ONE = JobDefinition(name="work", limits=(Limit(max=1),))
REJECT = JobDefinition(name="work", limits=(Limit(max=1, when_full="reject"),))
NEWEST = JobDefinition(name="work", limits=(Limit(max=1, when_full="cancel_oldest"),))


async def rows(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql(sql))

    return await store.database.read(body)


async def older_promote(store: Store) -> None:
    sql = "update rota_ready set hold = 0 where hold = 1 and run_at <= :now"
    await store.database.transact(lambda tx: tx.fetch_sql(sql, now=store.database.clock.micros()))


async def older_cancel(store: Store, run_id: str) -> None:
    async def body(tx: Tx) -> None:
        ((attempt, fence, _),) = await tx.fetch("drop_ready", id=run_id)
        values = {"attempt": attempt, "fence": fence, "reason": None, "actor": "somebody", "error": None}
        await tx.fetch("end_unclaimed", id=run_id, state="cancelled", **values)

    await store.database.transact(body)


async def put_delayed(store: Store) -> str:
    return await put(store, ONE, delay="10s")


async def put_among_others(store: Store) -> str:
    run_id, _ = [await put(store, ONE, delay="10s") for _ in range(2)]
    return run_id


async def put_backing_off(store: Store) -> str:
    await put(store, ONE)
    (held,) = await claim_limited(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=10_000_000)
    return held.run_id


async def put_replaced(store: Store) -> str:
    unique = {"fields": [], "on_conflict": "replace"}
    await put(store, ONE, unique=unique)
    return await put(store, ONE, unique=unique, delay="10s")


async def put_behind(store: Store) -> str:
    before = await put_and_claim(store, "other")
    run_id = await put(store, ONE, delay="10s")

    async def follow(tx: Tx) -> None:
        await waits.follow(tx, [(run_id, before.run_id)])
        await tx.fetch_sql("update rota_ready set hold = 3 where run_id = :id", id=run_id)

    await store.database.transact(follow)
    await finish(store, before)
    return run_id


WAYS = [put_delayed, put_among_others, put_backing_off, put_replaced, put_behind]


@pytest.mark.parametrize("way", WAYS)
async def test_its_promote_leaves_limited_runs_under_their_limit(
    store: Store, clock: ManualClock, way: Callable[[Store], Awaitable[str]]
) -> None:
    run_id = await way(store)
    assert await state_of(store, run_id) is RunState.SCHEDULED
    assert run_id in ids(await store.list_runs(RunFilter(states=(RunState.SCHEDULED,)), 10))
    assert (await store.promote(10)).next_in == 10_000_000
    clock.advance(10 * SECOND)
    await older_promote(store)
    assert await claim(store) == []
    assert (await store.promote(10)).next_in is None
    assert await state_of(store, run_id) is RunState.QUEUED
    assert ids(await claim_limited(store)) == [run_id]


async def test_limited_and_other_runs_that_wait_for_their_time_are_counted(store: Store, clock: ManualClock) -> None:
    await put(store, ONE, delay="20s")
    await put(store, delay="10s")
    assert await store.queue_counts() == [("default", 0, 0, 2)]
    assert (await store.promote(10)).next_in == 10_000_000
    clock.advance(10 * SECOND)
    promoted = await store.promote(10)
    assert (promoted.count, promoted.next_in) == (1, 10_000_000)
    clock.advance(10 * SECOND)
    promoted = await store.promote(10)
    assert (promoted.count, promoted.next_in) == (1, None)
    assert await store.queue_counts() == [("default", 0, 2, 0)]


async def test_its_cancel_leaves_nothing_that_counts(store: Store) -> None:
    await older_cancel(store, await put(store, REJECT))
    await put(store, REJECT)


async def test_what_its_cancel_leaves_does_not_give_way_for_others(store: Store) -> None:
    await older_cancel(store, await put(store, NEWEST))
    second, third = await put(store, NEWEST), await put(store, NEWEST)
    assert [await state_of(store, id) for id in (second, third)] == [RunState.SKIPPED, RunState.QUEUED]


async def test_what_its_cancel_leaves_is_tidied_away(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "_BATCH", 2)
    live = [await put(store, ONE) for _ in range(5)]
    await older_cancel(store, await put(store, ONE))
    for _ in range(3):  # a few at a time, each time others
        await store.tidy()
    assert [str(run_id) for (run_id,) in await rows(store, "select run_id from rota_gate order by run_id")] == live


async def test_a_slot_taken_since_is_not_tidied_away(store: Store) -> None:
    await put(store, ONE)
    (held,) = await claim_limited(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=0)

    async def forget(tx: Tx) -> None:
        await tx.fetch_sql("update rota_gate set fence = :fence", fence=held.fence)

    await store.database.transact(forget)
    found = await store.database.read(strays.look_astray)
    (again,) = await claim_limited(store)
    await store.database.transact(lambda tx: strays.tidy(tx, found))
    assert [fence for (fence,) in await rows(store, "select fence from rota_gate")] == [again.fence]
    await put(store, ONE)
    assert await claim_limited(store) == []


async def test_its_join_of_schedules_and_cursors_names_columns_without_saying_whose(store: Store) -> None:
    """The query of programs before schema 8, on SQLite, for due schedules."""
    sql = "select {schedule_row} from rota_cursor c cross join (select *, 0 as has_lanes from rota_schedule) as found"
    assert await rows(store, sql) == []


async def test_modes_of_a_newer_program_are_kept_and_do_no_harm(store: Store) -> None:
    """To its reader this program is the older one."""
    await store.save_jobs([JobDefinition(name="work")])
    newer = {"limits": [{"max": 1, "when_full": "defer"}], "unique": {"on_conflict": "merge"}, "on_lost": "ask"}

    async def declare(tx: Tx) -> None:
        text = msgspec.json.encode({"name": "work", **newer}).decode()
        await tx.fetch_sql("update rota_job set definition = :text", text=text)

    await store.database.transact(declare)
    definition = await store.job("work")
    assert definition is not None
    first, second = [await put(store, definition, payload={"no": no}) for no in range(2)]
    assert await put(store, definition, payload={"no": 1}) == second  # as with `existing`
    (held,) = await claim_limited(store)  # as with `queue`: the other one waits
    assert (held.run_id, await state_of(store, second)) == (first, RunState.QUEUED)
    assert await tell(store, held, Outcome.LOST)  # as with `retry`
    assert await state_of(store, first) is RunState.QUEUED
    kept = msgspec.to_builtins(definition)
    assert (list(kept["limits"]), kept["on_lost"]) == (newer["limits"], "ask")
