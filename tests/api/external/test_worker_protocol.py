"""The worker protocol over HTTP, on both databases: claims, reports under a fence, and refusal of stale fences."""

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from rota.app import Rota
from rota.client.client import Client
from rota.core.states import Outcome
from rota.server import asgi
from rota.store import Store, open_database
from tests.support.schedules.ledger_oracle import rows
from tests.support.wait import until

API = "/api/v1"
VERBS: dict[str, dict[str, Any]] = {
    "heartbeat": {}, "progress": {"percentage": 40, "summary": "looking"},
    "step": {"id": "look", "state": "succeeded", "result": 1}, "logs": {"lines": ["whiskers"]},
    "complete": {"result": {"label": "cat"}}, "fail": {"error": "jammed"}, "cancelled": {},
}  # fmt: skip
ENDS = {"complete", "fail", "cancelled"}


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    app = Rota(database_url)
    app.external("label", {"type": "object", "properties": {"image": {"type": "string"}}}, max_attempts=3)

    @app.job
    def own() -> None: ...

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


@pytest.fixture
async def client(app: Rota) -> Client:
    return await app.connect()


async def enqueue(http: httpx2.AsyncClient, **options: Any) -> str:
    made = await http.post("/runs", json={"job": "label", "payload": {"image": "a.png"}, **options})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def claim(http: httpx2.AsyncClient, worker: str = "scanner@1", **wanted: Any) -> list[dict[str, Any]]:
    answer = await http.post("/worker/claim", json={"worker": worker, **wanted})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["runs"]
    return found


async def say(http: httpx2.AsyncClient, run: dict[str, Any], verb: str, **said: Any) -> httpx2.Response:
    return await http.post(f"/worker/runs/{run['id']}/{verb}", json={"fence": run["fence"], **said})


async def test_a_run_is_claimed_told_of_and_done(http: httpx2.AsyncClient) -> None:
    run_id = await enqueue(http)
    (mine,) = await claim(http, queues=["default"], jobs=["label"], max=5, version="1.2", labels=["arm=left"])
    assert (mine["id"], mine["fence"], mine["attempt"]) == (run_id, 1, 1)
    assert mine["payload"] == {"image": "a.png"}
    assert {"lease_until", "job", "job_version", "max_attempts", "steps", "idempotency_key"} <= set(mine)
    assert (await say(http, mine, "heartbeat")).json()["cancelling"] is False
    assert (await say(http, mine, "progress", percentage=12.5, summary="first")).status_code == 200
    assert (await say(http, mine, "step", id="look", state="succeeded", result=[1])).json() == {"state": "succeeded"}
    lines = ["one", {"text": "two", "level": "warning"}]
    assert (await say(http, mine, "logs", lines=lines, no=1)).status_code == 204
    assert (await say(http, mine, "logs", lines=lines, no=1)).status_code == 204
    assert (await say(http, mine, "complete", result={"label": "cat"})).json() == {"state": "succeeded"}
    assert (await say(http, mine, "complete", result={"label": "cat"})).json() == {"state": "succeeded"}
    run = (await http.get(f"/runs/{run_id}")).json()
    assert (run["state"], run["result"], run["worker_id"]) == ("succeeded", {"label": "cat"}, "scanner@1")
    assert run["progress"]["summary"] == "first"
    logged = (await http.get(f"/runs/{run_id}/logs")).json()["items"]
    assert [(line["text"], line["level"]) for line in logged] == [("one", "info"), ("two", "warning")]


async def everything(client: Client) -> list[Any]:
    tables = ("run", "lease", "ready", "outside", "attempt", "step", "progress", "log", "event", "gate")
    return [await rows(client.store, f"select * from rota_{table}") for table in tables]


@pytest.mark.parametrize("verb", VERBS)
async def test_an_old_fence_is_refused_and_nothing_is_written(
    http: httpx2.AsyncClient, client: Client, verb: str
) -> None:
    """P10 over HTTP: the lease was handed back, and another worker has the run."""
    await enqueue(http)
    (old,) = await claim(http, "scanner@1")
    await claim(http, "scanner@1", held=[], jobs=["label"])  # gets it again, under a new fence
    (run,) = await client.list()
    assert run.fence > old["fence"]
    if verb == "cancelled":
        await client.cancel(run.id)
    before = await everything(client)
    for fence in (old["fence"], run.fence + 1):
        refused = await http.post(f"/worker/runs/{run.id}/{verb}", json={"fence": fence, **VERBS[verb]})
        assert (refused.status_code, refused.json()["code"]) == (409, "stale-lease"), refused.text
        assert refused.json()["type"] == "urn:rota:problem:stale-lease"
    assert await everything(client) == before


async def test_after_its_end_nothing_more_is_said(http: httpx2.AsyncClient, client: Client) -> None:
    await enqueue(http)
    (mine,) = await claim(http)
    await say(http, mine, "complete")
    before = await everything(client)
    for verb in VERBS.keys() - ENDS:
        assert (await say(http, mine, verb, **VERBS[verb])).json()["code"] == "stale-lease", verb
    assert await everything(client) == before


async def test_a_fence_is_needed_and_a_whole_id(http: httpx2.AsyncClient) -> None:
    run_id = await enqueue(http)
    (mine,) = await claim(http)
    for verb, said in VERBS.items():
        without = await http.post(f"/worker/runs/{run_id}/{verb}", json=said)
        assert (without.status_code, without.json()["code"]) == (422, "bad-body")
        for fence in (0, -1, 2**31, 2**70, 1.5, "1", None, True):
            wrong = await http.post(f"/worker/runs/{run_id}/{verb}", json={**said, "fence": fence})
            assert wrong.status_code == 422, (verb, fence, wrong.text)
        short = await say(http, {**mine, "id": run_id[-12:]}, verb, **said)
        assert (short.status_code, short.json()["code"]) == (404, "unknown-run"), verb


async def test_a_claim_waits_for_a_run(http: httpx2.AsyncClient) -> None:
    waiting = asyncio.create_task(claim(http, wait="30s"))
    await asyncio.sleep(0)
    run_id = await enqueue(http)
    (mine,) = await waiting
    assert mine["id"] == run_id


WRONG_CLAIMS: list[dict[str, Any]] = [
    {"max": 0}, {"max": 101}, {"wait": "31s"}, {"wait": "-1s"}, {"wait": 5}, {"lease": "2h"}, {"queues": []},
    {"jobs": []}, {"jobs": ["own"]}, {"held": [{"id": "x"}]}, {"held": [["x", 1]]}, {"labels": [1]},
    {"labels": {"a": "b"}},
    {"worker": ""}, {"worker": "@"}, {"worker": "a@"}, {"worker": "x" * 300}, {"queues": ["q"] * 501},
    {"version": 1}, {"what": 1}, {"jobs": ["\x01"]},
]  # fmt: skip


async def test_a_claim_that_cannot_be_is_refused(http: httpx2.AsyncClient) -> None:
    for wrong in WRONG_CLAIMS:
        answer = await http.post("/worker/claim", json={"worker": "a", **wrong})
        assert answer.status_code == 422, (wrong, answer.text)


async def test_a_caller_that_has_gone_keeps_no_run(app: Rota, http: httpx2.AsyncClient, client: Client) -> None:
    """The caller disconnected before the response: no attempt is lost."""
    run_id = await enqueue(http)
    body = b'{"worker": "scanner@1"}'
    asked = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> MutableMapping[str, Any]:
        return asked.pop() if asked else {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None: ...

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope: dict[str, Any] = {
        "type": "http", "method": "POST", "path": f"{API}/worker/claim", "headers": headers, "query_string": b"",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 7682), "scheme": "http", "http_version": "1.1",
    }  # fmt: skip
    await asgi(app)(scope, receive, send)
    run = await client.get(run_id)
    assert (run.state, run.attempt) == ("queued", 0)
    assert [attempt.outcome for attempt in await client.attempts(run_id)] == [Outcome.HANDED_BACK]


async def test_so_many_may_wait_and_no_more(app: Rota) -> None:
    served = asgi(app)
    transport = httpx2.ASGITransport(app=served)
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:7682{API}") as http:
        served.state.streams._most = 1
        first = asyncio.create_task(claim(http, wait="2s"))
        await until(lambda: served.state.streams._open)
        second = await http.post("/worker/claim", json={"worker": "b", "wait": "1s"})
        assert (second.status_code, second.json()["code"]) == (429, "too-many-streams")
        assert await claim(http, "c") == []
        assert await first == []


async def test_its_lease_is_as_long_as_it_asks(http: httpx2.AsyncClient, client: Client) -> None:
    await enqueue(http)
    (mine,) = await claim(http, lease="10m")
    (attempt,) = await client.attempts(mine["id"])
    assert attempt.lease_until is not None
    assert attempt.lease_until - attempt.claimed_at == timedelta(minutes=10)
