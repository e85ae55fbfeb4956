"""Rules in plain English: when a schedule fires, within which bounds, windows and dates."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.calendar.phrases import instant_phrase, listed
from rota.core.calendar.rules import Rule
from rota.core.calendar.windows import WEEKDAYS, Window

_MOST_DATES = 5


def describe(rule: Rule, salt: str | None = None) -> str:
    """Describe a rule; without the schedule's `salt` the values of `H` are not known, and called its own."""
    text = rule.trigger.describe(salt)
    start = f"from {instant_phrase(rule.start_at)}" if rule.start_at is not None else ""
    end = f"until {instant_phrase(rule.end_at)}" if rule.end_at is not None else ""
    if start or end:
        text += "; " + " ".join(filter(None, (start, end)))
    zone = "" if rule.timezone == rule.trigger.own_zone else f" ({rule.timezone})"
    if rule.windows:
        text += f"; only {' or '.join(map(_window, rule.windows))}{zone}"
    if rule.exclude:
        text += f"; not on {_dates(rule.exclude)}{zone}"
    return text


def _window(window: Window) -> str:
    places = sorted({WEEKDAYS.index(day) for day in window.days})
    if not places or len(places) == 7:
        days = ""
    elif len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        days = f" {WEEKDAYS[places[0]]}-{WEEKDAYS[places[-1]]}"
    else:
        days = " " + ",".join(WEEKDAYS[place] for place in places)
    return f"{window.start}-{window.end}{days}"


def _dates(dates: Sequence[str]) -> str:
    shown = [text.replace("/", " to ") for text in dates]
    if len(shown) > _MOST_DATES:
        rest = len(shown) - _MOST_DATES + 1
        shown = [*shown[: _MOST_DATES - 1], f"{rest} more"]
    return listed(shown)
