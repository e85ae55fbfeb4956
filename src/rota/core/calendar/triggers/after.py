"""Triggers that wait for the schedule's own last run: fire a fixed time after it ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Self

from rota.core.calendar.notation import duration_of
from rota.core.calendar.phrases import duration_phrase
from rota.core.calendar.triggers.kind import Option, TriggerKind, TriggerNotation, check_interval
from rota.values.durations import Duration, format_duration, parse_duration


class After(TriggerKind, frozen=True, tag="after"):
    """End of the schedule's own last run, plus `interval`: it has no times of its own."""

    key: ClassVar[str] = "after"
    options: ClassVar[tuple[Option, ...]] = (Option("after", "DURATION", "That long after the last run ended."),)
    waits_for_ends: ClassVar[bool] = True

    interval: timedelta

    def validate(self) -> None:
        check_interval(self.interval)

    def source(self, salt: str) -> None:
        return None

    def describe(self, salt: str | None) -> str:
        return f"{duration_phrase(self.interval, one='1 ')} after the last run ended"

    @classmethod
    def parse(cls, notation: TriggerNotation) -> Self:
        return notation.at("after", cls._checked, notation.values["after"])

    @classmethod
    def _checked(cls, interval: object) -> Self:
        trigger = cls(duration_of(interval))
        trigger.validate()
        return trigger

    def document(self, zone: str) -> dict[str, Any]:
        return {"after": format_duration(self.interval)}

    @property
    def repeats_after(self) -> timedelta:
        return self.interval


def after(interval: Duration) -> After:
    """Fire `interval` after the last run ended."""
    trigger = After(parse_duration(interval))
    trigger.validate()
    return trigger
