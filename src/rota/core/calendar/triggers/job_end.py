"""Triggers that wait for another job: fire when one of its runs ends."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self

from rota.core.calendar.notation import text_of
from rota.core.calendar.triggers.kind import Option, TriggerKind, TriggerNotation, mode_of
from rota.errors import BadTrigger, Invalid
from rota.values.durations import Duration, format_duration, parse_duration
from rota.values.names import checked_name


class FollowedEnd(StrEnum):
    """Ends of runs that count. `end` is any but a skip."""

    SUCCESS = "success"
    FAILURE = "failure"
    END = "end"


ENDS = tuple(end.value for end in FollowedEnd)


class Following(TriggerKind, frozen=True, tag="following", omit_defaults=True):
    """Ends of runs of another job that go as `on` says: it has no times of its own.

    `delay` becomes the schedule's own when that is defined.
    """

    key: ClassVar[str] = "following"
    details: ClassVar[tuple[str, ...]] = ("on",)
    options: ClassVar[tuple[Option, ...]] = (
        Option("following", "JOB", "At each end of a run of this job that goes as --on says."),
        Option("on", "END", f"{', '.join(ENDS)}.  [default: success]"),
    )
    waits_for_ends: ClassVar[bool] = True
    loses_no_time: ClassVar[bool] = True

    job: str
    on: FollowedEnd = FollowedEnd.SUCCESS
    delay: timedelta = timedelta(0)

    def validate(self) -> None:
        try:
            checked_name(self.job, "a job's name")
        except Invalid as error:
            raise BadTrigger(error.message, field="following", hint=error.hint) from None
        mode_of(FollowedEnd, "on", self.on)
        if self.delay < timedelta(0) or self.delay.microseconds:
            raise BadTrigger("must be whole seconds", field="delay")

    def source(self, salt: str) -> None:
        return None

    def describe(self, salt: str | None) -> str:
        return f"after each {self.on} of {self.job}"

    @classmethod
    def parse(cls, notation: TriggerNotation) -> Self:
        on = notation.values.get("on", FollowedEnd.SUCCESS)
        return notation.at("following", cls._checked, notation.values["following"], on)

    @classmethod
    def _checked(cls, job: object, on: object) -> Self:
        # The delay is not left to the default: `omit_defaults` goes by identity, and the JSON should be the same
        # whether a trigger comes from a document or from `following`.
        trigger = cls(text_of(job), mode_of(FollowedEnd, "on", text_of(on)), parse_duration("0s"))
        trigger.validate()
        return trigger

    def document(self, zone: str) -> dict[str, Any]:
        on = {} if self.on == FollowedEnd.SUCCESS else {"on": str(self.on)}
        return {"following": self.job, **on, **({"delay": format_duration(self.delay)} if self.delay else {})}

    @property
    def awaited(self) -> Following:
        return self


class Named(Protocol):
    """A job, wherever it is declared."""

    @property
    def name(self) -> str: ...


def following(job: str | Named, *, on: str = "success", delay: Duration = timedelta(0)) -> Following:
    """Fire at each success of another job's run, at each failure, or at each end; `delay` later."""
    name = job if isinstance(job, str) else job.name
    trigger = Following(name, mode_of(FollowedEnd, "on", on), parse_duration(delay))
    trigger.validate()
    return trigger
