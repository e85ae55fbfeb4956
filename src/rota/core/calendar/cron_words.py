"""Cron expressions in plain English: short for common patterns, field by field and still right for all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from rota.core.calendar.cron_parser import MONTH_NAMES, Expression, Field, read
from rota.core.calendar.cron_times import FoldMode, GapMode
from rota.core.calendar.phrases import listed

_MOST_CLOCK_TIMES = 6
_EVERY_MINUTE = (1 << 60) - 1
_EVERY_HOUR = (1 << 24) - 1
_EVERY_DAY = (1 << 32) - 2
_EVERY_MONTH = (1 << 13) - 2
_EVERY_WEEKDAY = (1 << 7) - 1
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WORKING_DAYS, _WEEKEND = 0b011_1110, 0b100_0001
_NTH = ("last", "1st", "2nd", "3rd", "4th", "5th")
_ANYWHERE = {"every minute", "every second", *(f"every {step} seconds" for step in range(2, 60))}
"""Descriptions of times that are the same in every zone."""


def cron_words(expression: str, timezone: str, gap: GapMode, fold: FoldMode, salt: str | None) -> str:
    """Describe the times of a cron expression; without `salt` the values of `H` are not known, and called its own."""
    parsed = read(expression, salt or "")
    words = _unsalted(expression, parsed) if parsed.has_hash and salt is None else _times(parsed)
    if parsed.year is not None:
        words += f" in {_years(parsed.year)}"
    if words in _ANYWHERE:
        return words
    laws = "" if timezone == "UTC" or not parsed.is_fixed else _laws(gap, fold)
    return f"{words}, {timezone}{laws}"


def _times(expression: Expression) -> str:
    days = _days(expression)
    if times := _clock_times(expression):
        return f"{days or 'every day'} at {times}"
    return f"{_grid(expression)}, {days}" if days else _grid(expression)


def _laws(gap: GapMode, fold: FoldMode) -> str:
    words = " and ".join(filter(None, (_gap_words(gap), _fold_words(fold))))
    return f" ({words})" if words else ""


def _gap_words(gap: GapMode) -> str:
    match gap:
        case GapMode.AFTER:
            return ""
        case GapMode.SKIP:
            return "left out when clocks skip it"
        case _:
            assert_never(gap)


def _fold_words(fold: FoldMode) -> str:
    match fold:
        case FoldMode.FIRST:
            return ""
        case FoldMode.LAST:
            return "on the second pass when clocks repeat it"
        case FoldMode.BOTH:
            return "twice when clocks repeat it"
        case _:
            assert_never(fold)


def _unsalted(text: str, expression: Expression) -> str:
    days = (expression.day, expression.month, expression.weekday)
    plain = expression.second.text == "0" and not any(item.text.startswith("h") or ",h" in item.text for item in days)
    if plain and expression.minute.text == "h":
        if expression.hour.text == "h":
            return f"{_days(expression) or 'every day'} at a time of its own"
        if expression.hour.text == "*" and not _days(expression):
            return "every hour at a minute of its own"
    return f'at the times of cron "{text}", with H of its own'


def _clock_times(expression: Expression) -> str:
    """Return `09:00 and 17:30` if there are few times, else nothing."""
    hours, minutes, seconds = expression.hour.values, expression.minute.values, expression.second.values
    if len(hours) * len(minutes) * len(seconds) > _MOST_CLOCK_TIMES:
        return ""
    with_seconds = seconds != [0]
    return listed(
        f"{hour:02}:{minute:02}:{second:02}" if with_seconds else f"{hour:02}:{minute:02}"
        for hour in hours
        for minute in minutes
        for second in seconds
    )


def _grid(expression: Expression) -> str:
    """Describe times of the day by their fields: `every 5 minutes of hours 9 to 17`, `at second 30 of every minute`."""
    second, minute, hour = expression.second, expression.minute, expression.hour
    hours = "" if hour.bits == _EVERY_HOUR else f" of {_numbers('hour', hour.values)}"
    if second.bits == 1:
        if minute.bits == 1 and not hours:
            return "every hour"
        if step := _even_step(minute, _EVERY_MINUTE, "minute"):
            return step + hours
        return f"at {_numbers('minute', minute.values)}{hours or ' of every hour'}"
    seconds = _even_step(second, _EVERY_MINUTE, "second")
    if minute.bits != _EVERY_MINUTE:
        minutes = f" of {_numbers('minute', minute.values)}{hours or ' of every hour'}"
    elif seconds:
        minutes = hours
    else:
        minutes = f" of every minute{hours}"
    return (seconds or f"at {_numbers('second', second.values)}") + minutes


def _even_step(field: Field, every: int, unit: str) -> str:
    """Return `every 5 minutes` for values that were written as a step and come round evenly, else nothing."""
    if field.bits == every:
        return f"every {unit}"
    values = field.values
    step = values[1] if len(values) > 1 else 60
    even = field.text.startswith("*/") and values == list(range(0, 60, step)) and 60 % step == 0 and step < 60
    return f"every {step} {unit}s" if even else ""


def _days(expression: Expression) -> str:
    """Describe the days; return nothing if it is every day."""
    months = "" if expression.month.bits == _EVERY_MONTH else _months(expression.month.values)
    numbers = _day_numbers(expression.day, months or "the month") if expression.day.bits != _EVERY_DAY else ""
    names = _day_names(expression.weekday) if expression.weekday.bits != _EVERY_WEEKDAY else ""
    if numbers and names and not expression.either_day:
        return f"{numbers}, but only {names}"
    if names and months:
        names += f" in {months}"
    if numbers and names:
        return f"{numbers} or {names}"
    if not expression.either_day and (numbers or names):
        return numbers or names
    return f"every day in {months}" if months else ""


def _day_numbers(field: Field, month: str) -> str:
    parts = [f"{_numbers('day', field.values)} of {month}"] if field.bits else []
    parts += [f"{_before_last(back)} of {month}" for back in field.from_last]
    parts += [f"{_near(number)} of {month}" for number in field.near]
    return "on " + " or ".join(parts)


def _before_last(back: int) -> str:
    if back == 0:
        return "the last day"
    return "the day before the last" if back == 1 else f"the day {back} days before the last"


def _near(number: int) -> str:
    return f"the weekday nearest day {number}" if number else "the last weekday"


def _day_names(field: Field) -> str:
    if field.bits == _WORKING_DAYS and not field.nth:
        return "weekdays"
    if field.bits == _WEEKEND and not field.nth:
        return "weekends"
    order = [*range(1, 7), 0]  # people's weeks start on Monday
    parts = [listed(f"{_DAYS[day]}s" for day in order if field.bits >> day & 1)] if field.bits else []
    parts += [f"on the {_NTH[nth]} {_DAYS[day]} of the month" for day, nth in field.nth]
    return " or ".join(parts)


def _months(values: Sequence[int]) -> str:
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        return f"{MONTH_NAMES[values[0] - 1]} to {MONTH_NAMES[values[-1] - 1]}"
    return listed(MONTH_NAMES[value - 1] for value in values)


def _years(field: Field) -> str:
    return _numbers("year", field.values).removeprefix("years ").removeprefix("year ")


def _numbers(unit: str, values: Sequence[int]) -> str:
    """Return `minute 5`, `minute 0 and 30`, `hours 9 to 17` or `every 2nd day from 1 to 31`."""
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        return f"{unit}s {values[0]} to {values[-1]}"
    step = values[1] - values[0] if len(values) > 4 else 0
    if step and list(values) == list(range(values[0], values[-1] + 1, step)):
        return f"every {_ordinal(step)} {unit} from {values[0]} to {values[-1]}"
    return f"{unit} {listed(map(str, values))}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
