"""Calendar events of systemd (`Mon..Fri *-*-* 07:30:00 Europe/Berlin`) as cron expressions."""

from __future__ import annotations

import re
from zoneinfo import available_timezones

from rota.core.formats.cron_fields import both_days

_SHORT = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
    "semi-annually": "*-01,07-01 00:00:00",
    "anually": "*-01-01 00:00:00",
}
_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_WEEKDAY = re.compile(r"[A-Za-z]{3,9}(?:(?:\.\.|,|-)[A-Za-z]{3,9})*,?")
_DATE = re.compile(r"(?:(?P<year>[^-~]+)-)?(?P<month>[^-~]+)(?P<end>[-~])(?P<day>[^-~]+)")
_HIGHEST = {"year": 2399, "month": 12, "day": 31, "hour": 23, "minute": 59, "second": 59}


def cron_of(event: str) -> tuple[str, str | None]:
    """Return the cron expression of an `OnCalendar=`, and its zone, None for that of the machine."""
    words = event.split()
    zone = words.pop() if len(words) > 1 and (words[-1] == "UTC" or words[-1] in available_timezones()) else None
    if len(words) == 1 and words[0].lower() in _SHORT:
        words = _SHORT[words[0].lower()].split()
    weekday = _weekdays(words.pop(0)) if words and _WEEKDAY.fullmatch(words[0]) else "*"
    date = words.pop(0) if words and ":" not in words[0] else "*-*-*"
    time = words.pop(0) if words else "00:00:00"
    if words:
        raise ValueError(f"OnCalendar={event} is not understood: {words[0]!r}")
    return _expression(date, time, weekday), zone


def _expression(date: str, time: str, weekday: str) -> str:
    shape = _DATE.fullmatch(date)
    parts = time.split(":")
    if shape is None or len(parts) not in (2, 3):
        raise ValueError(f"{date} {time} is not understood")
    year, month = _field("year", shape["year"] or "*"), _field("month", shape["month"])
    day = _field("day", shape["day"]) if shape["end"] == "-" else _from_last(shape["day"])
    hour, minute = _field("hour", parts[0]), _field("minute", parts[1])
    second = _field("second", parts[2]) if len(parts) == 3 else "0"
    if year != "*":
        return f"{second} {minute} {hour} {day} {month} {both_days(day, weekday)} {year}"
    return f"{second if second != '0' else ''} {minute} {hour} {day} {month} {both_days(day, weekday)}".strip()


def _weekdays(text: str) -> str:
    found: list[str] = []
    for item in text.rstrip(",").replace("..", "-").split(","):
        ends = [word[:3].upper() for word in item.split("-")]
        if any(end not in _DAYS for end in ends):
            raise ValueError(f"{item!r} is no day of the week")
        first, last = _DAYS.index(ends[0]), _DAYS.index(ends[-1])
        found += _DAYS[first : last + 1] if first <= last else (*_DAYS[first:], *_DAYS[: last + 1])
    return ",".join(day for day in _DAYS if day in found)


def _field(name: str, text: str) -> str:
    return ",".join(_item(name, item) for item in text.split(","))


def _item(name: str, item: str) -> str:
    span, slash, step = item.partition("/")
    first, dots, last = span.partition("..")
    if any("." in number for number in (first, last, step)):
        raise ValueError(f"{name} {item!r} has fractions of a second")
    numbers = [number for number in (None if first == "*" else first, last or None, step or None) if number is not None]
    if not all(re.fullmatch(r"[0-9]{1,4}", number) for number in numbers):
        raise ValueError(f"{name} {item!r} is not understood")
    if first == "*":
        return f"*{slash}{int(step)}" if slash else "*"
    begin = f"{int(first)}"
    if not dots:
        return f"{begin}-{_HIGHEST[name]}/{int(step)}" if slash else begin
    if int(last) < int(first):
        raise ValueError(f"{name} {item!r} is a reversed range")
    return f"{begin}-{int(last)}" + (f"/{int(step)}" if slash else "")


def _from_last(text: str) -> str:
    """Write days that are counted from the end of the month: ~01 is the last."""
    if not re.fullmatch(r"[0-9]{1,2}", text) or int(text) < 1:
        raise ValueError(f"days ~{text} cannot be said in a cron expression: only single ones, such as ~01")
    return "L" if int(text) == 1 else f"L-{int(text) - 1}"
