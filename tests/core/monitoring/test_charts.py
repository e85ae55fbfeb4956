"""Charts: the range and its steps, and the content of each step."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rota.core.monitoring.charts import MOST_BUCKETS, Stretch, series_of, stretch_of
from rota.core.monitoring.counters import HOUR, MINUTE, Counted
from rota.errors import BadDuration, Invalid
from rota.values.instants import instant, micros_at

NOW = micros_at(datetime(2026, 1, 31, 8, 7, tzinfo=UTC))
DAY = 24 * HOUR


def ago(span: int) -> datetime:
    return instant(NOW - span)


def test_the_last_day_in_steps_of_15_minutes() -> None:
    found = stretch_of(None, None, None, NOW)
    assert (found.to, found.step, found.span) == (NOW, 15 * MINUTE, 300)
    assert instant(found.first) == datetime(2026, 1, 30, 8, tzinfo=UTC)
    assert len(found.begins) == 97


@pytest.mark.parametrize(
    ("length", "step", "span"),
    [
        (HOUR, MINUTE, 60),
        (3 * HOUR, 2 * MINUTE, 60),
        (2 * DAY, 30 * MINUTE, 300),
        (2 * DAY + 1, HOUR, 3_600),
        (7 * DAY, 2 * HOUR, 3_600),
        (60 * DAY, DAY, 3_600),
    ],
)
def test_about_a_hundred_steps(length: int, step: int, span: int) -> None:
    found = stretch_of(ago(length), None, None, NOW)
    assert (found.step, found.span) == (step, span)
    assert found.first <= NOW - length < found.first + step


@pytest.mark.parametrize("step", ["30s", "90s", "0s"])
def test_a_step_is_whole_minutes(step: str) -> None:
    with pytest.raises(Invalid, match="whole minutes"):
        stretch_of(None, None, step, NOW)


def test_of_long_ago_a_step_is_whole_hours() -> None:
    with pytest.raises(Invalid, match="whole hours"):
        stretch_of(ago(3 * DAY), None, "90m", NOW)
    assert stretch_of(ago(3 * DAY), None, "2h", NOW).step == 2 * HOUR
    assert stretch_of(ago(DAY), None, "90m", NOW).step == 90 * MINUTE


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(Invalid, match="from is after to"):
        stretch_of(ago(HOUR), ago(2 * HOUR), None, NOW)
    with pytest.raises(Invalid, match=f"more than {MOST_BUCKETS}"):
        stretch_of(ago(DAY), None, "1m", NOW)
    with pytest.raises(Invalid, match="zone"):
        stretch_of(datetime(2026, 1, 1), None, None, NOW)  # noqa: DTZ001
    with pytest.raises(BadDuration):
        stretch_of(None, None, "soon", NOW)


def test_what_is_to_come_is_left_out() -> None:
    found = stretch_of(ago(-HOUR), ago(-2 * HOUR), None, NOW)
    assert list(found.begins) in ([], [found.first])
    assert stretch_of(None, datetime.max.replace(tzinfo=UTC), None, NOW).to == NOW
    assert stretch_of(None, datetime.min.replace(tzinfo=UTC), None, NOW).to == 0
    assert stretch_of(datetime.min.replace(tzinfo=UTC), None, "1000d", NOW).first == 0


def test_each_step_tells_what_its_rows_do() -> None:
    stretch = Stretch(0, 25 * MINUTE, 10 * MINUTE)
    rows = [
        (0, Counted(runs={"succeeded": 3}, durations={100_000: 3}, lag={1_000: 1})),
        (9 * MINUTE, Counted(runs={"failed": 1}, durations={900_000: 1})),
        (9 * MINUTE, Counted(levels={"a": (5, 1, 0), "b": (1, 1, 1)})),
        (8 * MINUTE, Counted(levels={"a": (1, 1, 0)})),
        (20 * MINUTE, Counted()),
    ]
    found = series_of(stretch, [(at, msgspec.json.encode(row).decode()) for at, row in rows])
    assert found.step == timedelta(minutes=10)
    first, second, third = found.buckets
    assert (first.at, first.runs) == (instant(0), {"failed": 1, "succeeded": 3})
    assert (first.duration_p50_ms, first.duration_p95_ms) == (105, 905)
    assert (first.lag_p50_ms, first.lag_p95_ms) == (1, 1)
    assert (first.queued, first.running) == (6, 2)
    assert (second.runs, second.duration_p50_ms, second.queued) == ({}, None, None)
    assert (third.queued, third.running) == (0, 0)
