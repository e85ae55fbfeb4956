"""The OpenAPI document: complete, true, and shown without external resources."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import jsonschema_rs
import msgspec
import pytest

from rota.api.docs.openapi import described
from rota.api.operations.routing import walk
from rota.app import Rota
from rota.server import asgi
from rota.verbs.glossary import GLOSSARY

DOCUMENT = json.loads(msgspec.json.encode(described(asgi(Rota("sqlite:///unused.db")).routes)))
OPERATIONS = [(path, method, one) for path, methods in DOCUMENT["paths"].items() for method, one in methods.items()]


def names(operation: tuple[str, str, Any]) -> str:
    return str(operation[2]["operationId"])


def validator(schema: Any) -> Any:
    """Examples have no fields that their shapes do not name."""
    named = DOCUMENT["components"]["schemas"].items()
    closed = {name: {"additionalProperties": False, **one} if "properties" in one else one for name, one in named}
    return jsonschema_rs.validator_for({**schema, "components": {"schemas": closed}}, validate_formats=True)


def test_every_route_is_in_it() -> None:
    served = {
        (path, method.lower())
        for path, route in walk(asgi(Rota("sqlite:///unused.db")).routes)
        for method in route.operations
        if not route.page
    }
    assert {(path, method) for path, method, _ in OPERATIONS} == served


def test_names_are_not_used_twice() -> None:
    found = [one["operationId"] for _, _, one in OPERATIONS]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("operation", OPERATIONS, ids=names)
def test_an_operation_is_described(operation: tuple[str, str, Any]) -> None:
    path, _, one = operation
    assert one["summary"].endswith(".")
    named = set(re.findall(r"\{(\w+)\}", path))
    assert named == {parameter["name"] for parameter in one["parameters"] if parameter["in"] == "path"}


@pytest.mark.parametrize("operation", OPERATIONS, ids=names)
def test_its_body_and_its_answers_have_examples_that_fit(operation: tuple[str, str, Any]) -> None:
    _, _, one = operation
    for content in contents_of(one.get("requestBody", {}), *one["responses"].values()):
        validator(content["schema"]).validate(content["example"])


@pytest.mark.parametrize("name", [name for name in DOCUMENT["components"]["responses"] if name != "Other"])
def test_problems_have_examples_that_fit(name: str) -> None:
    for content in contents_of(DOCUMENT["components"]["responses"][name]):
        validator(content["schema"]).validate(content["example"])


def contents_of(*messages: Any) -> list[Any]:
    return [content for message in messages for content in message.get("content", {}).values()]


def test_every_field_and_parameter_is_described() -> None:
    schemas = list(schemas_within(DOCUMENT))
    fields = [(name, field) for schema in schemas for name, field in schema.get("properties", {}).items()]
    parameters = [(one["name"], one) for _, _, operation in OPERATIONS for one in operation["parameters"]]
    bare = {name for name, described in [*fields, *parameters] if not described.get("description")}
    bare |= {name for name, schema in DOCUMENT["components"]["schemas"].items() if not schema.get("description")}
    assert bare == set(), "write a docstring below the field, Meta in the annotation, or a word of verbs/glossary"


OTHER_LISTS = {
    "get_family": "a graph, whose links would join runs of two pages: ask for the family of a run with `more`",
    "list_upcoming_runs": "a summary of a period that begins anew at each request, with `total` and `more`",
    "examine_database": "a fixed list of checks, and some lines for what they find",
}


def test_every_list_has_pages() -> None:
    """All but these take `limit` and `cursor`, and answer `next_cursor`. Executions have the words of another API."""
    others = set()
    for _, method, operation in OPERATIONS:
        schema = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
        while "$ref" in schema:
            schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if method == "get" and "items" in schema.get("properties", {}):
            query = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
            if not {"limit", "cursor"} <= query or "next_cursor" not in schema["properties"]:
                others.add(operation["operationId"])
    assert others == OTHER_LISTS.keys()


def test_every_word_of_the_glossary_is_used() -> None:
    texts = {schema["description"] for schema in schemas_within(DOCUMENT) if isinstance(schema.get("description"), str)}
    assert [word for word, meaning in GLOSSARY.items() if not any(meaning in text for text in texts)] == []


def test_it_is_not_made_before_it_is_asked_for() -> None:
    program = """
import sys, rota, rota.cli
assert not [name for name in sys.modules if name.startswith("rota.api")]
import rota.server
from rota.api.docs import descriptions, refusals
assert descriptions._docstrings.cache_info().misses == refusals._raised.cache_info().misses == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True)


async def test_it_is_served_with_a_page_for_people(sqlite_url: str) -> None:
    app = Rota(sqlite_url)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url="http://localhost") as http:
        assert (await http.get("/openapi.json")).json() == DOCUMENT
        page = (await http.get("/docs")).text
    await app.aclose()
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    for path, _, _ in OPERATIONS:
        assert path in page


def schemas_within(value: Any) -> Iterator[dict[str, Any]]:
    match value:
        case dict():
            yield value
            for inner in value.values():
                yield from schemas_within(inner)
        case list():
            for inner in value:
                yield from schemas_within(inner)


def test_generators_of_clients_understand_its_schemas() -> None:
    schemas = list(schemas_within(DOCUMENT["components"]["schemas"]))
    arrays = [schema for schema in schemas if schema.get("type") == "array"]
    objects = [schema for schema in schemas if schema.get("type") == "object"]
    assert [schema for schema in arrays if not isinstance(schema.get("items"), dict)] == []
    assert [schema for schema in objects if not {"properties", "additionalProperties"} & schema.keys()] == []
    assert [schema for schema in schemas if "default" in schema] == []


def test_every_schema_is_used() -> None:
    text = json.dumps(DOCUMENT)
    assert [name for name in DOCUMENT["components"]["schemas"] if f'"#/components/schemas/{name}"' not in text] == []
