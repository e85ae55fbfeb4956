"""Tools of agents: the operations of the API, which are made from the verbs, as far as a role may use them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from rota.core.access.roles import Identity, Role

_REF = "#/components/schemas/"
_LEFT_OUT = ("server", "session", "stream", "export", "worker", "tokens")
"""Groups that are no tools: probes, browsers, endless answers, the protocol of workers, and secrets."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
CONFIRM = "confirm"


class Tool(msgspec.Struct, frozen=True):
    """Operation of the API. `reads`: it changes nothing."""

    name: str
    method: str
    path: str
    reads: bool
    summary: str
    description: str
    query: tuple[str, ...]
    keyed: bool
    conditional: bool
    takes_body: bool
    has_dry_run: bool
    schema: dict[str, Any]

    def listed(self) -> dict[str, Any]:
        """Return the tool as `tools/list` tells it."""
        words = [self.summary, self.description, "" if self.reads else _TWICE]
        return {
            "name": self.name,
            "description": "\n\n".join(filter(None, words)),
            "inputSchema": self.schema,
            "annotations": {
                "title": self.summary,
                "readOnlyHint": self.reads,
                "destructiveHint": not self.reads,
                "openWorldHint": False,
            },
        }

    def request(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any], Any]:
        """Return path, query and body of the request that the arguments stand for."""
        path = _PLACEHOLDER.sub(lambda part: quote(str(arguments[part[1]]), safe=""), self.path)
        query = {name: arguments[name] for name in self.query if name in arguments}
        return path, query, arguments.get("body", {} if self.takes_body else None)


_TWICE = (
    "This changes something. The first call does nothing: it returns what it would do, and a token. To do it, call "
    f"again with the same arguments and `{CONFIRM}`, after the person whom you work for has agreed."
)


def tools_of(document: Mapping[str, Any], identity: Identity) -> dict[str, Tool]:
    """Return the tools that `identity` may use, by name, from the OpenAPI document."""
    schemas = document["components"]["schemas"]
    found = (
        _tool(path, method.upper(), operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation["tags"][0] not in _LEFT_OUT and _may(identity, operation.get("x-role"))
    )
    return {tool.name: tool for tool in found}


def _may(identity: Identity, role: str | None) -> bool:
    return role is None or identity.may(Role(role))


def _tool(path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Tool:
    parameters = operation["parameters"]
    headers = {each["name"] for each in parameters if each["in"] == "header"}
    properties: dict[str, Any] = {}
    required: list[str] = []
    for each in parameters:
        if each["in"] != "header":
            properties[each["name"]] = {**each["schema"], "description": each.get("description", "")}
            required += [each["name"]] if each["required"] else []
    body = operation.get("requestBody")
    if body is not None:
        content = body["content"]["application/json"]
        properties["body"] = content["schema"]
        if "example" in content:
            properties["body"] = {"allOf": [content["schema"]], "examples": [content["example"]]}
        required += ["body"] if body["required"] else []
    reads = method == "GET" or operation.get("x-role") == Role.VIEWER
    if not reads:
        properties[CONFIRM] = {"type": "string", "description": "Token of the first call with these arguments"}
    schema: dict[str, Any] = {
        "type": "object", "properties": properties, "required": required, "additionalProperties": False,
    }  # fmt: skip
    definitions = {name: _local(schemas[name]) for name in _mentioned(properties, schemas)}
    return Tool(
        name=operation["operationId"],
        method=method,
        path=path,
        reads=reads,
        summary=operation["summary"],
        description=operation.get("description", ""),
        query=tuple(each["name"] for each in parameters if each["in"] == "query"),
        keyed="Idempotency-Key" in headers,
        conditional="If-Match" in headers,
        takes_body=body is not None,
        has_dry_run=any("dry_run" in schemas[name].get("properties", {}) for name in _mentioned(body, schemas)),
        schema={**_local(schema), **({"$defs": definitions} if definitions else {})},
    )


def _mentioned(document: Any, schemas: Mapping[str, Any]) -> list[str]:
    """Return the names of schemas that a document refers to, directly or through others."""
    names: dict[str, None] = {}
    waiting = [document]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in names:
                names[name] = None
                waiting.append(schemas[name])
    return list(names)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(_REF)
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def _local(value: Any) -> Any:
    """Return a schema whose references are within the tool's own."""
    if isinstance(value, dict):
        return {
            key: f"#/$defs/{part.removeprefix(_REF)}" if key == "$ref" and isinstance(part, str) else _local(part)
            for key, part in value.items()
        }
    return [_local(part) for part in value] if isinstance(value, list) else value
