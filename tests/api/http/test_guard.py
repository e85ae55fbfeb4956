"""The guard: hosts, origins, headers of every response, and unexpected errors."""

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from rota.api import asgi
from rota.api.operations.operation import operation
from rota.api.operations.routing import declared
from rota.app import Rota
from rota.engine.observability.logs import JsonLines


async def broken(request: Request) -> Response:
    raise ZeroDivisionError("a secret")


@pytest.fixture
async def http(sqlite_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    app = Rota(sqlite_url)
    transport = httpx2.ASGITransport(app=asgi(app, [declared("/broken", GET=operation(None)(broken))]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682") as client:
        yield client
    await app.aclose()


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:80", "LOCALHOST:7682", "127.0.0.1", "127.9.9.9:1", "[::1]:7682"]
)
async def test_loopback_hosts_are_answered(http: httpx2.AsyncClient, host: str) -> None:
    assert (await http.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "192.168.1.5", "[::2]", "[", "::1"]
)
async def test_other_hosts_are_not(http: httpx2.AsyncClient, host: str) -> None:
    answer = await http.get("/healthz", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "wrong-host")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_pages_of_another_origin_change_nothing(http: httpx2.AsyncClient, headers: dict[str, str]) -> None:
    answer = await http.post("/api/v1/runs", json={"job": "x"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "wrong-origin")
    assert (await http.get("/healthz", headers=headers)).status_code == 200


async def test_our_own_pages_may(http: httpx2.AsyncClient) -> None:
    headers = {"Origin": "http://127.0.0.1:7682", "Sec-Fetch-Site": "same-origin"}
    assert (await http.post("/api/v1/runs", json={"job": "x"}, headers=headers)).status_code == 404


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data; a=b"])
async def test_a_body_must_say_that_it_is_json(http: httpx2.AsyncClient, kind: str) -> None:
    answer = await http.post("/api/v1/runs", content=b'{"job": "x"}', headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "json-required")


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/api/v1/runs", "/broken"])
async def test_every_answer_has_its_headers(http: httpx2.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert len(answer.headers["x-request-id"]) == 16


async def test_a_request_keeps_its_own_id_if_it_is_harmless(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/healthz", headers={"X-Request-Id": "a-1:b"})).headers["x-request-id"] == "a-1:b"
    assert (await http.get("/healthz", headers={"X-Request-Id": "a b"})).headers["x-request-id"] != "a b"


async def test_unknown_addresses_and_methods_are_problems(http: httpx2.AsyncClient) -> None:
    nowhere = await http.get("/api/v1/run")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "not-found")
    assert (await http.get("/api/v1/runs/")).status_code == 404
    wrong = await http.delete("/api/v1/runs")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method-not-allowed")
    assert wrong.headers["allow"] == "GET, HEAD, POST"


async def test_a_bug_of_ours_is_logged_and_not_told(http: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "rota.api"):
        answer = await http.get("/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert "a secret" in caplog.text
    assert answer.headers["x-request-id"] in caplog.text


async def test_a_database_that_is_away_is_503_and_the_process_is_alive(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path / 'no' / 'such' / 'folder' / 'rota.db'}")
    transport = httpx2.ASGITransport(app=asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        assert (await http.get("/healthz")).json() == {"status": "ok"}
        for path in ("/readyz", "/api/v1/time", "/api/v1/runs"):
            answer = await http.get(path)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        (tmp_path / "no" / "such" / "folder").mkdir(parents=True)
        assert (await http.get("/readyz")).json() == {"status": "ready"}
    await app.aclose()


async def test_a_database_without_tables_is_not_ready(new_postgres_url: str) -> None:
    app = Rota(new_postgres_url)
    transport = httpx2.ASGITransport(app=asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "schema-outdated")
        assert answer.json()["hint"] == "run `rota migrate`"
    await app.aclose()


async def test_a_request_is_a_line_of_the_log(http: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    """The line is machine-readable, and leaves out the query string, which may contain a secret."""
    with caplog.at_level(logging.DEBUG, "rota.access"):
        found = await http.get("/api/v1/queues", headers={"X-Request-Id": "a-1"})
        refused = await http.get("/api/v1/runs?nosuch=hunter2", headers={"Host": "elsewhere"})
        await http.get("/broken")
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records if record.name == "rota.access"]
    assert [(line["method"], line["path"], line["status"], line["actor"]) for line in lines] == [
        ("GET", "/api/v1/queues", 200, "api"),
        ("GET", "/api/v1/runs", refused.status_code, None),
        ("GET", "/broken", 500, None),
    ]
    assert (lines[0]["request_id"], found.headers["x-request-id"]) == ("a-1", "a-1")
    assert all(line["duration_ms"] >= 0 for line in lines)
    assert "hunter2" not in str(lines)
    (bug,) = [json.loads(JsonLines().format(one)) for one in caplog.records if one.name == "rota.api"]
    assert bug["request_id"] == lines[2]["request_id"]


async def test_by_default_no_request_is_logged(http: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await http.get("/api/v1/time")
    assert [record.name for record in caplog.records if record.name == "rota.access"] == []
