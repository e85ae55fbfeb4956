"""Counters for charts: merged, kept by minute and hour, and never counted twice."""

import pytest

from rota.core.monitoring.counters import (
    HOUR,
    MINUTE,
    Counted,
    QueueGauge,
    Rows,
    added,
    levels_of,
    merged,
    newest,
    since,
)
from rota.core.monitoring.statistics import bucket, bucket_bounds, percentile
from rota.observability.metrics import Histogram

NOON = 1_750_000_000_000_000 // HOUR * HOUR
ONE = Counted(runs={"succeeded": 1}, durations={10: 1}, lag={20: 1})


def test_what_came_between_two_looks() -> None:
    before = Counted(runs={"succeeded": 3}, durations={10: 2}, lag={5: 1})
    now = Counted(runs={"succeeded": 5, "failed": 1}, durations={10: 2, 20: 3}, lag={5: 1})
    assert since(now, before) == Counted(runs={"succeeded": 2, "failed": 1}, durations={20: 3})
    assert not since(now, now)


def test_it_counts_for_its_minute_and_for_its_hour() -> None:
    rows = added({}, ONE, NOON + MINUTE + 7)
    assert rows == {(60, NOON + MINUTE): ONE, (300, NOON): ONE, (3_600, NOON): ONE}
    rows = added(rows, ONE, NOON + 2 * MINUTE)
    assert rows[60, NOON + 2 * MINUTE] == ONE
    assert rows[3_600, NOON] == merged([ONE, ONE])
    both = merged([ONE, ONE])
    assert newest(rows) == {(60, NOON + 2 * MINUTE): ONE, (300, NOON): both, (3_600, NOON): both}


@pytest.mark.parametrize("back", [1, MINUTE, 2 * HOUR])
def test_a_clock_that_goes_back_begins_no_row_anew(back: int) -> None:
    """Keep the newest row: an older one may have been written and forgotten, and would be overwritten."""
    rows: Rows = newest(added({}, ONE, NOON))
    assert added(rows, ONE, NOON - back) == {key: merged([ONE, ONE]) for key in rows}


def test_levels_by_queue() -> None:
    found = [
        QueueGauge("mail", "queued", 3),
        QueueGauge("mail", "running", 1),
        QueueGauge("mail", "running", 1),
        QueueGauge("mail", "scheduled", 9),
        QueueGauge("slow", "waiting", 2),
    ]
    assert levels_of(found).levels == {"mail": (3, 2, 0), "slow": (0, 0, 2)}


def test_of_many_queues_the_fullest_are_told_by_name() -> None:
    levels = levels_of(QueueGauge(f"q{no:03}", "queued", no) for no in range(1, 151)).levels
    assert len(levels) == 101
    assert levels["*"] == (sum(range(1, 51)), 0, 0)
    assert levels["q150"] == (150, 0, 0)


def test_bounds_are_those_of_the_buckets() -> None:
    bounds = bucket_bounds(100, 100_000)
    assert bounds[:3] == [100, 110, 120]
    assert bounds[-2:] == [99_000, 100_000]
    assert all(bucket(bound) == bound for bound in bounds)
    assert len(bounds) == 3 * 90 + 1


def test_a_finer_histogram_tells_the_same_text_and_finer_counts() -> None:
    plain, finer = (Histogram((0.001, 0.01), 1e-6, more) for more in ((), bucket_bounds(100, 100_000)))
    for histogram in (plain, finer):
        histogram.observe(1_000)
        histogram.observe_all([90, 2_345, 10_000, 77_000_000])
        histogram.observe_since([0, 5_000], 9_050)
    assert list(plain.samples()) == list(finer.samples())
    assert finer.count == plain.count == 7
    assert finer.counted() == {0: 1, 990: 1, 2_300: 1, 4_000: 1, 9_000: 1, 9_900: 1, 100_000: 1}
    assert percentile(finer.counted(), 0.5) == pytest.approx(4_050, rel=0.05)
