"""Diff between documents of schedules and the database: what to create, change and delete, field by field, and which
keys of a document are wrong."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.core.calendar import rules
from rota.core.calendar.describe import describe
from rota.core.runs.redaction import concealed
from rota.core.schedules.documents import KEYS, RULE_KEYS, TRIGGER_KEYS, document_of, parse
from rota.core.schedules.plan_times import upcoming, zone_of
from rota.core.schedules.revisions import first_cursor
from rota.core.schedules.schedule import Schedule, ScheduleDefinition, rule_of
from rota.errors import BadPayload, BadTrigger, Conflict, Invalid, RotaError, UnknownOption
from rota.values.durations import parse_duration
from rota.values.names import checked_name

CREATE, CHANGE, DELETE, UNCHANGED = "create", "change", "delete", "unchanged"

_RESERVED = ("api", "cli", "code")
_TOP = ("owner", "schedule")
_FIRES = 3
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


class FieldChange(msgspec.Struct, frozen=True):
    """Change of one key of a schedule's document; None stands for the default, where the document has no such key."""

    key: str
    """Key of the document."""
    before: Any
    """Value until now; null for the default."""
    after: Any
    """New value; null for the default."""


def concealed_change(change: FieldChange) -> FieldChange:
    """Return a change without the secrets that a schedule has in payload and metadata."""
    if change.key not in ("payload", "metadata"):
        return change
    return msgspec.structs.replace(change, before=concealed(change.before), after=concealed(change.after))


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Effect of changes on one schedule, with its next plan times before and after. A pause is left alone."""

    kind: str
    """`create`, `change`, `delete` or `unchanged`."""
    name: str
    changes: tuple[FieldChange, ...] = ()
    """Keys that differ."""
    fires_before: tuple[datetime, ...] = ()
    fires_after: tuple[datetime, ...] = ()
    paused: bool = False
    """Whether the schedule is paused, which stays so."""
    rule: str | None = None
    """Trigger in words; null if it makes no sense."""
    timezone: str = "UTC"
    problems: tuple[DocumentProblem, ...] = ()
    """What keeps it from being stored."""
    warnings: tuple[str, ...] = ()
    """What is allowed, and probably not meant."""
    durations: str | None = None
    """How long its simulated runs take, and where that comes from."""


class File(msgspec.Struct, frozen=True):
    """Contents of a file of schedules; `owner` is None if the file names none."""

    owner: str | None
    documents: tuple[dict[str, Any], ...]


def read_file(text: str, name: str = "schedules.toml") -> File:
    """Parse TOML with `[[schedule]]` tables, or the same in JSON if `name` ends with `.json`."""
    try:
        content = msgspec.json.decode(text) if name.endswith(".json") else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, msgspec.DecodeError) as error:
        raise Invalid(f"{name}: {error}", hint="see docs/schedules.md for the format") from None
    if not isinstance(content, dict):
        raise Invalid(f"{name} must hold an object", hint='{"schedule": [{"name": "…", …}]}')
    for key in content:
        if key not in _TOP:
            raise UnknownOption(key, _TOP, where=name)
    documents = content.get("schedule", [])
    if not isinstance(documents, list) or not all(isinstance(document, dict) for document in documents):
        raise Invalid(f"{name}: schedule must be a list of tables", hint="write [[schedule]] above each")
    return File(content.get("owner"), tuple(documents))


def checked_owner(owner: object) -> str:
    """Check the owner of a file. It may delete its schedules, so a file cannot own those of code and people."""
    name = checked_name(owner, "owner")
    if name in _RESERVED:
        raise Invalid(f"a file cannot be the owner {name!r}", hint='name it after a team or a system: owner = "team-a"')
    return name


def check_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise Invalid(f"schedule {name!r} is there {names.count(name)} times", hint="give each a name of its own")


def differences(
    wanted: Mapping[str, ScheduleDefinition], existing: Sequence[Schedule], owner: str | None, now: int
) -> tuple[Difference, ...]:
    """Return the differences in the order of `wanted`, then the schedules to delete: none without an owner.

    `existing` holds all schedules of the owner, and all that have a wanted name.
    """
    known = {schedule.name: schedule for schedule in existing}
    if owner is not None:
        _refuse_foreign([known[name] for name in wanted if name in known], owner)
    changed = [difference(name, definition, known.get(name), now) for name, definition in wanted.items()]
    gone = [schedule for name, schedule in sorted(known.items()) if name not in wanted and schedule.owner == owner]
    return (*changed, *(_deletion(schedule, now) for schedule in gone))


def _refuse_foreign(schedules: Sequence[Schedule], owner: str) -> None:
    foreign = [schedule for schedule in schedules if schedule.owner != owner]
    if foreign:
        named = ", ".join(f"{schedule.name!r} belongs to {schedule.owner!r}" for schedule in foreign[:5])
        more = f", and {len(foreign) - 5} more" if len(foreign) > 5 else ""
        raise Conflict(
            f"schedule {named}{more}, not to {owner!r}", hint="take another name, or delete it where it was made"
        )


def difference(name: str, definition: ScheduleDefinition, old: Schedule | None, now: int) -> Difference:
    """Compare what a schedule shall be with what it is, if it exists."""
    if old is None:
        _refuse_over(name, definition, now)
    before = None if old is None else document_of(name, old.definition)
    changed = changes(before, document_of(name, definition))
    return Difference(
        kind=CREATE if old is None else UNCHANGED if old.definition == definition else CHANGE,
        name=name,
        changes=changed,
        fires_before=() if old is None else _fires(old.definition, name, now),
        fires_after=_fires(definition, name, now),
        paused=old is not None and old.paused_at is not None,
        rule=describe(definition.rule, name),
        timezone=zone_of(definition),
    )


def _refuse_over(name: str, definition: ScheduleDefinition, now: int) -> None:
    try:
        first_cursor(definition, name, now)
    except BadTrigger as error:
        raise error.within(f"schedule {name!r}") from None


def _deletion(old: Schedule, now: int) -> Difference:
    before = _fires(old.definition, old.name, now)
    return Difference(kind=DELETE, name=old.name, fires_before=before, paused=old.paused_at is not None)


def changes(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Compare two documents key by key."""
    old = before or {}
    keys = dict.fromkeys((*old, *after))
    return tuple(
        FieldChange(key, old.get(key), after.get(key))
        for key in keys
        if key != "name" and old.get(key) != after.get(key)
    )


def _fires(definition: ScheduleDefinition, name: str, now: int) -> tuple[datetime, ...]:
    if not definition.enabled:
        return ()
    return tuple(fire.plan_time for fire in upcoming(definition, name, now, _FIRES))


def named(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document without what was left empty, and with a name."""
    values = {key: value for key, value in document.items() if value not in (None, "")}
    return {"name": UNNAMED, **values}


def timing_of(document: Mapping[str, Any], now: int) -> ScheduleDefinition:
    """Check the keys that decide when a document fires, and return them as a definition; the others may be missing."""
    values = named(document)
    of_rule = {key: values[key] for key in RULE_KEYS if key in values}
    parsed = parse({"name": values["name"], "job": UNNAMED, **of_rule})
    rule = rule_of(parsed.trigger, parsed.options)
    rules.check(rule, parsed.name, now)
    return ScheduleDefinition(job=UNNAMED, rule=rule, delay=parse_duration(values.get("delay", "0s"), "delay"))


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
