"""Previews: the next plan times of a schedule or a document, as people read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from rota.core.calendar import rules
from rota.core.calendar.describe import describe
from rota.core.schedules.documents import KEYS, RULE_KEYS, TRIGGER_KEYS, parse
from rota.core.schedules.schedule import ScheduleDefinition, rule_of
from rota.errors import BadPayload, BadTrigger, RotaError
from rota.values.durations import in_micros, parse_duration
from rota.values.instants import instant


class Fire(msgspec.Struct, frozen=True, kw_only=True):
    """A plan time to come. `local` is in the schedule's `zone`; `eligible_at` is when its run may start, jitter aside.

    `marks`: `gap` (its time of the day does not exist, it fires right after), `fold-first`, `fold-second` (its time of
    the day comes twice), `transition` (the first one after the clocks changed).
    """

    plan_time: datetime
    local: datetime
    eligible_at: datetime
    marks: tuple[str, ...] = ()
    zone: str = "UTC"


def upcoming(definition: ScheduleDefinition, name: str, after: int, count: int) -> list[Fire]:
    times = definition.times(name)
    zone = zone_of(definition)
    fires: list[Fire] = []
    at = times.next(after)
    while at is not None and len(fires) < count:
        eligible_at = instant(at + in_micros(definition.delay))
        fires.append(
            Fire(
                plan_time=instant(at),
                local=instant(at).astimezone(ZoneInfo(zone)),
                eligible_at=eligible_at,
                marks=times.marks(at),
                zone=zone,
            )
        )
        at = times.next(at)
    return fires


def zone_of(definition: ScheduleDefinition) -> str:
    """Return the zone that people read its times in: the trigger's, else the rule's."""
    return definition.rule.trigger.own_zone or definition.rule.timezone


UNNAMED = "new"
"""Name of a schedule that has none yet; `H` in its expression depends on it."""
_SUBJECT = re.compile(r"schedule '[^']*' ?:? *|a schedule:? *")


class DocumentProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Problem that keeps a document from being a schedule."""

    code: str
    """Code of the error."""
    detail: str
    """What is wrong."""
    hint: str | None = None
    key: str | None = None
    """Key of the document that is at fault."""


class DocumentPreview(msgspec.Struct, frozen=True, kw_only=True):
    """Preview of a document, which could be stored if there are no `problems`. `rule` is None if it makes no sense."""

    rule: str | None = None
    timezone: str = "UTC"
    fires: tuple[Fire, ...] = ()
    problems: tuple[DocumentProblem, ...] = ()
    """What keeps it from being stored."""


def named(document: Mapping[str, Any]) -> dict[str, Any]:
    values = {key: value for key, value in document.items() if value not in (None, "")}
    return {"name": UNNAMED, **values}


def foresee(document: Mapping[str, Any], after: int, count: int) -> DocumentPreview:
    """Preview the keys that decide when a document fires; the others may be missing."""
    values = named(document)
    try:
        of_rule = {key: values[key] for key in RULE_KEYS if key in values}
        parsed = parse({"name": values["name"], "job": UNNAMED, **of_rule})
        rule = rule_of(parsed.trigger, parsed.options)
        rules.check(rule, parsed.name, after)
        delay = parse_duration(values.get("delay", "0s"), "delay")
    except RotaError as error:
        return DocumentPreview(problems=(wrong(error, values),))
    definition = ScheduleDefinition(job=UNNAMED, rule=rule, delay=delay)
    return DocumentPreview(
        rule=describe(rule, None if values["name"] == UNNAMED else parsed.name),
        timezone=zone_of(definition),
        fires=tuple(upcoming(definition, parsed.name, after, count)),
    )


def wrong(error: RotaError, document: Mapping[str, Any]) -> DocumentProblem:
    return DocumentProblem(code=error.code, detail=error.message, hint=error.hint, key=_key(error, document))


def _key(error: RotaError, document: Mapping[str, Any]) -> str | None:
    """Return the key that an error is about: messages begin with it, after the schedule's name."""
    if isinstance(error, BadPayload):
        return "payload"
    message = _SUBJECT.sub("", error.message, count=1)
    leading = re.match(
        r"(?:[a-z_]+: )?[a-z_]+", message
    )  # "cron: timezone: …" is about the zone, "cron: minute: …" is not
    keys = [word for word in leading[0].split(": ") if word in KEYS] if leading else []
    if keys:
        return keys[-1]
    if isinstance(error, BadTrigger):
        return next((key for key in TRIGGER_KEYS if key in document), None)
    return next((key for key in ("job", "payload") if message.startswith((f"no {key} ", f"the {key} "))), None)
