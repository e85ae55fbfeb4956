"""Test HTTP jobs against a hostile server on loopback: outcomes are right, and the worker survives."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest

from rota.core.alerts.webhook_signature import verify
from rota.core.runs.run import Run
from rota.core.states import RunState
from rota.testing import Harness
from tests.support.runs.real_worker import Working
from tests.support.servers.hostile_server import Asked, HostileServer, packed, whole

LOOPBACK = "127.0.0.1"


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.fixture
async def harness(sqlite_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=sqlite_url, http_allow=LOOPBACK) as harness:
        yield harness


async def ran(harness: Harness, url: str, payload: dict[str, Any] | None = None, **options: Any) -> Run:
    harness.app.http_job("ping", url=url, **options)
    run = await harness.enqueue("ping", **(payload or {}))
    await harness.drain()
    return await harness.run(run)


def code_of(run: Run) -> str | None:
    return run.error.code if run.error else None


async def test_what_was_answered_is_the_result(harness: Harness, server: HostileServer) -> None:
    run = await ran(harness, f"{server.url}/ok")
    assert run.state is RunState.SUCCEEDED
    assert run.result.pop("elapsed_ms") >= 0
    assert run.result == {
        "status": 200,
        "headers": {"content-type": "application/json"},
        "body": {"ok": True},
        "truncated": False,
    }


async def test_a_request_says_for_which_run_it_is(harness: Harness, server: HostileServer) -> None:
    run = await ran(harness, f"{server.url}/ok", {"id": 7}, method="POST", secret="s3cret")
    (asked,) = server.asked
    assert (asked.method, asked.body) == ("POST", b'{"id":7}')
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["idempotency-key"] == asked.headers["x-rota-run-id"] == run.id
    assert asked.headers["x-rota-attempt"] == "1"
    assert verify("s3cret", asked.headers, asked.body, now=time.time())
    assert not verify("another", asked.headers, asked.body, now=time.time())


async def test_places_are_filled(harness: Harness, server: HostileServer) -> None:
    await ran(
        harness,
        f"{server.url}/ok?q={{payload.q}}&run={{run_id}}",
        {"q": "a b&c=d#/../?", "n": 5},
        method="PUT",
        headers={"X-Attempt": "no {attempt}"},
        body={"n": "{payload.n}", "text": "<{payload.n}>", "scope": "{scope.kind}"},
    )
    (asked,) = server.asked
    assert asked.path == "/ok"
    assert parse_qs(asked.target.partition("?")[2]) == {"q": ["a b&c=d#/../?"], "run": [asked.headers["x-rota-run-id"]]}
    assert asked.headers["x-attempt"] == "no 1"
    assert asked.body == b'{"n":5,"text":"<5>","scope":"global"}'


@pytest.mark.parametrize("value", ["x\r\nX-Evil: 1", "x\nX-Evil: 1", "x\x7f"])
async def test_a_payload_cannot_add_a_header(harness: Harness, server: HostileServer, value: str) -> None:
    run = await ran(harness, f"{server.url}/ok", {"v": value}, headers={"X-Value": "{payload.v}"})
    assert (run.state, code_of(run), server.asked) == (RunState.FAILED, "bad_request", [])


async def test_a_payload_cannot_change_the_path(harness: Harness, server: HostileServer) -> None:
    run = await ran(harness, f"{server.url}/users/{{payload.id}}/ok", {"id": ".."})
    assert (code_of(run), server.asked) == ("bad_request", [])


async def test_a_status_that_is_not_expected(harness: Harness, server: HostileServer) -> None:
    run = await ran(harness, f"{server.url}/elsewhere?token=secret")
    assert (run.state, run.attempt, code_of(run)) == (RunState.FAILED, 1, "http_status")
    assert run.error
    assert run.error.message == f"GET {server.url}/elsewhere?token=… answered 404: nothing here"
    assert run.error.traceback is None


async def test_what_is_expected_may_be_anything(harness: Harness, server: HostileServer) -> None:
    run = await ran(harness, f"{server.url}/elsewhere", expect_status=["2xx", 404])
    assert (run.state, run.result["status"], run.result["body"]) == (RunState.SUCCEEDED, 404, "nothing here")


@pytest.mark.parametrize(("said", "seconds"), [("120", 120), ("999999999", 86_400), ("0", 60), ("soon", 60)])
async def test_retry_after_is_kept_to(harness: Harness, server: HostileServer, said: str, seconds: int) -> None:
    server.answers["/busy"] = whole("429 Too Many Requests", b"", f"Retry-After: {said}")
    run = await ran(harness, f"{server.url}/busy", backoff="60s")
    assert (run.state, run.attempt, code_of(run)) == (RunState.SCHEDULED, 1, "http_status")
    assert run.run_at - await harness.client.time() == timedelta(seconds=seconds)


@pytest.mark.parametrize(("status", "again"), [(408, True), (425, True), (500, True), (503, True), (400, False)])
async def test_which_are_tried_again(harness: Harness, server: HostileServer, status: int, again: bool) -> None:
    server.answers["/it"] = whole(f"{status} It")
    run = await ran(harness, f"{server.url}/it")
    assert run.state is (RunState.SCHEDULED if again else RunState.FAILED)


async def test_retry_on_says_otherwise(harness: Harness, server: HostileServer) -> None:
    server.answers["/it"] = whole("500 It")
    assert (await ran(harness, f"{server.url}/it", retry_on=[404])).state is RunState.FAILED


async def test_nobody_there_is_tried_again(harness: Harness) -> None:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    run = await ran(harness, f"http://{LOOPBACK}:{port}/")
    assert (run.state, code_of(run)) == (RunState.SCHEDULED, "connection_failed")


@pytest.mark.parametrize("path", ["/endless", "/huge", "/bomb"])
async def test_an_answer_without_end_is_cut(harness: Harness, server: HostileServer, path: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = await ran(harness, f"{server.url}{path}", max_response=1_000)
    assert run.state is RunState.SUCCEEDED
    assert (run.result["truncated"], len(run.result["body"])) == (True, 1_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000 if path == "/bomb" else grown < 20_000  # kB; the bomb is packed in this process, too


async def test_a_body_that_cannot_be_kept_whole_is_cut(sqlite_url: str, server: HostileServer) -> None:
    server.answers["/big"] = whole("200 OK", b'"' + b"\xff" * 50_000)
    async with Harness(url=sqlite_url, http_allow=LOOPBACK, max_payload=20_000) as harness:
        run = await ran(harness, f"{server.url}/big")
    assert (run.state, run.result["truncated"]) == (RunState.SUCCEEDED, True)


async def test_a_packed_answer_is_unpacked(harness: Harness, server: HostileServer) -> None:
    server.answers["/packed"] = packed(b'{"a": [1, 2]}', "Content-Type: application/problem+json")
    assert (await ran(harness, f"{server.url}/packed")).result["body"] == {"a": [1, 2]}


@pytest.mark.parametrize(
    "body", [b"\x00\x01\xff", b'{"a": NaN}', b'"\\ud800"', b"[" * 100_000, b'{"a": 1e999}', "grüß".encode("latin-1")]
)
async def test_an_answer_that_cannot_be_read_is_text(harness: Harness, server: HostileServer, body: bytes) -> None:
    server.answers["/odd"] = whole("200 OK", body, "Content-Type: application/json; charset=no-such")
    run = await ran(harness, f"{server.url}/odd")
    assert run.state is RunState.SUCCEEDED
    assert isinstance(run.result["body"], str)


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000]
)
async def test_what_is_no_answer(harness: Harness, server: HostileServer, answer: bytes) -> None:
    async def and_goodbye(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    server.answers["/it"] = and_goodbye
    run = await ran(harness, f"{server.url}/it")
    assert (run.state, code_of(run)) == (RunState.SCHEDULED, "connection_failed")


async def test_a_slow_answer_is_timed_out(harness: Harness, server: HostileServer) -> None:
    run = await ran(harness, f"{server.url}/loris", timeout="200ms", max_attempts=1)
    assert (run.state, code_of(run)) == (RunState.TIMED_OUT, "timed_out")


async def test_the_usual_timeout_is_ten_seconds(harness: Harness) -> None:
    assert harness.app.http_job("ping", url="https://example.com").handler.definition.timeout == timedelta(seconds=10)


async def test_a_cancel_interrupts_at_once(
    harness: Harness, server: HostileServer, working: Callable[..., Awaitable[Working]]
) -> None:
    harness.app.http_job("ping", url=f"{server.url}/loris", timeout="1h", cancel_grace="1h")
    run = await harness.enqueue("ping")
    worker = await working(harness)
    await worker.has_state(run, RunState.RUNNING)
    await harness.cancel(run)
    await worker.has_state(run, RunState.CANCELLED)  # long before its timeout and its grace


async def test_connections_are_used_again(harness: Harness, server: HostileServer) -> None:
    harness.app.http_job("ping", url=f"{server.url}/ok", max_concurrency=1)
    for _ in range(5):
        await harness.enqueue("ping")
    await harness.drain()
    assert (len(server.asked), server.connections) == (5, 1)


REFUSED = [
    "http://127.0.0.2:{port}/ok",
    "http://[::1]:{port}/ok",
    "http://0.0.0.0:{port}/ok",
    "http://0x7f.0.0.2:{port}/ok",
    "http://[::ffff:127.0.0.2]:{port}/ok",
    "http://[64:ff9b::7f00:2]:{port}/ok",
    "http://169.254.169.254/latest/meta-data",
    "http://10.0.0.1/",
    "http://100.64.0.1/",
    "http://evil.example:{port}/ok",
]


@pytest.fixture
def _evil_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that anybody may own, and that leads back here."""
    real = socket.getaddrinfo

    def lying(host: Any, *rest: Any, **more: Any) -> Any:
        return real("127.0.0.2" if host == "evil.example" else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lying)


@pytest.mark.usefixtures("_evil_name")
@pytest.mark.parametrize("url", REFUSED)
async def test_addresses_that_are_refused(harness: Harness, server: HostileServer, url: str) -> None:
    run = await ran(harness, url.format(port=server.port))
    assert (run.state, run.attempt, code_of(run), server.asked) == (RunState.FAILED, 1, "address_refused", [])


@pytest.mark.usefixtures("_evil_name")
@pytest.mark.parametrize("target", REFUSED)
async def test_addresses_that_are_refused_to_redirects(harness: Harness, server: HostileServer, target: str) -> None:
    server.answers["/there"] = whole("302 Found", b"", f"Location: {target.format(port=server.port)}")
    run = await ran(harness, f"{server.url}/there")
    assert (run.state, code_of(run)) == (RunState.FAILED, "address_refused")
    assert [asked.path for asked in server.asked] == ["/there"]


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://example.com/", "gopher://x", "http://a:b@example.com/"]
)
async def test_redirects_to_something_else(harness: Harness, server: HostileServer, target: str) -> None:
    server.answers["/there"] = whole("302 Found", b"", f"Location: {target}")
    assert code_of(await ran(harness, f"{server.url}/there")) == "bad_redirect"


@pytest.mark.parametrize("host", ["2130706434", "127.1", "0", "a..b", "a" * 300])
async def test_hosts_that_are_none(harness: Harness, server: HostileServer, host: str) -> None:
    run = await ran(harness, f"http://{host}:{server.port}/ok")
    assert (run.state, code_of(run), server.asked) == (RunState.FAILED, "bad_request", [])


async def test_redirects_are_followed_a_few_times(harness: Harness, server: HostileServer) -> None:
    server.answers["/once"] = whole("301 Moved", b"", "Location: /ok")
    server.answers["/for-ever"] = whole("302 Found", b"", "Location: /for-ever")
    assert (await ran(harness, f"{server.url}/once")).result["body"] == {"ok": True}
    harness.app.http_job("loop", url=f"{server.url}/for-ever")
    looped = await harness.enqueue("loop")
    await harness.drain()
    assert code_of(await harness.run(looped)) == "too_many_redirects"
    assert len(server.asked) == 2 + 6


async def test_what_is_posted_is_not_redirected_unless_asked_for(harness: Harness, server: HostileServer) -> None:
    server.answers["/see"] = whole("303 See Other", b"", "Location: /ok")
    server.answers["/keep"] = whole("307 Keep", b"", "Location: /ok")
    assert code_of(await ran(harness, f"{server.url}/see", method="POST")) == "http_status"
    for name in ("see", "keep"):
        harness.app.http_job(name, url=f"{server.url}/{name}", method="POST", redirects=True)
        await harness.enqueue(name, x=1)
        await harness.drain()
    followed = [(asked.method, asked.body) for asked in server.asked if asked.path == "/ok"]
    assert followed == [("GET", b""), ("POST", b'{"x":1}')]


async def test_secrets_stay_with_their_origin(harness: Harness, server: HostileServer) -> None:
    async with HostileServer() as other:
        server.answers["/there"] = whole("307 There", b"", f"Location: {other.url}/ok")
        server.answers["/here"] = whole("307 Here", b"", "Location: /ok")
        secrets = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Api-Key": "k", "X-Plain": "p"}
        await ran(harness, f"{server.url}/there", headers=secrets, secret="s")
        harness.app.http_job("here", url=f"{server.url}/here", headers=secrets)
        await harness.enqueue("here")
        await harness.drain()
    (moved,), stayed = other.asked, server.asked[-1]
    assert {"authorization", "cookie", "x-api-key", "webhook-signature"}.isdisjoint(moved.headers)
    assert (moved.headers["x-plain"], "idempotency-key" in moved.headers) == ("p", True)
    assert (stayed.headers["authorization"], stayed.headers["x-api-key"]) == ("Bearer x", "k")


async def test_without_a_list_loopback_is_refused(sqlite_url: str, server: HostileServer) -> None:
    async with Harness(url=sqlite_url) as harness:
        run = await ran(harness, f"{server.url}/ok")
    assert (code_of(run), server.connections) == ("address_refused", 0)


async def test_proxies_of_the_environment_are_not_used(
    harness: Harness, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    assert (await ran(harness, f"{server.url}/ok")).state is RunState.SUCCEEDED
