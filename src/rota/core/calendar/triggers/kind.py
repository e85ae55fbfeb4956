"""Base of the kinds of triggers: their keys and options, times, words, and how they are read and written.

A new kind is a module of this package with a subclass of `TriggerKind`, and its name in `Trigger`
(`triggers/__init__.py`). One that may be part of a union is named in `union.Part`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, Self, TypeVar

import msgspec

from rota.core.calendar.notation import at_rule_key
from rota.core.calendar.times import MICROS, Source
from rota.core.calendar.zones import LAST_SECOND
from rota.errors import BadTrigger, did_you_mean
from rota.values.durations import parse_duration
from rota.values.instants import micros_at

if TYPE_CHECKING:
    from rota.core.calendar.triggers.job_end import Following
    from rota.core.calendar.triggers.union import Either

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=StrEnum)


class Option(NamedTuple):
    """Command-line option for a key of a document: `--key METAVAR`."""

    key: str
    metavar: str
    help: str


class TriggerNotation(NamedTuple):
    """Part of a document that holds one trigger. `zone` applies to expressions without a zone of their own.

    `where` stands in front of the messages of errors: `schedule 'nightly'`.
    """

    values: Mapping[str, Any]
    zone: str
    where: str

    def at(self, key: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return `read(…)`; errors name `where` and `key`."""
        return at_rule_key(self.where, key, read, *args, **kwargs)


class TriggerKind(msgspec.Struct, frozen=True, tag_field="type", gc=False):
    """Base of all triggers. Class attributes and properties have the value that most kinds share."""

    key: ClassVar[str]
    """Key that holds the trigger in a document; also its tag in stored JSON."""
    details: ClassVar[tuple[str, ...]] = ()
    """Further keys, which belong to this kind alone."""
    other_keys: ClassVar[tuple[str, ...]] = ()
    """Another notation of this kind, read by `parse_other`; the first key names it in messages."""
    options: ClassVar[tuple[Option, ...]] = ()
    has_zone: ClassVar[bool] = False
    """Whether its times depend on a zone of its own, and so on the key `timezone`."""
    waits_for_ends: ClassVar[bool] = False
    """Whether ends of runs name its plan times. `source` returns None then."""
    loses_no_time: ClassVar[bool] = False
    """Whether plan times queue by default while an earlier run goes on, so that none is skipped."""

    def validate(self) -> None:
        """Refuse values that make no sense, wherever they came from. Whether it ever fires is for `rules.check`."""
        raise NotImplementedError

    def source(self, salt: str) -> Source | None:
        """Return its times in seconds; `salt` decides what `H` in a cron expression stands for."""
        raise NotImplementedError

    def describe(self, salt: str | None) -> str:
        """Say in plain English when it fires; without `salt` the values of `H` are not known."""
        raise NotImplementedError

    def code(self) -> str:
        """Return the Python that makes it, in short: for messages of tests."""
        return f"the trigger {type(self).__name__.lower()!r}"

    @classmethod
    def parse(cls, notation: TriggerNotation) -> Self:
        """Read it from a document that has `key`."""
        raise NotImplementedError

    @classmethod
    def parse_other(cls, notation: TriggerNotation) -> Self:
        """Read it from a document that has one of `other_keys`."""
        raise NotImplementedError

    def document(self, zone: str) -> dict[str, Any]:
        """Return the keys that `parse` reads back to it, in a document whose `timezone` is `zone`."""
        raise NotImplementedError

    def part_document(self, zone: str) -> dict[str, Any]:
        """Return the keys of a part of a union, in a document whose `timezone` is `zone`."""
        return self.document(zone)

    def started(self, start_at: int | None) -> Self:
        """Return it with the instant that it counts from, where that is the start of its schedule."""
        return self

    @property
    def parts(self) -> tuple[TriggerKind, ...]:
        """The triggers that it joins; itself, if it is no union."""
        return (self,)

    @property
    def own_zone(self) -> str | None:
        """The zone that people read its times in; None if any will do."""
        return None

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones that its times depend on."""
        return tuple(zone for part in self.parts if (zone := part.own_zone) is not None)

    @property
    def differs_by_salt(self) -> bool:
        """Return whether schedules with different names may have different times."""
        return False

    def require_days(self, salt: str) -> None:
        """Refuse a trigger whose days come in no year at all."""

    @property
    def repeats_after(self) -> timedelta | None:
        """The time from the end of the schedule's last run to the next plan time; None if it does not wait."""
        return None

    @property
    def awaited(self) -> Following | None:
        """The ends of another job's runs that name its plan times; None if none do."""
        return None

    @property
    def only_at(self) -> int | None:
        """The single instant at which it fires, in microseconds; None if it fires repeatedly."""
        return None

    def __or__(self, other: TriggerKind) -> Either:
        """Return a union; an instant that both sides name counts once."""
        if not isinstance(other, TriggerKind):
            return NotImplemented
        from rota.core.calendar.triggers.union import joined  # a union is a kind itself, and imports this module

        return joined(self, other)


def mode_of(modes: type[M], field: str, word: object) -> M:
    """Return the mode that `word` names; other words are refused with the nearest that there is."""
    known = [mode.value for mode in modes]
    if word not in known:
        hint = did_you_mean(word[:20], known) if isinstance(word, str) else "known: " + ", ".join(known)
        raise BadTrigger(f"cannot be {repr(word)[:40]}", field=field, hint=hint)
    return modes(word)


def check_interval(interval: timedelta) -> None:
    if not isinstance(interval, timedelta):
        raise BadTrigger("is no duration", field="interval", hint='as in "30s", "15m", "6h"')
    if interval < timedelta(seconds=1):
        raise BadTrigger(f"{interval} is too short", field="interval", hint="the shortest is 1s")
    if interval.microseconds:
        raise BadTrigger("has a fraction of a second", field="interval", hint="times are whole seconds")
    parse_duration(interval)


def check_instant(at: int, field: str) -> None:
    if not isinstance(at, int) or isinstance(at, bool):
        raise BadTrigger("is no instant", field=field, hint="microseconds since 1970, UTC")
    if not 0 <= at <= LAST_SECOND * MICROS:
        raise BadTrigger("is not within the years 1970 to 2399", field=field)
    if at % MICROS:
        raise BadTrigger("has a fraction of a second", field=field, hint="use .replace(microsecond=0)")


def micros_of(at: datetime, field: str) -> int:
    if not isinstance(at, datetime):
        raise BadTrigger("is no datetime", field=field, hint="datetime(2026, 1, 1, 9, tzinfo=UTC)")
    if at.utcoffset() is None:
        raise BadTrigger("has no time zone", field=field, hint="datetime(2026, 1, 1, 9, tzinfo=UTC)")
    return micros_at(at)
