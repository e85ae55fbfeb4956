"""Schedules as plain documents, as people write them in TOML and JSON: read, checked by key, and written back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from rota.core.alerts.expectations import Expectations, written
from rota.core.calendar.cron_parser import read
from rota.core.calendar.rules import Window, window_of
from rota.core.calendar.triggers import (
    ANCHORS,
    After,
    Cron,
    Either,
    Every,
    Following,
    Once,
    Trigger,
    after,
    every,
    following,
    once,
    require_times_of_day,
    validate,
)  # fmt: skip
from rota.core.jobs.retry import written_backoff
from rota.core.schedules.policies import CatchUp, Failure, Overlap
from rota.core.schedules.schedule import SCHEDULE_OPTIONS, ScheduleDefinition, options_of
from rota.errors import BadTrigger, Invalid, RotaError, UnknownOption, did_you_mean
from rota.values.durations import format_duration, parse_duration
from rota.values.instants import instant
from rota.values.names import checked_name
from rota.values.scope import Scope

TRIGGER_KEYS = ("cron", "every", "after", "following", "once", "either")
INTERVAL_KEYS = ("interval_minutes", "interval_type")
DETAIL_KEYS = ("gap", "fold", "anchor", "on")
RULE_KEYS = (*TRIGGER_KEYS, *INTERVAL_KEYS, *DETAIL_KEYS, "timezone", "windows", "exclude", "start_at", "end_at")
KEYS = ("name", "job", *TRIGGER_KEYS, *DETAIL_KEYS, *SCHEDULE_OPTIONS)

_KNOWN = (*KEYS, *INTERVAL_KEYS)
_UNITS = ("minutes", "hours", "days")
_DETAILS = {"cron": ("timezone", "gap", "fold"), "every": ("anchor",)}
_BELONGS = {"gap": "cron", "fold": "cron", "anchor": "every", "on": "following"}
_TEXTS = ("timezone", "description", "when_full", "queue")
_CRON_KEYS = ("expression", "timezone", "gap", "fold")
_LAWS = {"gap": "after", "fold": "first"}
_DEFAULTS: dict[str, object] = {
    "payload": {}, "scopes": [], "delay": "0s", "jitter": "0s", "windows": [], "exclude": [], "enabled": True,
    "description": "", "when_full": "queue",
}  # fmt: skip


class Parsed(NamedTuple):
    """What `client.schedules.define` takes."""

    name: str
    job: str
    trigger: Trigger
    options: dict[str, Any]


def parse(document: Mapping[str, Any]) -> Parsed:
    """A document with everything in it; what is wrong is told with its key."""
    if not isinstance(document, Mapping):
        raise Invalid(f"a schedule is a table, not {document!r:.80}", hint='[[schedule]] with name = "…"')
    given = {key: value for key, value in document.items() if value is not None}
    where = f"schedule {given['name']!r}" if isinstance(given.get("name"), str) else "a schedule"
    for key, value in given.items():
        if key not in _KNOWN:
            raise UnknownOption(str(key), _KNOWN, where=where)
        _at(where, key, _require_unicode, value)
    for key in ("name", "job"):
        if key not in given:
            raise Invalid(f"{where}: {key} is missing")
        _at(where, key, checked_name, given[key], key)
    trigger = _trigger_of(given, where)
    options = {key: _at(where, key, _option, key, given[key]) for key in SCHEDULE_OPTIONS if key in given}
    return Parsed(given["name"], given["job"], trigger, options)


def _at(where: str, key: str, read: Callable[..., Any], *values: Any) -> Any:
    try:
        return read(*values)
    except RotaError as error:
        told = INTERVAL_KEYS if key in INTERVAL_KEYS else (key,)
        said = "" if error.message.startswith(tuple(f"{one}{end}" for one in told for end in " :")) else f"{key}: "
        error.message = f"{where}: {said}{error.message}"
        raise _of_rule(error, key) from None


def _of_rule(error: RotaError, key: str) -> RotaError:
    """What is wrong with a part of the rule is a BadTrigger, also if it is a matter of texts and lists."""
    if type(error) is not Invalid or key not in RULE_KEYS:
        return error
    found = BadTrigger(error.message, hint=error.hint)
    found.field = key
    return found


def _trigger_of(given: Mapping[str, Any], where: str) -> Trigger:
    named = [key for key in TRIGGER_KEYS if key in given]
    if any(key in given for key in INTERVAL_KEYS):
        named.append("interval_minutes")
    if len(named) != 1:
        problem = f"has {' and '.join(named)}" if named else "has no trigger"
        raise Invalid(f"{where} {problem}", hint=f"give one of {', '.join(TRIGGER_KEYS)}")
    (kind,) = named
    for key in DETAIL_KEYS:
        if key in given and _BELONGS[key] != kind:
            raise Invalid(f"{where}: {key} means nothing with {kind}", hint=f"it belongs to {_BELONGS[key]}")
    zone = _at(where, "timezone", _text, given.get("timezone", "UTC"))
    if kind == "either":
        return _union(given["either"], zone, where)
    if kind == "interval_minutes":
        interval: Every = _at(
            where, kind, _interval, given.get("interval_minutes"), given.get("interval_type", "minutes")
        )
        return interval
    trigger: Trigger = _single(kind, given, zone, where)
    return trigger


def _single(kind: str, given: Mapping[str, Any], zone: str, where: str) -> Any:
    value = given[kind]
    match kind:
        case "cron":
            return _at(where, kind, _cron, value, {"timezone": zone} | _some(given, ("gap", "fold")))
        case "every":
            anchor = _at(where, "anchor", _anchor, given["anchor"]) if "anchor" in given else None
            return _at(where, kind, lambda: every(_duration(value), anchor=anchor))
        case "after":
            return _at(where, kind, lambda: after(_duration(value)))
        case "following":
            return _at(where, kind, lambda: following(_text(value), on=_text(given.get("on", "success"))))
        case _:
            return _at(where, kind, lambda: once(instant_of(value)))


def _cron(value: object, details: dict[str, Any]) -> Cron:
    """An expression; or a table, if its zone is not that of windows and excluded dates."""
    if isinstance(value, Mapping):
        for key in value:
            if key not in _CRON_KEYS:
                raise UnknownOption(str(key), _CRON_KEYS, where="cron")
        details = details | dict(value)
    else:
        details = {**details, "expression": value}
    for key in _CRON_KEYS:
        _text(details.get(key, "-"))
    trigger = Cron(**{"expression": "", **details})
    validate(trigger)
    require_times_of_day(trigger, details)
    return trigger


def _union(parts: object, zone: str, where: str) -> Either:
    if not isinstance(parts, list | tuple):
        raise Invalid(
            f"{where}: either must be a list, not {parts!r:.80}", hint='either = [{cron = "…"}, {every = "…"}]'
        )
    found = []
    for number, part in enumerate(parts, 1):
        inside = f"{where}: either, part {number}"
        kinds = [key for key in ("cron", "every", "once") if isinstance(part, Mapping) and key in part]
        if len(kinds) != 1:
            raise Invalid(f"{inside} must have one of cron, every and once, not {part!r:.80}")
        known = (kinds[0], *_DETAILS.get(kinds[0], ()))
        for key in part:
            if key not in known:
                raise UnknownOption(str(key), known, where=inside)
        own_zone = _at(inside, "timezone", _text, part.get("timezone", zone))
        found.append(_single(kinds[0], part, own_zone, inside))
    union = Either(tuple(found))
    _at(where, "either", validate, union)
    return union


def _interval(number: object, unit: object) -> Every:
    """The number counts the unit, whatever its name says: 6 hours are interval_minutes = 6, interval_type = "hours"."""
    if unit not in _UNITS:
        raise Invalid(f"interval_type cannot be {unit!r}", hint=did_you_mean(str(unit), _UNITS))
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise Invalid(f"interval_minutes must be a whole number from 1 up, not {number!r}")
    return every(_duration(f"{number}{str(unit)[0]}"))


def _option(key: str, value: Any) -> Any:
    if key in ("start_at", "end_at"):
        return instant_of(value)
    if key in ("payload", "metadata"):
        return _object(value)
    if key == "scopes" and not isinstance(value, str):
        return [_scope(scope) for scope in _list(value)]
    if key in ("windows", "exclude", "tags"):
        return _dates(_list(value)) if key == "exclude" else _list(value)
    if key in ("delay", "jitter", "timeout"):
        return _duration(value)
    if key in _TEXTS:
        return _text(value)
    return value


def _require_unicode(value: object) -> None:
    """JSON may hold halves of characters, which no database takes."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise Invalid(f"{value!a:.80} holds half a character") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid(f"must be text, not {value!r:.80}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Invalid(f"must be a list, not {value!r:.80}", hint=f"[{json.dumps(value, default=str):.60}]")
    return list(value)


def _dates(days: list[Any]) -> list[Any]:
    """TOML has dates without quotes."""
    return [day.isoformat() if type(day) is date else day for day in days]


def _duration(value: object) -> timedelta:
    return parse_duration(value)  # type: ignore[arg-type]  # which refuses what is no text


def _object(value: object) -> dict[str, Any]:
    """A table, or JSON in a text, for values that TOML does not have."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise Invalid(f"is no JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise Invalid(f"must be a table, not {value!r:.80}")
    return dict(value)


def _scope(value: object) -> Scope:
    """`kind/id`, or a pair."""
    pair = value.split("/", 1) if isinstance(value, str) else value
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) and part for part in pair):
        raise Invalid(f"{value!r:.80} is no scope", hint='"account/42", or ["account", "42"]')
    return Scope(*pair)


def instant_of(value: object) -> datetime:
    """RFC 3339 in a text, or an instant of TOML; either with its offset from UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise Invalid(f"{value!r:.80} is no time", hint='write "2026-01-31T08:00:00Z"') from None
    if not isinstance(value, datetime):
        raise Invalid(f"{value!s:.80} is no time", hint='write "2026-01-31T08:00:00Z"')
    if value.tzinfo is None:
        raise Invalid(f"{value} has no zone", hint="end it with Z or with an offset such as +02:00")
    return value


def _anchor(value: object) -> datetime | str:
    return value if isinstance(value, str) and value in ANCHORS else instant_of(value)


def document_of(name: str, definition: ScheduleDefinition) -> dict[str, Any]:
    """What `parse` reads back to the same definition; defaults are left out."""
    rule = definition.rule
    document: dict[str, Any] = {"name": name, "job": definition.job, **_written_trigger(rule.trigger, rule.timezone)}
    for key, value in options_of(definition).items():
        written = _written(key, value)
        if key not in _DEFAULTS or written != _DEFAULTS[key]:
            document[key] = written
    document.pop("timezone", None)
    if rule.timezone != "UTC" or getattr(rule.trigger, "timezone", "UTC") != "UTC":
        document["timezone"] = rule.timezone
    return {key: document[key] for key in KEYS if key in document}


def _written_trigger(trigger: Trigger, zone: str) -> dict[str, Any]:
    match trigger:
        case Cron():
            laws = {key: getattr(trigger, key) for key, usual in _LAWS.items() if getattr(trigger, key) != usual}
            laws = laws if read(trigger.expression).is_fixed else {}  # older ones may say what decides nothing
            if trigger.timezone == zone:
                return {"cron": trigger.expression, **laws}
            return {"cron": {"expression": trigger.expression, "timezone": trigger.timezone, **laws}}
        case Every():
            anchor = {} if trigger.anchor is None else {"anchor": written_instant(instant(trigger.anchor))}
            return {"every": format_duration(trigger.interval), **anchor}
        case After():
            return {"after": format_duration(trigger.interval)}
        case Following():
            return (
                {"following": trigger.job} if trigger.on == "success" else {"following": trigger.job, "on": trigger.on}
            )
        case Once():
            return {"once": written_instant(instant(trigger.at))}
        case Either():
            return {"either": [_written_part(part, zone) for part in trigger.triggers]}


def _written_part(part: Cron | Every | Once, zone: str) -> dict[str, Any]:
    if isinstance(part, Cron):
        written = _written_trigger(part, part.timezone)
        return written if part.timezone == zone else {**written, "timezone": part.timezone}
    return _written_trigger(part, zone)


def _written(key: str, value: Any) -> Any:
    match value:
        case timedelta():
            return format_duration(value)
        case datetime():
            return written_instant(value)
        case CatchUp() | Overlap() | Failure():
            return _written_policy(value)
        case Expectations():
            return written(value)
        case list() if key == "scopes":
            return [[scope.kind, scope.id] if "/" in scope.kind else f"{scope.kind}/{scope.id}" for scope in value]
        case list() if key == "windows":
            return [_written_window(window) for window in value]
        case _:
            return value


def _written_policy(policy: CatchUp | Overlap | Failure) -> str | dict[str, Any]:
    defaults = type(policy)()
    more = {
        field: _written_field(getattr(policy, field))
        for field in policy.__struct_fields__
        if field != "mode" and getattr(policy, field) != getattr(defaults, field)
    }
    return {"mode": policy.mode, **more} if more else policy.mode


def _written_field(value: Any) -> Any:
    if isinstance(value, timedelta):
        return format_duration(value)
    return value if isinstance(value, int) else written_backoff(value)


def _written_window(window: Window) -> str | dict[str, Any]:
    text = f"{window.start}-{window.end} {','.join(window.days)}".rstrip()
    return text if window_of(text) == window else {"start": window.start, "end": window.end, "days": list(window.days)}


def written_instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _some(given: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: given[key] for key in keys if key in given}


def merged(old: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The old document with what was given; another trigger replaces the old one and what belongs to it."""
    kept = dict(old)
    if any(key in given for key in (*TRIGGER_KEYS, *INTERVAL_KEYS)):
        for key in (*TRIGGER_KEYS, *INTERVAL_KEYS, *DETAIL_KEYS):
            kept.pop(key, None)
    return {key: value for key, value in {**kept, **given}.items() if value is not None}
