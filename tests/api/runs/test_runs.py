"""Runs over HTTP: enqueue, list, get, cancel and retry, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from rota.app import Rota
from rota.core.progress.control_flow import Fail
from rota.engine.handlers.context import SyncContext
from rota.store import open_database
from rota.store.store import Store
from rota.testing import adrain

RUNS = "/api/v1/runs"


def make_app(url: str) -> Rota:
    app = Rota(url)

    @app.job(timeout="90s")
    def greet(name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @app.job
    def refuse() -> None:
        raise Fail("no")

    @app.job(steps=["fetch", "store"])
    def crawl(ctx: SyncContext) -> None:
        ctx.progress(40, "fetching")
        ctx.step("fetch", int, "7")
        raise Fail("the disk is full")

    return app


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    app = make_app(database_url)
    yield app
    await app.aclose()


async def enqueue(http: httpx2.AsyncClient, headers: dict[str, str] | None = None, **body: Any) -> httpx2.Response:
    return await http.post(RUNS, json={"job": "greet", "payload": {"name": "Ada"}, **body}, headers=headers)


async def test_a_run_is_enqueued_and_found_again(http: httpx2.AsyncClient) -> None:
    answer = await enqueue(http, scope={"kind": "account", "id": "42"}, tags=["blue"], metadata={"by": "me"})
    assert answer.status_code == 201
    run = answer.json()
    assert answer.headers["location"] == f"{RUNS}/{run['id']}"
    assert run["state"] == "queued"
    assert run["scope"] == {"kind": "account", "id": "42"}
    assert run["payload"] == {"name": "Ada"}
    assert run["created_at"].endswith("Z")
    assert (await http.get(f"{RUNS}/{run['id'][:30]}")).json() == run
    assert (await http.get(f"{RUNS}/{run['id']}/attempts")).json()["items"] == []


async def test_run_at_is_an_instant(http: httpx2.AsyncClient) -> None:
    run = (await enqueue(http, run_at="2099-01-01T01:00:00+01:00")).json()
    assert run["run_at"] == "2099-01-01T00:00:00Z"
    both = await enqueue(http, run_at="2099-01-01T01:00:00+01:00", delay="1s")
    assert both.status_code == 422


async def test_one_key_sent_by_many_at_once_is_one_run(http: httpx2.AsyncClient) -> None:
    """P8, with every response lost but the last."""
    body, key = {"job": "greet", "payload": {"name": "Ada"}}, {"Idempotency-Key": "order-18"}
    answers = await asyncio.gather(*[http.post("/api/v1/runs", json=body, headers=key) for _ in range(20)])
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    others = [http.post("/api/v1/runs", json={**body, "priority": n}, headers=key) for n in range(1, 5)]
    assert [answer.status_code for answer in await asyncio.gather(*others)] == [422] * 4
    assert len((await http.get("/api/v1/runs")).json()["items"]) == 1


async def test_many_runs_are_enqueued_all_or_none(http: httpx2.AsyncClient) -> None:
    good, bad = {"job": "greet", "payload": {"name": "Ada"}}, {"job": "greet", "payload": {"name": 7}}
    refused = await http.post(RUNS, json={"runs": [good, good, bad]})
    assert (refused.status_code, refused.json()["pointer"]) == (422, "#/runs/2/payload/name")
    assert (await http.get(RUNS)).json()["items"] == []
    answer = await http.post(RUNS, json={"runs": [good, good]})
    assert answer.status_code == 201
    assert len({run["id"] for run in answer.json()["items"]}) == 2
    too_many = await http.post(RUNS, json={"runs": [good] * 501})
    assert (too_many.status_code, too_many.json()["pointer"]) == (422, "#/runs")


async def test_metadata_that_only_looks_the_same_is_kept_apart(http: httpx2.AsyncClient) -> None:
    kinds = [1, True, 1.5, 1.0]
    orders = [{"job": "greet", "payload": {"name": "Ada"}, "metadata": {"x": kind}} for kind in kinds]
    made = (await http.post(RUNS, json={"runs": orders})).json()["items"]
    assert [repr(run["metadata"]["x"]) for run in made] == [repr(kind) for kind in kinds]


async def test_many_runs_with_an_idempotency_key(http: httpx2.AsyncClient) -> None:
    headers = {"Idempotency-Key": "batch"}
    orders = [{"job": "greet", "payload": {"name": name}} for name in ("Ada", "Grace")]
    first = await http.post(RUNS, json={"runs": orders}, headers=headers)
    second = await http.post(RUNS, json={"runs": orders}, headers=headers)
    assert [run["id"] for run in first.json()["items"]] == [run["id"] for run in second.json()["items"]]
    for other in (orders[::-1], orders[:1], [*orders, orders[0]]):
        answer = await http.post(RUNS, json={"runs": other}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency-key-reused")
        assert "'batch'" in answer.json()["detail"]
    alone = await http.post(RUNS, json=orders[0], headers=headers)
    assert alone.json()["code"] == "idempotency-key-reused"
    assert len((await http.get(RUNS)).json()["items"]) == 2


REFUSED: list[tuple[object, int, str, str | None]] = [
    ({"job": "great", "payload": {}}, 404, "unknown-job", None),
    ({"job": "greet", "payload": {"nam": "Ada"}}, 422, "bad-payload", "#/payload/nam"),
    ({"job": "greet", "payload": {}}, 422, "bad-payload", "#/payload/name"),
    ({"job": "greet", "quue": "slow"}, 422, "bad-body", "#/quue"),
    ({"payload": {}}, 422, "bad-body", "#/job"),
    ({"job": "greet", "scope": {"kind": "account"}}, 422, "bad-body", "#/scope/id"),
    ({"job": "greet", "delay": 90}, 422, "bad-body", "#/delay"),
    ({"job": "greet", "payload": {"name": "Ada"}, "delay": "soon"}, 422, "bad-duration", None),
]


async def test_a_refusal_names_the_place(http: httpx2.AsyncClient) -> None:
    for body, status, code, pointer in REFUSED:
        answer = await http.post(RUNS, json=body)
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code), body
        assert (problem["type"], problem.get("pointer")) == (f"urn:rota:problem:{code}", pointer), body


WRONG = {
    "stat=queued": "did you mean 'state'?",
    "state=quued": "did you mean 'queued'?",
    "limit=501": "give 1 to 500",
    "limit=0": "give 1 to 500",
    "limit=many": "Expected `int`, got `str`",
    "job=a&job=b": "give it once",
    "cursor=abc": "use next_cursor of the previous page",
    "scope=account": "write kind/id, for example account/42",
    "retried=yes": "Expected `bool | null`, got `str`",
    "created_after=yesterday": "write a time with a zone: 2026-01-31T08:00:00Z",
    "created_before=2026-01-31T08:00:00": "write a time with a zone: 2026-01-31T08:00:00Z",
    "payload=x": "payload.name",
    "payloads.name=x": "payload.name",
    "payload.=x": "payload.",
    "payload.a=1&payload.a=2": "2 times",
    "payload.a%22=1": "quote",
    "finger=x": "fingerprint",
}


async def test_a_wrong_question_is_refused(http: httpx2.AsyncClient) -> None:
    for question, words in WRONG.items():
        answer = await http.get(f"{RUNS}?{question}")
        problem = answer.json()
        assert answer.status_code == 422, question
        assert words in f"{problem['detail']} {problem.get('hint')}", question
    answer = await http.post(f"{RUNS}:bulk", json={"action": "cancel", "filter": {"job": "greet", "tagg": "x"}})
    assert answer.status_code == 422, answer.text


async def test_a_run_says_how_far_it_is_and_alone_also_its_steps(app: Rota, http: httpx2.AsyncClient) -> None:
    id = (await http.post(RUNS, json={"job": "crawl"})).json()["id"]
    await adrain(app)
    said = (await http.get(f"{RUNS}/{id}")).json()["progress"]
    assert said.keys() == {"percentage", "summary", "at", "steps"}
    assert (said["percentage"], said["summary"], said["at"][-1]) == (40.0, "fetching", "Z")
    fetched, stored = said["steps"]
    assert (fetched["id"], fetched["state"], fetched["result"]) == ("fetch", "succeeded", 7)
    assert stored == {
        "id": "store", "name": "", "state": "skipped", "attempt": None, "started_at": None, "finished_at": None,
        "percentage": None, "summary": None, "result": None, "error": None, "kept_from": None,
    }  # fmt: skip
    (listed,) = (await http.get(RUNS)).json()["items"]
    assert listed["progress"] == {name: said[name] for name in ("percentage", "summary", "at")}


async def test_runs_by_values_in_their_payload(http: httpx2.AsyncClient) -> None:
    ada = (await enqueue(http, payload={"name": "Ada", "times": 5})).json()["id"]
    await enqueue(http, payload={"name": "Bob", "times": 5})

    async def found(**query: str) -> list[str]:
        answer = await http.get(RUNS, params=query)
        assert answer.status_code == 200, answer.text
        return [run["id"] for run in answer.json()["items"]]

    assert await found(**{"payload.name": "Ada"}) == [ada]
    assert await found(**{"payload.name": "Ada", "payload.times": "5"}) == [ada]
    assert await found(**{"payload.name": "Ada", "payload.times": "6"}) == []
    assert len(await found(**{"payload.times": "5"})) == 2
    assert (await http.get(f"{RUNS}:count", params={"payload.name": "Ada"})).json()["count"] == 1
    body = {"action": "cancel", "filter": {"payload": {"name": "Ada", "times": 5}}}
    assert (await http.post(f"{RUNS}:bulk", json=body)).json()["done"] == 1
    assert (await http.get(f"{RUNS}/{ada}")).json()["state"] == "cancelled"
