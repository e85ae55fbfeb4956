"""Schedules listed by name and state, and simulated before they are stored, over HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from rota import every
from rota.app import Rota

API = "/api/v1"


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    app = Rota(sqlite_url)

    @app.job
    def crawl(url: str) -> None: ...

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


async def test_they_are_found_page_by_page(app: Rota, http: httpx2.AsyncClient) -> None:
    client = await app.connect()
    for name in ("News-1", "news-2", "news-3", "other"):
        await client.schedules.create(name, "crawl", every("1h"), payload={"url": "x"})
    await client.schedules.pause("news-2")
    await client.schedules.disable("other")
    first = (await http.get("/schedules", params={"text": "NEWS", "limit": 2})).json()
    rest = (await http.get("/schedules", params={"text": "NEWS", "limit": 2, "cursor": first["next_cursor"]})).json()
    assert [one["name"] for one in first["items"] + rest["items"]] == ["News-1", "news-2", "news-3"]
    paused = (await http.get("/schedules", params={"state": "paused", "recent": 5})).json()["items"]
    assert [(one["name"], one["recent"]) for one in paused] == [("news-2", [])]
    wrong = await http.get("/schedules", params={"state": "pausd"})
    assert (wrong.status_code, wrong.json()["hint"]) == (422, "did you mean 'paused'?")


async def test_a_draft_is_told_in_words_and_nothing_is_stored(app: Rota, http: httpx2.AsyncClient) -> None:
    draft = {"name": "mine", "job": "crawl", "cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"}

    async def simulated(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        body = {"documents": [document], "start": "2027-01-01T00:00:00Z", "limit": 3}
        report = (await http.post("/schedules:simulate", json=body)).json()
        return report, report["schedules"][0]

    report, seen = await simulated(draft)
    assert (seen["rule"], seen["timezone"]) == ("weekdays at 09:00, Europe/Berlin", "Europe/Berlin")
    assert (len(report["fires"]), report["fires"][0]["plan_time"]) == (3, "2027-01-01T08:00:00Z")
    assert [(one["code"], one["key"]) for one in seen["problems"]] == [("bad-payload", "payload")]
    report, seen = await simulated({**draft, "payload": {"url": "x"}})
    assert (seen["problems"], report["counts"]["run"]) == ([], 1)
    report, seen = await simulated({**draft, "job": "crwl"})
    assert [(one["code"], one["key"]) for one in seen["problems"]] == [("unknown-job", "job")]
    assert (await http.get("/schedules")).json()["items"] == []
    assert (await http.post("/schedules:simulate", json=[])).status_code == 422
