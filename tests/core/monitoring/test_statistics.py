"""Tallies of finished runs: merged in any order, counted exactly, with percentiles within 5 %."""

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.monitoring.statistics import (
    BEFORE_ALL_DAYS,
    MOST_DAYS,
    Ended,
    Tally,
    bucket,
    by_day,
    days_kept,
    merged,
    percentile,
    stats_of,
    tally_of,
)
from rota.core.states import FINAL_STATES
from rota.values.instants import instant

DAY = 86_400_000_000
MICROS = st.integers(0, 10**14)


@st.composite
def ended_runs(draw: st.DrawFn) -> Ended:
    state = draw(st.sampled_from(sorted(FINAL_STATES)))
    created, waited, took = draw(MICROS), draw(MICROS), draw(st.none() | MICROS)
    started = None if took is None else created + waited
    return Ended(state.value, created, started, created + waited + (took or 0))


RUNS = st.lists(ended_runs(), max_size=30)


@given(RUNS, st.randoms(use_true_random=False))
def test_merging_does_not_depend_on_order_or_grouping(runs: list[Ended], chance: random.Random) -> None:
    whole = merged(map(tally_of, runs))
    shuffled = chance.sample(runs, len(runs))
    cut = chance.randint(0, len(runs))
    parts = [merged(map(tally_of, shuffled[:cut])), Tally(), merged(map(tally_of, shuffled[cut:]))]
    assert merged(parts) == whole
    assert merged(by_day(shuffled).values()) == whole


@given(RUNS)
def test_a_tally_survives_being_stored(runs: list[Ended]) -> None:
    tally = merged(map(tally_of, runs))
    assert msgspec.json.decode(msgspec.json.encode(tally), type=Tally) == tally


@given(RUNS)
def test_every_run_is_counted_once(runs: list[Ended]) -> None:
    stats = stats_of("work", merged(map(tally_of, runs)))
    assert stats.total == len(runs)
    assert stats.succeeded == sum(run.state == "succeeded" for run in runs)
    assert stats.skipped == sum(run.state == "skipped" for run in runs)
    assert stats.first_at == (instant(min(run.created_at for run in runs)) if runs else None)


@given(st.lists(MICROS, min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 1.0]))
def test_a_percentile_is_within_5_percent(durations: list[int], share: float) -> None:
    found = percentile(merged(tally_of(Ended("succeeded", 0, 0, took)) for took in durations).durations, share)
    exact = sorted(durations)[max(0, math.ceil(share * len(durations)) - 1)]
    assert found == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize(
    ("micros", "low"), [(0, 0), (7, 7), (10, 10), (99, 99), (100, 100), (109, 100), (110, 110), (123_456, 120_000)]
)
def test_buckets_keep_two_digits(micros: int, low: int) -> None:
    assert bucket(micros) == low


def test_what_the_rate_and_the_average_are_of() -> None:
    ends = ["succeeded"] * 6 + ["failed", "timed_out", "expired", "cancelled", "skipped"]
    runs = [Ended(state, 0, 0 if state == "succeeded" else None, 2_000_000) for state in ends]
    stats = stats_of("work", merged(map(tally_of, runs)))
    assert stats.success_rate == 6 / 9
    assert stats.average_duration_ms == 2_000
    assert stats.p95_duration_ms == pytest.approx(2_000, rel=0.05)
    assert stats.p50_duration_ms == stats.p95_duration_ms
    assert (stats.failed, stats.timed_out, stats.expired, stats.cancelled, stats.skipped) == (1, 1, 1, 1, 1)


def test_of_nothing_there_is_no_rate() -> None:
    stats = stats_of("work", Tally())
    assert (stats.total, stats.success_rate, stats.average_duration_ms, stats.p95_duration_ms) == (0, None, None, None)
    assert (stats.first_at, stats.last_execution_at, stats.next_scheduled_at) == (None, None, None)


def test_a_lost_attempt_was_an_execution_a_cancelled_wait_was_none() -> None:
    assert tally_of(Ended("expired", 1, None, 9)).began_at == 9
    assert tally_of(Ended("cancelled", 1, None, 9)).began_at is None


def test_the_last_end_ignores_skipped_runs() -> None:
    tally = merged([tally_of(Ended("failed", 1, 1, 5)), tally_of(Ended("skipped", 1, None, 9))])
    assert (tally.ended_at, tally.ended) == (5, "failed")


def test_a_running_attempt_is_the_last_execution() -> None:
    tally = tally_of(Ended("succeeded", 0, 1, 2))
    assert stats_of("work", tally, running_since=7, next_at=9).last_execution_at == instant(7)


def test_a_clock_set_back_makes_no_negative_duration() -> None:
    assert tally_of(Ended("succeeded", 0, 10, 5)).durations == {0: 1}


def test_days_are_bounded() -> None:
    kept = days_kept(range(1_000))
    assert kept == set(range(1_000 - (MOST_DAYS - 1), 1_000))
    assert days_kept([BEFORE_ALL_DAYS, 3]) == {3}
    assert by_day([Ended("failed", 0, None, 3 * DAY), Ended("failed", 0, None, 4 * DAY - 1)]).keys() == {3}
