"""Catch-up: plan times that get a run, are covered by one, or are missed."""

from datetime import timedelta
from itertools import pairwise
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.calendar.rules import Rule, compiled
from rota.core.calendar.triggers import cron
from rota.core.planning.catch_up import Due, Gap, PlanTimes, choose
from rota.core.schedules.policies import CatchUp, CatchUpMode, catch_up_of
from tests.support.schedules.plan_times import DAY, HOUR, MINUTE, SECOND, Listed, Steady

TEN = 10 * HOUR
NOON = 12 * HOUR
OLD, LATE = "older than the catch-up window", "later than its grace"


def seconds_past_ten(instants: tuple[int, ...]) -> list[float]:
    return [(instant - TEN) / SECOND for instant in instants]


@pytest.mark.parametrize(
    ("policy", "kept", "missed"),
    [
        ("all", [1, 2, 3, 4, 5], []),  # FIRE_NOW
        ({"mode": "all", "keep": 2}, [4, 5], [(1, 3, 3)]),  # CATCH_UP_LIMITED
        ({"mode": "none", "grace": "0s"}, [5], [(1, 4, 4)]),  # SKIP
        ("none", [5], [(1, 4, 4)]),
        ("latest", [5], []),
    ],
)
@pytest.mark.parametrize("fraction", [0, 1, SECOND // 2, SECOND - 1])
def test_a_look_five_seconds_late_at_a_rule_of_each_second(
    policy: Any, kept: list[int], missed: list[tuple[int, int, int]], fraction: int
) -> None:
    due = choose(catch_up_of(policy), Steady(), TEN, TEN + 5 * SECOND + fraction)
    assert seconds_past_ten(due.kept) == kept
    assert [(*seconds_past_ten((gap.from_at, gap.to_at)), gap.count) for gap in due.missed] == missed
    assert due.cursor == TEN + 5 * SECOND
    assert not due.more


def test_only_what_is_later_than_its_grace_is_called_so() -> None:
    due = choose(catch_up_of({"mode": "none", "grace": "2s"}), Steady(), TEN, TEN + 5 * SECOND + 7)
    told = [(*seconds_past_ten((gap.from_at, gap.to_at)), gap.count, gap.reason) for gap in due.missed]
    assert told == [(1, 2, 2, LATE), (3, 4, 2, "due together with a newer one")]


def test_the_latest_covers_the_older_ones() -> None:
    due = choose(CatchUp(), Steady(), TEN, TEN + 5 * SECOND)
    assert (due.kept, due.covered, due.covers_from) == ((TEN + 5 * SECOND,), 4, TEN + SECOND)


def test_one_that_is_alone_covers_nothing() -> None:
    due = choose(CatchUp(), Steady(HOUR), TEN, TEN + HOUR)
    assert due == Due((TEN + HOUR,), TEN + HOUR)


@pytest.mark.parametrize("mode", ["none", "latest", "all"])
@pytest.mark.parametrize(
    ("times", "cursor", "horizon"),
    [
        (Steady(HOUR), TEN, TEN),
        (Steady(HOUR), TEN, TEN + HOUR - 1),
        (Steady(HOUR), TEN, TEN - 5 * HOUR),
        (Listed([]), 0, DAY),
        (Listed([TEN]), TEN, DAY),
        (Listed([TEN]), 0, TEN - 1),
    ],
)
def test_nothing_is_due(mode: str, times: PlanTimes, cursor: int, horizon: int) -> None:
    assert choose(CatchUp(mode=CatchUpMode(mode)), times, cursor, horizon) == Due((), cursor)


def test_latest_only_ignores_what_is_older_than_the_window() -> None:
    """Catch up hourly plan times with a window of three hours after ten hours of outage."""
    policy = catch_up_of({"mode": "latest", "window": "3h"})
    due = choose(policy, Steady(HOUR), TEN, TEN + 10 * HOUR)
    assert due.kept == (TEN + 10 * HOUR,)
    assert (due.covered, due.covers_from) == (3, TEN + 7 * HOUR)
    assert due.missed == (Gap(TEN + HOUR, TEN + 6 * HOUR, 6, OLD),)


@pytest.mark.parametrize("mode", ["latest", "all"])
def test_the_window_holds_the_plan_time_at_its_edge(mode: str) -> None:
    policy = CatchUp(mode=CatchUpMode(mode), window=timedelta(hours=1))
    assert choose(policy, Listed([TEN]), 0, TEN + HOUR).kept == (TEN,)
    beyond = choose(policy, Listed([TEN]), 0, TEN + HOUR + 1)
    assert beyond == Due((), TEN, missed=(Gap(TEN, TEN, 1, OLD),))


def test_every_plan_is_caught_up_oldest_first_some_per_tick() -> None:
    policy = catch_up_of({"mode": "all", "per_tick": 4, "window": "10h"})
    cursor, ticks, missed = TEN, [], 0
    while True:
        due = choose(policy, Steady(HOUR), cursor, TEN + 13 * HOUR + 30 * MINUTE)
        if not due.kept:
            break
        ticks.append([(at - TEN) // HOUR for at in due.kept])
        missed += sum(gap.count for gap in due.missed)
        assert due.more == (due.kept[-1] < TEN + 13 * HOUR)
        cursor = due.cursor
    assert ticks == [[4, 5, 6, 7], [8, 9, 10, 11], [12, 13]]
    assert missed == 3


def test_both_reasons_to_miss_are_told_apart() -> None:
    policy = catch_up_of({"mode": "all", "keep": 2, "window": "5h"})
    due = choose(policy, Steady(HOUR), TEN, TEN + 10 * HOUR)
    assert due.kept == (TEN + 9 * HOUR, TEN + 10 * HOUR)
    assert due.missed == (
        Gap(TEN + HOUR, TEN + 4 * HOUR, 4, OLD),
        Gap(TEN + 5 * HOUR, TEN + 8 * HOUR, 4, "more than the newest 2"),
    )


@pytest.mark.parametrize(
    ("late", "grace", "runs"),
    [
        (0, "0s", True),
        (SECOND - 1, "0s", True),  # less than a second is not late
        (SECOND, "0s", False),
        (60 * SECOND, "60s", True),
        (60 * SECOND + SECOND - 1, "60s", True),
        (61 * SECOND, "60s", False),
        (HOUR, "1h", True),
        (900 * 1_000, "500ms", True),
        (SECOND, "500ms", False),
    ],
)
def test_without_catch_up_the_newest_runs_within_its_grace(late: int, grace: str, runs: bool) -> None:
    due = choose(catch_up_of({"mode": "none", "grace": grace}), Listed([NOON]), 0, NOON + late)
    assert due == (Due((NOON,), NOON) if runs else Due((), NOON, missed=(Gap(NOON, NOON, 1, LATE),)))


def test_a_window_longer_than_time_is_no_trouble() -> None:
    due = choose(CatchUp(mode=CatchUpMode.ALL, window=timedelta(days=36_500)), Steady(HOUR), 0, 2 * HOUR)
    assert due.kept == (HOUR, 2 * HOUR)


@pytest.mark.parametrize("mode", ["none", "latest", "all"])
def test_without_room_nothing_is_decided(mode: str) -> None:
    assert choose(CatchUp(mode=CatchUpMode(mode)), Steady(), TEN, TEN + SECOND, room=0) == Due((), TEN)


def test_no_more_than_there_is_room_for() -> None:
    due = choose(CatchUp(mode=CatchUpMode.ALL), Steady(), TEN, TEN + 10 * SECOND, room=3)
    assert seconds_past_ten(due.kept) == [1, 2, 3]


YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("policy", "kept", "most_asked"),
    [
        ("none", 1, 7),
        ("latest", 1, 8),
        ({"mode": "latest", "window": "36500d"}, 1, 8),
        ({"mode": "all", "keep": 10}, 10, 35),
        ({"mode": "all", "keep": 1_000, "per_tick": 100}, 100, 1_115),
        ({"mode": "all", "keep": 100, "window": "36500d"}, 100, 215),
    ],
)
def test_a_year_of_outage_costs_what_is_kept_not_what_is_missed(policy: Any, kept: int, most_asked: int) -> None:
    times = Steady()
    due = choose(catch_up_of(policy), times, TEN, TEN + YEAR)
    assert len(due.kept) == kept
    assert times.asked <= most_asked


@pytest.mark.parametrize("policy", ["none", "latest", "all", {"mode": "all", "keep": 10, "window": "36500d"}])
def test_a_cron_of_each_second_after_a_year_of_outage(policy: Any) -> None:
    """Include a zone that changes its offset in between; the bound is of processor time."""
    times = compiled(Rule(trigger=cron("* * * * * *", "Europe/Berlin")), "")
    cursor = 54 * YEAR
    began = process_time()
    due = choose(catch_up_of(policy), times, cursor, cursor + YEAR)
    assert process_time() - began < 1
    undecided = 900 if policy == "all" else 0
    assert covered_by(due) == YEAR // SECOND - undecided


def covered_by(due: Due) -> int:
    """Count the plan times that it decides."""
    return len(due.kept) + due.covered + sum(gap.count for gap in due.missed)


policies = st.builds(
    CatchUp,
    mode=st.sampled_from(["none", "latest", "all"]),
    window=st.integers(1, 200).map(lambda n: timedelta(seconds=n)),
    keep=st.integers(1, 30),
    per_tick=st.integers(1, 10),
    grace=st.integers(0, 30).map(lambda n: timedelta(seconds=n)),
)
plan_times = st.sets(st.integers(0, 300), max_size=80).map(lambda found: Listed(n * SECOND for n in found))
instants = st.integers(0, 320 * 4).map(lambda n: n * SECOND // 4)


@given(policies, plan_times, instants, instants, st.none() | st.integers(1, 5))
def test_every_plan_time_up_to_the_cursor_is_exactly_one_of_kept_covered_missed(
    policy: CatchUp, times: Listed, cursor: int, horizon: int, room: int | None
) -> None:
    due = choose(policy, times, cursor, horizon, room)
    assert due.cursor >= cursor
    assert due.cursor <= max(cursor, horizon)
    assert covered_by(due) == times.count(cursor, due.cursor)
    parts = [*((at, at) for at in due.kept), *((gap.from_at, gap.to_at) for gap in due.missed)]
    if due.covers_from is not None:
        before = times.prev(due.kept[0])
        assert before is not None
        parts.append((due.covers_from, before))
        assert times.count(due.covers_from - 1, before) == due.covered
    parts.sort()
    assert all(end < begin for (_, end), (begin, _) in pairwise(parts))
    assert all(times.count(gap.from_at - 1, gap.to_at) == gap.count for gap in due.missed)
    assert {end for part in parts for end in part} <= set(times.instants)
    assert list(due.kept) == sorted(due.kept)
    assert room is None or len(due.kept) <= room


@given(policies, plan_times, instants, instants)
def test_ticks_repeated_decide_all_and_then_nothing(policy: CatchUp, times: Listed, cursor: int, horizon: int) -> None:
    first, decided, kept = cursor, 0, list[int]()
    due = choose(policy, times, cursor, horizon)
    while due.cursor > cursor:
        assert due == choose(policy, times, cursor, horizon)
        decided += covered_by(due)
        kept += due.kept
        cursor = due.cursor
        due = choose(policy, times, cursor, horizon)
    assert not due.more
    assert decided == times.count(first, horizon)
    assert kept == sorted(set(kept))
    assert len(kept) <= (policy.keep if policy.mode == "all" else 1)
