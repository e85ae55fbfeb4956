"""Error groups over HTTP and on the command line, and the retry of a whole group."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest
from click.testing import CliRunner

from rota.api import asgi
from rota.app import Rota
from rota.cli import root
from rota.client.client import Order
from rota.core.access.roles import Role
from rota.core.monitoring.error_groups import FoundGroups, GroupQuery
from rota.core.progress.control_flow import Fail
from rota.store.monitoring.error_groups import ErrorGroupStore
from rota.testing import adrain
from tests.support.jobs.stored_jobs import save_jobs_of

BASE = "http://127.0.0.1:7682"
SECRET = "swordfish-and-chips"


async def make_app(url: str, **settings: bool) -> Rota:
    app = Rota(url, **settings)  # type: ignore[arg-type]

    @app.job(max_attempts=1)
    def crawl(n: int, password: str = "") -> None:
        raise Fail(f"page {n} is gone {password}")

    @app.job(max_attempts=1)
    def mail(n: int) -> None:
        raise Fail("no such address")

    await save_jobs_of(app)
    return app


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = await make_app(database_url)
    yield app
    await app.aclose()


def http_of(app: Rota) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url=f"{BASE}/api/v1")


async def test_a_group_is_seen_and_retried(app: Rota) -> None:
    client = await app.connect()
    await client.enqueue_many([Order("crawl", {"n": n}) for n in range(3)])
    await client.enqueue(Order("mail", {"n": 1}))
    await adrain(app)
    async with http_of(app) as http:
        found = (await http.get("/error-groups")).json()
        assert sorted((one["job"], one["count"]) for one in found["items"]) == [("crawl", 3), ("mail", 1)]
        assert (set(found), found["truncated"]) == ({"items", "since", "until", "truncated", "next_cursor"}, False)
        (group,) = (await http.get("/error-groups?job=crawl")).json()["items"]
        assert (group["type"], group["states"], sum(group["histogram"])) == ("Fail", {"failed": 3}, 3)
        assert group["message"].startswith("page ")
        chosen = {"fingerprint": group["fingerprint"], "job": "crawl", "retried": False}
        assert (await http.get("/runs", params={**chosen, "retried": "false"})).json()["items"][0]["job"] == "crawl"
        done = (await http.post("/runs:bulk", json={"action": "retry", "filter": chosen})).json()
        assert (done["matched"], done["done"], done["refused"]) == (3, 3, [])
        again = (await http.post("/runs:bulk", json={"action": "retry", "filter": chosen})).json()
        assert again["matched"] == 0
        assert (await http.get("/error-groups?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z")).json()[
            "items"
        ] == []
        assert (await http.get("/error-groups?since=yesterday")).status_code == 422
    await adrain(app)
    (group, *_) = (await client.error_groups.list(job="crawl")).items
    assert group.count == 6


async def test_what_is_about_to_be_tried_again_is_cancelled_by_group(app: Rota) -> None:
    @app.job(max_attempts=9, backoff="1h")
    def flaky(n: int) -> None:
        raise ValueError(f"not yet {n}")

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    enqueued = await client.enqueue_many([Order("flaky", {"n": n}) for n in range(2)])
    await client.enqueue(Order("flaky", {"n": 3}, {"delay": "1h"}))
    await adrain(app)
    error = (await client.get(enqueued[0].id)).error
    assert error is not None
    async with http_of(app) as http:
        body = {"action": "cancel", "filter": {"fingerprint": error.fingerprint, "job": "flaky"}}
        assert (await http.post("/runs:bulk", json=body)).json()["done"] == 2


async def test_a_scoped_token_sees_its_scope_and_no_secrets(sqlite_url: str) -> None:
    app = await make_app(sqlite_url, auth=True)
    client = await app.connect()
    for tenant in ("1", "2"):
        await client.enqueue(Order("crawl", {"n": 1, "password": SECRET}, {"scope": ("tenant", tenant)}))
    await adrain(app)
    mine = await client.tokens.create("mine", Role.VIEWER, scope=("tenant", "1"))
    admin = await client.tokens.create("admin", Role.ADMIN)
    async with http_of(app) as http:
        seen = await http.get("/error-groups", headers={"Authorization": f"Bearer {mine.secret}"})
        assert [one["count"] for one in seen.json()["items"]] == [1]
        assert SECRET not in seen.text
        other = await http.get("/error-groups?scope=tenant/2", headers={"Authorization": f"Bearer {mine.secret}"})
        assert other.status_code == 403
        everything = await http.get("/error-groups", headers={"Authorization": f"Bearer {admin.secret}"})
        assert [one["count"] for one in everything.json()["items"]] == [2]
        assert SECRET in everything.text
    await app.aclose()


async def test_a_group_whose_newest_run_is_pruned_meanwhile_is_left_out(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await make_app(sqlite_url, auth=True)
    client = await app.connect()
    await client.enqueue_many([Order("crawl", {"n": 1}), Order("mail", {"n": 1})])
    await adrain(app)
    groups = ErrorGroupStore.groups

    async def then_pruned(self: ErrorGroupStore, query: GroupQuery, *saying: Any) -> FoundGroups:
        found = await groups(self, query, *saying)
        newest = {id: run for id, run in found.newest.items() if run.job != "mail"}
        return msgspec.structs.replace(found, newest=newest)

    monkeypatch.setattr(ErrorGroupStore, "groups", then_pruned)
    viewer = await client.tokens.create("viewer", Role.VIEWER)
    async with http_of(app) as http:
        seen = await http.get("/error-groups", headers={"Authorization": f"Bearer {viewer.secret}"})
    assert [one["job"] for one in seen.json()["items"]] == ["crawl"]
    await app.aclose()


def test_on_the_command_line(sqlite_url: str) -> None:
    import asyncio

    async def fill() -> None:
        app = await make_app(sqlite_url)
        client = await app.connect()
        await client.enqueue_many([Order("crawl", {"n": n}) for n in range(3)])
        await adrain(app)
        await app.aclose()

    asyncio.run(fill())
    runner = CliRunner()
    told = runner.invoke(root, ["error-groups", "--database", sqlite_url, "--since", "1h", "--json"])
    (group,) = json.loads(told.stdout)["items"]
    assert (group["job"], group["count"]) == ("crawl", 3)
    line = runner.invoke(root, ["error-groups", "--database", sqlite_url]).stdout
    assert group["fingerprint"] in line
    assert "page" in line
    none = runner.invoke(root, ["error-groups", "--database", sqlite_url, "--job", "mail"])
    assert none.exit_code == 0
    bad = runner.invoke(root, ["error-groups", "--database", sqlite_url, "--since", "soon"])
    assert bad.exit_code != 0


async def test_a_scoped_token_sees_only_relatives_of_its_scope(sqlite_url: str) -> None:
    app = await make_app(sqlite_url, auth=True)
    client = await app.connect()
    first = await client.enqueue(Order("mail", {"n": 1}, {"scope": ("tenant", "1")}))
    others = await client.enqueue(Order("mail", {"n": 1}, {"scope": ("tenant", "2")}))
    both = [first.id, others.id]
    mine = await client.enqueue(Order("mail", {"n": 2}, {"scope": ("tenant", "1"), "after": both}))
    theirs = await client.enqueue(Order("mail", {"n": 3}, {"scope": ("tenant", "2"), "after": [first.id]}))
    token = await client.tokens.create("mine", Role.VIEWER, scope=("tenant", "1"))
    whole = await client.tokens.create("whole", Role.VIEWER)
    async with http_of(app) as http:

        async def related(path: str, secret: str) -> list[str] | int:
            answer = await http.get(path, headers={"Authorization": f"Bearer {secret}"})
            return [one["id"] for one in answer.json()["items"]] if answer.status_code == 200 else answer.status_code

        assert await related(f"/runs/{mine.id}/parents", token.secret) == [first.id]
        assert await related(f"/runs/{first.id}/children", token.secret) == [mine.id]
        assert await related(f"/runs/{theirs.id}/parents", token.secret) == 404
        assert await related(f"/runs/{others.id}/children", token.secret) == 404
        assert await related(f"/runs/{mine.id}/parents", whole.secret) == both
        assert await related(f"/runs/{first.id}/children", whole.secret) == [mine.id, theirs.id]
    await app.aclose()
