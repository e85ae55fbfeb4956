"""Encode arguments of verbs as the JSON that a server takes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from rota.core.calendar.notation import written_instant
from rota.core.jobs.retry import backoff_of, written_backoff
from rota.core.jobs.unique import Unique
from rota.core.runs.dependencies import Follows
from rota.core.runs.options import RUN_OPTIONS, Order, scope_of
from rota.core.runs.run import RunFilter
from rota.core.runs.search import scalar_text
from rota.errors import Invalid, UnknownOption
from rota.remote.problems import ServerTrouble
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


def _id(run: Any) -> Any:
    return getattr(run, "id", run)


def query_of(run_filter: RunFilter) -> dict[str, Any]:
    """Return a filter as query parameters."""
    parameters = filter_of(run_filter)
    values = parameters.pop("payload", {})
    return {**parameters, **{f"payload.{name}": scalar_text(value, name) for name, value in values.items()}}


def filter_of(run_filter: RunFilter) -> dict[str, Any]:
    """Return a filter as the `filter` of a bulk command."""
    fields = {
        name: getattr(run_filter, name) for name in RunFilter.__struct_fields__ if name not in ("states", "scope")
    }
    scope = None if run_filter.scope is None else f"{run_filter.scope.kind}/{run_filter.scope.id}"
    named = {"state": [state.value for state in run_filter.states], "scope": scope, **fields}
    return {name: value for name, value in named.items() if value not in (None, {})}


def cursor_of_run(id: str | None) -> str | None:
    """Return the `next_cursor` that follows this run."""
    if id is None:
        return None
    try:
        return base64.urlsafe_b64encode(UUID(id).bytes).rstrip(b"=").decode()
    except ValueError:
        raise Invalid(f"before must be the whole id of a run, not {id!r:.80}") from None


def run_of_cursor(cursor: str | None) -> str | None:
    try:
        return None if cursor is None else str(UUID(bytes=base64.urlsafe_b64decode(cursor + "==")))
    except ValueError:
        raise ServerTrouble(f"the server sent an invalid next_cursor: {cursor!r:.80}") from None


def cursor_of_name(name: str | None) -> str | None:
    return None if name is None else base64.urlsafe_b64encode(name.encode()).rstrip(b"=").decode()
