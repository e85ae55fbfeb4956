"""Rules: bounds, windows and excluded dates take times away; what never fires is refused."""

import gc
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

import msgspec
import pytest

from rota.core.calendar.rules import Rule, Times, Window, check, compiled, window_of
from rota.core.calendar.triggers import After, Cron, Every, Once, Trigger, after, cron, every, once
from rota.errors import BadTrigger
from rota.values.instants import instant, micros_at

MICROS = 1_000_000
DAY = 86_400 * MICROS
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(text: str) -> int:
    return micros_at(datetime.fromisoformat(text).replace(tzinfo=UTC))


NOW = at("2026-01-01")


def listing(times: Times, start: int, end: int) -> list[int]:
    """Return the times in (start, end], searched forwards; check that searching back, counting and `is_time` agree."""
    found, here = [], start
    while (here := times.next(here) or end + 1) <= end:
        found.append(here)
    back, here = [], end + 1
    while (here := times.prev(here) or start) > start:
        back.append(here)
    assert found == back[::-1]
    assert times.count(start, end) == len(found)
    assert all(times.is_time(each) and times.allows(each) for each in found)
    return found


def shown(rule: Rule, start: str, end: str) -> list[str]:
    return [
        f"{instant(each):%m-%dT%H:%M:%S}".removesuffix(":00")
        for each in listing(compiled(rule, ""), at(start), at(end))
    ]


class TestEvery:
    def test_it_counts_from_its_anchor(self) -> None:
        assert shown(Rule(every("7h")), "1970-01-01", "1970-01-02") == ["01-01T07:00", "01-01T14:00", "01-01T21:00"]
        anchored = Rule(every("10h", anchor=NOON))
        assert shown(anchored, "2026-01-01", "2026-01-02") == ["01-01T02:00", "01-01T12:00", "01-01T22:00"]

    @pytest.mark.parametrize(("interval", "anchor"), [(1, 0), (7, 3), (86_399, 5), (86_400, 3_600), (1_000_000, 0)])
    def test_it_is_arithmetic(self, interval: int, anchor: int) -> None:
        times = compiled(Rule(Every(timedelta(seconds=interval), anchor * MICROS)), "")
        for eligible in (0, 1, anchor * MICROS, 10**15 + 123_456, 10**15):
            floor = (eligible // MICROS - anchor) // interval * interval + anchor
            assert times.prev(eligible + 1) == (floor * MICROS if floor >= 0 else None)
            assert times.next(eligible) == (floor + interval) * MICROS
        assert times.count(0, 10**15) == (10**9 - anchor) // interval - (0 - anchor) // interval

    def test_it_stays_in_time(self) -> None:
        times = compiled(Rule(every("1s")), "")
        assert times.prev(0) is None
        assert times.next(-(10**18)) == 0
        assert times.next(at("2399-12-31T23:59:59")) is None


class TestBounds:
    def test_both_ends_are_included(self) -> None:
        rule = Rule(every("1h"), start_at=at("2026-01-01T10:00"), end_at=at("2026-01-01T12:00"))
        assert shown(rule, "2026-01-01", "2026-01-02") == ["01-01T10:00", "01-01T11:00", "01-01T12:00"]

    def test_fractions_of_seconds_are_exact(self) -> None:
        rule = Rule(every("1s"), start_at=1, end_at=2 * MICROS + 1)
        assert listing(compiled(rule, ""), -5, 10 * MICROS) == [MICROS, 2 * MICROS]
        assert listing(compiled(Rule(every("1s"), end_at=2 * MICROS - 1), ""), 0, 10 * MICROS) == [MICROS]

    @pytest.mark.parametrize("start", [-1, 0, MICROS - 1, MICROS, MICROS + 1])
    def test_next_is_later_and_prev_is_earlier(self, start: int) -> None:
        times = compiled(Rule(every("1s")), "")
        found, earlier = times.next(start), times.prev(start)
        assert found == (start // MICROS + 1) * MICROS
        assert earlier == (None if start <= 0 else (start - 1) // MICROS * MICROS)


class TestOnce:
    def test_it_is_one_instant(self) -> None:
        times = compiled(Rule(once(NOON)), "")
        noon = micros_at(NOON)
        assert listing(times, 0, 2 * noon) == [noon]
        assert (times.next(noon), times.prev(noon)) == (None, None)
        assert (times.count(noon, noon + 1), times.count(noon - 1, noon)) == (0, 1)
        assert times.marks(noon) == ()


class TestUnion:
    def test_an_instant_counts_once(self) -> None:
        rule = Rule(every("6h") | cron("0 */4 * * *") | once(NOON))
        hours = [
            "01-01T04:00",
            "01-01T06:00",
            "01-01T08:00",
            "01-01T12:00",
            "01-01T16:00",
            "01-01T18:00",
            "01-01T20:00",
        ]
        assert shown(rule, "2026-01-01", "2026-01-01T23:00") == hours

    def test_a_year_of_seconds(self) -> None:
        rule = Rule(every("2s") | cron("* * * * * *", "Europe/Berlin") | every("3s"))
        assert compiled(rule, "").count(NOW, NOW + 365 * DAY) == 365 * 86_400
        halves = compiled(Rule(every("2s") | every("3s")), "")
        assert halves.count(0, 365 * DAY) == 365 * 86_400 * 4 // 6
        assert halves.count(0, 7 * MICROS) == 4  # 2, 3, 4, 6

    def test_marks_are_those_of_the_parts_that_fire(self) -> None:
        times = compiled(Rule(cron("30 2 * * *", "Europe/Berlin") | every("1h")), "")
        assert times.marks(at("2026-03-29T01:00")) == ("gap", "transition")
        assert times.marks(at("2026-03-29T02:00")) == ()
        assert times.marks(at("2026-03-29T02:01")) == ()


class TestWindows:
    @pytest.mark.parametrize(
        ("windows", "fires"),
        [
            ((Window("09:00", "12:00"),), ["09", "10", "11"]),
            ((Window("22:00", "02:00"),), ["00", "01", "22", "23"]),
            ((Window("22:00", "24:00"),), ["22", "23"]),
            ((Window("22:00", "00:00"),), ["22", "23"]),
            ((Window("22:00", "02:00", ("thu",)),), ["22", "23"]),  # 2026-01-01 is a Thursday
            ((Window("22:00", "02:00", ("wed",)),), ["00", "01"]),
            ((Window("00:00", "24:00", ("fri",)),), []),
            ((Window("09:00", "09:00"),), [f"{hour:02}" for hour in range(24)]),
            ((Window("09:00", "10:00:01"), Window("09:30", "12:00")), ["09", "10", "11"]),
            ((Window("09:00:01", "10:00"),), []),
            ((Window("23:00", "22:00", ("wed", "thu")),), [f"{hour:02}" for hour in range(24) if hour != 22]),
        ],
    )
    def test_only_what_is_within(self, windows: tuple[Window, ...], fires: list[str]) -> None:
        rule = Rule(cron("0 * * * *"), windows=windows)
        assert shown(rule, "2025-12-31T23:59", "2026-01-01T23:59") == [f"01-01T{hour}:00" for hour in fires]

    def test_the_week_comes_round(self) -> None:
        rule = Rule(cron("0 * * * *"), windows=(Window("23:00", "01:00", ("sun",)),))
        assert shown(rule, "2026-01-01", "2026-01-12") == ["01-04T23:00", "01-05T00:00", "01-11T23:00", "01-12T00:00"]

    def test_excluded_dates_are_those_of_the_zone(self) -> None:
        rule = Rule(every("6h"), exclude=("2026-01-02", "2026-01-04/2026-01-30"), timezone="Asia/Taipei")
        assert shown(rule, "2026-01-01", "2026-01-31") == [
            "01-01T06:00", "01-01T12:00", "01-02T18:00", "01-03T00:00", "01-03T06:00", "01-03T12:00",
            "01-30T18:00", "01-31T00:00",
        ]  # fmt: skip

    def test_a_gap_and_a_fold_within_a_window(self) -> None:
        rule = Rule(every("30m"), windows=(Window("02:00", "03:00"),), timezone="Europe/Berlin")
        assert shown(rule, "2026-03-29", "2026-03-30") == ["03-30T00:00"]
        assert shown(rule, "2026-10-24T12:00", "2026-10-25T12:00") == [
            "10-25T00:00", "10-25T00:30", "10-25T01:00", "10-25T01:30",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("start", "allowed", "following"),
        [
            ("2026-01-01T08:00", False, "2026-01-01T09:00"),
            ("2026-01-01T09:00", True, "2026-01-01T09:00"),
            ("2026-01-01T16:59:59", True, "2026-01-01T16:59:59"),
            ("2026-01-01T17:00", False, "2026-01-02T09:00"),
            ("2026-01-02T17:00", False, "2026-01-06T09:00"),  # over the weekend, and a holiday
        ],
    )
    def test_what_a_window_allows(self, start: str, allowed: bool, following: str) -> None:
        windows = (Window("09:00", "17:00", ("mon", "tue", "wed", "thu", "fri")),)
        times = compiled(Rule(after("1m"), windows=windows, exclude=("2026-01-05",)), "")
        assert times.allows(at(start)) is allowed
        assert times.next_allowed(at(start)) == at(following)
        assert times.next_allowed(at(following) - 1) == at(following)


class TestAfter:
    def test_it_has_no_times_of_its_own(self) -> None:
        assert after("90s").repeats_after == timedelta(seconds=90)
        times = compiled(Rule(after("90s"), start_at=5 * MICROS, end_at=9 * MICROS + 1), "")
        assert times.waits_for_ends
        assert (times.next(0), times.prev(10**18), times.count(0, 10**18)) == (None, None, 0)
        assert not times.is_time(0)
        assert times.marks(0) == ()
        assert [times.allows(second * MICROS) for second in (4, 5, 9, 10)] == [False, True, True, False]
        assert [times.next_allowed(at) for at in (0, 5 * MICROS + 1, 9 * MICROS, 9 * MICROS + 1)] == [
            5 * MICROS, 6 * MICROS, 9 * MICROS, None,
        ]  # fmt: skip

    def test_others_follow_nothing(self) -> None:
        assert every("1m").repeats_after is None
        assert not compiled(Rule(every("1m")), "").waits_for_ends


class TestCheck:
    @pytest.mark.parametrize(
        "rule",
        [
            Rule(cron("0 9 * * *")), Rule(cron("0 0 29 2 *")), Rule(cron("0 0 */28 2 MON#5")), Rule(every("1s")),
            Rule(after("1m")), Rule(once(NOON)), Rule(once(NOON - timedelta(days=9_000))),
            Rule(every("100d"), start_at=NOW, end_at=NOW + 100 * DAY), Rule(after("1m"), end_at=NOW - DAY),
            Rule(every("1h"), end_at=NOW - DAY), Rule(every("1h"), start_at=at("2300-01-01")),
            Rule(cron("0 9 * * *"), windows=(Window("09:00", "09:00:01"),)),
            Rule(cron("30 2 * * *", "Europe/Berlin"), windows=(Window("03:00", "04:00"),), timezone="Europe/Berlin"),
            Rule(cron("H H * * *")), Rule(Cron("0 0 30 2 *") | every("1h")),
            Rule(every("1d"), exclude=("2026-01-01/2060-01-01",)),
        ],
    )  # fmt: skip
    def test_what_may_stand(self, rule: Rule) -> None:
        check(rule, "salt", NOW)

    @pytest.mark.parametrize(
        ("rule", "field"),
        [
            (Rule(Cron("0 0 30 2 *")), "day of month"),
            (Rule(cron("0 0 H(30-31) 2 *")), "day of month"),
            (Rule(Cron("0 0 30 2 *"), end_at=NOW + DAY, windows=(Window("09:00", "17:00"),)), "day of month"),
            (Rule(Cron("0 0 30 2 *") | Cron("0 0 31 4 *")), "day of month"),
            (Rule(Cron("61 * * * *")), "minute"),
            (Rule(Every(timedelta(0))), "interval"),
            (Rule(every("1h"), start_at=NOW, end_at=NOW - 1), "end_at"),
            (Rule(every("1h"), start_at=NOW + 1, end_at=NOW + 2), "end_at"),
            (Rule(once(NOON), end_at=NOW), "end_at"),
            (Rule(once(NOON), start_at=NOW + DAY), "start_at"),
            (Rule(once(NOON.replace(year=2099))), None),
            (Rule(once(NOON), exclude=("2026-01-01",)), "exclude"),
            (Rule(once(NOON - timedelta(days=30)), windows=(Window("13:00", "14:00"),)), "windows"),
            (Rule(cron("0 12 * * *"), windows=(Window("13:00", "14:00"),)), "windows"),
            (Rule(cron("0 12 * * mon"), windows=(Window("00:00", "24:00", ("tue",)),)), "windows"),
            (Rule(every("1d"), exclude=("2025-01-01/2399-12-31",)), "exclude"),
            (Rule(after("1d"), exclude=("2025-01-01/2399-12-31",)), "exclude"),
            (Rule(every("1d"), exclude=("2025-01-01/2080-12-31",)), "exclude"),
            (Rule(every("1d"), timezone="Nowhere"), "timezone"),
            (Rule(every("1d"), windows=(Window("9:00", "17:00"),)), "windows"),
            (Rule(every("1d"), windows=(Window("09:00", "24:01"),)), "windows"),
            (Rule(every("1d"), windows=(Window("24:00", "09:00"),)), "windows"),
            (Rule(every("1d"), windows=(Window("٠٩:00", "17:00"),)), "windows"),
            (Rule(every("1d"), windows=(Window("09:00", "17:00", ("monday",)),)), "windows"),
            (Rule(every("1d"), windows=(Window("09:00", "17:00"),) * 101), "windows"),
            (Rule(every("1d"), exclude=("2026-02-30",)), "exclude"),
            (Rule(every("1d"), exclude=("2026-12-31/2026-12-24",)), "exclude"),
            (Rule(every("1d"), exclude=("2026-12-24/",)), "exclude"),
            (Rule(every("1d"), exclude=("20261224",)), "exclude"),
            (Rule(every("1d"), exclude=("x" * 1_000_000,)), "exclude"),
            (Rule(every("1d"), exclude=("1969-12-31",)), "exclude"),
            (Rule(every("1d"), exclude=("2026-12-24",) * 1_001), "exclude"),
        ],
    )
    def test_what_makes_no_sense_or_never_fires(self, rule: Rule, field: str | None) -> None:
        with pytest.raises(BadTrigger) as refused:
            check(rule, "salt", NOW)
        assert refused.value.field == field
        assert len(str(refused.value)) < 400

    def test_a_search_without_end_has_one(self) -> None:
        """Give up after a bounded number of steps: every minute has a window that just misses the second, for ever."""
        windows = tuple(Window(f"{n // 10:02}:{n % 10:02}:31", f"{n // 10:02}:{n % 10:02}:50") for n in range(100))
        with pytest.raises(BadTrigger, match="windows"):
            check(Rule(cron("30 * * * * *"), windows=windows), "", NOW)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("09:00-17:00", Window("09:00", "17:00")),
        ("09:00 - 24:00", Window("09:00", "24:00")),
        ("22:00-06:00 mon-fri", Window("22:00", "06:00", ("mon", "tue", "wed", "thu", "fri"))),
        ("09:00:30-17:00 SAT,sun", Window("09:00:30", "17:00", ("sat", "sun"))),
        ("09:00-17:00 fri-mon,wed", Window("09:00", "17:00", ("fri", "sat", "sun", "mon", "wed"))),
        (Window("09:00", "17:00"), Window("09:00", "17:00")),
        ({"start": "09:00", "end": "17:00", "days": ["mon"]}, Window("09:00", "17:00", ("mon",))),
    ],
)
def test_windows_as_people_write_them(written: str, meant: Window) -> None:
    assert window_of(written) == meant


@pytest.mark.parametrize(
    "written",
    ["", "09:00", "9-17", "09:00-25:00", "09:00-17:00 someday", "09:00-17:00 mon-", "09:00-17:00 mon tue", {}, 5, None,
     {"start": 9, "end": 17}, "x" * 1_000_000, Window("a", "b")],
)  # fmt: skip
def test_windows_that_are_none(written: str) -> None:
    with pytest.raises(BadTrigger) as refused:
        window_of(written)
    assert refused.value.field == "windows"


def test_a_rule_survives_json() -> None:
    window = Window("09:00", "17:00", ("mon",))
    rule = Rule(cron("0 9 * * *") | every("1h"), 5, 10**16, (window,), ("2026-12-25",), "Asia/Taipei")
    again = msgspec.json.decode(msgspec.json.encode(rule), type=Rule)
    assert again == rule
    assert compiled(again, "") is compiled(rule, "")


def test_what_is_compiled_is_shared_by_threads() -> None:
    rules = [Rule(cron(f"{minute} 2 * * *", "Europe/Berlin")) for minute in range(0, 60, 7)]
    start, end = at("2026-03-01"), at("2026-11-01")

    def work(seed: int) -> list[list[int]]:
        order = random.Random(seed).sample(range(len(rules)), len(rules))
        found = {place: listing(compiled(rules[place], ""), start, end) for place in order}
        return [found[place] for place in range(len(rules))]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(16)))
    assert all(result == results[0] for result in results)


TRIGGERS: list[Trigger] = [
    cron("*/20 * * * *", "Europe/Berlin"), every("17m"), cron("0,30 1-3 * * *", "America/New_York"),
    cron("15 * * * *") | every("25m"), every("11s"), cron("*/9 * * * * *", "Europe/Berlin"),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_windows_against_a_walk_over_the_trigger(seed: int) -> None:
    """Compare with times chosen by wall clock and calendar alone, around transitions."""
    draw = random.Random(seed)
    name = draw.choice(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Taipei"])
    windows = tuple(random_window(draw) for _ in range(draw.randint(0, 3)))
    middle = draw.choice(
        ["2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-04", "2026-10-03", "2026-12-31"]
    )
    day = date.fromisoformat(middle)
    exclude = tuple(str(day + timedelta(days=draw.randint(-2, 2))) for _ in range(draw.randint(0, 2)))
    trigger = draw.choice(TRIGGERS)
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        info = ZoneInfo.from_file(data)
    start, end = at(middle) - 2 * DAY, at(middle) + 2 * DAY
    every_time = listing(compiled(Rule(trigger), ""), start, end)
    wanted = [each for each in every_time if is_left(instant(each).astimezone(info), windows, exclude)]
    times = compiled(Rule(trigger, windows=windows, exclude=exclude, timezone=name), "")
    assert listing(times, start, end) == wanted
    for _ in range(20):
        here = draw.randrange(start, end)
        following = times.next_allowed(here)
        assert following is not None
        assert times.allows(following)
        between = range(
            -(-here // MICROS) * MICROS, following, max(MICROS, (following - here) // 50 // MICROS * MICROS)
        )
        assert not any(is_left(instant(each).astimezone(info), windows, exclude) for each in between)


def random_window(draw: random.Random) -> Window:
    days = draw.sample(["mon", "tue", "wed", "thu", "fri", "sat", "sun"], draw.choice([0, 1, 3, 5]))
    start, end = (f"{draw.randrange(24):02}:{draw.choice(['00', '30', '30:20'])}" for _ in range(2))
    return Window(start, end, tuple(days))


def is_left(wall: datetime, windows: tuple[Window, ...], exclude: tuple[str, ...]) -> bool:
    return str(wall.date()) not in exclude and (not windows or any(is_within(wall, window) for window in windows))


def is_within(wall: datetime, window: Window) -> bool:
    clock = f"{wall:%H:%M:%S}"
    today, yesterday = (f"{day:%a}".lower() for day in (wall.date(), wall.date() - timedelta(days=1)))
    start, end = (f"{text}:00" if len(text) == 5 else text for text in (window.start, window.end))
    days = window.days or (today, yesterday)
    if end > start:
        return today in days and start <= clock < end
    return (today in days and clock >= start) or (yesterday in days and clock < end)


def test_triggers_without_times_of_their_own_are_only_after() -> None:
    assert compiled(Rule(After(timedelta(seconds=1))), "").next(0) is None
    assert compiled(Rule(Once(0)), "").next(-1) == 0


def test_rules_that_are_shared_by_nobody_leave_little_to_the_collector_of_garbage() -> None:
    rule, count = Rule(cron("H H * * *", "Europe/Berlin")), 200
    times = [compiled(rule, f"before {number}") for number in range(count)]
    gc.collect()
    before = len(gc.get_objects())
    times += [compiled(rule, f"after {number}") for number in range(count)]
    assert all(one.next(NOW) for one in times[count:])
    gc.collect()
    assert len(gc.get_objects()) - before < 8 * count
