"""Test `assert_fires` across changes of the clocks, and how it shows a difference."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rota import Invalid, Rota, after, cron, every
from rota.core.calendar.triggers import Trigger
from rota.errors import UnknownSchedule
from rota.testing import assert_fires

BERLIN = "Europe/Berlin"

app = Rota("sqlite:///unused.db")


@app.job
def report() -> None: ...


app.schedule("office", report, cron("0 9 * * *", tz=BERLIN), windows=["08:00-17:00 mon-fri"], max_runs=3)
app.schedule("spread", report, cron("H * * * *"))
app.schedule("elsewhere", report, cron("H * * * *"))


@pytest.mark.parametrize(
    ("trigger", "start", "fires"),
    [
        (cron("30 2 * * *", tz=BERLIN), "2030-03-30", ["2030-03-30 02:30", "2030-03-31 03:00", "2030-04-01 02:30"]),
        (cron("30 2 * * *", tz=BERLIN, gap="skip"), "2030-03-30", ["2030-03-30 02:30", "2030-04-01 02:30"]),
        (cron("30 2 * * *", tz=BERLIN), "2030-10-27", ["2030-10-27 02:30", "2030-10-28 02:30"]),
        (cron("30 2 * * *", tz=BERLIN, fold="last"), "2030-10-27", ["2030-10-27 02:30+01:00", "2030-10-28 02:30"]),
        (
            cron("30 2 * * *", tz=BERLIN, fold="both"),
            "2030-10-27",
            ["2030-10-27T02:30+02:00", "2030-10-27T02:30+01:00", datetime(2030, 10, 28, 1, 30, tzinfo=UTC)],
        ),
        (every("12h"), "2030-03-31", ["2030-03-31", "2030-03-31T12:00Z"]),
    ],
)
def test_the_first_ones(trigger: Trigger, start: str, fires: list[str | datetime]) -> None:
    assert_fires(trigger, fires, start=start)


def test_elapsed_time_is_seen_on_a_wall_clock() -> None:
    assert_fires(
        every("1d"), ["2030-03-30 01:00", "2030-03-31 01:00", "2030-04-01 02:00"], start="2030-03-30", zone=BERLIN
    )


def test_all_up_to_an_end() -> None:
    hourly = cron("0 * * * *", tz=BERLIN)
    assert_fires(hourly, ["2030-03-31 01:00", "2030-03-31 03:00"], start="2030-03-31 01:00", until="2030-03-31 03:00")
    assert_fires(hourly, [], start="2030-03-31 01:01", until="2030-03-31 01:59")
    with pytest.raises(AssertionError, match=r"  \+ 2030-03-31 03:00:00\+02:00"):
        assert_fires(hourly, ["2030-03-31 01:00"], start="2030-03-31 01:00", until="2030-03-31 03:00")


def test_a_difference_is_shown_on_the_wall_clock_with_its_reason() -> None:
    expected = ["2030-03-30 02:30", "2030-03-31 02:30", "2030-04-01 02:30"]
    with pytest.raises(AssertionError) as found:
        assert_fires(cron("30 2 * * *", tz=BERLIN), expected, start="2030-03-30")
    assert str(found.value).splitlines() == [
        "cron('30 2 * * *') fires at other times, in Europe/Berlin (- expected, + fires):",
        "    2030-03-30 02:30:00+01:00",
        "  - 2030-03-31 02:30   (the clocks are put forward over it)",
        "  + 2030-03-31 03:00:00+02:00   (the clocks skip the time it names, the clocks change)",
        "    2030-04-01 02:30:00+02:00",
        "  … 2030-04-02 02:30:00+02:00",
        "  … 2030-04-03 02:30:00+02:00",
        "  … 2030-04-04 02:30:00+02:00",
    ]


def test_what_is_expected_too_much() -> None:
    with pytest.raises(AssertionError, match=r"(?s)every\('1h'\) fires at other times.*  - 2030-01-01 00:30:00\+00:00"):
        assert_fires(every("1h"), ["2030-01-01 00:00", "2030-01-01 00:30"], start="2030-01-01")


def test_a_schedule_of_an_app_with_its_windows_and_its_end() -> None:
    friday_to_tuesday = ["2030-03-29 09:00", "2030-04-01 09:00", "2030-04-02 09:00"]
    assert_fires("office", friday_to_tuesday, start="2030-03-29", app=app)
    with pytest.raises(AssertionError, match="schedule 'office' fires at other times"):
        assert_fires("office", [*friday_to_tuesday, "2030-04-03 09:00"], start="2030-03-29", app=app)


def first_fire(name: str) -> str:
    with pytest.raises(AssertionError) as found:
        assert_fires(name, ["2030-01-01 00:00:30"], start="2030-01-01", app=app)
    return next(line.split()[2] for line in str(found.value).splitlines() if line.startswith("  +"))


def test_a_name_decides_what_h_stands_for() -> None:
    assert first_fire("spread") != first_fire("elsewhere")
    assert_fires("spread", [f"2030-01-01 {first_fire('spread')}"], start="2030-01-01", app=app)


def test_what_cannot_be_answered() -> None:
    with pytest.raises(Invalid, match="no times of its own"):
        assert_fires(after("1h"), ["2030-01-01"], start="2030-01-01")
    with pytest.raises(Invalid, match="without `until`"):
        assert_fires(every("1h"), [], start="2030-01-01")
    with pytest.raises(Invalid, match="which app"):
        assert_fires("office", ["2030-01-01"], start="2030-01-01")
    with pytest.raises(UnknownSchedule, match="offise"):
        assert_fires("offise", ["2030-01-01"], start="2030-01-01", app=app)
    with pytest.raises(Invalid, match="is not an instant"):
        assert_fires(every("1h"), ["noon"], start="2030-01-01")
    with pytest.raises(Invalid, match="there is no 2030-03-31 02:30:00 in Europe/Berlin"):
        assert_fires(every("1h"), ["2030-03-31"], start="2030-03-31 02:30", zone=BERLIN)
    with pytest.raises(Invalid, match="is not an instant"):
        assert_fires(every("1h"), [datetime(2030, 1, 1)], start="2030-01-01")  # noqa: DTZ001
