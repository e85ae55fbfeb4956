"""The reference of settings, errors and metrics: each from where the program keeps its words."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from datetime import timedelta

import msgspec

from rota.api.http import rejection
from rota.config import SETTING_WORDS, Config
from rota.engine.observability.meters import Meters
from rota.errors import RotaError
from rota.values.durations import format_duration

SEE = {
    "database_url": "configuration.md",
    "server": "remote.md",
    "token": "remote.md#tokens",
    "expect": "expectations.md",
    "worker_labels": "several-workers.md#some-workers-only",
    "worker_version": "several-workers.md#some-workers-only",
    "log_limit": "jobs.md#logs",
    "auth": "access.md",
    "jwt_secret": "access.md#json-web-tokens",
    "jwt_jwks": "access.md#json-web-tokens",
    "jwt_issuer": "access.md#json-web-tokens",
    "jwt_audience": "access.md#json-web-tokens",
    "jwt_role_claim": "access.md#json-web-tokens",
    "jwt_scope_claim": "access.md#json-web-tokens",
    "log_format": "metrics.md#logs",
    "log_runs": "metrics.md#logs",
    "tracing": "metrics.md#traces",
    "http_allow": "http-and-commands.md#where-requests-may-go",
    "smtp_url": "notifications.md#e-mail",
    "smtp_from": "notifications.md#e-mail",
    "enable_command": "http-and-commands.md#command-jobs",
}
"""Where a setting is explained."""


def table(*heads: str) -> list[str]:
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def configuration() -> str:
    lines = [
        "# Settings",
        "",
        "Flags over environment over `rota.toml` over defaults; [how to write them](../configuration.md). The name is",
        "also the key in `rota.toml`, and the keyword of `Rota(…)`.",
        "",
        *table("name", "environment", "default", "means"),
    ]
    for field in msgspec.structs.fields(Config):
        see = f" ([more](../{SEE[field.name]}))" if field.name in SEE else ""
        cells = (f"`{field.name}`", f"`ROTA_{field.name.upper()}`", default(field.default))
        lines.append(row(*cells, SETTING_WORDS[field.name] + see))
    return "\n".join(lines)


def default(value: object) -> str:
    if isinstance(value, timedelta):
        return f"`{format_duration(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value != "" else "none"


def errors() -> str:
    lines = [
        "# Errors",
        "",
        "Decide by the code: `code` of [a problem](../rest.md#errors) over HTTP, `error.code` in Python, `code` of",
        "`--json` on the command line. In Python each is a class below `rota.RotaError`, in `rota.errors` if not said",
        "otherwise; families are `NotFound`, `Conflict`, `Invalid`, `Denied` and `Unavailable`. What a hint says is in",
        "the message, and in `hint`. A 503 carries `Retry-After`.",
    ]
    for family in RotaError.__subclasses__():
        lines += ["", f"## {family.__name__}", "", *table("code", "class", "HTTP", "exit", "means", "hint")]
        lines += [error_row(error) for error in [family, *sorted(below(family), key=code_of)] if is_public(error)]
    lines += ["", "## Of the server only", "", *table("code", "HTTP", "means")]
    lines += [row("`method-not-allowed`", "405", "The address takes other methods: `Allow` says which.")]
    lines += [row("`internal`", "500", "A mistake of rota's own; its log says more under the request's id.")]
    lines += ["", "`bad-configuration` of a server's own settings is answered as a 503."]
    return "\n".join(lines)


def code_of(error: type[RotaError]) -> str:
    return error.code


def is_public(error: type[RotaError]) -> bool:
    return error.__module__ in ("rota.errors", rejection.__name__)


def below(kind: type[RotaError]) -> Iterator[type[RotaError]]:
    for error in kind.__subclasses__():
        yield error
        yield from below(error)


def error_row(error: type[RotaError]) -> str:
    where = "" if error.__module__ == "rota.errors" else ", of the server"
    means = " ".join(str(vars(error).get("__doc__")).split())
    hint = "; ".join(dict.fromkeys(hints(error)))
    status = "" if error.code == "still-running" else str(error.status)
    return row(
        f"`{error.code}`", f"`{error.__name__}`{where}", status, str(error.exit_code), means, hint.replace("|", "\\|")
    )


def hints(error: type[RotaError]) -> Iterator[str]:
    """What its source says in `hint=…`, with … for what is only known when it happens."""
    if error.__init__ is RotaError.__init__:
        return
    tree = ast.parse(textwrap.dedent(inspect.getsource(error.__init__)))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            yield from texts(node.value)
        if isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == ["hint"]:
            yield from texts(node.value)


def texts(node: ast.expr) -> Iterable[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in values)]
        case ast.IfExp(body=body, orelse=orelse):
            return [*texts(body), *texts(orelse)]
        case ast.BoolOp(values=values):
            return [text for part in values for text in texts(part)]
        case ast.Call(func=ast.Name(id="did_you_mean")):
            return ["did you mean …?"]
        case _:
            return []


def metrics() -> str:
    lines = [
        "# Metrics",
        "",
        "What `/metrics` has; [where it is served, and what is worth an alarm](../metrics.md).",
        "",
        *table("name", "kind", "labels", "is"),
    ]
    for family in Meters().metrics.families.values():
        labels = ", ".join(f"`{label}`" for label in family.labels)
        lines.append(row(f"`{family.name}`", family.kind, labels, family.about))
    return "\n".join(lines)
