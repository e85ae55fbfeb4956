"""Cron times against a brute-force oracle: random expressions and zones, near transitions, both ways."""

import random
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

import pytest

from rota.core.calendar.cron_times import FoldMode, GapMode
from rota.core.calendar.rules import Rule, Times, compiled
from rota.core.calendar.triggers import Cron
from tests.simulation.checks.cron_oracle import CronOracle, Walk
from tests.support.forms import with_long_form

MICROS = 1_000_000
DAY = 86_400
SEEDS = with_long_form(range(3), range(3, 200))
CASES = 100  # for each seed

# A day in the middle of what is walked: a change of offset, or an ordinary one.
PLACES = [
    ("Europe/Berlin", "2026-03-29"), ("Europe/Berlin", "2026-10-25"), ("Europe/Berlin", "2060-03-28"),
    ("America/New_York", "2026-03-08"), ("America/New_York", "2026-11-01"), ("America/New_York", "2099-11-01"),
    ("Australia/Lord_Howe", "2026-04-04"), ("Australia/Lord_Howe", "2026-10-03"), ("Australia/Lord_Howe", "1981-03-01"),
    ("Africa/Casablanca", "2026-02-15"), ("Africa/Casablanca", "2026-03-22"), ("Africa/Casablanca", "2018-10-28"),
    ("Pacific/Chatham", "2026-04-04"), ("Pacific/Chatham", "2026-09-26"),
    ("Antarctica/Troll", "2026-03-29"), ("Antarctica/Troll", "2026-10-25"),
    ("Africa/Cairo", "2014-05-15"), ("Africa/Cairo", "2014-09-25"), ("Africa/Cairo", "2026-04-23"),
    ("Asia/Taipei", "1974-03-31"), ("Asia/Taipei", "1974-09-30"), ("Asia/Taipei", "2026-07-01"),
    ("Pacific/Apia", "2011-12-30"), ("Pacific/Kwajalein", "1993-08-21"), ("Pacific/Kiritimati", "1994-12-31"),
    ("America/St_Johns", "1988-04-03"), ("America/St_Johns", "2006-10-29"), ("America/St_Johns", "2026-11-01"),
    ("Asia/Kathmandu", "1985-12-31"), ("Africa/Monrovia", "1972-01-07"), ("America/Caracas", "2007-12-09"),
    ("Antarctica/Casey", "2010-03-04"), ("Europe/Lisbon", "1992-09-27"), ("Asia/Pyongyang", "2018-05-04"),
    ("America/Sao_Paulo", "2018-11-04"), ("America/Havana", "2026-11-01"), ("Asia/Beirut", "2026-03-28"),
    ("UTC", "2028-02-29"), ("UTC", "1970-01-20"), ("America/Phoenix", "2027-01-01"), ("Europe/Dublin", "1971-10-31"),
]  # fmt: skip


@cache
def walk_of(place: int) -> Walk:
    name, day = PLACES[place]
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        zone = ZoneInfo.from_file(data)
    middle = int(datetime.fromisoformat(day).replace(tzinfo=UTC, hour=12).timestamp())
    return Walk(zone, middle - DAY - 7, middle + DAY + 7)


def item(draw: random.Random, low: int, high: int) -> str:
    first = draw.randint(low, high)
    last = draw.randint(first, high)
    step = draw.choice([1, 2, 3, 5, 7, 10, 15, 30])
    shapes = [f"{first}", f"{first}", f"{first}-{last}", f"{first}-{last}/{step}", f"{first}/{step}", f"*/{step}"]
    return draw.choice(shapes)


def field(draw: random.Random, low: int, high: int, open_share: float) -> str:
    if draw.random() < open_share:
        return "*"
    return ",".join(item(draw, low, high) for _ in range(draw.choice([1, 1, 1, 2, 3])))


def day_field(draw: random.Random, around: datetime) -> str:
    special = ["?", "L", "L-3", "LW", f"{around.day}W", f"{around.day},L", f"{around.day}", "*/2", "1-31", "1W"]
    return draw.choice(["*", "*", "*", "*", field(draw, 1, 31, 0.3), draw.choice(special)])


def weekday_field(draw: random.Random, around: datetime) -> str:
    names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
    today = names[around.isoweekday() % 7]
    nth = (around.day + 6) // 7
    special = [
        "?",
        today,
        f"{today}#{nth}",
        f"{today}L",
        f"{today}#L",
        f"+{today}",
        f"+{today}#{nth},FRI",
        "7",
        "0,7",
        "MON-FRI",
        "5-7",
        "sun-sat",
        f"{today.lower()},MON#1",
    ]
    return draw.choice(["*", "*", "*", "*", field(draw, 0, 7, 0.3), draw.choice(special)])


def expression(draw: random.Random, around: datetime) -> str:
    """Draw an expression; small hours are more likely, since zones change there."""
    hour = draw.choice(["*", "*/2", "0", "1", "2", "3", "1-3", "0,2", "23", field(draw, 0, 23, 0.2)])
    minute = draw.choice(["*", "0", "30", "*/15", "0,30", "59", field(draw, 0, 59, 0.2)])
    month = draw.choice(["*", "*", "*", str(around.month), f"{around:%b}", field(draw, 1, 12, 0.3)])
    words = [minute, hour, day_field(draw, around), month, weekday_field(draw, around)]
    if draw.random() < 0.3:
        words.insert(0, draw.choice(["*", "*/20", "0", "30", "0,59", field(draw, 0, 59, 0.1)]))
        if draw.random() < 0.5:
            year = around.year
            years = [
                "*",
                f"{year}",
                f"{max(year - 1, 1970)}-{year}",
                f"{year},{year + 3}",
                f"{year + 1}",
                "*/2",
                f"{year}/4",
            ]
            words.append(draw.choice(years))
    return " ".join(words)


def check_case(draw: random.Random, times: Times, fires: list[int], walk: Walk) -> None:
    """Search from every kind of instant: on, just before and just after fires, anywhere, with and without fractions."""
    some = [at + near for at in draw.sample(fires, min(6, len(fires))) for near in (-1, 0, 1)]
    anywhere = [draw.randint(walk.first, walk.last) for _ in range(12)]
    for at in (at for at in some + anywhere if walk.first <= at <= walk.last):
        fraction = draw.choice([0, 1, 999_999])
        after = [fire for fire in fires if fire > at]
        before = [fire for fire in fires if fire < at or (fire == at and fraction)]
        instant = at * MICROS + fraction
        found, earlier = times.next(instant), times.prev(instant)
        assert found is not None and found > instant if after else found is None or found > walk.last * MICROS
        assert earlier is not None and earlier < instant if before else earlier is None or earlier < walk.first * MICROS
        assert not after or found == after[0] * MICROS
        assert not before or earlier == before[-1] * MICROS
        assert times.is_time(at * MICROS) == (at in fires)
    low, high = sorted(draw.sample(range(walk.first - 1, walk.last + 1), 2))
    assert times.count(low * MICROS, high * MICROS) == sum(low < fire <= high for fire in fires)
    assert times.count((walk.first - 1) * MICROS, walk.last * MICROS) == len(fires)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_expressions_in_many_zones(seed: int) -> None:
    draw = random.Random(seed)
    fired = 0
    for _ in range(CASES):
        place = draw.randrange(len(PLACES))
        name, day = PLACES[place]
        around = datetime.fromisoformat(day)
        text, gap = expression(draw, around), draw.choice([GapMode.AFTER, GapMode.AFTER, GapMode.SKIP])
        fold = draw.choice([FoldMode.FIRST, FoldMode.FIRST, FoldMode.LAST, FoldMode.BOTH])
        walk = walk_of(place)
        fires = CronOracle(text, gap, fold).fires(walk)
        fired += bool(fires)
        try:
            check_case(draw, compiled(Rule(Cron(text, name, gap=gap, fold=fold)), ""), fires, walk)
        except AssertionError as failure:
            raise AssertionError(f"cron({text!r}, {name!r}, gap={gap}, fold={fold}) near {day}") from failure
    assert fired > CASES / 3  # the cases are worth something


@pytest.mark.parametrize("place", range(len(PLACES)), ids=str)
@pytest.mark.parametrize("text", ["* * * * *", "*/7 * * * * *", "30 0-3 * * *", "0,59 10-50 0,1,2,23 * * *"])
def test_every_place_with_expressions_that_fire_there(place: int, text: str) -> None:
    draw = random.Random(place)
    fires = CronOracle(text).fires(walk_of(place))
    assert fires
    check_case(draw, compiled(Rule(Cron(text, PLACES[place][0])), ""), fires, walk_of(place))


def test_a_union_and_its_windows_count_what_they_list() -> None:
    """Compare the ways to count, day by day as bits and one by one, with the plain list."""
    draw = random.Random(7)
    for _ in range(60):
        place, other = draw.randrange(len(PLACES)), draw.choice(["UTC", "Asia/Kathmandu", "America/New_York"])
        name, day = PLACES[place]
        texts = [expression(draw, datetime.fromisoformat(day)) for _ in range(2)]
        first, second = (compiled(Rule(Cron(text, zone)), "") for text, zone in zip(texts, (name, other), strict=True))
        union = compiled(Rule(Cron(texts[0], name) | Cron(texts[1], other)), "")
        walk = walk_of(place)
        low, high = walk.first * MICROS, (walk.first + draw.randint(0, 100_000)) * MICROS
        listed = {*listing(first, low, high), *listing(second, low, high)}
        assert union.count(low, high) == len(listed), texts
        assert listing(union, low, high) == sorted(listed)


def listing(times: Times, after: int, until: int) -> list[int]:
    found = []
    while (at := times.next(after)) is not None and at <= until:
        found.append(at)
        after = at
    return found
