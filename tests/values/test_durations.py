"""Durations as people write them."""

from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.errors import BadDuration
from rota.values import durations
from rota.values.durations import format_duration, in_micros, parse_duration

CENTURY = timedelta(days=36_500)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("6h", 21_600),
        ("1d", 86_400),
        ("1h30m", 5_400),
        ("250ms", 0.25),
        ("1.5h", 5_400),
        ("0s", 0),
        (" 2M ", 120),
        ("0.000001s", 0.000001),
        ("36500d", 36_500 * 86_400),
    ],
)
def test_what_is_understood(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "90", "s", "-5s", "+5s", "5 s", "5x", "1h30", "1,5h", "1e3s", "٣s", "5s\n5", "inf", "nan", "1.s",
        ".5s", "36501d", "9" * 15 + "d", "9" * 400 + "s", "5w", "5min", "\0", "5s;",
    ],
)  # fmt: skip
def test_what_is_refused(text: str) -> None:
    with pytest.raises(BadDuration):
        parse_duration(text)


@pytest.mark.parametrize(
    "value", [90, 1.5, None, True, b"5s", ["5s"], timedelta(seconds=-1), CENTURY + timedelta(microseconds=1)]
)
def test_a_bare_number_or_anything_else_is_refused(value: object) -> None:
    with pytest.raises(BadDuration, match=r"number and a unit"):
        parse_duration(value)  # type: ignore[arg-type]


@given(st.timedeltas(timedelta(0), CENTURY))
@example(timedelta(microseconds=1))
@example(CENTURY)
@example(CENTURY - timedelta(microseconds=1))
def test_what_is_written_reads_back(span: timedelta) -> None:
    assert parse_duration(format_duration(span)) == span


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(days=1), "1d"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(hours=25), "1d1h"),
    ],
)
def test_how_it_is_written(span: timedelta, text: str) -> None:
    assert format_duration(span) == text


@given(st.timedeltas(timedelta(0), CENTURY))
def test_micros_are_exact(span: timedelta) -> None:
    assert timedelta(microseconds=in_micros(span)) == span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0ms"),
        (0.34, "340ms"),
        (1.2, "1.2s"),
        (59.96, "1m"),
        (192, "3m12s"),
        (3650, "1h"),
        (7500, "2h5m"),
        (90_000, "1d1h"),
    ],
)
def test_how_people_are_told(seconds: float, text: str) -> None:
    assert durations.span(timedelta(seconds=seconds)) == text
