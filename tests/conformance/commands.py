"""Commands of verbs: the words of the command line that say the same as a call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from rota.values.durations import format_duration
from rota.values.scope import Scope
from rota.verbs.verb import Declared

_GROUPS = {"quotas": "quota", "tokens": "token", "workers": "workers"}
_NOT_YET = ("quotas.get", "quotas.delete", "tokens.create", "tokens.list")


def has_command(declared: Declared) -> bool:
    """Return whether there is a command for a verb."""
    return declared.part in _GROUPS and f"{declared.part}.{declared.name}" not in _NOT_YET


def argv_of(declared: Declared, arguments: Mapping[str, Any]) -> list[str]:
    """Return the command of a verb with these arguments."""
    words = [_GROUPS[declared.part], declared.name]
    rest = dict(arguments)
    if declared.part == "quotas" and "kind" in rest:
        kind, id = rest.pop("kind"), rest.pop("id", None)
        words.append(kind if id is None else f"{kind}/{id}")
    words += [rest.pop(name) for name in ("id_or_name", "name") if name in rest]
    for name, value in rest.items():
        words += [f"--{name.replace('_', '-')}", _text(name, value)]
    return words


def _text(name: str, value: Any) -> str:
    match value:
        case None:
            return "never"
        case timedelta():
            return format_duration(value)
        case datetime():
            return value.isoformat()
        case Scope():
            return f"{value.kind}/{value.id}"
        case tuple() if name == "scope":
            return "/".join(value)
        case tuple() if name == "rate":
            return f"{value[0]}/{_text('', value[1])}"
        case dict():
            return ",".join(f"{key}:{item}" for key, item in value.items())
        case list() | tuple():
            return ",".join(value)
        case _:
            return str(getattr(value, "value", value))
