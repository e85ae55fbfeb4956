"""Hostile values on every route: in its path, query and body."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from rota.api.docs.openapi import described
from rota.app import Rota
from rota.server import asgi
from rota.store import Store, open_database
from tests.support.runs.runs import LEASE_MICROS, WORKER

JSON = {"Content-Type": "application/json"}
DEEP = 100_000
NAMES = [
    "%2e%2e", "%2e", "%2F", "a%2Fb", "..%2f..%2fetc%2fpasswd", ";", "a;b=c", "%00", "%ff", "%ed%a0%80",
    "%0d%0aSet-Cookie:%20a=b", "%25", "%2525", "a%3Fb", "a%23b", "%5C", "'%20or%201=1--", "%3Cscript%3E",
    "%E6%97%A5%E6%9C%AC", "%F0%9F%92%A9", "~", "__proto__", "constructor", "x" * 300, "x" * 9_000, "%D9%A0",
    "%7Bid%7D", "*", "%20", "%C2%85", "%E2%80%AE", "null", "-1",
]  # fmt: skip
VALUES = [
    "", "%00", "%ff", "%ed%a0%80", "%0d%0aa:b", "x" * 5_000, "9" * 400, "-1", "1e400", "NaN", "true", "null", "[]",
    "%25", "'", "%F0%9F%92%A9", "0001-01-01T00:00:00-23:59", "9999-12-31T23:59:59%2B23:59", "a/b", "/", "a,,b", "%5C",
    "\u0660", "2026-01-01T00:00:00Z",
]  # fmt: skip
BODIES = [
    b"", b"{", b"null", b"[]", b"0", b"NaN", b"-Infinity", b"1e400", b'"x"', b"\x00", b"\xff\xfe{}",
    b"\xef\xbb\xbf{}", b"1" * 5_000, b"[" * DEEP, b'{"a":' * DEEP, b"[" * DEEP + b"]" * DEEP,
    b'{"__proto__": {"admin": true}}', b'{"constructor": 1}', b'{"a": 1, "a": 2}', b'{"\\u0000": 1}',
    b'{"\\ud800": 1}', b'{"x' + b"x" * 900_000 + b'": 1}',
]  # fmt: skip
WEIRD = [
    "null", "true", "-1", "1e400", "NaN", "1" * 400, '""', '"\\u0000"', '"\\ud800"', '"a\\r\\nb: c"', "[]", "[null]",
    "[[]]", "{}", '{"a": null}', '{"\\u0000": 1}', '"' + "x" * 5_000 + '"', '"../.."', '"日本"',
    '"0 0 1-100000000 * *"', '"9999-12-31T23:59:59-23:59"', '"99999999999d"', '"-5s"', '{"__proto__": 1}',
    "9007199254740993", "[" * 100 + "]" * 100,
]  # fmt: skip
SCHEDULE = [
    "name", "job", "cron", "every", "at", "rrule", "timezone", "payload", "jitter", "start", "end", "window",
    "overlap", "catch_up", "queue", "priority", "tags", "max_attempts", "timeout", "metadata", "enabled", "scope",
    "scopes", "failure", "calendar", "key",
]  # fmt: skip
ENDLESS = ("stream_changes",)
OURS: dict[str, Any] = {"job": "greet", "payload": {"name": "Ada"}, "names": ["news"]}


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    store = Store(open_database(sqlite_url))
    await store.migrate()
    await store.extend(WORKER, [], LEASE_MICROS)
    await store.close()
    app = Rota(sqlite_url)

    @app.job
    def greet(name: str = "you") -> str:
        return name

    await (await app.connect()).store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


@pytest.fixture
async def there(http: httpx2.AsyncClient) -> dict[str, str]:
    """Create something for every path to lead to."""
    run = (await http.post("/api/v1/runs", json={"job": "greet", "delay": "1h"})).json()
    made = await http.post("/api/v1/schedules", json={"name": "news", "job": "greet", "every": "1h"})
    assert made.status_code == 201, made.text
    return {"runs": run["id"], "executions": run["id"], "jobs": "greet", "schedules": "news", "workers": WORKER.id,
            "queues": "default", "tokens": "nobody"}  # fmt: skip


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    document = described(asgi(Rota("sqlite:///unused.db")).routes)
    found = [(path, method, one) for path, methods in document["paths"].items() for method, one in methods.items()]
    return [one for one in found if one[2]["operationId"] not in ENDLESS]


def address(path: str, there: dict[str, str]) -> str:
    kind = path.removeprefix("/api/v1/").partition("/")[0]
    meant = there.get(kind, "x")
    return path.replace("{id}", meant).replace("{name}", meant).replace("{kind}", "tenant")


def assert_sane(answer: httpx2.Response, what: object) -> None:
    assert answer.status_code < 500, (what, answer.status_code, answer.text[:500])
    for name, value in answer.headers.items():
        assert value.isprintable(), (what, name, value)
    assert "set-cookie" not in answer.headers, what
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json", what
        assert len(answer.content) < 5_000, what


async def test_names_in_addresses(http: httpx2.AsyncClient) -> None:
    for path, method, one in operations():
        if "{" not in path:
            continue
        for name in NAMES:
            where = path.replace("{id}", name).replace("{name}", name).replace("{kind}", name)
            content = one["requestBody"]["content"]["application/json"] if "requestBody" in one else {}
            body = {key: OURS.get(key, value) for key, value in content["example"].items()} if content else None
            assert_sane(await http.request(method, where, json=body), (method, where[:120]))


async def test_values_behind_the_question_mark(http: httpx2.AsyncClient, there: dict[str, str]) -> None:
    for path, method, one in operations():
        where = address(path, there)
        for parameter in [p["name"] for p in one["parameters"] if p["in"] == "query"]:
            if parameter == "follow":
                continue
            for value in VALUES:
                assert_sane(
                    await http.request(method, f"{where}?{parameter}={value}"), (method, path, parameter, value)
                )
        assert_sane(await http.request(method, f"{where}?{'a' * 3_000}=1&a[]=2&%00=3"), (method, path))


async def test_bodies(http: httpx2.AsyncClient, there: dict[str, str]) -> None:
    for path, method, one in operations():
        if "requestBody" not in one:
            continue
        where = address(path, there)
        for body in BODIES:
            assert_sane(await http.request(method, where, content=body, headers=JSON), (method, path, body[:60]))
        for kind in (
            "",
            "text/plain",
            "application/xml",
            "application/json-patch+json",
            "multipart/form-data",
            "a" * 5_000,
        ):
            answer = await http.request(method, where, content=b"{}", headers={"Content-Type": kind})
            assert answer.status_code == 415, (method, path, kind[:40], answer.text)
        good = await http.request(
            method, where, content=b"{}", headers={"Content-Type": "Application/JSON; charset=utf-8"}
        )
        assert good.status_code not in (415, 500), (method, path)


async def test_every_field_of_every_body(http: httpx2.AsyncClient, there: dict[str, str]) -> None:
    shapes = described(asgi(Rota("sqlite:///unused.db")).routes)["components"]["schemas"]
    for path, method, one in operations():
        if "requestBody" not in one:
            continue
        content = one["requestBody"]["content"]["application/json"]
        example = {name: json.dumps(OURS.get(name, value)) for name, value in content.get("example", {}).items()}
        for place, field in enumerate(fields_of(content["schema"], shapes)):
            for value in WEIRD[place % 3 :: 3]:  # each value in many fields, but not in all: there are hundreds
                text = "{" + ", ".join(f'"{name}": {given}' for name, given in {**example, field: value}.items()) + "}"
                answer = await http.request(method, address(path, there), content=text.encode(), headers=JSON)
                assert_sane(answer, (method, path, field, value[:60]))
                if path.endswith("/schedules") and answer.status_code == 201:
                    name = quote(answer.json()["name"], safe="")
                    assert (await http.get(answer.headers["location"])).json() == answer.json(), name
                    await http.delete(f"/api/v1/schedules/{name}")
    assert (await http.get("/")).status_code == 200


def fields_of(schema: dict[str, Any], shapes: dict[str, Any]) -> list[str]:
    """Return fields by name; a schedule's document is not described by fields."""
    if "$ref" in schema:
        return fields_of(shapes[schema["$ref"].rpartition("/")[2]], shapes)
    if "anyOf" in schema:
        return [name for part in schema["anyOf"] for name in fields_of(part, shapes)]
    return list(schema.get("properties", {})) or SCHEDULE


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "OPTIONS", "PROPFIND", "get", "PATCH", "FOO", "DELETE"])
async def test_odd_methods(http: httpx2.AsyncClient, method: str) -> None:
    answer = await http.request(method, "/api/v1/runs", headers={"X-HTTP-Method-Override": "POST", "Origin": "null"})
    assert answer.status_code in (200, 403, 405)
    assert_sane(answer, method)
    assert (await http.request(method, "/api/v1/runs?_method=DELETE")).status_code in (405, 422)


async def test_cron_that_is_large(http: httpx2.AsyncClient, there: dict[str, str]) -> None:
    """A megabyte of cron, or a range of a hundred million days, is refused at once."""
    for cron in (
        "0 0 1-100000000 * *",
        "0 " * 400_000,
        ",".join(["1"] * 300_000) + " * * * *",
        "*/0 * * * *",
        "@" * 500_000,
    ):
        body = {"name": "large", "job": "greet", "cron": cron}
        for method, path in (("POST", "/schedules"), ("PUT", "/schedules/large"), ("PATCH", "/schedules/news")):
            sent = {**body, "name": "news"} if method == "PATCH" else body
            answer = await http.request(method, f"/api/v1{path}", json=sent)
            assert (answer.status_code, len(answer.content) < 5_000) == (422, True), (
                method,
                cron[:40],
                answer.text[:300],
            )
        answer = await http.post("/api/v1/schedules/news/simulate", json={"changes": {"cron": cron}})
        assert answer.status_code == 422, cron[:40]
