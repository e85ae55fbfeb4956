"""Triggers, the pure rule inside a schedule, as values: cron, every, after, following, once, and unions."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from rota.core.calendar.cron_matcher import require_days
from rota.core.calendar.cron_parser import read
from rota.core.calendar.zones import LAST_SECOND, zone
from rota.errors import BadTrigger, Invalid, did_you_mean
from rota.values.durations import Duration, parse_duration
from rota.values.instants import micros_at
from rota.values.names import checked_name

MICROS = 1_000_000
GAPS = ("after", "skip")
FOLDS = ("first", "last", "both")
ENDS = ("success", "failure", "end")
ANCHORS = ("epoch", "start")
_MOST_TRIGGERS = 100
_AT_START = -(1 << 62)  # stands for the start of a schedule until that is known, and is never stored


class _Trigger(msgspec.Struct, frozen=True, tag_field="type", gc=False):
    def __or__(self, other: Trigger) -> Either:
        """Both; an instant that both name counts once."""
        if not isinstance(other, _Trigger):
            return NotImplemented
        parts = [part for side in (self, other) for part in (side.triggers if isinstance(side, Either) else (side,))]
        union = Either(tuple(dict.fromkeys(parts)))  # type: ignore[arg-type]  # what cannot be in it is refused next
        validate(union)
        return union


class Cron(_Trigger, frozen=True, tag="cron"):
    """`gap` and `fold` are for expressions that name times of the day: what to do when one is left out or repeated."""

    expression: str
    timezone: str = "UTC"
    gap: str = "after"
    fold: str = "first"


class Every(_Trigger, frozen=True, tag="every"):
    """At `anchor` (the epoch, if none) and every whole number of intervals from it: elapsed time, so no zone."""

    interval: timedelta
    anchor: int | None = None


class After(_Trigger, frozen=True, tag="after"):
    """That long after the last run finished: it has no times of its own."""

    interval: timedelta


class Following(_Trigger, frozen=True, tag="following", omit_defaults=True):
    """At each end of a run of another job that goes as `on` says: it has no times of its own, either.

    `end` is any but a skip. `delay` becomes the schedule's own when that is defined.
    """

    job: str
    on: str = "success"
    delay: timedelta = timedelta(0)


class Once(_Trigger, frozen=True, tag="once"):
    at: int


class Either(_Trigger, frozen=True, tag="either"):
    triggers: tuple[Cron | Every | Once, ...]


Trigger = Cron | Every | After | Following | Once | Either


def cron(expression: str, tz: str = "UTC", *, gap: str | None = None, fold: str | None = None) -> Cron:
    """Five fields, or six with seconds first; `gap` is after (the default) or skip, `fold` first (the default), last or
    both: for expressions that name times of the day.
    """
    said = {field: word for field, word in (("gap", gap), ("fold", fold)) if word is not None}
    trigger = Cron(expression, tz, **said)
    validate(trigger)
    require_times_of_day(trigger, said)
    parsed = read(expression)
    if not parsed.has_hash:  # else the schedule's name decides on which days
        require_days(parsed)
    return trigger


def require_times_of_day(trigger: Cron, said: Collection[str]) -> None:
    """Refuses a `gap` or a `fold` that somebody said, though nothing is decided by it; what is stored may have one."""
    parsed = read(trigger.expression)
    if parsed.is_fixed:
        return
    name = "minute" if parsed.minute.text.startswith("*") else "hour"
    for field, does in (("gap", "skip"), ("fold", "both")):
        if field in said and getattr(trigger, field) != does:
            why = f"the {name} begins with *, so it fires at each matching time that really passes"
            raise BadTrigger(f"means nothing: {why}", field=field, hint="leave it out, or name times of the day")


def every(interval: Duration, *, anchor: datetime | str | None = None) -> Every:
    """Elapsed time: `"1d"` is 24 hours, whatever the clocks do. It counts from `anchor`: an instant, `"start"` for the
    schedule's `start_at`, or `"epoch"`, which is the default.
    """
    trigger = Every(parse_duration(interval), _anchor(anchor))
    validate(trigger)
    return trigger


def _anchor(anchor: datetime | str | None) -> int | None:
    if anchor is None or anchor == "epoch":
        return None
    if isinstance(anchor, str) and anchor != "start":
        raise BadTrigger(f"cannot be {anchor!r:.40}", field="anchor", hint="an instant, start, or epoch")
    return _AT_START if isinstance(anchor, str) else _micros(anchor, "anchor")


def started(trigger: Trigger, start_at: int | None) -> Trigger:
    """With the instant that it counts from, where that is the start of its schedule."""
    match trigger:
        case Either():
            return Either(tuple(started(part, start_at) for part in trigger.triggers))  # type: ignore[misc]
        case Every() if trigger.anchor == _AT_START:
            if start_at is None:
                hint = "say start_at, from which it counts"
                raise BadTrigger("there is no start_at", field="anchor", hint=hint)
            anchored = Every(trigger.interval, -(-start_at // MICROS) * MICROS)
            validate(anchored)
            return anchored
        case _:
            return trigger


def after(interval: Duration) -> After:
    """That long after the last run finished."""
    trigger = After(parse_duration(interval))
    validate(trigger)
    return trigger


class Named(Protocol):
    """A job, wherever it is declared."""

    @property
    def name(self) -> str: ...


def following(job: str | Named, *, on: str = "success", delay: Duration = timedelta(0)) -> Following:
    """At each success of another job's run, at each failure, or at each end; `delay` later."""
    trigger = Following(job if isinstance(job, str) else job.name, on, parse_duration(delay))
    validate(trigger)
    return trigger


def once(at: datetime) -> Once:
    trigger = Once(_micros(at, "at"))
    validate(trigger)
    return trigger


def validate(trigger: Trigger) -> None:
    """Whether it makes sense, wherever it came from; that it ever fires is for `rules.check`."""
    match trigger:
        case Cron():
            _validate_cron(trigger)
        case Every():
            _validate_interval(trigger.interval)
            if trigger.anchor not in (None, _AT_START):
                _validate_instant(trigger.anchor, "anchor")
        case After():
            _validate_interval(trigger.interval)
        case Following():
            _validate_following(trigger)
        case Once():
            _validate_instant(trigger.at, "at")
        case Either():
            _validate_union(trigger)
        case _:
            raise BadTrigger(
                f"{type(trigger).__name__} is no trigger", hint="use cron, every, after, following or once"
            )


def _validate_cron(trigger: Cron) -> None:
    read(trigger.expression)
    zone(trigger.timezone)
    for field, word, known in (("gap", trigger.gap, GAPS), ("fold", trigger.fold, FOLDS)):
        if word not in known:
            hint = did_you_mean(word[:20], known) if isinstance(word, str) else "known: " + ", ".join(known)
            raise BadTrigger(f"cannot be {repr(word)[:40]}", field=field, hint=hint)


def _validate_following(trigger: Following) -> None:
    try:
        checked_name(trigger.job, "a job's name")
    except Invalid as error:
        raise BadTrigger(error.message, field="following", hint=error.hint) from None
    if trigger.on not in ENDS:
        hint = did_you_mean(trigger.on[:20], ENDS) if isinstance(trigger.on, str) else "known: " + ", ".join(ENDS)
        raise BadTrigger(f"cannot be {repr(trigger.on)[:40]}", field="on", hint=hint)
    if trigger.delay < timedelta(0) or trigger.delay.microseconds:
        raise BadTrigger("must be whole seconds", field="delay")


def _validate_interval(interval: timedelta) -> None:
    if not isinstance(interval, timedelta):
        raise BadTrigger("is no duration", field="interval", hint='as in "30s", "15m", "6h"')
    if interval < timedelta(seconds=1):
        raise BadTrigger(f"{interval} is too short", field="interval", hint="the shortest is 1s")
    if interval.microseconds:
        raise BadTrigger("has a fraction of a second", field="interval", hint="times are whole seconds")
    parse_duration(interval)


def _validate_instant(at: int, field: str) -> None:
    if not isinstance(at, int) or isinstance(at, bool):
        raise BadTrigger("is no instant", field=field, hint="microseconds since 1970, UTC")
    if not 0 <= at <= LAST_SECOND * MICROS:
        raise BadTrigger("is not within the years 1970 to 2399", field=field)
    if at % MICROS:
        raise BadTrigger("has a fraction of a second", field=field, hint="use .replace(microsecond=0)")


def _validate_union(union: Either) -> None:
    if not 0 < len(union.triggers) <= _MOST_TRIGGERS:
        raise BadTrigger(f"a union has 1 to {_MOST_TRIGGERS} triggers, not {len(union.triggers)}", field="triggers")
    for part in union.triggers:
        if type(part) not in (Cron, Every, Once):
            name = type(part).__name__.lower()
            raise BadTrigger(f"{name} cannot be in a union", field="triggers", hint="join cron, every and once")
        validate(part)


def _micros(at: datetime, field: str) -> int:
    if not isinstance(at, datetime):
        raise BadTrigger("is no datetime", field=field, hint="datetime(2026, 1, 1, 9, tzinfo=UTC)")
    if at.utcoffset() is None:
        raise BadTrigger("has no time zone", field=field, hint="datetime(2026, 1, 1, 9, tzinfo=UTC)")
    return micros_at(at)
