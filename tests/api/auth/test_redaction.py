"""Secrets in payloads: admins see them, others see that there are some, wherever runs are shown."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.requests import Request

from rota import Context
from rota.api.auth.redaction import visible
from rota.api.operations.request import ASKS
from rota.app import Rota
from rota.client.client import Client, Order
from rota.core.access.roles import Identity, Role
from rota.core.calendar.triggers import every
from rota.core.runs.run import Attempt, Run, RunFilter
from rota.core.states import RunState
from rota.engine.engine import Engine
from rota.errors import UnknownRun

BASE = "http://127.0.0.1:7682"
SECRET = "hunter2-is-no-good-password"
PAYLOAD = {"url": "https://example.com", "login": {"user": "ada", "password": SECRET}, "api_key": SECRET[::-1]}
Headers = dict[str, str]


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    app = Rota(sqlite_url, auth=True)

    @app.job(max_attempts=1, steps=["sign-in"])
    async def crawl(ctx: Context, url: str, login: dict[str, str], api_key: str) -> dict[str, str]:
        ctx.log.info("signing in as %s with %s", login["user"], login["password"])
        ctx.progress(10, f"with {login['password']}")

        async def sign_in() -> dict[str, str]:
            if url.endswith("wrong"):
                raise RuntimeError(f"{login['user']}:{login['password']} is refused")
            return {"cookie": "another", "with": login["password"]}

        await ctx.step("sign-in", sign_in)
        return {"session_token": "another", "said": f"hello {login['password']}"}

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


async def bearing(app: Rota, role: Role) -> Headers:
    issued = await (await app.connect()).tokens.create(role.value, role)
    return {"Authorization": f"Bearer {issued.secret}"}


@pytest.fixture
async def runs(app: Rota) -> list[str]:
    """One run that succeeded, and one that failed."""
    client = await app.connect()
    engine = Engine(client.store, app.registry, app.config, working=True)
    await engine.start()
    orders = [Order("crawl", PAYLOAD), Order("crawl", {**PAYLOAD, "url": "https://example.com/wrong"})]
    enqueued = await client.enqueue_many(orders)
    for run in enqueued:
        await client.wait(run.id)
    await engine.stop()
    await client.schedules.create("news", "crawl", every("1h"), payload=PAYLOAD)
    return [run.id for run in enqueued]


async def told(http: httpx2.AsyncClient, runs: list[str], headers: Headers) -> dict[str, str]:
    """Return everything that can be read."""
    paths = ["/api/v1/runs", "/api/v1/jobs/crawl/runs", "/api/v1/jobs/crawl/executions", "/api/v1/export/runs",
             "/api/v1/export/attempts", "/api/v1/export/events", "/api/v1/audit", "/api/v1/schedules", "/",
             "/api/v1/schedules/news", "/api/v1/schedules/news/events", "/api/v1/jobs", "/api/v1/error-groups",
             "/api/v1/overview", "/api/v1/timeline"]  # fmt: skip
    parts = ["", "?steps=false", "/attempts", "/steps", "/events", "/explain", "/logs", "/logs?follow=1", "/progress",
             "/parents", "/children", "/replicas"]  # fmt: skip
    paths += [f"/api/v1/runs/{run}{part}" for run in runs for part in parts]
    paths += [f"/{kind}/{run}" for run in runs for kind in ("api/v1/executions", "runs")]
    answers = {path: await http.get(path, headers=headers) for path in paths}
    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code != 200} == {}
    return {path: answer.text for path, answer in answers.items()}


async def test_the_workers_log_tells_none(runs: list[str], caplog: pytest.LogCaptureFixture) -> None:
    said = [record.getMessage() for record in caplog.get_records("setup") if record.name == "rota.worker"]
    assert any("RuntimeError: ada:… is refused" in line for line in said)
    assert not any(SECRET in line for line in said)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_others_see_that_there_is_one(app: Rota, http: httpx2.AsyncClient, runs: list[str], role: Role) -> None:
    seen = await told(http, runs, await bearing(app, role))
    assert [path for path, text in seen.items() if SECRET in text or SECRET[::-1] in text or "another" in text] == []
    assert '"password":"…"' in seen["/api/v1/runs"]
    assert '"user":"ada"' in seen["/api/v1/runs"]
    assert "hello …" in seen["/api/v1/runs"]
    assert "ada:… is refused" in seen["/api/v1/export/attempts"]
    assert "ada:… is refused" in seen[f"/api/v1/runs/{runs[1]}/steps"]
    assert "signing in as ada with …" in seen[f"/api/v1/runs/{runs[0]}/logs?follow=1"]


async def test_results_of_related_runs_tell_none(app: Rota, http: httpx2.AsyncClient, runs: list[str]) -> None:
    """The secrets are those of the other run: its follower has none in its own payload."""
    harmless = {"url": "", "login": {"user": "bob"}, "api_key": ""}
    child = await (await app.connect()).enqueue(Order("crawl", harmless, {"after": [runs[0]], "delay": "1h"}))
    paths = f"/api/v1/runs/{child.id}/parents", f"/api/v1/runs/{runs[0]}/children"
    for role, said in ((Role.VIEWER, "hello …"), (Role.ADMIN, f"hello {SECRET}")):
        headers = await bearing(app, role)
        (parent,), (follower,) = [(await http.get(path, headers=headers)).json()["items"] for path in paths]
        assert (parent["id"], parent["result"]["said"]) == (runs[0], said)
        assert (follower["id"], follower["result"]) == (child.id, None)


async def test_errors_of_plan_times_tell_none(app: Rota, http: httpx2.AsyncClient) -> None:
    client = await app.connect()
    engine = Engine(client.store, app.registry, app.config, working=True)
    await engine.start()
    wrong = {**PAYLOAD, "url": "https://example.com/wrong"}
    await client.schedules.create("news", "crawl", every("1h"), payload=wrong)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    (run,) = (await client.schedules.backfill("news", at, at)).runs
    await client.wait(run)
    await engine.stop()
    said = {}
    for role in (Role.VIEWER, Role.ADMIN):
        found = await http.get(
            "/api/v1/schedules/news/explain", params={"at": at.isoformat()}, headers=await bearing(app, role)
        )
        said[role] = (" ".join(found.json()["words"]), found.json()["facts"]["runs"][0]["error"]["message"])
    assert f"Run {run} is failed: RuntimeError: ada:… is refused; it began" in said[Role.VIEWER][0]
    assert said[Role.VIEWER][1] == "ada:… is refused"
    assert said[Role.ADMIN][1] == f"ada:{SECRET} is refused"


async def test_simulated_changes_tell_none(app: Rota, http: httpx2.AsyncClient) -> None:
    await (await app.connect()).schedules.create("news", "crawl", every("1h"), payload=PAYLOAD)
    payload = {**PAYLOAD, "url": "https://example.com/other", "login": {"user": "ada", "password": "other"}}
    asked = {"span": "0s", "changes": {"payload": payload}}
    document = {"name": "news", "job": "crawl", "every": "1h", "payload": payload}
    for role in (Role.VIEWER, Role.ADMIN):
        headers = await bearing(app, role)
        one = await http.post("/api/v1/schedules/news/simulate", json=asked, headers=headers)
        all_of_them = await http.post(
            "/api/v1/schedules:simulate", json={"span": "0s", "documents": [document]}, headers=headers
        )
        for answer in (one, all_of_them):
            assert answer.status_code == 200, answer.text
            assert "payload" in answer.text
            assert (SECRET in answer.text) == (role is Role.ADMIN)


async def test_admins_see_everything(app: Rota, http: httpx2.AsyncClient, runs: list[str]) -> None:
    seen = await told(http, runs, await bearing(app, Role.ADMIN))
    for path in ("runs", f"runs/{runs[0]}", f"runs/{runs[1]}/attempts", "schedules/news"):
        assert SECRET in seen[f"/api/v1/{path}"], path


async def test_what_operators_do_tells_none(app: Rota, http: httpx2.AsyncClient, runs: list[str]) -> None:
    headers = await bearing(app, Role.OPERATOR)
    body: dict[str, Any] = {"job": "crawl", "payload": PAYLOAD, "delay": "1h"}
    made = await http.post("/api/v1/runs", json=body, headers=headers)
    answers = [
        made,
        await http.post("/api/v1/runs", json={"runs": [body]}, headers=headers),
        await http.post(f"/api/v1/runs/{made.json()['id']}/restrict", json={"only_workers": ["a"]}, headers=headers),
        await http.post(f"/api/v1/runs/{made.json()['id']}/cancel", headers=headers),
        await http.post(f"/api/v1/runs/{runs[1]}/retry", headers=headers),
        await http.post("/api/v1/schedules/news/trigger", headers=headers),
        await http.post("/api/v1/schedules/news/pause", headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [201, 201, 200, 200, 201, 201, 200]
    assert [answer.text for answer in answers if SECRET in answer.text] == []
    stored = await (await app.connect()).get(made.json()["id"])
    assert stored.payload == PAYLOAD


@pytest.mark.parametrize("name", ["login.password", "api_key", "password.of"])
async def test_only_admins_can_look_for_a_secret(
    app: Rota, http: httpx2.AsyncClient, runs: list[str], name: str
) -> None:
    """A filter would let others guess the value."""
    value = {"login.password": SECRET, "api_key": SECRET[::-1]}.get(name, "x")
    bulk = {"action": "retry", "filter": {"payload": {name: value}}, "dry_run": True}
    for role, status in ((Role.VIEWER, 403), (Role.OPERATOR, 403), (Role.ADMIN, 200)):
        headers = await bearing(app, role)
        for path in ("/runs", "/runs:count", "/jobs/crawl/runs", "/export/runs"):
            answer = await http.get(f"/api/v1{path}", params={f"payload.{name}": value}, headers=headers)
            assert answer.status_code == status, (path, role)
        answer = await http.post("/api/v1/runs:bulk", json=bulk, headers=headers)
        assert answer.status_code == (403 if role is Role.VIEWER else status)


async def test_a_secret_that_turns_up_elsewhere_cannot_be_tried_out(
    app: Rota, http: httpx2.AsyncClient, runs: list[str]
) -> None:
    """Guesses fail letter by letter in the text of an error, and as a value under a harmless name."""
    client = await app.connect()
    await client.enqueue(Order("crawl", {**PAYLOAD, "url": SECRET}))
    ways = ({"error": f"ada:{SECRET[:3]}"}, {"payload.url": SECRET})
    viewer, admin = await bearing(app, Role.VIEWER), await bearing(app, Role.ADMIN)
    for headers, found in ((viewer, 0), (admin, 1)):
        for query in ways:
            for path, limit in (("/runs", "50"), ("/jobs/crawl/runs", "50"), ("/runs", "1")):
                listed = (await http.get(f"/api/v1{path}", params={**query, "limit": limit}, headers=headers)).json()
                assert (len(listed["items"]), listed["next_cursor"]) == (found, None), path
            counted = await http.get("/api/v1/runs:count", params=query, headers=headers)
            assert counted.json() == {"count": found, "exact": True}
            lines = (await http.get("/api/v1/export/runs", params=query, headers=headers)).text
            assert len(lines.splitlines()) == found
    attempts = await http.get("/api/v1/export/attempts", params=ways[0], headers=viewer)
    assert attempts.text == ""
    seen = (await http.get("/api/v1/runs?error=is refused", headers=viewer)).json()
    assert [run["id"] for run in seen["items"]] == [runs[1]]
    plain = {"payload.login.user": "ada", "payload.url": "https://example.com"}
    assert len((await http.get("/api/v1/runs", params=plain, headers=viewer)).json()["items"]) == 1


@pytest.mark.parametrize("lines", [False, True])
async def test_a_bulk_command_does_not_tell_whether_a_hidden_text_matches(
    app: Rota, http: httpx2.AsyncClient, runs: list[str], lines: bool
) -> None:
    """The refusal of `expected=0` would reveal that there is a match."""
    client = await app.connect()
    waits = await client.enqueue(Order("crawl", {**PAYLOAD, "url": SECRET}))
    operator, admin = await bearing(app, Role.OPERATOR), await bearing(app, Role.ADMIN)
    accept = {"Accept": "application/x-ndjson"} if lines else {}

    async def ask(headers: Headers, action: str, chosen: dict[str, Any], **more: Any) -> str:
        body = {"action": action, "filter": chosen, **more}
        return (await http.post("/api/v1/runs:bulk", json=body, headers=headers | accept)).text

    tries: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("retry", {"error": f"ada:{SECRET[:3]}"}, {"error": "ada:hut"}),
        ("cancel", {"payload": {"url": SECRET}}, {"payload": {"url": SECRET[::-1]}}),
    ]
    for action, right, other in tries:
        for more in ({"expected": 0}, {}):
            assert await ask(operator, action, right, **more) == await ask(operator, action, other, **more)
        assert "bulk-mismatch" in await ask(admin, action, right, expected=0)
    assert (await client.get(waits.id)).state is RunState.QUEUED
    assert (await client.count(RunFilter(retried=True))).count == 0
    assert '"done":1' in await ask(operator, "retry", {"error": "is refused", "payload": {"login.user": "ada"}})
    assert (await client.count(RunFilter(retried=True))).count == 1


async def test_an_export_goes_on_without_what_was_pruned_meanwhile(
    app: Rota, http: httpx2.AsyncClient, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Client.attempts

    async def pruned(self: Client, run_id: str) -> Sequence[Attempt]:
        if run_id == runs[1]:
            raise UnknownRun(run_id)
        return await attempts(self, run_id)

    monkeypatch.setattr(Client, "attempts", pruned)
    lines = (await http.get("/api/v1/export/attempts", headers=await bearing(app, Role.VIEWER))).text.splitlines()
    assert [msgspec.json.decode(line)["run_id"] for line in lines] == [runs[0]]


class Holder(msgspec.Struct, frozen=True):
    """An answer with runs inside."""

    run: Run
    others: tuple[dict[str, Any], ...] = ()
    number: int = 1


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_runs_inside_other_answers_tell_none(app: Rota, runs: list[str], role: Role) -> None:
    run = await (await app.connect()).get(runs[0])
    request = Request({"type": "http", ASKS: Identity("token:x", role)})
    for holder in (Holder(run), {"run": run}, [run], Holder(run, ({"deep": [run]},))):
        assert SECRET in repr(holder)
        assert SECRET not in repr(visible(request, holder))
    admin = Request({"type": "http", ASKS: Identity("token:x", Role.ADMIN)})
    assert visible(admin, holder) is holder
