"""The API's description as OpenAPI 3.1, generated from its routes, and a page that shows it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from rota.api.docs.examples import Examples
from rota.api.docs.refusals import Refusals
from rota.api.docs.schemas import Schemas
from rota.api.operations.operation import Operation, operation
from rota.api.operations.query import NoQuery
from rota.api.operations.response import answer, at
from rota.api.operations.routing import declared, walk
from rota.core.runs.payload import LONGEST_VALUE
from rota.values.names import LONGEST_NAME
from rota.verbs.glossary import GLOSSARY
from rota.version import __version__

_PATH_PART = re.compile(r"\{(\w+)\}")
_PARTS = {"id": "Id, or its unique beginning or end", "name": "Name", "kind": "Kind"}
_API = "/api/v1/"
_ABOUT_SERVER = (_API + "time",)
_TAGS = {
    "server": "The server itself: probes, metrics, time, and this document",
    "runs": "Runs: enqueue, list, follow, cancel and retry them",
    "jobs": "Jobs, those of code and those that are data",
    "executions": "Runs as numbered executions of their jobs",
    "scheduler": "Totals of all jobs and executions",
    "schedules": "Schedules, their plan times, and what became of those",
    "workers": "Workers, and what operators ask of them",
    "queues": "Queues: how many runs wait in each, and whether it is paused",
    "quotas": "Limits of a scope, over all jobs",
    "overview": "What operators look at first",
    "series": "Metrics over time, for charts",
    "timeline": "Attempts over time, by schedule, job, worker or queue",
    "expectations": "What is expected of jobs and schedules, and what was breached",
    "error-groups": "Failed runs, grouped by error",
    "notifications": "Who is told of failures and breaches",
    "audit": "Who changed what",
    "tokens": "Tokens of callers, with their roles",
    "whoami": "The caller",
    "session": "Sessions of browsers",
    "stream": "Changes as they happen",
    "database": "The database: its epoch, whether it is a copy that waits to be accepted, and checks",
    "export": "Everything, line by line",
    "worker": "Protocol of workers in other languages",
}
_BODIES = ("POST", "PUT", "PATCH")


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An error, as in RFC 9457. Programs should decide by `code`."""

    type: str
    """URN of the code."""
    title: str
    """Phrase of the status."""
    status: int
    """HTTP status."""
    code: str
    """What is wrong, for programs."""
    detail: str
    """What is wrong, for people."""
    hint: str | None = None
    field: str | None = None
    """Field of a trigger that is wrong."""
    pointer: str | None = None
    """JSON pointer to the value in the body."""


def described(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """Return the OpenAPI document of these routes, without pages for people."""
    shown = [(path, route) for path, route in walk(routes) if not route.page]
    operations = [operation for _, route in shown for operation in route.operations.values()]
    schemas, examples = Schemas(operations, [Problem]), Examples(operations)
    refusals = Refusals(schemas.of(Problem))
    paths: dict[str, dict[str, Any]] = {}
    for path, route in shown:
        methods = {
            method.lower(): _operation(path, method, operation, schemas, refusals, examples.of(operation))
            for method, operation in route.operations.items()
        }
        paths.setdefault(path, {}).update(methods)
    responses = refusals.components()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rota",
            "version": __version__,
            "description": "Run jobs on time, and know what happened. Words of other schedulers, such as cron_expr and "
            "interval_minutes, are translated: docs/coming-from/vocabularies.md lists them.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": tag, "description": _TAGS.get(tag, tag)} for tag in dict.fromkeys(_tag(path) for path, _ in shown)
        ],
        "paths": paths,
        "components": {
            "schemas": schemas.mentioned([paths, responses]),
            "responses": responses,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "rota_session"},
            },
        },
    }


def _operation(
    path: str, method: str, source: Operation, schemas: Schemas, refusals: Refusals, example: Any
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "operationId": source.name,
        "tags": [_tag(path)],
        "summary": source.summary,
        "x-role": source.role.value if source.role else None,
        "parameters": [*_path_parameters(path), *_query_parameters(source, schemas)],
        "responses": {**_good(source, schemas, example), **refusals.of(source.name), "default": refusals.other()},
        "security": [{"token": []}, {"session": []}, {}] if source.role else [{}],
    }
    if source.description:
        document["description"] = source.description
    if source.keyed:
        meaning = "Makes the request safe to repeat: the same key gets the same answer for 24 hours"
        document["parameters"].append(_header("Idempotency-Key", meaning, minLength=1, maxLength=200))
    if source.conditional:
        meaning = "`ETag` of what is to be changed: if it was changed meanwhile, the answer is 412"
        document["parameters"].append(_header("If-Match", meaning))
    if source.body is not None and method in _BODIES:
        content: dict[str, Any] = {"schema": schemas.of(source.body)}
        if source.takes is not None:
            content["example"] = source.takes
        document["requestBody"] = {"required": not source.body_optional, "content": {"application/json": content}}
    return document


def _tag(path: str) -> str:
    """Return the group of a path: its first part, or `server` for what is about the server itself."""
    if not path.startswith(_API) or path in _ABOUT_SERVER:
        return "server"
    return path.removeprefix(_API).partition("/")[0].partition(":")[0]


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = _PATH_PART.findall(path)
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema, "description": _PARTS[name]} for name in names
    ]


def _query_parameters(source: Operation, schemas: Schemas) -> list[dict[str, Any]]:
    if source.query is None or source.query is NoQuery:
        return []
    properties, required = schemas.parameters(source.query)
    return [
        _open_parameter(name, schema)
        if schema.get("type") == "object"
        else {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": _query_schema(schema),
            "description": schema.get("description", ""),
        }
        for name, schema in properties.items()
    ]


def _open_parameter(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Describe parameters whose names the caller chooses. OpenAPI cannot express them; readers understand a pattern."""
    description = f"{schema['description']}. May be given several times, with different paths."
    value = {"type": "string", "maxLength": LONGEST_VALUE}
    return {"name": f"{name}.{{path}}", "in": "query", "required": False, "schema": value, "description": description}


def _query_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a query parameter: it cannot be null, and a text is a name unless its schema says
    otherwise."""
    parts = [dict(part) for part in schema.get("anyOf", [schema]) if part != {"type": "null"}]
    result = parts[0] if len(parts) == 1 else {"anyOf": parts}
    if result.get("type") == "string" and not {"format", "enum"} & result.keys():
        result = {"minLength": 1, "maxLength": LONGEST_NAME, **result}
    omitted = {"description", "default"} if result.get("default") is None else {"description"}
    return {name: value for name, value in result.items() if name not in omitted}


def _header(name: str, description: str, **bounds: int) -> dict[str, Any]:
    schema = {"type": "string", **bounds}
    return {"name": name, "in": "header", "required": False, "schema": schema, "description": description}


def _good(source: Operation, schemas: Schemas, example: Any) -> dict[str, Any]:
    good: dict[str, Any] = {"description": source.summary or "Done"}
    if source.answers is not None:
        schema = schemas.of(source.answers)
        if source.lists:
            schema = {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": schema, "description": GLOSSARY["items"]},
                    "next_cursor": {"type": ["string", "null"], "description": GLOSSARY["next_cursor"]},
                },
                "required": ["items", "next_cursor"],
            }
            example = None if example is None else {"items": [example], "next_cursor": None}
        content: dict[str, Any] = {"schema": schema}
        if example is not None:
            content["example"] = schemas.completed(example, schema)
        good["content"] = {source.media: content}
    elif source.media != "application/json":
        content = {"schema": {"type": "string"}}
        if example is not None:
            content["example"] = example if isinstance(example, str) else msgspec.json.encode(example).decode() + "\n"
        good["content"] = {source.media: content}
    return {str(status): good for status in (source.status, *source.also)}


async def _document(request: Request) -> dict[str, Any]:
    """Return the document, made when it is first asked for, in a thread: reading the sources takes a while."""
    state = request.app.state
    if getattr(state, "openapi", None) is None:
        state.openapi = await asyncio.to_thread(described, request.app.routes)
    document: dict[str, Any] = state.openapi
    return document


@operation(
    None,
    query=None,
    answers=dict[str, Any],
    gives={"openapi": "3.1.0", "info": {"title": "rota", "version": __version__}},
)
async def get_openapi(request: Request) -> Response:
    """Get this OpenAPI document."""
    return answer({**await _document(request), "servers": [{"url": at("/")}]})


@operation(None, query=None)
async def get_documentation(request: Request) -> Response:
    """Show this document as a page, without scripts."""
    from rota.api.docs.page import page_of

    return HTMLResponse(page_of(await _document(request)))


PAGES = [declared("/openapi.json", GET=get_openapi), declared("/docs", GET=get_documentation, page=True)]
