"""The remote client: what `tests/conformance` does not compare, and what needs a real server."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import httpx2
import msgspec
import pytest

from rota import remote
from rota.api import asgi
from rota.app import Rota
from rota.client.client import Client, Order
from rota.core.calendar.triggers import cron, every
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.progress.control_flow import Fail
from rota.core.runs.run import RunFilter
from rota.core.schedules.revisions import Change
from rota.core.states import RunState
from rota.engine.handlers.context import SyncContext
from rota.errors import (
    Invalid,
)
from rota.remote import NotOffered, RemoteClient
from rota.store.schedules.schedule_operations import ScheduleStore
from rota.testing import adrain
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.servers.http_server import Site, serving

FAR = datetime(2030, 1, 1, tzinfo=UTC)
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+\d\d:\d\d)?")


def make_app(url: str) -> Rota:
    app = Rota(url)

    @app.job(timeout="90s", tags=["kind"], max_attempts=2, unique={"fields": ["name"], "period": "1500ms"})
    def greet(name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @app.job(
        max_attempts=1, steps=["fetch", {"id": "store", "timeout": "9s"}], limit={"max": 2, "per": "1m", "by": ["page"]}
    )
    def crawl(ctx: SyncContext, page: int = 1) -> None:
        ctx.log.info("page %s", page)
        ctx.progress(40, "fetching")
        ctx.count("pages", 3)
        ctx.step("fetch", int, "7")
        raise Fail("the disk is full")

    @app.job(queue="slow")
    def rest(n: int = 0) -> int:
        return n

    @app.job(schedulable=False)
    def by_hand() -> None: ...

    return app


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = await introduced(database_url)
    yield app
    await app.aclose()


async def introduced(url: str) -> Rota:
    app = make_app(url)
    await save_jobs_of(app)
    return app


@pytest.fixture
def site(app: Rota) -> Iterator[Site]:
    with serving(asgi(app), app) as site:
        yield site


@pytest.fixture
async def local(app: Rota) -> Client:
    return await app.connect()


@pytest.fixture
async def far(site: Site) -> AsyncIterator[RemoteClient]:
    async with RemoteClient(site.url) as client:
        yield client


Verb = Callable[[Client], Awaitable[Any]]


def plain(value: Any) -> Any:
    """Return an answer without the time at which an explanation was made."""
    if isinstance(value, Explanation):
        return plain((value.verdict, {**value.facts, "now": None}))
    return msgspec.json.decode(msgspec.json.encode(value))


async def alike(local: Client, far: RemoteClient, verb: Verb) -> Any:
    """Ask both clients; require the same answer, of the same type."""
    near, other = await verb(local), await verb(cast("Client", far))
    assert plain(other) == plain(near)
    if isinstance(near, list | tuple):
        assert [type(one) for one in other] == [type(one) for one in near]
    else:
        assert type(other) is type(near)
    return other


async def test_a_fire_is_told_in_the_zone_of_its_schedule(far: RemoteClient) -> None:
    await far.schedules.create("nightly", "rest", cron("30 2 * * *", "Europe/Berlin"))
    (fire,) = (await far.schedules.simulate("nightly", "0s", limit=1)).fires
    assert str(fire.local.tzinfo) == "Europe/Berlin"


async def test_two_who_edit_a_schedule_both_count(
    local: Client, far: RemoteClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await far.schedules.create("one", "rest", every("1h"))
    read, define = ScheduleStore.surroundings, local.schedules.define
    definitions = [await define("one", "rest", every("1h"), {"description": word}) for word in ("second", "first")]

    async def overtaken(store: ScheduleStore, *asked: Any, **options: Any) -> Any:
        found = await read(store, *asked, **options)
        if definitions:
            await store.update("one", definitions.pop(), Change(note="edited"))
        return found

    monkeypatch.setattr(ScheduleStore, "surroundings", overtaken)
    changed = await far.schedules.update("one", jitter="5s")
    assert changed.definition.description == "second"
    assert changed.definition.jitter == timedelta(seconds=5)


async def test_hints_and_a_run_that_is_followed(app: Rota, far: RemoteClient) -> None:
    run = await far.enqueue(Order("rest", {"n": 4}))
    states = []
    async with far.subscribe([f"run:{run.id}", "queues"]) as hints:
        topics = {(await anext(hints)).topic, (await anext(hints)).topic}
        assert topics == {f"run:{run.id}", "queues"}
        async for seen in far.follow(run.id[-12:]):
            states.append(seen.state)
            if len(states) == 1:
                await adrain(app)
    assert (states[0], states[-1]) == (RunState.QUEUED, RunState.SUCCEEDED)
    with pytest.raises(Invalid):
        far.subscribe(["rnus"])


async def test_time_and_metrics(far: RemoteClient) -> None:
    assert abs(await far.time() - datetime.now(UTC)) < timedelta(minutes=1)
    assert "rota_" in await far.metrics()


async def test_what_is_not_offered_says_so(far: RemoteClient) -> None:
    with pytest.raises(NotOffered, match=r"client\.prune is not available over HTTP"):
        await far.prune()


async def test_without_an_event_loop(app: Rota, site: Site) -> None:
    def ask() -> None:
        client = remote.connect(site.url)
        try:
            run = client.enqueue(Order("rest", {"n": 1}))
            assert client.get(run.id).state is RunState.QUEUED
            assert client.schedules.list() == []
            assert [(queue.queue, queue.queued) for queue in client.queues()] == [("default", 0), ("slow", 1)]
        finally:
            client.close()

    await asyncio.to_thread(ask)


async def test_short_pages_are_not_taken_for_the_last(
    local: Client, far: RemoteClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without any patience searches one window per request."""
    monkeypatch.setattr("rota.client.runs.runs._PATIENCE", 0.0)
    monkeypatch.setattr("rota.store.runs.search._FIRST", 4)
    marked = [Order("rest", {"n": n}, {"tags": ["mark"]} if n % 10 == 0 else {}) for n in range(30)]
    made = await local.enqueue_many(marked)
    wanted = RunFilter(tag="mark")
    expected = [made[n].id for n in (20, 10, 0)]
    assert [run.id for run in await far.list(wanted, limit=2)] == expected[:2]
    assert [run.id for run in await far.list(wanted, limit=50)] == expected
    assert [run.id for run in await local.list(wanted, limit=2)] == expected[:2]
    found, before, short = [], None, 0
    while short == 0 or before is not None:
        page = await alike(local, far, lambda client: client.page(wanted, limit=2, before=before))  # noqa: B023
        found += [run.id for run in page.runs]
        before, short = page.next, short + 1
    assert found == expected
    assert short > len(expected)
    async with httpx2.AsyncClient(base_url=site.url) as http:
        lines = (await http.get("/api/v1/export/runs?tag=mark")).text.splitlines()
    assert [msgspec.json.decode(line)["id"] for line in lines] == expected
