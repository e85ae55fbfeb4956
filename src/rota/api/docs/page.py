"""The API's description as an HTML page: one list, no script, no external resources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from rota.api.operations.response import at

Document = Mapping[str, Any]

_HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>rota: REST API</title><link rel="stylesheet" href="{style}"></head><body><main>"""


def page_of(document: Document) -> str:
    """Render the OpenAPI document as HTML."""
    tags: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            text = _operation(path, method, operation, document["components"]["responses"])
            tags.setdefault(operation["tags"][0], []).append(text)
    parts = [
        _HEAD.format(style=at("/static/rota.css")),
        "<h1>REST API</h1>",
        f"<p>{escape(document['info']['description'])} ",
    ]
    parts.append(f'Machine-readable: <a href="{at("/openapi.json")}">openapi.json</a>.</p>')
    for tag, operations in tags.items():
        parts += [f"<section><h2>{escape(tag)}</h2>", *operations, "</section>"]
    parts += ["<section><h2>Schemas</h2>", *_schemas(document["components"]["schemas"]), "</section>"]
    return "".join([*parts, "</main></body></html>"])


def _operation(path: str, method: str, operation: Document, problems: Document) -> str:
    role = f" <small>{escape(operation['x-role'])}</small>" if operation["x-role"] else ""
    parts = [
        f"<details><summary><code>{method.upper()} {escape(path)}</code> {escape(operation['summary'])}{role}</summary>"
    ]
    if "description" in operation:
        parts.append(f"<p>{escape(operation['description'])}</p>")
    parts.append(_parameters(operation["parameters"]))
    if "requestBody" in operation:
        parts.append(_content("Request body", operation["requestBody"]["content"]))
    status, good = next(iter(operation["responses"].items()))
    parts.append(_content(f"Response {status}", good.get("content", {})))
    parts.append(_problems(operation["responses"], problems))
    return "".join([*parts, "</details>"])


def _problems(responses: Document, shared: Document) -> str:
    """Return the codes of problems by status."""
    named = {
        status: shared[response["$ref"].rpartition("/")[2]] if "$ref" in response else response
        for status, response in responses.items()
    }
    rows = "".join(
        f"<tr><th scope=row>{status}</th><td>{escape(', '.join(response['x-codes']))}</td></tr>"
        for status, response in named.items()
        if "x-codes" in response
    )
    return f"<p>Problems</p><table><tbody>{rows}</tbody></table>" if rows else ""


def _parameters(parameters: list[Document]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><th scope=row><code>{escape(parameter['name'])}</code></th><td>{escape(parameter['in'])}</td>"
        f"<td>{escape(_type(parameter['schema']))}</td><td>{escape(parameter['description'])}</td></tr>"
        for parameter in parameters
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _content(title: str, content: Mapping[str, Document]) -> str:
    if not content:
        return f"<p>{escape(title)}</p>"
    media, body = next(iter(content.items()))
    text = f"<p>{escape(title)}: {escape(_type(body['schema']))} <small>{escape(media)}</small></p>"
    if "example" in body:
        example = body["example"]
        words = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
        text += f"<pre><code>{escape(words)}</code></pre>"
    return text


def _type(schema: Document) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = schema.get("type", "anything")
    if kind == "object" and "items" in schema.get("properties", {}):
        return f"page of {_type(schema['properties']['items'].get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _schemas(schemas: Mapping[str, Document]) -> Iterator[str]:
    for name, schema in sorted(schemas.items()):
        yield f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        yield f"<p>{escape(schema.get('description', ''))}</p>"
        yield f"<p>{escape(_type(schema))}</p>" if "properties" not in schema else _fields(schema)
        yield "</details>"


def _fields(schema: Document) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><th scope=row><code>{escape(name)}</code></th><td>{escape(_type(field))}</td>"
        f"<td>{'required' if name in required else ''}</td><td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    return f"<table><tbody>{rows}</tbody></table>"
