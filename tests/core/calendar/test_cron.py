"""Cron expressions: what is understood, what is refused, and when they fire."""

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from time import thread_time

import pytest

from rota.core.calendar.cron_parser import read
from rota.core.calendar.cron_times import FoldMode, GapMode
from rota.core.calendar.rules import Rule, Times, compiled
from rota.core.calendar.triggers import Cron, cron
from rota.errors import BadTrigger
from rota.values.instants import instant, micros_at


def at(text: str) -> int:
    return micros_at(datetime.fromisoformat(text).replace(tzinfo=UTC))


def times_of(expression: str, tz: str = "UTC", salt: str = "", gap: str = "after", fold: str = "first") -> Times:
    return compiled(Rule(Cron(expression, tz, GapMode(gap), FoldMode(fold))), salt)


def some(expression: str, start: str, number: int = 3, tz: str = "UTC", **choices: str) -> list[str]:
    """Return the next fires after `start`, in UTC; check that walking back gives the same."""
    times, here = times_of(expression, tz, **choices), at(start)
    found: list[int] = []
    while len(found) < number and (after := times.next(here)) is not None:
        found.append(after)
        here = after
    for later, earlier in zip(found[::-1], found[-2::-1], strict=False):
        assert times.prev(later) == earlier
    assert times.count(at(start), here) == len(found)
    return [f"{instant(each):%Y-%m-%dT%H:%M:%S}".removesuffix(":00") for each in found]


@pytest.mark.parametrize(
    ("expression", "start", "fires"),
    [
        ("* * * * *", "2026-01-01T00:00:30", ["2026-01-01T00:01", "2026-01-01T00:02"]),
        ("*/15 * * * *", "2026-01-01T00:50", ["2026-01-01T01:00", "2026-01-01T01:15"]),
        ("5/20 * * * *", "2026-01-01T00:00", ["2026-01-01T00:05", "2026-01-01T00:25"]),
        ("0 9 * * MON-FRI", "2026-01-02T12:00", ["2026-01-05T09:00", "2026-01-06T09:00"]),
        ("0 9 * * sat-sun", "2026-01-02T12:00", ["2026-01-03T09:00", "2026-01-04T09:00", "2026-01-10T09:00"]),
        ("0 9 * * 7", "2026-01-02T12:00", ["2026-01-04T09:00"]),
        ("0 9 * * 0", "2026-01-02T12:00", ["2026-01-04T09:00"]),
        ("0 0 1 JAN *", "2026-06-01T00:00", ["2027-01-01T00:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 29 2 *", "2096-03-01T00:00", ["2104-02-29T00:00"]),
        ("0 0 L * *", "2026-01-01T00:00", ["2026-01-31T00:00", "2026-02-28T00:00", "2026-03-31T00:00"]),
        ("0 0 L-3 2 *", "2026-01-01T00:00", ["2026-02-25T00:00", "2027-02-25T00:00", "2028-02-26T00:00"]),
        ("0 0 L-30 * *", "2026-01-15T00:00", ["2026-03-01T00:00", "2026-05-01T00:00"]),
        ("0 0 LW * *", "2026-01-01T00:00", ["2026-01-30T00:00", "2026-02-27T00:00"]),
        ("0 0 15W * *", "2026-02-01T00:00", ["2026-02-16T00:00", "2026-03-16T00:00", "2026-04-15T00:00"]),
        ("0 0 1W * *", "2026-07-15T00:00", ["2026-08-03T00:00"]),
        ("0 0 31W 5 *", "2026-01-01T00:00", ["2026-05-29T00:00"]),
        ("0 0 31W * *", "2026-03-31T00:00", ["2026-05-29T00:00"]),
        ("0 0 ? * FRI#L", "2026-01-01T00:00", ["2026-01-30T00:00", "2026-02-27T00:00"]),
        ("0 0 13 * +FRI", "2026-01-01T00:00", ["2026-02-13T00:00", "2026-03-13T00:00", "2026-11-13T00:00"]),
        ("0 0 1-7 * +MON,5L", "2026-01-01T00:00", ["2026-01-05T00:00", "2026-02-02T00:00", "2026-03-02T00:00"]),
        ("0 0 9 1 1 ? 2027", "2026-01-01T00:00", ["2027-01-01T09:00"]),
        ("0 0 9 1 1 ? 2027,2030/2", "2026-01-01T00:00", ["2027-01-01T09:00", "2030-01-01T09:00", "2032-01-01T09:00"]),
        ("0 0 9 29 2 ? 2026-2034", "2026-01-01T00:00", ["2028-02-29T09:00", "2032-02-29T09:00"]),
        ("0 0 9 1 1 ? *", "2026-06-01T00:00", ["2027-01-01T09:00"]),
        ("*/60 * * * *", "2026-01-01T00:10", ["2026-01-01T01:00"]),
        ("0 0 ? * 5L", "2026-01-01T00:00", ["2026-01-30T00:00", "2026-02-27T00:00"]),
        ("0 0 ? * friL", "2026-01-01T00:00", ["2026-01-30T00:00"]),
        ("0 0 * * MON#3", "2026-01-01T00:00", ["2026-01-19T00:00", "2026-02-16T00:00"]),
        ("0 0 * * 1#5", "2026-01-01T00:00", ["2026-03-30T00:00", "2026-06-29T00:00"]),
        ("0 0 * * MON#1,FRI#1", "2026-01-01T00:00", ["2026-01-02T00:00", "2026-01-05T00:00"]),
        ("0 0 13 * FRI", "2026-02-01T00:00", ["2026-02-06T00:00", "2026-02-13T00:00", "2026-02-20T00:00"]),
        ("0 0 */2 * MON", "2026-02-01T00:00", ["2026-02-09T00:00", "2026-02-23T00:00", "2026-03-09T00:00"]),
        ("0 0 1 * ?", "2026-02-02T00:00", ["2026-03-01T00:00"]),
        ("0 0 * * 1/2", "2026-01-07T12:00", ["2026-01-09T00:00", "2026-01-12T00:00"]),
        ("30 * * * * *", "2026-01-01T00:00", ["2026-01-01T00:00:30", "2026-01-01T00:01:30"]),
        ("*/20 0 12 * * *", "2026-01-01T12:00", ["2026-01-01T12:00:20", "2026-01-01T12:00:40", "2026-01-02T12:00"]),
        ("@yearly", "2026-01-01T00:00", ["2027-01-01T00:00"]),
        ("@annually", "2026-01-01T00:00", ["2027-01-01T00:00"]),
        ("@monthly", "2026-01-01T00:00", ["2026-02-01T00:00"]),
        ("@weekly", "2026-01-01T00:00", ["2026-01-04T00:00", "2026-01-11T00:00"]),
        ("@daily", "2026-01-01T00:00", ["2026-01-02T00:00"]),
        ("@MIDNIGHT", "2026-01-01T00:00", ["2026-01-02T00:00"]),
        ("@hourly", "2026-01-01T00:00", ["2026-01-01T01:00"]),
        (" 0  9\t* * * ", "2026-01-01T00:00", ["2026-01-01T09:00"]),
        ("0 0 30 2 *", "2026-01-01T00:00", []),
        ("0 0 31 4,6,9,11 *", "2026-01-01T00:00", []),
        ("0 0 */28 2 MON#5", "2026-01-01T00:00", ["2044-02-29T00:00", "2072-02-29T00:00", "2112-02-29T00:00"]),
    ],
)  # fmt: skip
def test_when_it_fires(expression: str, start: str, fires: list[str]) -> None:
    assert some(expression, start, len(fires) or 1) == fires


BERLIN_GAP, BERLIN_FOLD = "2026-03-28T12:00", "2026-10-24T12:00"  # 02:00 to 03:00 on the next day


@pytest.mark.parametrize(
    ("expression", "start", "choices", "fires"),
    [
        ("30 2 * * *", BERLIN_GAP, {}, ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("0,30 2 * * *", BERLIN_GAP, {}, ["2026-03-29T01:00", "2026-03-30T00:00"]),
        ("30 2,3 * * *", BERLIN_GAP, {}, ["2026-03-29T01:00", "2026-03-29T01:30", "2026-03-30T00:30"]),
        ("0,30 2-3 * * *", BERLIN_GAP, {}, ["2026-03-29T01:00", "2026-03-29T01:30", "2026-03-30T00:00"]),
        ("30 2 * * *", BERLIN_GAP, {"gap": "skip"}, ["2026-03-30T00:30", "2026-03-31T00:30"]),
        ("* 30 2 * * *", BERLIN_GAP, {}, ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("30 1-4 * * *", BERLIN_GAP, {"gap": "skip"}, ["2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T02:30"]),
        ("*/30 2 * * *", BERLIN_GAP, {}, ["2026-03-30T00:00", "2026-03-30T00:30"]),
        ("30 * * * *", "2026-03-29T00:00", {}, ["2026-03-29T00:30", "2026-03-29T01:30"]),
        ("0 */2 * * *", "2026-03-28T22:00", {}, ["2026-03-28T23:00", "2026-03-29T02:00"]),
        ("30 2 * * *", BERLIN_FOLD, {}, ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("30 2 * * *", BERLIN_FOLD, {"fold": "last"}, ["2026-10-25T01:30", "2026-10-26T01:30"]),
        ("30 2 * * *", BERLIN_FOLD, {"fold": "both"}, ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-26T01:30"]),
        ("*/30 2 * * *", BERLIN_FOLD, {}, ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00"]),
        ("*/30 2 * * *", BERLIN_FOLD, {"fold": "last"}, ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00"]),
        ("30 2 * * *", "2026-10-25T00:45", {}, ["2026-10-26T01:30"]),
        ("30 2 * * *", "2026-10-25T01:10", {}, ["2026-10-26T01:30"]),
        ("30 2 * * *", "2026-10-25T00:45", {"fold": "both"}, ["2026-10-25T01:30"]),
        ("30 2 25 10 *", "2026-10-25T00:45", {"fold": "both"}, ["2026-10-25T01:30", "2027-10-25T00:30"]),
        ("0 3 * * *", BERLIN_FOLD, {}, ["2026-10-25T02:00"]),
        ("0 3 * * *", BERLIN_GAP, {}, ["2026-03-29T01:00", "2026-03-30T01:00"]),
    ],
)  # fmt: skip
def test_the_law_for_gaps_and_folds(expression: str, start: str, choices: dict[str, str], fires: list[str]) -> None:
    assert some(expression, start, len(fires), "Europe/Berlin", **choices) == fires


def test_a_day_that_a_zone_left_out() -> None:
    """Samoa had no 30 December 2011: its fires come together at the start of the 31st."""
    assert some("0 9 * * *", "2011-12-29T00:00", 4, "Pacific/Apia") == [
        "2011-12-29T19:00", "2011-12-30T10:00", "2011-12-30T19:00", "2011-12-31T19:00",
    ]  # fmt: skip
    assert some("0 9 30 12 *", "2011-12-01T00:00", 1, "Pacific/Apia") == ["2011-12-30T10:00"]
    assert some("0 9 30 12 *", "2011-12-01T00:00", 1, "Pacific/Apia", gap="skip") == ["2012-12-29T19:00"]


@pytest.mark.parametrize(
    ("expression", "tz", "moment", "marks"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00", ("gap", "transition")),
        ("30 2 * * *", "Europe/Berlin", "2026-03-30T00:30", ()),
        ("0 3 * * *", "Europe/Berlin", "2026-03-29T01:00", ("transition",)),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", ("fold-first",)),
        ("30 2 * * *", "Europe/Berlin", "2026-10-26T01:30", ("transition",)),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:30", ("fold-first",)),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:00", ("fold-second", "transition")),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:30", ("fold-second",)),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T02:00", ()),
        ("*/30 * * * *", "UTC", "2026-10-25T01:00", ()),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:10", ()),
    ],
)
def test_marks(expression: str, tz: str, moment: str, marks: tuple[str, ...]) -> None:
    assert times_of(expression, tz).marks(at(moment)) == marks


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("", "expression"), ("   ", "expression"), ("* * * *", "expression"), ("* * * * * * * *", "expression"),
        ("@reboot", "expression"), ("@dayly", "expression"), ("@", "expression"), ("@daily x", "expression"),
        ("0 9 * * ١", "expression"), ("０ 9 * * *", "expression"), ("0 9 * * *" + " " * 256, "expression"),
        ("x" * 1_000_000, "expression"), ("* " * 500_000, "expression"), ("é 9 * * *", "expression"),
        ("60 * * * *", "minute"), ("-1 * * * *", "minute"), ("1- * * * *", "minute"), ("1-2-3 * * * *", "minute"),
        ("*/0 * * * *", "minute"), ("*/ * * * *", "minute"), ("*/x * * * *", "minute"), ("*/5/5 * * * *", "minute"),
        ("1,,2 * * * *", "minute"), (", * * * *", "minute"), ("1, * * * *", "minute"), ("? * * * *", "minute"),
        ("30-10 * * * *", "minute"), ("+5 * * * *", "minute"), ("1.5 * * * *", "minute"), ("0x5 * * * *", "minute"),
        ("L * * * *", "minute"), ("**  * * * *", "minute"), ("*5 * * * *", "minute"), ("1e1 * * * *", "minute"),
        ("\0 * * * *", "minute"), ("5_0 * * * *", "minute"), ("H(5-70) * * * *", "minute"),
        ("H(9-5) * * * *", "minute"), ("H-5 * * * *", "minute"), ("H(5) * * * *", "minute"), ("H/0 * * * *", "minute"),
        ("H( * * * *", "minute"), ("0 24 * * *", "hour"), ("0 22-2 * * *", "hour"), ("0 MON * * *", "hour"),
        ("0 0 0 * *", "day of month"), ("0 0 32 * *", "day of month"), ("0 0 1-100000000 * *", "day of month"),
        ("0 0 L-31 * *", "day of month"), ("0 0 32W * *", "day of month"), ("0 0 0W * *", "day of month"),
        ("0 0 W * *", "day of month"), ("0 0 1-5W * *", "day of month"), ("0 0 L/2 * *", "day of month"),
        ("0 0 MON * *", "day of month"), ("0 0 ?,1 * *", "day of month"), ("0 0 ?/2 * *", "day of month"),
        ("0 0 * 0 *", "month"), ("0 0 * 13 *", "month"), ("0 0 * january *", "month"), ("0 0 * dec-jan *", "month"),
        ("0 0 * * 8", "day of week"), ("0 0 * * L", "day of week"), ("0 0 * * MON#6", "day of week"),
        ("0 0 * * MON#0", "day of week"), ("0 0 * * MON#", "day of week"), ("0 0 * * #1", "day of week"),
        ("0 0 * * 5-0", "day of week"), ("0 0 * * fri-mon", "day of week"), ("0 0 * * monday", "day of week"),
        ("0 0 * * 9L", "day of week"), ("0 0 * * MON#1-3", "day of week"), ("0 0 * * xL", "day of week"),
        ("60 * * * * *", "second"), ("x 0 0 1 1 *", "second"), ("*/0 * * * * *", "second"),
        ("*/61 * * * * *", "second"), ("*/90 * * * *", "minute"), ("5/90 * * * *", "minute"),
        ("10-20/12 * * * *", "minute"), ("1,*/61 * * * *", "minute"), ("H/90 * * * *", "minute"),
        ("H(0-4)/10 * * * *", "minute"), ("0 */25 * * *", "hour"), ("0 0 */32 * *", "day of month"),
        ("0 0 1 */13 *", "month"), ("0 0 * * */8", "day of week"), ("0 0 * * 0-6/8", "day of week"),
        ("0 0 * * +", "day of week"), ("0 0 * * MON,+TUE", "day of week"), ("0 0 * * ++MON", "day of week"),
        ("0 0 +1 * MON", "day of month"), ("0 0 * * +?", "day of week"),
        ("0 0 0 1 1 ? 1969", "year"), ("0 0 0 1 1 ? 2400", "year"), ("0 0 0 1 1 ? H", "year"),
        ("0 0 0 1 1 ? ?", "year"), ("0 0 0 1 1 ? 2030-2026", "year"), ("0 0 0 1 1 ? */500", "year"),
    ],
)  # fmt: skip
def test_what_is_refused_at_once(expression: str, field: str) -> None:
    began = thread_time()
    with pytest.raises(BadTrigger) as refused:
        cron(expression)
    assert thread_time() - began < 0.1
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1,61 * * * *", r"minute: '61' at character 3 is out of range \(values are 0 to 59\)"),
        ("0 0 * * 5-0", "write 5-7"),
        ("0 22-2 * * *", "22-23,0-2"),
        ("@dialy", "did you mean '@daily'"),
        ("@reboot", "from the program itself"),
        ("0 0 * * L", "5L is the last Friday"),
        ("0 0 * jann *", "did you mean 'jan'"),
        ("0 0 * foo *", r"month: 'foo' is not understood \(values are 1 to 12 or JAN to DEC\)"),
        ("0 0 * 13 *", "values are 1 to 12 or JAN to DEC"),
        ("0 0 * * foo", "values are 0 to 7 or SUN to SAT"),
        ("@every 5m", r"expression: '@every' is no cron expression .*every\(\"5m\"\)"),
        ("@EVERY", "an interval is a trigger of its own"),
        ("* * *", "3 fields instead of 5, 6 or 7"),
        ("0 0 * * 7-mon", r"'7-mon' is a reversed range \(write 0-mon: Sunday is 0 and 7\)"),
        ("*/90 * * * *", r"minute: '\*/90' has a step beyond its range.*every\(\"90m\"\)"),
        ("0 0 0 ? * * 26", "values are 1970 to 2399"),
        ("0 0 0 29 2 ? 2027", "year: has none of these days: 2027"),
        ("0 0 * * MON#X", "MON#L is the last"),
        ("0 0 30 2 +MON", "30 never comes in February"),
        ("0 0 31 2,4 +MON#5", "31 never comes in February and April"),
        ("0 0 1 * +TUE#2", r"day of week: \+TUE#2 never meets 1"),
    ],
)
def test_a_refusal_says_what_to_write(expression: str, message: str) -> None:
    with pytest.raises(BadTrigger, match=message):
        cron(expression)


@pytest.mark.parametrize("expression", [None, 5, b"* * * * *", ["*"]])
def test_what_is_no_text_is_refused(expression: object) -> None:
    with pytest.raises(BadTrigger):
        cron(expression)  # type: ignore[arg-type]


def test_random_text_is_understood_or_refused_but_never_worse() -> None:
    draw = random.Random(5)
    fields = set()
    for _ in range(5_000):
        words = ["*"] * 5
        for place in draw.sample(range(5), 2):
            words[place] = "".join(draw.choices("0123456789*/-,?LWH#()MONjan", k=draw.randint(1, 6)))
        try:
            times_of(" ".join(words)).next(0)
        except BadTrigger as refused:
            fields.add(refused.field)
    assert fields == {"minute", "hour", "day of month", "month", "day of week"}


class TestHash:
    """Values of `H`: one for each salt, the same for ever."""

    def test_it_is_stable(self) -> None:
        """Pinned: another value would move the times of every schedule that uses it."""
        assert read("H H(9-17) H H H", "nightly").minute.values == read("H * * * *", "nightly").minute.values
        assert [field.values for field in (read("H H * * *", "nightly").minute, read("H H * * *", "nightly").hour)] == [
            [15], [5],
        ]  # fmt: skip

    def test_it_differs_from_salt_to_salt(self) -> None:
        minutes = {read("H * * * *", f"schedule-{number}").minute.values[0] for number in range(2_000)}
        assert minutes == set(range(60))
        assert {read("0 0 H * *", str(number)).day.values[0] for number in range(2_000)} == set(range(1, 29))
        assert {read("0 0 * * H", str(number)).weekday.values[0] for number in range(500)} == set(range(7))

    @pytest.mark.parametrize("salt", ["a", "b", "c", "", "ü", "\ud800"])
    def test_ranges_and_steps(self, salt: str) -> None:
        every = read("H/15 * * * *", salt).minute.values
        assert every == list(range(every[0], 60, 15))
        assert every[0] < 15
        (value,) = read("H(0-29) * * * *", salt).minute.values
        assert 0 <= value <= 29
        ten = read("H(10-39)/10 * * * *", salt).minute.values
        assert ten == list(range(ten[0], 40, 10))
        assert 10 <= ten[0] < 20
        assert len(read("H(0-4)/10 * * * *", salt).minute.values) == 1

    def test_the_salt_reaches_the_times(self) -> None:
        firsts = {times_of("H H * * *", salt=str(number)).next(0) for number in range(50)}
        assert len(firsts) > 30
        assert times_of("H H * * *", salt="x").next(0) == times_of("H H * * *", salt="x").next(0)
        assert times_of("0 9 * * *", salt="x").next(0) == times_of("0 9 * * *", salt="y").next(0)

    def test_it_is_a_fixed_time(self) -> None:
        assert read("H H * * *").is_fixed
        assert not read("H * * * *").is_fixed


@pytest.mark.parametrize(
    "expression", ["0 0 29 2 *", "0 0 */28 2 MON#5", "0 0 ? 2 SUN#5", "0 0 31 12 *", "0 0 L-30 */5 *", "0 0 1 1 MON#1"]
)
@pytest.mark.parametrize("tz", ["UTC", "America/New_York"])
def test_rare_days_over_a_century(expression: str, tz: str) -> None:
    """Compare with a plain walk over all days, from the start of every year and back."""
    fields = read(expression)
    days = [date(1990, 1, 1) + timedelta(days=number) for number in range(36_900)]
    matching = [day for day in days if is_wanted(day, expression)]
    assert matching
    times = times_of(expression, tz)
    listed, here = [], at("1990-01-01T12:00")
    while (found := times.next(here)) is not None and instant(found).year < 2091:
        listed.append(found)
        here = found
    assert [instant(found).date() for found in listed] == [
        day for day in matching if date(1990, 1, 1) < day < date(2091, 1, 1)
    ]
    assert [times.prev(found) for found in listed[1:]] == listed[:-1]
    assert times.count(at("1990-01-01T12:00"), listed[-1]) == len(listed)
    assert fields.is_fixed


def is_wanted(day: date, expression: str) -> bool:
    nth, weekday = (day.day + 6) // 7, day.strftime("%a").upper()
    size = ((day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)).day
    match expression:
        case "0 0 29 2 *":
            return (day.month, day.day) == (2, 29)
        case "0 0 */28 2 MON#5":
            return (day.month, day.day, weekday) == (2, 29, "MON")
        case "0 0 ? 2 SUN#5":
            return (day.month, nth, weekday) == (2, 5, "SUN")
        case "0 0 31 12 *":
            return (day.month, day.day) == (12, 31)
        case "0 0 L-30 */5 *":
            return day.day == size - 30 and day.month in (1, 6, 11)
        case "0 0 1 1 MON#1":
            return day.month == 1 and (day.day == 1 or (weekday == "MON" and nth == 1))
    raise AssertionError(expression)


@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_ends_of_time(tz: str) -> None:
    times = times_of("* * * * * *", tz)
    assert times.next(-(10**18)) == 0
    assert times.prev(0) is None
    assert times.prev(1) == 0
    last = times.prev(10**18)
    assert last == at("2399-12-31T23:59:59")
    assert times.next(last) is None
    assert times.next(10**18) is None
    assert times.count(-(10**18), 10**18) == last // 1_000_000 + 1
    assert times_of("0 0 29 2 *", tz).next(at("2399-06-01T00:00")) is None


@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin", "Pacific/Kiritimati"])
def test_years_bound_the_times_on_both_sides(tz: str) -> None:
    times = times_of("30 0 0 * * ? 2027-2028", tz)
    first, last = times.next(at("1980-01-01T00:00")), times.prev(at("2390-01-01T00:00"))
    assert first is not None
    assert last is not None
    assert times.prev(first) is None
    assert times.next(last) is None
    assert times.count(0, at("2399-01-01T00:00")) == 365 + 366
    assert times.count(at("2028-06-01T12:00"), at("2399-01-01T00:00")) == times.count(at("2028-06-01T12:00"), last)


def test_a_stored_step_beyond_its_range_keeps_its_times() -> None:
    """Schedules of earlier versions may have one: they are planned as before, and refused when they are declared."""
    assert some("*/90 * * * *", "2026-01-01T00:10", 2) == ["2026-01-01T01:00", "2026-01-01T02:00"]
    with pytest.raises(BadTrigger, match="beyond its range"):
        cron("*/90 * * * *")


def test_a_year_of_seconds_is_counted_exactly() -> None:
    year = at("2026-01-01T00:00"), at("2027-01-01T00:00")
    assert times_of("* * * * * *", "Europe/Berlin").count(*year) == 365 * 86_400
    assert times_of("* * * * *", "Europe/Berlin").count(*year) == 365 * 1_440
    assert times_of("30 2 * * *", "Europe/Berlin").count(*year) == 365
    assert times_of("30 2 * * *", "Europe/Berlin", gap="skip", fold="both").count(*year) == 365
    assert times_of("30 2 * * *", "Europe/Berlin", gap="skip").count(*year) == 364


@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("expression", ["* * * * * *", "0 9 * * 1-5", "0 0 29 2 *", "0 0 30 2 *", "0 0 */28 2 MON#5"])
def test_no_call_is_slow(expression: str, tz: str) -> None:
    """Measure the best of three, in CPU time; the bound is wide, for noisy machines."""
    times, year = times_of(expression, tz), 366 * 86_400 * 1_000_000

    def count(now: int) -> int:
        return times.count(now, now + year)

    acts: tuple[Callable[[int], int | None], ...] = (times.next, times.prev, count)
    for act in acts:
        took = []
        for number in range(3):
            began = thread_time()
            act(at("2030-01-01T00:00") + number)
            took.append(thread_time() - began)
        assert min(took) < 0.01


def test_the_next_time_is_far_quicker_than_others_find_it() -> None:
    croniter = pytest.importorskip("croniter")
    times, start = times_of("*/5 9-17 * * 1-5", "Europe/Berlin"), at("2026-01-01T00:00")
    peer = croniter.croniter("*/5 9-17 * * 1-5", instant(start))
    began, here = thread_time(), start
    for _ in range(2_000):
        here = times.next(here) or start
    ours = thread_time() - began
    began = thread_time()
    for _ in range(2_000):
        peer.get_next()
    assert (thread_time() - began) / ours > 10
