"""Forms in which answers and errors of all doors are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from rota.client.handle import Handle, Handles
from rota.core.runs.run import Enqueued
from rota.errors import RotaError
from rota.values.durations import worded
from rota.verbs.parameters import item_of, request_of
from rota.verbs.verb import Declared
from rota.verbs.wire import written_answer
from tests.conformance.world import World

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SECRET = re.compile(r"rota_[0-9a-f]{12}_[\w-]+")
_TOKEN = re.compile(r"\b[0-9a-f]{12}\b")
_NEAR = timedelta(days=400)
_NOTHING = "<nothing>"
_VARYING = ("next_cursor", "created_micros", "run_micros")
_NOBODY = ("api", "cli")  # callers without a token, and owners by default


class Problem(msgspec.Struct, frozen=True):
    """Error, as every door tells it. `place` is the last part of the way to a wrong value in a body or payload."""

    code: str
    status: int | None
    detail: str
    hint: str | None = None
    field: str | None = None
    place: str | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What a door gave: an answer as JSON, or a problem. `types` are those of the answer in Python; `transactions`, how
    many one request took at the most."""

    answer: Any = None
    problem: Problem | None = None
    types: Any = None
    transactions: int = 0


def plain_answer(routes: Sequence[Declared], result: Any) -> Any:
    """Return what a client's method returned as JSON, as the verb's declaration writes it; the items of a list."""
    if not routes:
        return msgspec.to_builtins(worded(_told(result)))
    declared = routes[0]
    returns = request_of(declared).returns
    if request_of(declared).lists:
        return [_plain(declared, item, item_of(returns)) for item in result]
    return None if returns is type(None) and declared.verb.answer is None else _plain(declared, result, returns)


def _plain(declared: Declared, value: Any, kind: Any) -> Any:
    form = declared.verb.answer
    return msgspec.to_builtins(written_answer(value, kind) if form is None else form.encode(value))


def _told(answer: Any) -> Any:
    """Return what handles tell of their runs, without the client that they ask: each door has its own."""
    match answer:
        case Handle():
            return Enqueued(answer.id, answer.created, answer.created_micros, answer.run_micros)
        case list() | Handles():
            return [_told(item) for item in answer]
        case _:
            return answer


def types_of(value: Any) -> Any:
    """Return the types of a value and of all in it; lists and tuples are the same."""
    match value:
        case Handle():
            return {"type": "Handle", "told": types_of(_told(value))}
        case msgspec.Struct():
            fields = {name: types_of(getattr(value, name)) for name in value.__struct_fields__}
            return {"type": type(value).__name__, **fields}
        case Mapping():
            return {str(name): types_of(item) for name, item in value.items()}
        case list() | tuple() | Handles():
            return [types_of(item) for item in value]
        case _:
            return type(value).__name__


def problem_of(error: RotaError) -> Problem:
    path: str | None = getattr(error, "path", None)
    place = None if path is None else re.split(r"[.\[]", path)[-1].strip("]'")
    return Problem(error.code, error.status, error.message, error.hint, getattr(error, "field", None), place)


def comparable(value: Any, world: World, actor: str) -> Any:
    """Replace what differs between two executions: ids by their names or order, the caller, secrets, recent times."""
    return _Comparison(world, actor).form(value)


class _Comparison:
    def __init__(self, world: World, actor: str) -> None:
        self._names = {id: name for name, id in world.names.items()}
        self._actor = actor
        self._seen: dict[str, str] = {}

    def form(self, value: Any) -> Any:
        match value:
            case Mapping():
                return {self.form(name): self._field(name, item) for name, item in sorted(value.items())}
            case list() | tuple():
                return [self.form(item) for item in value]
            case str():
                return self._text(value)
            case _:
                return value

    def _field(self, name: str, item: Any) -> Any:
        if name == "seq":  # PostgreSQL goes on counting in a database that is used again
            return self._seen.setdefault(f"seq {item}", f"<seq {len(self._seen) + 1}>")
        if name in _VARYING and item is not None:
            return f"<{name}>"
        return self.form(item)

    def _text(self, text: str) -> str:
        if text in (self._actor, *_NOBODY):
            return "<actor>"
        for id, name in self._names.items():
            text = text.replace(id, name)
        text = _SECRET.sub("<secret>", text)
        for pattern in (_UUID, _TOKEN):
            text = pattern.sub(lambda match: self._seen.setdefault(match[0], f"<id {len(self._seen) + 1}>"), text)
        return _INSTANT.sub(_near, text)


def _near(match: re.Match[str]) -> str:
    """Replace an instant around now; others are those of the case."""
    return "<time>" if abs(datetime.fromisoformat(match[0]) - datetime.now(UTC)) < _NEAR else match[0]


def differences(left: Any, right: Any, path: str = "$") -> list[str]:
    """Return where two values differ, a line each."""
    if isinstance(left, dict) and isinstance(right, dict):
        pairs = {
            name: (left.get(name, _NOTHING), right.get(name, _NOTHING)) for name in sorted(left.keys() | right.keys())
        }
        return [line for name, pair in pairs.items() for line in differences(*pair, f"{path}.{name}")]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        items = enumerate(zip(left, right, strict=True))
        return [line for place, pair in items for line in differences(*pair, f"{path}[{place}]")]
    same = left == right and isinstance(left, bool) is isinstance(right, bool)
    return [] if same else [f"{path}: {left!r:.300} != {right!r:.300}"]


def lacking(part: Any, whole: Any, path: str = "$") -> list[str]:
    """Return what of an expected part an answer lacks. Lists are compared item by item."""
    if isinstance(part, dict) and isinstance(whole, dict):
        pairs = {name: (item, whole.get(name, _NOTHING)) for name, item in part.items()}
        return [line for name, pair in pairs.items() for line in lacking(*pair, f"{path}.{name}")]
    if isinstance(part, list) and isinstance(whole, list) and len(part) == len(whole):
        items = enumerate(zip(part, whole, strict=True))
        return [line for place, pair in items for line in lacking(*pair, f"{path}[{place}]")]
    return [] if part == whole else [f"{path}: expected {part!r:.300}, not {whole!r:.300}"]
