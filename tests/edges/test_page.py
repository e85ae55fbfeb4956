"""The pages: what they show, that they escape it, and that they need nothing inline."""

import asyncio
import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from rota.app import Rota
from rota.client import Client, Order
from rota.core.claims import Ask, ClaimRequest
from rota.core.endings import Report
from rota.core.model import Attempt, Run, RunFilter
from rota.core.signals import Fail, Retry
from rota.core.states import Outcome
from rota.engine.context import Context
from rota.server import asgi
from rota.ui.html import Html, tag

SCRIPT = "<script>alert('x')</script>"


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    app = Rota(sqlite_url)

    @app.job
    def hello(name: str) -> str:
        return name

    @app.job(backoff="1h")
    def fail(name: str) -> None:
        raise (Retry(name) if name == "later" else ValueError(name))

    @app.job
    async def count(ctx: Context) -> None:
        ctx.count("pages", 3)
        raise Fail("enough")

    yield app
    await app.aclose()


@pytest.fixture
async def http(app: Rota) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682") as client:
        yield client


async def test_an_empty_page_says_what_to_do(http: httpx2.AsyncClient) -> None:
    page = (await http.get("/")).text
    assert "Nothing has run yet" in page
    assert "rota run add hello" in page
    assert "curl http://127.0.0.1:7682/api/v1/runs" in page


async def test_it_refreshes_until_told_not_to(http: httpx2.AsyncClient) -> None:
    assert 'http-equiv="refresh" content="2"' in (await http.get("/")).text
    assert "http-equiv" not in (await http.get("/?refresh=off")).text


async def test_runs_are_shown_and_everything_is_escaped(app: Rota, http: httpx2.AsyncClient) -> None:
    client = await app.connect()
    options = {
        "tags": [SCRIPT],
        "metadata": {SCRIPT: SCRIPT},
        "key": SCRIPT,
        "scope": (SCRIPT, SCRIPT),
        "queue": SCRIPT,
    }
    queued = await client.enqueue(Order("hello", {"name": SCRIPT}, options))
    done = await client.enqueue(Order("hello", {"name": SCRIPT}))
    failed = await client.enqueue(Order("fail", {"name": SCRIPT}, {"max_attempts": 1}))
    backing_off = await client.enqueue(Order("fail", {"name": "later"}))
    await app.start()
    await client.wait(done.id, "20s")
    await client.wait(failed.id, "20s")
    while not await client.attempts(backing_off.id) or (await client.get(backing_off.id)).state != "scheduled":
        await asyncio.sleep(0.02)
    await app.stop()
    overview = (await http.get("/")).text
    for word in ("succeeded", "failed", "queued", "scheduled", "ValueError: ", "Retry: later", "due "):
        assert word in overview
    pages = [overview] + [(await http.get(f"/runs/{run.id}")).text for run in (queued, done, failed, backing_off)]
    for page in pages:
        assert "<script" not in page
        assert "style=" not in page
        assert not re.search(r"\son\w+=", page)
    assert "&lt;script&gt;" in pages[2]
    assert "Traceback" in pages[3]
    assert "http-equiv" in pages[1]
    assert "http-equiv" not in pages[2]


async def test_a_run_is_shown_by_the_end_of_its_id_which_finds_it(app: Rota, http: httpx2.AsyncClient) -> None:
    client = await app.connect()
    run = await client.enqueue(Order("hello", {"name": "Ada"}))
    overview = (await http.get("/")).text
    assert f'href="/runs/{run.id}" class="id" title="{run.id}">…{run.id[-12:]}</a>' in overview
    assert run.id in (await http.get(f"/runs/{run.id[-12:]}")).text


async def test_columns_that_would_be_empty_are_not_there(app: Rota, http: httpx2.AsyncClient) -> None:
    client = await app.connect()
    await app.start()
    done = await client.enqueue(Order("hello", {"name": "Ada"}))
    await client.wait(done.id, "20s")
    for path in ("/", f"/runs/{done.id}"):
        assert 'class="error"' not in (await http.get(path)).text
    counted = await client.enqueue(Order("count", {}))
    await client.wait(counted.id, "20s")
    await app.stop()
    page = (await http.get(f"/runs/{counted.id}")).text
    assert 'data-label="measured">pages 3</td>' in page
    assert 'class="error">Fail: enough</td>' in page
    assert 'class="error">Fail: enough</td>' in (await http.get("/")).text


async def test_running_runs_are_counted_not_read(
    app: Rota, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def listed(self: Client, *_: object, **how: object) -> list[Run]:
        asked.append(f"{how}")
        return await self.store.list_runs(RunFilter(), 50)

    async def never(self: Client, run_id: str) -> list[Attempt]:
        raise AssertionError(run_id)

    monkeypatch.setattr(Client, "list", listed)
    monkeypatch.setattr(Client, "attempts", never)
    client = await app.connect()
    for queue in ("mail", "mail", "slow"):
        await client.enqueue(Order("hello", {"name": "Ada"}, {"queue": queue}))
    await client.enqueue(Order("hello", {"name": "Ada"}, {"queue": "slow", "delay": "1h"}))
    asks = (Ask("mail", 10), Ask("slow", 10))
    claims = await client.store.claim(ClaimRequest("worker-1", asks, {"hello": 1}, 30_000_000, 1))
    failed = next(claim for claim in claims if claim.queue == "mail")
    await client.store.report([Report(failed.run_id, failed.fence, Outcome.FAILED, retry_in=0)])
    page = (await http.get("/")).text
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>((?:<td class="number[^"]*">\d+</td>)+)</tr>', page)
    counts = {queue: re.findall(r">(\d+)<", numbers) for queue, numbers in rows}
    assert counts == {"default": ["0", "0", "0"], "mail": ["1", "1", "0"], "slow": ["1", "0", "1"]}
    assert asked == ["{'limit': 50}"]


async def test_a_run_that_is_not_there_is_a_page_too(http: httpx2.AsyncClient) -> None:
    answer = await http.get(f"/runs/{SCRIPT}x")
    assert answer.status_code == 404
    answer = await http.get("/runs/0123")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "there is no run" in answer.text


async def test_a_database_that_is_away_is_a_page_that_comes_back() -> None:
    transport = httpx2.ASGITransport(app=asgi(Rota("sqlite:///no/such/folder/rota.db")))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.get("/")
    assert answer.status_code == 503
    assert "The database does not answer" in answer.text
    assert "http-equiv" in answer.text


async def test_the_style_sheet_and_icon_that_pages_name_exist(http: httpx2.AsyncClient) -> None:
    page = (await http.get("/")).text
    for address, kind in zip(re.findall(r'href="(/static/[^"]+)"', page), ("image/svg+xml", "text/css"), strict=True):
        answer = await http.get(address)
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, kind)
    assert (await http.get("/static/rota.py")).status_code == 404


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("a", "<b>", Html("<i>"), None, 7, href='"', class_="x") == '<a href="&quot;" class="x">&lt;b&gt;<i>7</a>'
