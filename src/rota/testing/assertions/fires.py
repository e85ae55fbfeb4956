"""Assert when a trigger fires, without a database; differences are shown in wall time."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rota.app import Rota
from rota.core.calendar.rules import Rule, Times, compiled
from rota.core.calendar.triggers import Trigger, validate
from rota.core.calendar.zones import zone as known_zone
from rota.errors import Invalid, UnknownSchedule
from rota.testing.assertions.times import Moment, NoSuchTime, moment, shown

_MORE = 3
_MOST = 10_000
_MARKS = {
    "gap": "the clocks skip the time it names",
    "fold-first": "the first of two",
    "fold-second": "the second of two",
    "transition": "the clocks change",
}


def assert_fires(
    what: Trigger | str,
    expected: Sequence[Moment],
    *,
    start: Moment,
    until: Moment | None = None,
    zone: str | None = None,
    app: Rota | None = None,
) -> None:
    """Assert that `expected` are the plan times from `start` on: the first ones, or all up to `until` (both inclusive).

        assert_fires(cron("30 2 * * *", tz="Europe/Berlin"), ["2030-03-31 03:00"], start="2030-03-31")

    `what` is a trigger or, with `app`, the name of a schedule declared there, with its windows, bounds and excluded
    dates. Texts are wall times in `zone`, by default the trigger's own. Nothing is run.
    """
    rule, name, most = _rule_of(what, app)
    tz = zone or _zone_of(rule)
    known_zone(tz)
    times = compiled(rule, name)
    if times.waits_for_ends:
        raise Invalid("it waits for runs to end, and has no times of its own", hint="let time pass in a `Harness`")
    wanted_times = [_Expected(at, tz) for at in expected]
    first = moment(start, tz)
    if until is None:
        if not wanted_times:
            raise Invalid("without `until` it cannot be told that nothing fires", hint="say until when")
        fires_at = list(islice(_fires(times, first, None), min(len(wanted_times), most or _MOST)))
    else:
        fires_at = list(islice(_fires(times, first, moment(until, tz)), most or _MOST))
    if [time.micros for time in wanted_times] == fires_at:
        return
    if until is None:  # the times after the expected ones often show what went wrong
        fires_at = list(islice(_fires(times, first, None), min(len(wanted_times) + _MORE, most or _MOST)))
    what_fires = f"schedule {name!r}" if name else rule.trigger.code()
    lines = _difference(wanted_times, [_Fire(at, tz, times.marks(at)) for at in fires_at], open_end=until is None)
    raise AssertionError("\n".join([f"{what_fires} fires at other times, in {tz} (- expected, + fires):", *lines]))


def _fires(times: Times, first: int, last: int | None) -> Iterator[int]:
    at = times.next(first - 1)
    while at is not None and (last is None or at <= last):
        yield at
        at = times.next(at)


def _rule_of(what: Trigger | str, app: Rota | None) -> tuple[Rule, str, int | None]:
    """Return the rule, the schedule's name, which determines `H`, and the maximum number of runs."""
    if not isinstance(what, str):
        validate(what)
        return Rule(what.started(None)), "", None
    if app is None:
        raise Invalid(f"which app declares {what!r}?", hint="assert_fires(name, […], start=…, app=app)")
    schedules = {schedule.name: schedule.definition for schedule in app.registry.schedules}
    if what not in schedules:
        raise UnknownSchedule(what, schedules)
    return schedules[what].rule, what, schedules[what].max_runs


def _zone_of(rule: Rule) -> str:
    return next(iter(rule.trigger.zones), rule.timezone)


class _Expected:
    """An expected time; `micros` is None if that wall time does not exist."""

    def __init__(self, at: Moment, tz: str) -> None:
        self.note = ""
        try:
            self.micros: int | None = moment(at, tz)
            self.text = shown(self.micros, tz)
        except NoSuchTime as never:
            self.micros = None
            self.text = str(at)
            self.note = str(never.hint)


class _Fire:
    """An actual plan time with its clock-change marks."""

    def __init__(self, micros: int, tz: str, marks: Iterable[str]) -> None:
        self.text = shown(micros, tz)
        self.note = ", ".join(_MARKS.get(mark, mark) for mark in marks)


def _difference(expected: Sequence[_Expected], actual: Sequence[_Fire], *, open_end: bool) -> list[str]:
    """Return lines of a diff. With `open_end`, times after the last expected one are shown but are no difference."""
    matcher = difflib.SequenceMatcher(
        a=[time.text for time in expected], b=[time.text for time in actual], autojunk=False
    )
    lines = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            lines += [_line(" ", time) for time in actual[c:d]]
            continue
        lines += [_line("-", time) for time in expected[a:b]]
        beyond = open_end and d == len(actual) and a == b == len(expected)
        lines += [_line("…" if beyond else "+", time) for time in actual[c:d]]
    return lines


def _line(sign: str, time: _Expected | _Fire) -> str:
    return f"  {sign} {time.text}" + (f"   ({time.note})" if time.note else "")
