"""Hostile values are the sender's mistake: never a 5xx, and nothing is written."""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx2
import pytest

from rota.app import Rota
from rota.server import asgi
from tests.support.jobs.stored_jobs import save_jobs_of

RUNS = "/api/v1/runs"
JSON = {"Content-Type": "application/json"}

WEIRD = [
    "null", "true", "0", "-1", "1e400", "-1e400", "NaN", "Infinity", "1" * 400, '""', '"\\u0000"', '"\\ud800"', "[]",
    "[[]]", "[null]", "{}", '{"a": null}', '{"\\u0000": 1}', '"' + "x" * 5_000 + '"', "[" * 2_000 + "]" * 2_000,
    '"0001-01-01T00:00:00+23:59"', '"9999-12-31T23:59:59-23:59"', '"99999999999d"', '"-5s"', '{"type": "delays"}',
    '{"type": "exponential", "factor": 1e308}', '{"fields": [1]}', '{"kind": "a", "id": ""}', '["\\u001f"]',
]  # fmt: skip
FIELDS = [
    "job", "payload", "queue", "priority", "delay", "run_at", "key", "scope", "unique", "max_attempts", "backoff",
    "timeout", "tags", "metadata",
]  # fmt: skip
BODIES = [
    b"", b"{", b"\xff\xfe", b"\x00", b'{"job": "greet"', b"NaN", b'{"job": "greet", "payload": {"name": NaN}}',
    b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000, b'"\\ud800"', b'{"job": "\\ud800"}',
    b'{"job": "gr\\u0000eet"}', b'{"job": "' + b"x" * 900_000 + b'"}', b'{"' + b"x" * 900_000 + b'": 1}',
    b'{"runs": []}', b'{"runs": null}', b'{"runs": [null]}', b'{"runs": [{}], "job": "greet"}', b'{"runs": [[[[]]]]}',
    b'{"job": "greet", "job": "greet", "payload": {}}', b"1" * 5_000, b"-", b'{"job": "greet", "payload": "{}"}',
    b'{"job": "greet", "payload": ' + b'{"name":' * 70 + b"1" + b"}" * 70 + b"}",
]  # fmt: skip
KEYS = [
    "x']\"", "'", '"', "'\"", "\\", "\\'", "\\\"']", "\\N{x}\"'", "['a']", "[", "]", "[0]", "a.b", "~/", "", " ", "$",
    "`", "a\nb", "\r\n'\"\t", "\u2028", "\x7f\x1b'\"", "\N{PILE OF POO}'\"", "é'\"", "` - at `$['",
    "` - at `$." + "x" * 5_000, "k" * 5_000, "'\"" * 5_000, "\\" * 5_000, "\n" * 5_000,
]  # fmt: skip
IDS = [
    "0", "-", "zz", "a" * 5_000, "%00", "%ff", "%2e%2e%2f", "' or 1=1 --", "01a1e113-637e-7384-aa02-a556abf37a46",
    "{id}", "<script>", "%F0%9F%92%A9", "\u0660",
]  # fmt: skip
QUESTIONS = [
    "limit=-1", "limit=" + "9" * 5_000, "limit=1e3", "limit=", "limit=%D9%A0", "cursor=%00", "cursor=" + "A" * 22,
    "cursor=" + "A" * 5_000, "cursor=====", "cursor=%F0%9F%92%A9", "state=", "state=%00", "job=%00", "job=%ff", "job=",
    "tag=%25", "tag=%00", "key=" + "k" * 5_000, "scope=/", "scope=a/%00", "queue=%ed%a0%80", "=", "&&&", "a" * 5_000,
    "%00=1", "error=%00", "error=%25", "worker=%ff", "retried=", "created_after=0001-01-01T00:00:00%2B14:00",
    "created_before=9999-12-31T23:59:59Z", "created_after=9999-12-31T23:59:59Z", "created_before=%00",
]  # fmt: skip


@pytest.fixture
async def http(database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    app = Rota(database_url)

    @app.job
    def greet(name: str) -> str:
        return f"hello {name}"

    @app.job
    def tally(**counts: int) -> int:
        return sum(counts.values())

    await save_jobs_of(app)
    async with client_to(app) as client:
        yield client


@pytest.fixture
async def http_without_jobs(http: httpx2.AsyncClient, database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """HTTP client of a server that knows the jobs from the database only."""
    async with client_to(Rota(database_url)) as client:
        yield client


@asynccontextmanager
async def client_to(app: Rota) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://[::1]:7682") as client:
        yield client
    await app.aclose()


def assert_refused(answer: httpx2.Response, what: object) -> None:
    assert 400 <= answer.status_code < 500, (what, answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 5_000, what


async def test_bodies(http: httpx2.AsyncClient) -> None:
    for body in BODIES:
        assert_refused(await http.post(RUNS, content=body, headers=JSON), body[:80])
    assert (await http.get(RUNS)).json()["items"] == []


async def test_values_of_every_field(http: httpx2.AsyncClient) -> None:
    for field, value in itertools.product(FIELDS, WEIRD):
        known = {"job": '"greet"', "payload": '{"name": "Ada"}', field: value}
        text = "{" + ", ".join(f'"{name}": {given}' for name, given in known.items()) + "}"
        answer = await http.post(RUNS, content=text.encode(), headers=JSON)
        assert answer.status_code < 500, (field, value[:80], answer.text[:500])
        if answer.status_code in (200, 201):
            assert (await http.get(f"{RUNS}/{answer.json()['id']}")).status_code == 200, (field, value[:80])
    assert (await http.get(f"{RUNS}?limit=500")).status_code == 200
    assert (await http.get("/")).status_code == 200


async def test_keys(http: httpx2.AsyncClient, http_without_jobs: httpx2.AsyncClient) -> None:
    for key, server in itertools.product(KEYS, (http, http_without_jobs)):
        for body in bodies_with(key):
            answer = await server.post(RUNS, json=body)
            assert_refused(answer, body)
            assert answer.status_code == 422, (body, answer.text)
            assert answer.json()["pointer"].startswith("#"), body
    assert (await http.get(RUNS)).json()["items"] == []


def bodies_with(key: str) -> list[dict[str, object]]:
    """Return bodies with `key` wherever they may have names."""
    run: dict[str, object] = {"job": "greet", "payload": {"name": "Ada"}}
    wrong: list[dict[str, object]] = [
        run | {key: 1},
        run | {"payload": {"name": "Ada", key: 1}},
        run | {"scope": {"kind": "a", "id": "b", key: 1}},
        {"job": "tally", "payload": {key: "many"}},
        {"job": "tally", "payload": {key: {key: [1]}}},
    ]
    among_others: list[dict[str, object]] = [{"runs": [run, body]} for body in wrong]
    return wrong + among_others


@pytest.mark.parametrize("key", ["x']\"", "\\'\"", "a\nb", "['a']", "\N{PILE OF POO}'"])
async def test_a_pointer_leads_to_the_key(http: httpx2.AsyncClient, key: str) -> None:
    for body, pointer in (
        ({"job": "greet", "payload": {"name": "Ada", key: 1}}, f"#/payload/{key}"),
        ({"job": "tally", "payload": {key: "many"}}, f"#/payload/{key}"),
        ({"job": "greet", key: 1}, f"#/{key}"),
        ({"runs": [{"job": "greet", "payload": {"name": "Ada", key: 1}}]}, f"#/runs/0/payload/{key}"),
    ):
        assert (await http.post(RUNS, json=body)).json()["pointer"] == pointer


async def test_ids(http: httpx2.AsyncClient) -> None:
    for id in IDS:
        for path in (f"{RUNS}/{id}", f"{RUNS}/{id}/attempts", f"{RUNS}/{id}/explain"):
            answer = await http.get(path)
            assert answer.status_code in (404, 409), (path[:80], answer.text[:500])
        for verb in ("cancel", "retry"):
            assert_refused(await http.post(f"{RUNS}/{id}/{verb}"), id[:80])


async def test_questions(http: httpx2.AsyncClient) -> None:
    for question in QUESTIONS:
        answer = await http.get(f"{RUNS}?{question}")
        assert answer.status_code < 500, (question[:80], answer.text[:500])
        assert len(answer.content) < 5_000


async def test_headers(http: httpx2.AsyncClient) -> None:
    body = {"job": "greet", "payload": {"name": "Ada"}}
    for key in ("", " ", "k" * 300, "\x07", "'; drop table rota_run; --", quote("schlüssel")):
        answer = await http.post(RUNS, json=body, headers={"Idempotency-Key": key})
        assert answer.status_code < 500, key


async def test_cancel_reasons(http: httpx2.AsyncClient) -> None:
    run = (await http.post(RUNS, json={"job": "greet", "payload": {"name": "Ada"}})).json()
    for body in (
        b"[]",
        b"0",
        b'"x"',
        b'{"reason": 7}',
        b'{"why": "x"}',
        b'{"reason": "\\u0000"}',
        b'{"reason": "\\ud800"}',
    ):
        assert_refused(await http.post(f"{RUNS}/{run['id']}/cancel", content=body, headers=JSON), body)
    assert_refused(await http.post(f"{RUNS}/{run['id']}/cancel", json={"reason": "x" * 2_000}), "long")
    assert (await http.get(f"{RUNS}/{run['id']}")).json()["state"] == "queued"


async def test_a_large_body_is_refused_unread(http: httpx2.AsyncClient) -> None:
    read = 0

    def body() -> Iterator[bytes]:
        nonlocal read
        for _ in range(160):
            read += 65_536
            yield b"x" * 65_536

    async def chunks() -> AsyncIterator[bytes]:
        for chunk in body():
            yield chunk

    announced = await http.post(RUNS, content=chunks(), headers=JSON | {"Content-Length": "10485760"})
    assert (announced.status_code, announced.json()["code"], read) == (413, "body-too-large", 0)
    streamed = await http.post(RUNS, content=chunks(), headers=JSON)
    assert streamed.status_code == 413
    assert read < 1_300_000
