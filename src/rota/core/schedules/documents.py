"""Schedule documents, as people write them in TOML and JSON: parsed and checked by key, and written back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, ParamSpec, TypeVar

import msgspec

from rota.core.alerts.expectations import Expectations, written
from rota.core.calendar.notation import at_key, at_rule_key, duration_of, instant_of, text_of, written_instant
from rota.core.calendar.rules import Window, window_of
from rota.core.calendar.triggers import KINDS, Trigger, TriggerNotation, validate
from rota.core.jobs.retry import Delays, Exponential, written_backoff
from rota.core.limits.quotas import rate_text
from rota.core.schedules.policies import CatchUp, Failure, Overlap
from rota.core.schedules.schedule import SCHEDULE_OPTIONS, ScheduleDefinition, options_of
from rota.core.schedules.vocabulary import translated
from rota.errors import BadTrigger, Invalid, UnknownOption
from rota.values.durations import format_duration
from rota.values.json import Limits, encode
from rota.values.names import checked_name
from rota.values.scope import Scope, scope_parts

P = ParamSpec("P")
T = TypeVar("T")

TRIGGER_KEYS = tuple(kind.key for kind in KINDS)
OTHER_KEYS = tuple(key for kind in KINDS for key in kind.other_keys)
DETAIL_KEYS = tuple(key for kind in KINDS for key in kind.details)
RULE_KEYS = (*TRIGGER_KEYS, *OTHER_KEYS, *DETAIL_KEYS, "timezone", "windows", "exclude", "start_at", "end_at")
KEYS = ("name", "job", *TRIGGER_KEYS, *DETAIL_KEYS, *SCHEDULE_OPTIONS)

_KNOWN = (*KEYS, *OTHER_KEYS)
_BELONGS = {key: kind.key for kind in KINDS for key in kind.details}
_TEXTS = ("timezone", "description", "when_full", "queue")
_DEFAULTS: dict[str, object] = {
    "payload": {}, "delay": "0s", "jitter": "0s", "windows": [], "exclude": [], "enabled": True,
    "description": "", "when_full": "queue",
}  # fmt: skip


class Parsed(NamedTuple):
    """Arguments of `client.schedules.define`."""

    name: str
    job: str
    trigger: Trigger
    options: dict[str, Any]


def parse(document: Mapping[str, Any]) -> Parsed:
    """Parse a whole document; errors name the key that is wrong."""
    if not isinstance(document, Mapping):
        raise Invalid(f"a schedule is a table, not {document!r:.80}", hint='[[schedule]] with name = "…"')
    where = f"schedule {document['name']!r}" if isinstance(document.get("name"), str) else "a schedule"
    values = {key: value for key, value in translated(document, where).items() if value is not None}
    for key, value in values.items():
        if key not in _KNOWN:
            raise UnknownOption(str(key), _KNOWN, where=where)
        _at(where, key, _require_unicode, value)
    for key in ("name", "job"):
        if key not in values:
            raise Invalid(f"{where}: {key} is missing")
        _at(where, key, checked_name, values[key], key)
    trigger = _trigger_of(values, where)
    options = {key: _at(where, key, _option, key, values[key]) for key in SCHEDULE_OPTIONS if key in values}
    return Parsed(values["name"], values["job"], trigger, options)


def _at(where: str, key: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return (at_rule_key if key in RULE_KEYS else at_key)(where, key, read, *args, **kwargs)


def _trigger_of(document: Mapping[str, Any], where: str) -> Trigger:
    named = {kind.key: kind for kind in KINDS if kind.key in document}
    others = {kind.other_keys[0]: kind for kind in KINDS if any(key in document for key in kind.other_keys)}
    if len(named) + len(others) != 1:
        keys = [*named, *others]
        problem = f"has {' and '.join(keys)}" if keys else "has no trigger"
        raise Invalid(f"{where} {problem}", hint=f"give one of {', '.join(TRIGGER_KEYS)}")
    ((named_by, kind),) = (named | others).items()
    for key in DETAIL_KEYS:
        if key in document and _BELONGS[key] != kind.key:
            raise Invalid(f"{where}: {key} means nothing with {named_by}", hint=f"it belongs to {_BELONGS[key]}")
    zone = _at(where, "timezone", text_of, document.get("timezone", "UTC"))
    notation = TriggerNotation(document, zone, where)
    return kind.parse(notation) if named else kind.parse_other(notation)  # type: ignore[return-value]  # a registered kind


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
        return duration_of(value)
    if key in _TEXTS:
        return text_of(value)
    return value


def _require_unicode(value: object) -> None:
    """Refuse unpaired surrogates, which JSON may contain and no database stores."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise Invalid(f"{value!a:.80} contains an unpaired surrogate") from None


def _list(value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Invalid(f"must be a list, not {value!r:.80}", hint=f"[{json.dumps(value, default=str):.60}]")
    return list(value)


def _dates(days: list[Any]) -> list[Any]:
    """Write dates as texts: TOML has dates without quotes."""
    return [day.isoformat() if type(day) is date else day for day in days]


def _object(value: object) -> dict[str, Any]:
    """Take a table, or parse JSON in a text: for values that TOML does not have."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise Invalid(f"is no JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise Invalid(f"must be a table, not {value!r:.80}")
    return dict(value)


def _scope(value: object) -> Scope:
    """Parse `kind/id`, or a pair."""
    pair = scope_parts(value) if isinstance(value, str) else value
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) and part for part in pair):
        raise Invalid(f"{value!r:.80} is no scope", hint='"account/42", or ["account", "42"]')
    return Scope(*pair)


def document_of(name: str, definition: ScheduleDefinition) -> dict[str, Any]:
    """Write the document that `parse` reads back to the same definition; defaults are left out."""
    rule = definition.rule
    document: dict[str, Any] = {"name": name, "job": definition.job, **rule.trigger.document(rule.timezone)}
    for key, value in options_of(definition).items():
        plain = _written(key, value)
        if key not in _DEFAULTS or plain != _DEFAULTS[key]:
            document[key] = plain
    document.pop("timezone", None)
    if rule.timezone != "UTC" or (rule.trigger.own_zone or "UTC") != "UTC":
        document["timezone"] = rule.timezone
    return {key: document[key] for key in KEYS if key in document}


def changes_of(
    name: str, job: str | None = None, trigger: Trigger | None = None, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Write arguments of `client.schedules` as a document, or the part of one that changes; None restores a default."""
    where = f"schedule {name!r}"
    changes = translated(options or {}, where)
    for key in changes:
        if key not in _KNOWN:
            raise UnknownOption(key, _KNOWN, where=where)
    document: dict[str, Any] = {} if job is None else {"job": job}
    if trigger is not None:
        try:
            validate(trigger)
        except BadTrigger as error:
            raise error.within(where) from None
        zone = changes.get("timezone") or trigger.own_zone
        document |= trigger.document(zone or "UTC") | ({} if zone is None else {"timezone": zone})
    return document | {key: _at(where, key, _written, key, value) for key, value in changes.items()}


def _written(key: str, value: Any) -> Any:
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    match value:
        case Mapping() if key == "payload":
            return msgspec.json.decode(encode(dict(value), Limits()))
        case Mapping() if key != "metadata":
            return {name: _written(key, item) for name, item in value.items()}
        case list() | tuple() if key == "rate":
            return rate_text(value)  # type: ignore[arg-type]  # which refuses what is no rate
        case list() | tuple():
            return [_written(key, item) for item in value]
        case _:
            return value


def _written_time(at: datetime) -> datetime | str:
    """Write an instant; leave one without a zone, or far away, to whoever reads and refuses it."""
    try:
        return at if at.tzinfo is None else written_instant(at)
    except OverflowError:
        return at


def _written_scope(scope: Scope) -> str | list[str]:
    return [scope.kind, scope.id] if "/" in scope.kind else f"{scope.kind}/{scope.id}"


def _written_policy(policy: CatchUp | Overlap | Failure) -> str | dict[str, Any]:
    defaults = type(policy)()
    more = {
        field: _written_field(getattr(policy, field))
        for field in policy.__struct_fields__
        if field != "mode" and getattr(policy, field) != getattr(defaults, field)
    }
    mode = str(policy.mode)
    return {"mode": mode, **more} if more else mode


def _written_field(value: Any) -> Any:
    if isinstance(value, timedelta):
        return format_duration(value)
    return value if isinstance(value, int) else written_backoff(value)


def _written_window(window: Window) -> str | dict[str, Any]:
    text = f"{window.start}-{window.end} {','.join(window.days)}".rstrip()
    return text if window_of(text) == window else {"start": window.start, "end": window.end, "days": list(window.days)}


_WRITERS: dict[type, Callable[[Any], Any]] = {
    timedelta: format_duration,
    datetime: _written_time,
    CatchUp: _written_policy,
    Overlap: _written_policy,
    Failure: _written_policy,
    Expectations: written,
    Exponential: written_backoff,
    Delays: written_backoff,
    Window: _written_window,
    Scope: _written_scope,
}


def merged(old: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """Update the document `old` by `update`; another trigger replaces the old one and the keys that belong to it."""
    document = dict(old)
    if any(key in update for key in (*TRIGGER_KEYS, *OTHER_KEYS)):
        for key in (*TRIGGER_KEYS, *OTHER_KEYS, *DETAIL_KEYS):
            document.pop(key, None)
    return {key: value for key, value in {**document, **update}.items() if value is not None}
