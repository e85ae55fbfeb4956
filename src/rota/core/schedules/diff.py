"""Diff between a file of schedules and the database: what to create, change and delete, field by field."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.core.schedules import preview
from rota.core.schedules.documents import document_of
from rota.core.schedules.revisions import first_cursor
from rota.core.schedules.schedule import Schedule, ScheduleDefinition
from rota.errors import BadTrigger, Conflict, Invalid, UnknownOption
from rota.values.names import checked_name

CREATE, CHANGE, DELETE, UNCHANGED = "create", "change", "delete", "unchanged"

_RESERVED = ("api", "cli", "code")
_TOP = ("owner", "schedule")
_FIRES = 3


class FieldChange(msgspec.Struct, frozen=True):
    """Change of one key of a schedule's document; None stands for the default, where the document has no such key."""

    key: str
    """Key of the document."""
    before: Any
    """Value until now; null for the default."""
    after: Any
    """New value; null for the default."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Effect of applying a file on one schedule, with its next plan times before and after. A pause is left alone."""

    kind: str
    """`create`, `change`, `delete` or `unchanged`."""
    name: str
    changes: tuple[FieldChange, ...] = ()
    """Keys that differ."""
    fires_before: tuple[datetime, ...] = ()
    fires_after: tuple[datetime, ...] = ()
    paused: bool = False
    """Whether the schedule is paused, which stays so."""


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
    wanted: Mapping[str, ScheduleDefinition], existing: Sequence[Schedule], owner: str, now: int
) -> tuple[Difference, ...]:
    """Return the differences in the order of `wanted`, then the schedules to delete.

    `existing` holds all schedules of the owner, and all that have a wanted name.
    """
    known = {schedule.name: schedule for schedule in existing}
    _refuse_foreign([known[name] for name in wanted if name in known], owner)
    changed = [_difference(name, definition, known.get(name), now) for name, definition in wanted.items()]
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


def _difference(name: str, definition: ScheduleDefinition, old: Schedule | None, now: int) -> Difference:
    fires = _fires(definition, name, now)
    if old is None:
        _refuse_over(name, definition, now)
        return Difference(
            kind=CREATE, name=name, changes=changes(None, document_of(name, definition)), fires_after=fires
        )
    paused = old.paused_at is not None
    before = _fires(old.definition, name, now)
    if old.definition == definition:
        return Difference(kind=UNCHANGED, name=name, fires_before=before, fires_after=fires, paused=paused)
    changed = changes(document_of(name, old.definition), document_of(name, definition))
    return Difference(kind=CHANGE, name=name, changes=changed, fires_before=before, fires_after=fires, paused=paused)


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
    return tuple(fire.plan_time for fire in preview.upcoming(definition, name, now, _FIRES))
