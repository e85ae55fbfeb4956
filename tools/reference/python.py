"""The reference of Python: what may be imported, with signatures and docstrings."""

from __future__ import annotations

import enum
import inspect
import re
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

import rota
import rota.remote
import rota.testing
from rota.api.docs import openapi
from rota.api.docs.descriptions import description_of
from rota.app import Rota
from rota.client.access.tokens import TokensClient
from rota.client.alerts.expectations import ExpectationsClient
from rota.client.alerts.notifications import NotificationsClient
from rota.client.external.external import ExternalClient
from rota.client.jobs.data_jobs import DataJobsClient
from rota.client.limits.quotas import QuotasClient
from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.client.monitoring.monitoring import MonitoringClient
from rota.client.schedules.schedules import SchedulesClient
from rota.client.workers.workers import WorkersClient
from rota.server import asgi
from tools.reference.settings import row, table

GROUPS = {
    "Declaring": ["Rota", "Job", "JobDefinition", "Exponential", "Unique", "Scope", "Follows", "Order", "Config"],
    "Inside handlers": ["Context", "SyncContext", "injected", "Call", "Retry", "Fail", "Snooze", "Cancelled"],
    "Triggers": ["cron", "every", "after", "following", "once"],
    "Asking and telling": ["Client", "BlockingClient", "RunFilter"],
    "What is answered": [],
    "Errors": ["RotaError", "NotFound", "Conflict", "Invalid", "Unavailable", "BadPayload", "LeaseLost"],
}
PARTS = {
    "schedules": SchedulesClient,
    "workers": WorkersClient,
    "quotas": QuotasClient,
    "external": ExternalClient,
    "tokens": TokensClient,
    "expectations": ExpectationsClient,
    "notifications": NotificationsClient,
    "data_jobs": DataJobsClient,
    "monitoring": MonitoringClient,
    "error_groups": ErrorGroupsClient,
}
GIVEN = {"Call": "call", "Context": "ctx", "SyncContext": "ctx", "Job": "job", "Client": "client"}
"""What nobody makes: how it is called where one gets it."""
CALLED = {"Rota": "app", "ManualClock": "clock", "HandWorker": "worker", "Harness": "harness"}
ECHOES = {
    rota.BlockingClient: "What [`Client`](#client) has, for code without an event loop: nothing is awaited.",
    rota.remote.RemoteClient: "What [`Client`](#client) has, over HTTP.",
}
LONGEST = 96


class Raw:
    """An annotation as it is written."""

    def __init__(self, annotation: Any) -> None:
        self.text = annotation_text(annotation)

    def __repr__(self) -> str:
        return self.text


def annotation_text(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", text)


def page() -> str:
    named = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "What is answered": [name for name in rota.__all__ if name not in named | {"__version__"}]}
    lines = [
        "# Python names",
        "",
        "What `from rota import …` has, then `rota.testing` and `rota.remote`; [the guide](../python.md) shows how it",
        "goes together. `rota.__version__` is this version.",
    ]
    for title, names in groups.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", *described(name, getattr(rota, name))]
            if name == "Client":
                lines += parts()
    for module in (rota.testing, rota.remote):
        lines += ["", f"## {module.__name__}"]
        for name in module.__all__:
            lines += ["", *described(name, getattr(module, name))]
    return "\n".join(lines)


def parts() -> list[str]:
    lines: list[str] = []
    for name, kind in PARTS.items():
        lines += ["", f"#### client.{name}", "", *prose(kind), *methods(kind, f"client.{name}")]
    return lines


def described(name: str, thing: Any) -> list[str]:
    lines = [f"### {name}", ""]
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        return [*lines, *prose(thing), f"One of {', '.join(f'`{one.value}`' for one in thing)}."]
    if isinstance(thing, type) and issubclass(thing, msgspec.Struct):
        return [*lines, *prose(thing), *fields(thing), *methods(thing, name.lower())]
    if thing in ECHOES:
        verbs = ", ".join(f"`{verb}`" for verb, method in public(thing) if not isinstance(method, property))
        made = code(signature(name, thing)) if thing is rota.remote.RemoteClient else []
        return [*lines, *made, *prose(thing), f"{ECHOES[thing]} {verbs}.", ""]
    if name in GIVEN:
        return [*lines, *prose(thing), *methods(thing, GIVEN[name])]
    if isinstance(thing, type):
        return [*lines, *code(signature(name, thing)), *prose(thing), *methods(thing, CALLED.get(name, name.lower()))]
    made = code(signature(name, thing)) if callable(thing) else []
    return [*lines, *made, *prose(thing)]


def prose(thing: Any) -> list[str]:
    """Its docstring, or that of its module, if it is the only thing there."""
    own = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    return [*inspect.cleandoc(own).splitlines(), ""] if own else []


def code(text: str) -> list[str]:
    return ["```py", text, "```", ""]


def fields(thing: type[msgspec.Struct]) -> list[str]:
    written: dict[str, Any] = {}
    for kind in reversed(thing.__mro__):
        written |= inspect.get_annotations(kind)
    # The glossary explains the words of the REST API; those of other values may mean something else.
    known = thing.__name__ in shapes()
    lines = table("field", "type", "default", "means") if known else table("field", "type", "default")
    for one in msgspec.structs.fields(thing):
        given = "" if one.required else f"`{default(one)}`"
        typed = f"`{annotation_text(written[one.name])}`".replace("|", "\\|")
        lines.append(row(f"`{one.name}`", typed, given, *([description_of(thing, one)] if known else [])))
    return [*lines, ""]


@cache
def shapes() -> frozenset[str]:
    return frozenset(openapi.described(asgi(Rota()).routes)["components"]["schemas"])


def default(field: Any) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return "{}" if field.default_factory is dict else "[]" if field.default_factory is list else "…"
    return annotation_text(steady(repr(field.default)))


def methods(thing: type, owner: str) -> list[str]:
    lines: list[str] = []
    for name, method in public(thing):
        if isinstance(method, property):
            lines += [f"- `{owner}.{name}`{said(method)}"]
        else:
            lines += [f"- `{signature(f'{owner}.{name}', method, one_line=True)}`{said(method)}"]
    return [*lines, ""] if lines else []


def public(thing: type) -> Iterator[tuple[str, Any]]:
    """Its own and inherited ones, as far as they are rota's."""
    found: dict[str, Any] = {}
    for kind in reversed(thing.__mro__):
        if kind.__module__.startswith("rota") or kind is thing:
            found |= {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    for name, value in found.items():
        inner = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if inspect.isfunction(inner) or isinstance(value, property):
            yield name, inner if inspect.isfunction(inner) else value


def said(method: Any) -> str:
    text = inspect.cleandoc(method.__doc__ or "").partition("\n\n")[0]
    return f": {' '.join(text.split())}" if text else ""


def signature(name: str, thing: Any, *, one_line: bool = False) -> str:
    overloads = typing.get_overloads(thing) if inspect.isfunction(thing) else []
    try:
        found = inspect.signature(overloads[-1] if overloads else thing)
    except ValueError:
        return name
    kept = [one.replace(annotation=shown(one.annotation)) for one in found.parameters.values() if one.name != "self"]
    text = steady(str(found.replace(parameters=kept, return_annotation=shown(found.return_annotation))))
    if isinstance(thing, type):
        text = text.partition(" -> ")[0]
    begin = "await " if inspect.iscoroutinefunction(thing) else ""
    whole = f"{begin}{name}{text}"
    if one_line or len(whole) <= LONGEST or not kept:
        return whole
    inner = ",\n    ".join(map(steady, map(str, with_marks(kept))))
    returned = f" -> {shown(found.return_annotation)!r}" if not isinstance(thing, type) else ""
    return f"{begin}{name}(\n    {inner},\n){returned}"


def with_marks(parameters: list[inspect.Parameter]) -> Iterator[object]:
    """The `*` before keywords, which parameters do not know of."""
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred |= one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        yield one


def shown(annotation: Any) -> Any:
    return annotation if annotation is inspect.Signature.empty else Raw(annotation)


def steady(text: str) -> str:
    """Without what differs from run to run."""
    return re.sub(r"<[\w.]+(?: object| [\w.<>]+)? at 0x[0-9a-f]+>", "…", text)
