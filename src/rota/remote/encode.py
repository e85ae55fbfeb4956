"""Encode arguments of verbs as the JSON that a server takes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.core.calendar.notation import written_instant
from rota.core.jobs.retry import backoff_of, written_backoff
from rota.core.jobs.unique import Unique
from rota.core.runs.dependencies import Follows
from rota.core.runs.options import RUN_OPTIONS, Order, scope_of
from rota.errors import Invalid, UnknownOption
from rota.values import json
from rota.values.durations import Duration, format_duration, parse_duration
from rota.values.json import Limits
from rota.values.scope import Scope

_KEY = "idempotency_key"


def body_of(order: Order, limits: Limits) -> dict[str, Any]:
    """Return the body that enqueues an order, checked as far as possible without its job; the server checks the
    rest."""
    for option in order.options:
        if option not in RUN_OPTIONS:
            raise UnknownOption(option, RUN_OPTIONS, where=f"a run of {order.job!r}")
    options = {name: _option(name, value) for name, value in order.options.items() if name != _KEY}
    return {"job": order.job, "payload": msgspec.Raw(json.encode(order.arguments, limits).encode()), **options}


def key_of(order: Order) -> str | None:
    key: str | None = order.options.get(_KEY)
    return key


def _option(name: str, value: Any) -> Any:
    if value is None:
        return None
    match name:
        case "delay" | "timeout":
            return duration(value, name)
        case "run_at":
            return _instant(value)
        case "scope":
            return _scope(value)
        case "unique":
            return _unique(value)
        case "backoff":
            return _backoff(value)
        case "after":
            return [_dependency(parent) for parent in value] if isinstance(value, list | tuple) else value
        case "inputs" if isinstance(value, Mapping):
            return {argument: _source(source) for argument, source in value.items()}
        case _:
            return value


def duration(value: Duration, name: str | None = None) -> str:
    return format_duration(parse_duration(value, name))


def _instant(at: object) -> str:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise Invalid(f"run_at must be a datetime with a zone, not {at!r}", hint="datetime.now(UTC) + …")
    return written_instant(at)


def _scope(value: Scope | tuple[str, str]) -> dict[str, str]:
    scope = scope_of(value)
    return {"kind": scope.kind, "id": scope.id}


def _unique(value: Any) -> Any:
    plain = msgspec.structs.asdict(value) if isinstance(value, Unique) else value
    if not isinstance(plain, Mapping):
        return plain
    return {name: duration(part) if isinstance(part, timedelta) else part for name, part in plain.items()}


def _backoff(value: Any) -> Any:
    written = written_backoff(backoff_of(value))
    return {"type": "exponential", **written} if isinstance(written, dict) else written


def _dependency(parent: Any) -> Any:
    match parent:
        case str():
            return parent
        case Follows():
            return {"run": _id(parent.run), "on": parent.on, "otherwise": parent.otherwise}
        case Mapping() if "run" in parent:
            return {**parent, "run": _id(parent["run"])}
        case Mapping():
            return parent
        case _:
            return _id(parent)


def _source(source: Any) -> Any:
    return [_source(item) for item in source] if isinstance(source, list | tuple) else _id(source)


def _id(run: Any) -> Any:
    return getattr(run, "id", run)
