"""Expectations of schedules: about their own runs only, also about those that were never made."""

from datetime import timedelta
from typing import Any

import pytest

from rota.core.alerts.expectations import expectations_of
from rota.core.calendar.triggers import every, once
from rota.core.schedules.revisions import Change
from rota.core.states import Outcome
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import MINUTE, ManualClock
from tests.support.runs.expectations import listen, look, noted, open_now, signals
from tests.support.runs.runs import claim, finish, make, put, tell
from tests.support.schedules.schedules import definition_of, edit, get_schedule, make_schedule, noon, plan

TICK = timedelta(microseconds=1)


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def do(store: Store, outcome: Outcome = Outcome.SUCCEEDED) -> None:
    for held in await claim(store):
        assert await tell(store, held, outcome)


async def test_a_run_that_does_not_begin(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1h"), expect={"start_within": "5m"})
    clock.advance(60 * MINUTE)
    await plan(store)
    clock.advance(5 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+start_within"]
    assert await open_now(store) == [("schedule", "s", "start_within")]
    held = await claim(store)
    assert await look(store) == ["-start_within"]
    await finish(store, held[0])
    assert await look(store) == []
    trail = [event.type for event in await store.events.of_schedule("s")]
    assert trail == ["created", "breached", "met"]


async def test_a_plan_time_that_nobody_plans(store: Store, clock: ManualClock) -> None:
    await listen(store, "work")
    await make_schedule(store, trigger=every("1h"), expect={"start_within": "5m"}, delay="1m", jitter="1m")
    clock.advance(67 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+start_within"]
    (signal,) = await signals(store)
    assert signal[:5] == ("breached", "schedule", "s", "work", "s")
    await plan(store)
    await store.promote(10)
    await do(store)
    assert await look(store) == ["-start_within"]


async def test_runs_of_others_do_not_count(store: Store, clock: ManualClock) -> None:
    await make_schedule(
        store, trigger=every("1h"), expect={"start_within": "5m", "success_every": "1h", "max_consecutive_failures": 0}
    )
    await make_schedule(store, "other", trigger=every("1m"))
    await put(store)
    clock.advance(30 * MINUTE)
    await plan(store)
    assert await look(store) == []
    await do(store, Outcome.FAILED)
    assert await look(store) == []
    await put(store)
    await do(store)
    clock.advance(30 * MINUTE + TICK)
    await plan(store)
    assert await look(store) == ["+success_every"]


async def test_ends_of_its_runs(store: Store, clock: ManualClock) -> None:
    expected: dict[str, Any] = {"max_consecutive_failures": 1, "finish_within": "30m", "max_duration": "20m"}
    await make_schedule(store, trigger=every("1h"), expect=expected)
    for _ in range(2):
        clock.advance(60 * MINUTE)
        await plan(store)
        await do(store, Outcome.FAILED)
    assert await look(store) == ["+max_consecutive_failures"]
    clock.advance(60 * MINUTE)
    await plan(store)
    (held,) = await claim(store)
    clock.advance(20 * MINUTE + TICK)
    assert await look(store) == ["+max_duration"]
    clock.advance(10 * MINUTE)
    assert await look(store) == ["+finish_within"]
    await finish(store, held)
    assert await look(store) == ["-finish_within", "-max_consecutive_failures", "-max_duration"]


async def test_one_done_again_by_hand_heals_it(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1h"), expect={"success_every": "90m"})
    clock.advance(60 * MINUTE)
    await plan(store)
    await do(store, Outcome.FAILED)
    clock.advance(31 * MINUTE)
    assert await look(store) == ["+success_every"]
    await store.schedules.trigger("s", None, force=False)
    await do(store)
    assert await look(store) == ["-success_every"]


async def test_several_scopes(store: Store, clock: ManualClock) -> None:
    scopes = [("account", str(number)) for number in range(3)]
    await make_schedule(
        store, trigger=every("1h"), scopes=scopes, expect={"start_within": "5m", "max_consecutive_failures": 2}
    )
    clock.advance(60 * MINUTE)
    await plan(store)
    held = await claim(store, 2)
    clock.advance(6 * MINUTE)
    assert await look(store) == ["+start_within"]
    held += await claim(store)
    assert await look(store) == ["-start_within"]
    for one in held:
        assert await tell(store, one, Outcome.FAILED)
    assert await look(store) == ["+max_consecutive_failures"]


async def test_paused_it_is_not_late(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1h"), expect={"success_every": "90m"})
    clock.advance(91 * MINUTE)
    assert await look(store) == ["+success_every"]
    await store.schedules.pause("s", None, None, None)
    assert await look(store) == ["-success_every"]
    clock.advance(timedelta(days=1))
    await store.schedules.resume("s", "skip", None)
    clock.advance(90 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+success_every"]


@pytest.mark.parametrize("how", ["until", "disabled", "job"])
async def test_every_rest_counts_anew(store: Store, clock: ManualClock, how: str) -> None:
    await make_schedule(store, trigger=every("1h"), expect={"success_every": "90m"})
    if how == "until":
        await store.schedules.pause("s", None, None, clock.micros() + 86_400_000_000)
    elif how == "disabled":
        await edit(store, "s", every("1h"), enabled=False, expect={"success_every": "90m"})
    else:
        await store.pause_job("work", None, None)
    clock.advance(timedelta(days=1))
    assert await look(store) == []
    await plan(store)
    if how == "disabled":
        await edit(store, "s", every("1h"), expect={"success_every": "90m"})
    elif how == "job":
        await store.resume_job("work", "skip", None)
    clock.advance(90 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+success_every"]


async def test_one_that_has_ended_needs_no_success(store: Store, clock: ManualClock) -> None:
    trigger = once(instant(clock.micros() + 60_000_000))
    await make_schedule(store, trigger=trigger, expect={"success_every": "1h", "finish_within": "2h"})
    clock.advance(MINUTE)
    await plan(store)
    clock.advance(timedelta(hours=3))
    assert await look(store) == ["+finish_within"]
    await do(store)
    assert await look(store) == ["-finish_within"]
    clock.advance(timedelta(days=3))
    assert await look(store) == []


async def test_deleted_nothing_is_expected_of_it(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1h"), expect={"success_every": "90m"})
    clock.advance(91 * MINUTE)
    await look(store)
    await store.schedules.delete("s", "anna")
    assert await store.expectations.list() == []
    assert await open_now(store) == []
    assert await noted(store, "s") == [("breached", "success_every"), ("met", "success_every")]


async def test_declared_again_it_changes_unless_a_person_set_it(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1h"), expect={"success_every": "90m"})
    await edit(store, "s", every("1h"), expect={"success_every": "2h"})
    assert [one.expect for one in await store.expectations.list()] == [{"success_every": "2h"}]
    assert (await get_schedule(store)).definition.expect == expectations_of({"success_every": "2h"})
    await store.expectations.update("schedule", "s", {"success_every": "3h"}, "anna")
    definition = await definition_of(store, every("1h"), expect={"success_every": "4h"})
    await store.schedules.declare("s", definition, Change(note="declaration changed", actor="code", declared="x"))
    assert [(one.owner, one.expect) for one in await store.expectations.list()] == [("anna", {"success_every": "3h"})]


async def test_no_more_declared_it_is_dropped(store: Store) -> None:
    await make_schedule(store, trigger=every("1h"), expect={"success_every": "90m"})
    await edit(store, "s", every("1h"))
    assert await store.expectations.list() == []


async def test_a_run_that_waits_for_the_one_before_is_not_late(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1h"), overlap="queue_all", expect={"start_within": "5m"})
    clock.advance(60 * MINUTE)
    await plan(store)
    (held,) = await claim(store)
    clock.advance(60 * MINUTE)
    await plan(store)
    clock.advance(30 * MINUTE)
    assert await look(store) == []
    await finish(store, held)
    clock.advance(5 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+start_within"]


async def test_many_runs_of_its_job_since(store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule's own runs are found by their plan times, however many others its job has."""
    monkeypatch.setattr("rota.store.alerts.expectation_facts._WALK_BY_HAND", 2)
    await make_schedule(store, trigger=every("1h"), expect={"success_every": "90m", "max_consecutive_failures": 0})
    clock.advance(60 * MINUTE)
    await plan(store)
    await do(store)
    await store.enqueue([make() for _ in range(5)])
    await do(store, Outcome.FAILED)
    clock.advance(31 * MINUTE)
    await plan(store)
    assert await look(store) == []
