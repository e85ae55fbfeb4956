"""Ticks: a schedule, its lanes and an instant become runs, skips, gaps, and where to look next."""

from datetime import timedelta
from functools import partial
from itertools import count
from time import process_time
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.calendar.rules import Rule
from rota.core.calendar.triggers import after, cron, every
from rota.core.planning import tick as ticks
from rota.core.planning.catch_up import Gap
from rota.core.planning.overlap_and_failure import Create, Lane, LiveRun, Skip
from rota.core.planning.tick import Refuse, ScheduleState, Tick, following_plan, no_limits, tick
from rota.core.schedules.policies import (
    FAILURE,
    OVERLAP,
    CatchUp,
    CatchUpMode,
    Failure,
    FailureMode,
    Overlap,
    OverlapMode,
    catch_up_of,
)
from rota.core.schedules.schedule import ScheduleDefinition
from rota.values.durations import parse_duration
from rota.values.scope import GLOBAL, Scope
from tests.support.schedules.plan_times import DAY, HOUR, MINUTE, SECOND, Listed, StandingOn, Steady, standing

NOON = 1_767_268_800 * SECOND  # 2026-01-01T12:00:00Z
A, B = Scope("account", "a"), Scope("account", "b")
RUNNING = LiveRun("old", begun=True, claimed=True)


def planned_at(
    schedule: ScheduleState,
    now: int,
    lanes: dict[Scope, Lane] | None = None,
    *,
    refuse: Refuse = no_limits,
    **more: Any,
) -> Tick:
    numbers = count(1)
    lanes = {scope: Lane() for scope in schedule.definition.lanes} if lanes is None else lanes
    return tick(schedule, lanes, now, new_id=lambda: f"n{next(numbers)}", max_attempts=4, refuse=refuse, **more)


def created(done: Tick) -> list[int]:
    return [planned.plan_time for planned in done.planned if isinstance(planned.decision, Create)]


def test_a_plan_time_that_is_due_gets_a_run() -> None:
    done = planned_at(standing(Steady(HOUR), cursor=NOON), NOON + HOUR)
    (planned,) = done.planned
    assert (planned.run_id, planned.scope, planned.decision) == ("n1", GLOBAL, Create())
    assert planned.plan_time == planned.eligible_at == NOON + HOUR
    assert (done.cursor, done.next_plan, done.next_at) == (NOON + HOUR, NOON + 2 * HOUR, NOON + 2 * HOUR)
    assert (done.fired, done.missed, done.pause, done.awaits) == (1, (), None, None)
    assert done.lanes == {GLOBAL: Lane((LiveRun("n1"),))}


def test_what_is_not_due_stays() -> None:
    done = planned_at(standing(Steady(HOUR), cursor=NOON, fired=7), NOON + HOUR - 1)
    assert (done.planned, done.cursor, done.next_plan, done.fired) == ((), NOON, NOON + HOUR, 7)


@pytest.mark.parametrize("mode", ["none", "latest", "all"])
def test_with_a_delay_the_noon_plan_is_eligible_at_five_past(mode: str) -> None:
    schedule = standing(
        Steady(HOUR),
        cursor=NOON - HOUR,
        delay=timedelta(minutes=5),
        catch_up=CatchUp(mode=CatchUpMode(mode), grace=timedelta(0)),
    )
    early = planned_at(schedule, NOON + 5 * MINUTE - 1)
    assert (early.planned, early.next_at) == ((), NOON + 5 * MINUTE)
    (planned,) = planned_at(schedule, NOON + 5 * MINUTE).planned
    assert (planned.plan_time, planned.eligible_at) == (NOON, NOON + 5 * MINUTE)


@pytest.mark.parametrize("cadence", ["5m", "1h", "7s", "1d"])
@pytest.mark.parametrize("now", [NOON, NOON + 1, NOON + 17 * MINUTE + 13 * SECOND, NOON + DAY - 1])
@pytest.mark.parametrize("delay", [0, 5])
def test_the_latest_plan_is_the_instant_floored_to_the_cadence(cadence: str, now: int, delay: int) -> None:
    trigger = every(cadence)
    step = trigger.interval // timedelta(microseconds=1)
    definition = ScheduleDefinition(job="rollup", rule=Rule(trigger=trigger), delay=timedelta(minutes=delay))
    cursor = (NOON - 3 * DAY) // step * step
    (planned,) = planned_at(ScheduleState("s1", "rollup", definition, cursor, cursor + step), now).planned
    assert planned.plan_time == (now - delay * MINUTE) // step * step


EACH_FIVE_SECONDS: dict[str, Any] = {
    "catch_up": CatchUp(mode=CatchUpMode.ALL, keep=3),
    "overlap": Overlap(mode=OverlapMode.CANCEL_PREVIOUS),
    "failure": Failure(mode=FailureMode.RETRY),
}


def each_five_seconds() -> ScheduleState:
    definition = ScheduleDefinition(job="demo", rule=Rule(trigger=cron("*/5 * * * * *")), **EACH_FIVE_SECONDS)
    return ScheduleState("s1", "demo-task", definition, NOON, NOON + 5 * SECOND)


def test_sample_if_the_last_run_is_still_going_it_is_cancelled_and_a_new_one_begins() -> None:
    (planned,) = planned_at(each_five_seconds(), NOON + 5 * SECOND, {GLOBAL: Lane((RUNNING,))}).planned
    assert planned.decision == Create(single=True, after=("old",), cancels=("old",))


def test_sample_if_the_last_run_failed_the_attempt_grows() -> None:
    lane = Lane(failed=True, failures=1, attempt=1, finished_at=NOON)
    (planned,) = planned_at(each_five_seconds(), NOON + 5 * SECOND, {GLOBAL: lane}).planned
    assert planned.decision == Create(attempt=2, single=True)


def test_sample_if_the_look_is_late_the_newest_three_are_made_up_for() -> None:
    done = planned_at(each_five_seconds(), NOON + 31 * SECOND, {GLOBAL: Lane((RUNNING,))})
    assert created(done) == [NOON + 20 * SECOND, NOON + 25 * SECOND, NOON + 30 * SECOND]
    assert done.missed == (Gap(NOON + 5 * SECOND, NOON + 15 * SECOND, 3, "more than the newest 3"),)
    assert [planned.decision for planned in done.planned] == [
        Create(single=True, after=("old",), cancels=("old",)),
        Create(single=True, after=("old",), cancels=("old",), supersedes=("n1",)),
        Create(single=True, after=("old",), cancels=("old",), supersedes=("n2",)),
    ]
    assert [run.id for run in done.lanes[GLOBAL].live] == ["old", "n3"]


def test_sample_if_others_of_its_kind_fill_the_limit_it_is_skipped() -> None:
    done = planned_at(each_five_seconds(), NOON + 5 * SECOND, refuse=lambda *_: "limit 'demo' is full")
    assert [planned.decision for planned in done.planned] == [Skip("limit 'demo' is full")]
    assert done.lanes == {GLOBAL: Lane()}
    assert (done.cursor, done.fired) == (NOON + 5 * SECOND, 1)


def test_limits_are_asked_last_and_only_of_a_run_that_would_be() -> None:
    asked = []

    def refuse(scope: Scope, plan_time: int, create: Create) -> str | None:
        asked.append((scope, plan_time, create))
        return None

    schedule = standing(Steady(HOUR), cursor=NOON, scopes=(A, B))
    planned_at(schedule, NOON + HOUR, {A: Lane((RUNNING,)), B: Lane()}, refuse=refuse)
    assert asked == [(B, NOON + HOUR, Create())]


def test_each_scope_has_a_lane_of_its_own() -> None:
    schedule = standing(Steady(HOUR), cursor=NOON, scopes=(A, B))
    done = planned_at(schedule, NOON + 3 * HOUR, {A: Lane((RUNNING,)), B: Lane()})
    assert [(planned.scope, planned.covered) for planned in done.planned] == [(A, 2), (B, 2)]
    assert [type(planned.decision) for planned in done.planned] == [Skip, Create]
    assert done.fired == 1  # plan times, not runs
    assert done.lanes == {A: Lane((RUNNING,)), B: Lane((LiveRun("n2"),))}


def test_without_a_scope_plan_times_pass() -> None:
    done = planned_at(standing(Steady(HOUR), cursor=NOON), NOON + HOUR, {})
    assert (done.planned, done.cursor) == ((), NOON + HOUR)


def test_a_newcomer_gets_no_catch_up() -> None:
    schedule = standing(
        Steady(HOUR),
        cursor=NOON,
        scopes=(A, B),
        catch_up=CatchUp(mode=CatchUpMode.ALL),
        overlap=Overlap(mode=OverlapMode.QUEUE_ALL),
    )
    done = planned_at(schedule, NOON + 3 * HOUR, newcomers=frozenset({B}))
    assert [(planned.scope, (planned.plan_time - NOON) // HOUR) for planned in done.planned] == [
        (A, 1),
        (A, 2),
        (A, 3),
        (B, 3),
    ]
    latest = planned_at(standing(Steady(HOUR), cursor=NOON, scopes=(A, B)), NOON + 3 * HOUR, newcomers=frozenset({B}))
    assert [(planned.scope, planned.covered) for planned in latest.planned] == [(A, 2), (B, 0)]


def test_jitter_is_the_same_on_every_planner_and_never_early() -> None:
    scopes = tuple(Scope("account", str(number)) for number in range(200))
    schedule = standing(
        Steady(HOUR), cursor=NOON, scopes=scopes, delay=timedelta(minutes=1), jitter=timedelta(minutes=10)
    )
    done, again = (planned_at(schedule, NOON + HOUR + MINUTE) for _ in range(2))
    late = [planned.eligible_at - planned.plan_time for planned in done.planned]
    assert late == [planned.eligible_at - planned.plan_time for planned in again.planned]
    assert min(late) >= MINUTE
    assert max(late) <= 11 * MINUTE
    assert len(set(late)) > 190
    assert max(late) - min(late) > 8 * MINUTE


def test_after_so_many_runs_it_ends() -> None:
    schedule = standing(
        cursor=NOON,
        fired=3,
        max_runs=5,
        catch_up=CatchUp(mode=CatchUpMode.ALL),
        overlap=Overlap(mode=OverlapMode.ALLOW),
    )
    done = planned_at(schedule, NOON + MINUTE)
    assert created(done) == [NOON + SECOND, NOON + 2 * SECOND]
    assert (done.fired, done.next_plan, done.next_at) == (5, None, None)
    over = planned_at(standing(cursor=NOON, fired=5, max_runs=5), NOON + MINUTE)
    assert (over.planned, over.cursor, over.next_plan) == ((), NOON, None)


def test_skipped_plan_times_count_for_the_most_runs() -> None:
    schedule = standing(cursor=NOON, max_runs=3, catch_up=CatchUp(mode=CatchUpMode.ALL))
    done = planned_at(schedule, NOON + MINUTE)
    assert [type(planned.decision) for planned in done.planned] == [Create, Skip, Skip]
    assert done.next_plan is None


def test_more_than_one_tick_holds_is_looked_at_again_at_once() -> None:
    schedule = standing(cursor=NOON, catch_up=CatchUp(mode=CatchUpMode.ALL, per_tick=10))
    done = planned_at(schedule, NOON + MINUTE)
    assert (len(done.planned), done.next_at) == (10, NOON + MINUTE)
    assert done.next_plan == NOON + 11 * SECOND


def test_the_last_plan_time_ends_a_schedule() -> None:
    done = planned_at(standing(Listed([NOON]), cursor=0), NOON)
    assert (created(done), done.next_plan, done.next_at) == ([NOON], None, None)


def test_a_failure_pauses_where_it_is_seen() -> None:
    schedule = standing(cursor=NOON, catch_up=CatchUp(mode=CatchUpMode.ALL), failure=Failure(mode=FailureMode.PAUSE))
    lane = Lane(failed=True, failures=1, attempt=4, finished_at=NOON)
    done = planned_at(schedule, NOON + MINUTE, {GLOBAL: lane})
    assert [planned.decision for planned in done.planned] == [
        Skip("failure: the last run failed, so the schedule is paused", failure=True)
    ]
    assert (done.pause, done.cursor, done.next_plan) == ("failure: the last run failed", NOON + SECOND, None)
    resumed = standing(cursor=done.cursor, failure=Failure(mode=FailureMode.PAUSE))
    assert len(created(planned_at(resumed, NOON + MINUTE, dict(done.lanes)))) == 1


def test_what_a_pause_held_back_may_have_another_catch_up() -> None:
    schedule = standing(Steady(HOUR), cursor=NOON, overlap=Overlap(mode=OverlapMode.ALLOW))
    every_one = planned_at(schedule.catching_up(CatchUp(mode=CatchUpMode.ALL)), NOON + 3 * HOUR)
    assert created(every_one) == [NOON + HOUR, NOON + 2 * HOUR, NOON + 3 * HOUR]


def test_a_horizon_decides_up_to_there_only() -> None:
    done = planned_at(standing(Steady(HOUR), cursor=NOON), NOON + DAY, horizon=NOON + 2 * HOUR)
    assert (created(done), done.cursor) == ([NOON + 2 * HOUR], NOON + 2 * HOUR)


def following(**policies: Any) -> StandingOn:
    trigger = after("5m")
    schedule = standing(Steady(SECOND), cursor=NOON - SECOND, trigger=trigger, **policies)
    assert schedule.next_plan == NOON
    return schedule


def test_after_waits_for_the_end_of_its_run() -> None:
    done = planned_at(following(), NOON + DAY)
    assert (created(done), done.awaits, done.next_plan, done.next_at) == ([NOON], "n1", None, None)
    assert done.missed == ()


def test_after_waits_for_whatever_was_in_its_way() -> None:
    done = planned_at(following(), NOON, {GLOBAL: Lane((RUNNING,))})
    assert (created(done), done.awaits) == ([], "old")


def test_after_that_was_skipped_for_a_failure_is_planned_from_now() -> None:
    lane = Lane(failed=True, failures=1, attempt=4, finished_at=NOON - SECOND)
    done = planned_at(following(failure=Failure(mode=FailureMode.SKIP)), NOON + 1, {GLOBAL: lane})
    assert (done.awaits, done.next_plan) == (None, NOON + 5 * MINUTE + SECOND)


def test_after_ends_with_its_last_run() -> None:
    done = planned_at(following(max_runs=1), NOON)
    assert (created(done), done.awaits, done.next_plan) == ([NOON], None, None)


def test_after_has_nothing_to_do_before_its_time() -> None:
    done = planned_at(following(), NOON - 1)
    assert (done.planned, done.next_plan, done.cursor) == ((), NOON, NOON - SECOND)


@pytest.mark.parametrize(
    ("ended_at", "expected"), [(0, 5 * MINUTE), (1, 5 * MINUTE + SECOND), (SECOND, 5 * MINUTE + SECOND)]
)
def test_the_end_of_a_run_names_a_whole_second(ended_at: int, expected: int) -> None:
    assert following_plan(following(), NOON + ended_at) == NOON + expected


@pytest.mark.parametrize("policy", ["none", "latest", "all", {"mode": "all", "keep": 10, "window": "36500d"}])
def test_a_virtual_year_of_outage_is_decided_in_milliseconds(policy: Any) -> None:
    """Check two bounds: that of processor time, and that of calls, which holds anywhere."""
    catch_up = catch_up_of(policy)
    times = Steady()
    counted = standing(times, cursor=NOON, catch_up=catch_up, overlap=Overlap(mode=OverlapMode.QUEUE_ALL))
    done = planned_at(counted, NOON + 365 * DAY)
    assert len(done.planned) == {"none": 1, "latest": 1}.get(catch_up.mode, min(100, catch_up.keep))
    assert times.asked <= 1_120
    definition = ScheduleDefinition(
        job="tick", rule=Rule(trigger=cron("* * * * * *", "America/New_York")), catch_up=catch_up
    )
    real = ScheduleState("s1", "tick", definition, NOON, NOON + SECOND)
    began = process_time()
    assert planned_at(real, NOON + 365 * DAY).cursor == done.cursor
    assert process_time() - began < 1


spans = st.integers(1, 200).map(lambda n: timedelta(seconds=n))
definitions = st.fixed_dictionaries(
    {
        "catch_up": st.builds(
            CatchUp,
            mode=st.sampled_from(["none", "latest", "all"]),
            window=spans,
            keep=st.integers(1, 30),
            per_tick=st.integers(1, 10),
            grace=spans,
        ),
        "overlap": st.builds(Overlap, mode=st.sampled_from(OVERLAP)),
        "failure": st.builds(Failure, mode=st.sampled_from(FAILURE), threshold=st.integers(1, 3), cooldown=spans),
        "max_runs": st.none() | st.integers(1, 20),
        "delay": st.integers(0, 50).map(lambda n: timedelta(seconds=n)),
    }
)
live_runs = st.lists(
    st.builds(LiveRun, st.sampled_from(["x", "y"]), st.booleans()), max_size=2, unique_by=lambda run: run.id
)
lanes_before = st.builds(
    Lane,
    live_runs.map(tuple),
    st.booleans(),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 300).map(lambda n: n * SECOND),
)
plan_times = st.sets(st.integers(1, 300), max_size=80).map(lambda found: Listed(n * SECOND for n in found))
instants = st.integers(0, 400 * 4).map(lambda n: n * SECOND // 4)


@given(definitions, plan_times, instants, instants, lanes_before, lanes_before)
def test_ticks_repeated_decide_each_plan_time_once(
    policies: dict[str, Any], times: Listed, cursor: int, now: int, one: Lane, other: Lane
) -> None:
    schedule = standing(times, cursor=cursor, scopes=(A, B), **policies)
    lanes = {A: one, B: other}
    horizon = now - policies["delay"] // timedelta(microseconds=1)
    seen: list[int] = []
    while True:
        done = planned_at(schedule, now, lanes)
        assert done == planned_at(schedule, now, lanes)
        check_tick(done, times, schedule, horizon)
        seen += sorted({planned.plan_time for planned in done.planned})
        if done.pause or done.cursor == schedule.cursor:
            break
        schedule = StandingOn("s1", "x", schedule.definition, done.cursor, done.next_plan, done.fired, known=times)
        lanes = dict(done.lanes)
    assert seen == sorted(set(seen))
    over = done.pause or done.fired == policies["max_runs"]
    assert done.next_plan == (None if over else times.next(done.cursor))
    assert done.next_plan is None or done.next_plan > horizon


@given(
    definitions,
    st.sampled_from(["0s", "7s"]).map(parse_duration),
    plan_times,
    instants,
    instants,
    lanes_before | st.just(Lane()),
    st.none() | st.just("full"),
)
def test_the_short_way_of_an_ordinary_fire_decides_the_same(
    policies: dict[str, Any], jitter: timedelta, times: Listed, cursor: int, now: int, lane: Lane, reason: str | None
) -> None:
    """Draw a definition; simple policies are more likely than by chance, since most schedules have them."""
    for simple in (policies, {**policies, "max_runs": None, "catch_up": CatchUp(), "failure": Failure()}):
        schedule = standing(times, cursor=cursor, jitter=jitter, **simple)
        for horizon in (None, now):
            ask: Any = partial(planned_at, schedule, now, {GLOBAL: lane}, refuse=lambda *_: reason, horizon=horizon)
            short = ask()
            with patch.object(ticks, "_ordinary", return_value=None):
                assert ask() == short


def test_an_ordinary_fire_takes_the_short_way() -> None:
    with patch.object(ticks, "_due", side_effect=AssertionError):
        assert created(planned_at(standing(Steady(HOUR), cursor=NOON), NOON + HOUR)) == [NOON + HOUR]


def check_tick(done: Tick, times: Listed, schedule: ScheduleState, horizon: int) -> None:
    most = schedule.definition.max_runs
    assert schedule.cursor <= done.cursor <= max(schedule.cursor, horizon)
    assert most is None or done.fired <= most
    by_scope = {scope: [p for p in done.planned if p.scope == scope] for scope in (A, B)}
    for planned in by_scope.values():
        kept = [p.plan_time for p in planned]
        assert kept == sorted(kept)
        assert len(kept) == done.fired - schedule.fired
        decided = len(kept) + sum(p.covered for p in planned) + sum(gap.count for gap in done.missed)
        assert decided == times.count(schedule.cursor, done.cursor)
