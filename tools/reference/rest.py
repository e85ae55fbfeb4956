"""The reference of the REST API: every route as its OpenAPI document says."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from rota.api.docs.openapi import described
from rota.api.operations.operation import Operation
from rota.api.operations.query import NoQuery
from rota.api.operations.routing import walk
from rota.app import Rota
from rota.server import asgi
from tools.reference.settings import row, table

Document = Mapping[str, Any]

TITLES = {
    "server": "The server itself",
    "error-groups": "Error groups",
    "session": "Signing in",
    "stream": "Following what happens",
    "worker": "Workers in other languages",
}


def page() -> str:
    served = asgi(Rota()).routes
    document = described(served)
    asked = {(method, path): words(one) for path, route in walk(served) for method, one in route.operations.items()}
    schemas: Document = document["components"]["schemas"]
    groups: dict[str, list[tuple[str, str, Document]]] = {}
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            groups.setdefault(title_of(one["tags"][0]), []).append((method.upper(), path, one))
    lines = [
        "# Routes",
        "",
        "Every route of the [REST API](../rest.md), as `/openapi.json` of a server describes it. The role is what a",
        "[token](../access.md#roles) must have where `auth` is on. Every error is [a problem](errors.md); times are",
        "UTC; durations are texts: `90s`, `15m`. [Shapes](#shapes) are at the end.",
    ]
    for title, routes in groups.items():
        lines += ["", f"## {title}", "", *table("", "", "role", "")]
        lines += [row(method, link(path, method), role(one), one["summary"]) for method, path, one in routes]
        for method, path, one in routes:
            lines += ["", *operation(method, path, one, asked[method, path])]
            lines += ["", refusals(one, document["components"]["responses"])]
    shapes = {name: "\n".join(shape(name, schema)) for name, schema in sorted(schemas.items())}
    text = "\n".join([*lines, "", "## Shapes"])
    told = "\n".join([text, *shapes.values()])
    return "\n\n".join([text, *(one for name, one in shapes.items() if f"(#shape-{name.lower()})" in told)])


def words(one: Operation) -> str:
    """What the shape of its parameters says of them all."""
    return inspect.cleandoc(one.query.__doc__ or "") if one.query not in (None, NoQuery) else ""


def title_of(tag: str) -> str:
    return TITLES.get(tag, tag.replace("-", " ").capitalize())


def role(one: Document) -> str:
    return one["x-role"] or "anybody"


def anchor(path: str, method: str) -> str:
    plain = "".join(letter if letter.isalnum() else "-" for letter in path.removeprefix("/api/v1"))
    return f"{method.lower()}{plain}"


def link(path: str, method: str) -> str:
    return f"[`{path}`](#{anchor(path, method)})"


def operation(method: str, path: str, one: Document, asked: str) -> list[str]:
    lines = [f'<a id="{anchor(path, method)}"></a>', "", f"### {method} `{path}`", "", one["summary"]]
    if "description" in one:
        lines += ["", one["description"]]
    if one["parameters"]:
        lines += ["", asked] if asked else []
        lines += ["", *table("parameter", "in", "is", "means"), *map(parameter, one["parameters"])]
    if "requestBody" in one:
        needed = "" if one["requestBody"]["required"] else ", if there is one"
        lines += ["", *content(f"The body{needed}: ", one["requestBody"]["content"])]
    answers = {status: answer for status, answer in one["responses"].items() if status.startswith("2")}
    media = next(iter(answers.values())).get("content", {})
    return [*lines, "", *content(f"Answers {' or '.join(answers)}", media, colon=True)]


def refusals(one: Document, shared: Document) -> str:
    """The codes of problems by status."""
    found = {status: answer for status, answer in one["responses"].items() if status.startswith(("4", "5"))}
    whole = {
        status: shared[answer["$ref"].rpartition("/")[2]] if "$ref" in answer else answer
        for status, answer in found.items()
    }
    told = [f"{status} {', '.join(f'`{code}`' for code in answer['x-codes'])}" for status, answer in whole.items()]
    return f"Problems: {'; '.join(told)}."


def parameter(one: Document) -> str:
    words = one.get("description") or one["schema"].get("description", "")
    needed = "" if one["required"] or one["in"] == "path" else otherwise(one["schema"])
    return row(f"`{one['name']}`", one["in"], kind(one["schema"]) + needed, cell(words))


def otherwise(schema: Document) -> str:
    given = schema.get("default")
    return "" if given in (None, [], {}, "") else f", else `{json.dumps(given)}`"


def content(words: str, media: Document, *, colon: bool = False) -> list[str]:
    if not media:
        return [f"{words}."]
    name, told = next(iter(media.items()))
    said = "" if name == "application/json" else f", as `{name}`"
    lines = [f"{words}{': ' if colon else ''}{kind(told['schema'])}{said}."]
    if "example" in told:
        example = told["example"]
        text = example.strip() if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
        lines += ["", "```text" if isinstance(example, str) else "```json", text, "```"]
    return lines


def shape(name: str, schema: Document) -> list[str]:
    lines = [f'<a id="shape-{name.lower()}"></a>', "", f"### {name}"]
    if schema.get("description"):
        lines += ["", " ".join(schema["description"].split())]
    if "enum" in schema:
        return [*lines, "", f"One of {', '.join(f'`{value}`' for value in schema['enum'])}."]
    if schema.get("properties"):
        required = schema.get("required", [])
        lines += ["", *table("field", "is", "means")]
        for field, inner in schema["properties"].items():
            needed = ", required" if field in required else otherwise(inner)
            lines.append(row(f"`{field}`", kind(inner) + needed, cell(inner.get("description", ""))))
    return lines


def kind(schema: Document) -> str:
    """In words: `text or list of text`, with links to shapes."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](#shape-{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(kind, schema["anyOf"])))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    said = schema.get("type", "anything")
    if isinstance(said, list):
        return " or ".join(plain(one, schema) for one in said)
    return plain(said, schema)


def plain(said: str, schema: Document) -> str:
    if said == "array":
        return f"list of {kind(schema.get('items') or {'type': 'anything'})}"
    if said == "object" and "items" in schema.get("properties", {}):
        return f"`items`, a {kind(schema['properties']['items'])}, and `next_cursor`"
    if said == "string":
        return "time" if schema.get("format") == "date-time" else "text"
    if said == "integer" and {"minimum", "maximum"} <= schema.keys():
        return f"{schema['minimum']} to {schema['maximum']}"
    return {"integer": "whole number", "boolean": "`true` or `false`"}.get(said, said)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
