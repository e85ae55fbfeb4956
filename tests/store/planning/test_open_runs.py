"""The one run of an ordinary schedule that is not final is found by its plan time, without a row of its own."""

from typing import Any

from rota.core.states import Outcome
from rota.store import Store
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, tell
from tests.support.schedules.schedules import edit, make_schedule, minutes, plan, runs_of, told


async def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await store.database.read(lambda tx: tx.fetch_sql(sql))]


async def lane_runs(store: Store) -> int:
    return int((await rows(store, "select count(*) from rota_lane_run"))[0][0])


async def has_open_run_at_its_cursor(store: Store) -> bool:
    ((open_plan, cursor_at),) = await rows(store, "select open_plan, cursor_at from rota_cursor")
    return bool(open_plan == cursor_at)


async def test_it_needs_no_row_while_it_is_alone(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    for expected in (["queued"], ["queued", "skipped"]):
        clock.advance(minutes(1))
        await plan(store)
        assert [state for _, state in told(await runs_of(store))] == expected
    assert await lane_runs(store) == 0
    (held,) = await claim(store)
    await tell(store, held, Outcome.SUCCEEDED)
    clock.advance(minutes(1))
    await plan(store)
    assert await has_open_run_at_its_cursor(store)
    assert [state for _, state in told(await runs_of(store))] == ["succeeded", "skipped", "queued"]


async def test_a_second_one_has_a_row_and_both_are_waited_for(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap={"mode": "parallel", "max_overlap": 2})
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert [state for _, state in told(await runs_of(store))] == ["queued", "queued", "skipped"]
    assert await lane_runs(store) == 1
    for held in await claim(store):
        await tell(store, held, Outcome.SUCCEEDED)
    clock.advance(minutes(1))
    await plan(store)
    assert [state for _, state in told(await runs_of(store))] == ["succeeded", "succeeded", "skipped", "queued"]
    assert await has_open_run_at_its_cursor(store)
    assert await lane_runs(store) == 0


async def test_it_still_counts_after_an_edit_to_another_scope_and_back(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes=[("shop", "a")])
    for scope in "aba":
        await edit(store, "s", scopes=[("shop", scope)])
        clock.advance(minutes(1))
        await plan(store)
    states = [(run.scope.id, run.state.value) for run in await runs_of(store)]
    assert states == [("a", "queued"), ("b", "queued"), ("a", "skipped")]


async def test_a_failure_counts_once_though_a_trigger_sees_it_first(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, failure={"mode": "half_open", "threshold": 2}, overlap="allow")
    clock.advance(minutes(1))
    await plan(store)
    (held,) = await claim(store)
    await tell(store, held, Outcome.FAILED)
    await store.schedules.trigger("s", None, force=True)
    clock.advance(minutes(1))
    await plan(store)
    assert await rows(store, "select failures from rota_lane") == [(1,)]
    assert (await runs_of(store))[1].state.value == "queued"
