"""Interval triggers: fire each time the same span has elapsed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from rota.core.calendar.notation import duration_of, instant_of, written_instant
from rota.core.calendar.phrases import duration_phrase, instant_phrase
from rota.core.calendar.times import MICROS, Intervals, Source
from rota.core.calendar.triggers.kind import (
    Option,
    TriggerKind,
    TriggerNotation,
    check_instant,
    check_interval,
    micros_of,
)
from rota.core.calendar.zones import DAY
from rota.errors import BadTrigger, Invalid, did_you_mean
from rota.values.durations import Duration, format_duration, parse_duration
from rota.values.instants import instant

_ANCHORS = ("epoch", "start")
_AT_START = -(1 << 62)  # stands for the start of a schedule until that is known, and is never stored
_UNITS = ("minutes", "hours", "days")


class Every(TriggerKind, frozen=True, tag="every"):
    """Instants a whole number of intervals from `anchor` (None: the epoch). It is elapsed time, so has no zone."""

    key: ClassVar[str] = "every"
    details: ClassVar[tuple[str, ...]] = ("anchor",)
    other_keys: ClassVar[tuple[str, ...]] = ("interval_minutes", "interval_type")
    options: ClassVar[tuple[Option, ...]] = (Option("every", "DURATION", 'Elapsed time: "30s", "15m", "1d".'),)

    interval: timedelta
    anchor: int | None = None

    def validate(self) -> None:
        check_interval(self.interval)
        if self.anchor is not None and self.anchor != _AT_START:
            check_instant(self.anchor, "anchor")

    def source(self, salt: str) -> Source:
        return Intervals(self.interval.days * DAY + self.interval.seconds, (self.anchor or 0) // MICROS)

    def describe(self, salt: str | None) -> str:
        since = "" if self.anchor is None else f", counted from {instant_phrase(self.anchor)}"
        return f"every {duration_phrase(self.interval, one='')}{since}"

    def code(self) -> str:
        return f"every({format_duration(self.interval)!r})"

    @classmethod
    def parse(cls, notation: TriggerNotation) -> Self:
        values = notation.values
        anchor = notation.at("anchor", _anchor_of, values["anchor"]) if "anchor" in values else None
        return notation.at("every", cls._checked, values["every"], anchor)

    @classmethod
    def parse_other(cls, notation: TriggerNotation) -> Self:
        """Read `interval_minutes` and `interval_type`. The number counts the unit, whatever its key says: 6 hours are
        interval_minutes = 6, interval_type = "hours".
        """
        values = notation.values
        unit = notation.at("interval_type", _unit_of, values.get("interval_type", "minutes"))
        number = notation.at("interval_minutes", _number_of, values.get("interval_minutes"))
        anchor = notation.at("anchor", _anchor_of, values["anchor"]) if "anchor" in values else None
        return notation.at("interval_minutes", cls._checked, f"{number}{unit[0]}", anchor)

    @classmethod
    def _checked(cls, interval: object, anchor: datetime | str | None) -> Self:
        trigger = cls(duration_of(interval), _anchor_micros(anchor))
        trigger.validate()
        return trigger

    def document(self, zone: str) -> dict[str, Any]:
        interval = {"every": format_duration(self.interval)}
        if self.anchor is None:
            return interval
        return {**interval, "anchor": "start" if self.anchor == _AT_START else written_instant(instant(self.anchor))}

    def started(self, start_at: int | None) -> Self:
        if self.anchor != _AT_START:
            return self
        if start_at is None:
            raise BadTrigger("there is no start_at", field="anchor", hint="say start_at, from which it counts")
        anchored = type(self)(self.interval, -(-start_at // MICROS) * MICROS)
        anchored.validate()
        return anchored


def every(interval: Duration, *, anchor: datetime | str | None = None) -> Every:
    """Fire each time `interval` has elapsed: `"1d"` is 24 hours, whatever the clocks do.

    It counts from `anchor`: an instant, `"start"` for the schedule's `start_at`, or `"epoch"`, which is the default.
    """
    trigger = Every(parse_duration(interval), _anchor_micros(anchor))
    trigger.validate()
    return trigger


def _anchor_micros(anchor: datetime | str | None) -> int | None:
    if anchor is None or anchor == "epoch":
        return None
    if isinstance(anchor, str) and anchor != "start":
        raise BadTrigger(f"cannot be {anchor!r:.40}", field="anchor", hint="an instant, start, or epoch")
    return _AT_START if isinstance(anchor, str) else micros_of(anchor, "anchor")


def _anchor_of(value: object) -> datetime | str:
    return value if isinstance(value, str) and value in _ANCHORS else instant_of(value)


def _unit_of(unit: object) -> str:
    if unit not in _UNITS:
        raise Invalid(f"interval_type cannot be {unit!r}", hint=did_you_mean(str(unit), _UNITS))
    return str(unit)


def _number_of(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise Invalid(f"interval_minutes must be a whole number from 1 up, not {number!r}")
    return number
