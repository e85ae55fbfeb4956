"""Triggers that fire a single time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Self

from rota.core.calendar.notation import instant_of, written_instant
from rota.core.calendar.phrases import instant_phrase
from rota.core.calendar.times import MICROS, Single, Source
from rota.core.calendar.triggers.kind import Option, TriggerKind, TriggerNotation, check_instant, micros_of
from rota.values.instants import instant


class Once(TriggerKind, frozen=True, tag="once"):
    """A single instant: `at` is in microseconds, and a whole second."""

    key: ClassVar[str] = "once"
    options: ClassVar[tuple[Option, ...]] = (Option("once", "TIME", "At one instant: 2026-01-31T08:00:00Z."),)

    at: int

    def validate(self) -> None:
        check_instant(self.at, "at")

    def source(self, salt: str) -> Source:
        return Single(self.at // MICROS)

    def describe(self, salt: str | None) -> str:
        return f"once at {instant_phrase(self.at)}"

    @classmethod
    def parse(cls, notation: TriggerNotation) -> Self:
        return notation.at("once", cls._checked, notation.values["once"])

    @classmethod
    def _checked(cls, at: object) -> Self:
        trigger = cls(micros_of(instant_of(at), "at"))
        trigger.validate()
        return trigger

    def document(self, zone: str) -> dict[str, Any]:
        return {"once": written_instant(instant(self.at))}

    @property
    def only_at(self) -> int:
        return self.at


def once(at: datetime) -> Once:
    """Fire at one instant."""
    trigger = Once(micros_of(at, "at"))
    trigger.validate()
    return trigger
