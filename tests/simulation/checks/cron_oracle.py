"""Cron by brute force, to compare with: a parser and a matcher of its own, walking all of UTC by half minutes."""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
BOUNDS = {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 6)}
BLOCK = 30  # seconds; no offset since 1970 and no change of one is finer
MARGIN = 2 * 86_400  # a wall time and its twin are nearer than this


def offset_at(zone: ZoneInfo, at: int) -> int:
    shift = datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset()
    assert shift is not None
    return int(shift.total_seconds())


def wall_of(seconds: int) -> datetime:
    """Wall seconds as a datetime that claims to be UTC, so that arithmetic is plain."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


class Walk:
    """Some days of a zone: each half minute's instant and wall time, and the gaps between wall times."""

    def __init__(self, zone: ZoneInfo, first: int, last: int, margin: int = MARGIN) -> None:
        self.first, self.last = first, last
        self.blocks: list[tuple[int, int, datetime]] = []
        self.instants: dict[int, list[int]] = {}
        self.gaps: list[tuple[int, int, int]] = []
        expected = None
        for at in range((first - margin) // BLOCK * BLOCK, last + margin, BLOCK):
            wall = at + offset_at(zone, at)
            assert wall % BLOCK == 0
            self.blocks.append((at, wall, wall_of(wall)))
            self.instants.setdefault(wall, []).append(at)
            if expected is not None and wall > expected:
                self.gaps.append((at, expected, wall))
            expected = wall + BLOCK


class CronOracle:
    def __init__(self, expression: str, gap: str = "after", fold: str = "first") -> None:
        words = expression.upper().split()
        if len(words) == 5:
            words = ["0", *words]
        self.years = words.pop() if len(words) == 7 else "*"
        second, minute, hour, self.day, month, self.weekday = words
        self.seconds, self.minutes = listed("second", second), listed("minute", minute)
        self.hours, self.months = listed("hour", hour), listed("month", month)
        is_fixed = minute[0] != "*" and hour[0] != "*"
        self.gap = gap if is_fixed else "skip"
        self.fold = fold if is_fixed else "both"
        self._days: dict[tuple[int, int, int], bool] = {}

    def fires(self, walk: Walk) -> list[int]:
        found: set[int] = set()
        for at, wall, moment in walk.blocks:
            if (seconds := self._seconds_in(moment)) and self._counts(at, walk.instants[wall]):
                found.update(at + second for second in seconds)
        if self.gap == "after":
            for at, start, end in walk.gaps:
                if any(self._seconds_in(wall_of(wall)) for wall in range(start, end, BLOCK)):
                    found.add(at)
        return sorted(at for at in found if walk.first <= at <= walk.last)

    def _counts(self, at: int, twins: list[int]) -> bool:
        return self.fold == "both" or at == (min(twins) if self.fold == "first" else max(twins))

    def _seconds_in(self, block: datetime) -> list[int]:
        """The seconds that match, counted from the start of the half minute."""
        if not (block.hour in self.hours and block.minute in self.minutes and block.month in self.months):
            return []
        if not self._day_matches(block):
            return []
        return [second - block.second for second in self.seconds if 0 <= second - block.second < BLOCK]

    def _day_matches(self, wall: datetime) -> bool:
        key = (wall.year, wall.month, wall.day)
        if key not in self._days:
            by_day = any(self._is_day(item, wall) for item in self.day.split(","))
            by_weekday = any(self._is_weekday(item, wall) for item in self.weekday.removeprefix("+").split(","))
            by_year = any(hits(item, wall.year, 1970, 2399) for item in self.years.split(","))
            both_restricted = self.day[0] not in "*?" and self.weekday[0] not in "*?+"
            self._days[key] = by_year and (by_day or by_weekday if both_restricted else by_day and by_weekday)
        return self._days[key]

    def _is_day(self, item: str, wall: datetime) -> bool:
        size = monthrange(wall.year, wall.month)[1]
        if item == "?":
            return True
        if item == "LW":
            return wall.day == nearest_weekday(wall.replace(day=size))
        if item[0] == "L":
            return wall.day == size - int(item[2:] or 0)
        if item[-1] == "W":
            number = int(item[:-1])
            return number <= size and wall.day == nearest_weekday(wall.replace(day=number))
        return hits(item, wall.day, 1, 31)

    def _is_weekday(self, item: str, wall: datetime) -> bool:
        today = wall.isoweekday() % 7
        if item == "?":
            return True
        if "#" in item and item[-1] != "L":
            name, nth = item.split("#")
            return number_of(name) % 7 == today and (wall.day + 6) // 7 == int(nth)
        if re.fullmatch(r"(\d|[A-Z]{3})#?L", item):
            later = wall + timedelta(days=7)
            return number_of(item[:-1].removesuffix("#")) % 7 == today and later.month != wall.month
        item = re.sub(r"^7/", "0/", item)
        return hits(item, today, 0, 6) or (today == 0 and hits(item, 7, 0, 6))


def listed(name: str, text: str) -> set[int]:
    low, high = BOUNDS[name]
    return {value for value in range(low, high + 1) for item in text.split(",") if hits(item, value, low, high)}


def hits(item: str, value: int, low: int, high: int) -> bool:
    span, _, step = item.partition("/")
    if span == "*":
        first, last = low, high
    elif "-" in span:
        first, last = (number_of(word) for word in span.split("-"))
    else:
        first = number_of(span)
        last = high if step else first
    return first <= value <= last and (value - first) % int(step or 1) == 0


def number_of(word: str) -> int:
    if word in DAYS:
        return DAYS.index(word)
    return MONTHS.index(word) + 1 if word in MONTHS else int(word)


def nearest_weekday(wanted: datetime) -> int:
    """Of the days of the month that are no weekend, the nearest; a Saturday's is the Friday, a Sunday's the Monday."""
    size = monthrange(wanted.year, wanted.month)[1]
    days = [wanted.replace(day=day) for day in range(1, size + 1)]
    working = [day for day in days if day.isoweekday() < 6]
    return min(working, key=lambda day: abs(day.day - wanted.day)).day
