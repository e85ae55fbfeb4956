"""The remote client behaves like the local one, verb by verb."""

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
from rota.core.calendar.triggers import cron, every, following, once
from rota.core.jobs.retry import Exponential
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.planning.simulation_report import SimulationOptions
from rota.core.progress.control_flow import Fail
from rota.core.runs.run import RunFilter
from rota.core.schedules.revisions import Change
from rota.core.states import RunState
from rota.engine.handlers.context import SyncContext
from rota.errors import (
    BadTrigger,
    BulkMismatch,
    ChangedMeanwhile,
    DuplicateSchedule,
    Invalid,
    RotaError,
    RunIsFinal,
    RunNotFinal,
    StillRunning,
    UnknownSchedule,
    UnknownToken,
    UnknownWorker,
)
from rota.remote import NotOffered, RemoteClient
from rota.store import Store, open_database
from rota.store.schedules.schedule_operations import ScheduleStore
from rota.testing import adrain
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
    store = Store(open_database(url))
    await store.migrate()
    app = make_app(url)
    await store.save_jobs(app.registry.definitions())
    await store.close()
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


async def furnish(app: Rota, client: Client) -> None:
    """Create schedules of every kind."""
    await client.schedules.create("triggered", "rest", every("1h"), scopes=[("a", "1"), ("b", "2")])
    await client.schedules.trigger("triggered", actor="me")
    await adrain(app)
    await schedules(client)


async def schedules(client: Client) -> None:
    make = client.schedules.create
    await make("plain", "rest", every("30m"), actor="me")
    await make(
        "rich",
        "greet",
        cron("30 2 * * *", "Europe/Berlin"),
        payload={"name": "{schedule}"},
        scopes=[("account", "1"), ("account", "2")],
        delay="5s",
        jitter="90s",
        catch_up={"mode": "all", "keep": 3, "window": "2d"},
        overlap="queue_one",
        failure={"mode": "half_open", "threshold": 2},
        max_concurrency=3,
        when_full="skip",
        rate="10/1h",
        max_runs=100,
        start_at=datetime(2026, 1, 1, tzinfo=UTC),
        end_at=datetime(2031, 1, 1, tzinfo=UTC),
        windows=["00:00-12:00 MON,TUE,WED,THU,FRI,SAT,SUN"],
        exclude=["2027-12-24"],
        description="much",
        queue="slow",
        timeout="10s",
        backoff=Exponential(timedelta(seconds=2)),
        tags=["a"],
        metadata={"m": [1]},
        expect={"start_within": "5m"},
        owner="me",
    )
    await make("follows", "rest", following("crawl", on="end"))
    await make("once", "rest", once(FAR), enabled=False)
    await client.schedules.pause("plain", reason="a rest", until="2h", actor="me")


READS: dict[str, Callable[[dict[str, str]], Verb]] = {
    "schedules.get": lambda _: lambda client: client.schedules.get("rich"),
    "schedules.list": lambda _: lambda client: client.schedules.list(),
    "schedules.list after": lambda _: lambda client: client.schedules.list(after="once", limit=1),
    "schedules.list of an owner": lambda _: lambda client: client.schedules.list(owner="me", job="greet"),
    "schedules.list of a text": lambda _: lambda client: client.schedules.list(text="RIC", state="active"),
    "schedules.list of a state": lambda _: lambda client: client.schedules.list(state="ended"),
    "schedules.preview_document": lambda _: (
        lambda client: client.schedules.preview_document({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, after=FAR)
    ),
    "schedules.preview_document wrong": lambda _: (
        lambda client: client.schedules.preview_document({"job": "greet", "every": "1h", "overlap": "never"}, after=FAR)
    ),
    "schedules.preview": lambda _: (
        lambda client: client.schedules.preview("rich", 5, after=datetime(2027, 3, 25, tzinfo=UTC))
    ),
    "schedules.explain": lambda _: lambda client: client.schedules.explain("rich", FAR),
    "schedules.occurrences": lambda _: (
        lambda client: client.schedules.occurrences("rich", FAR, FAR + timedelta(days=3), limit=2)
    ),
    "schedules.events": lambda _: lambda client: client.schedules.events("plain"),
    "schedules.verify": lambda _: lambda client: client.schedules.verify("plain"),
    "schedules.simulate": lambda _: (
        lambda client: client.schedules.simulate(
            "plain",
            "3h",
            SimulationOptions(duration="40m", fail_every=2, outages=((FAR, FAR + timedelta(minutes=50)),), workers=1),
            start=FAR,
            trigger=every("20m"),
            overlap="queue_all",
        )
    ),
    "schedules.define": lambda _: (
        lambda client: client.schedules.define("new", "greet", every("1h"), {"payload": {"name": "Bo"}})
    ),
    "schedules.apply_documents dry": lambda _: (
        lambda client: client.schedules.apply_documents(
            [{"name": "rich", "job": "rest", "every": "1h"}, {"name": "new", "job": "rest", "once": FAR}],
            "me",
            dry_run=True,
        )
    ),
    "schedules.backfill": lambda _: (
        lambda client: client.schedules.backfill(
            "triggered", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), dry_run=True
        )
    ),
}


async def test_every_question_has_the_same_answer(app: Rota, local: Client, far: RemoteClient) -> None:
    await furnish(app, local)
    for name, read in READS.items():
        try:
            await alike(local, far, read({}))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
    definition = (await far.schedules.get("rich")).definition
    assert definition == (await local.schedules.get("rich")).definition
    (fire,) = await far.schedules.preview("rich", 1)
    assert str(fire.local.tzinfo) == "Europe/Berlin"


def nameless(value: Any) -> Any:
    """Replace what differs between tries: ids by their order, times, secrets."""
    known: dict[str, str] = {}
    text = msgspec.json.encode(value).decode()
    text = UUID.sub(lambda found: known.setdefault(found[0], f"id-{len(known)}"), text)
    text = re.sub(r'"(secret|id|token)":"(rota_)?[0-9a-f]{12}(_[\w-]+)?"', r'"\1":"…"', text)
    text = re.sub(r'"created_micros":\d+|"run_micros":\d+|"duration_ms":\d+', '"…":0', text)
    return msgspec.json.decode(TIME.sub("…", text))


async def commands_to_schedules(client: Client) -> list[Any]:
    told: list[Any] = []

    async def note(doing: Awaitable[Any]) -> Any:
        found = await doing
        told.append(found)
        return found

    made = client.schedules
    await note(made.create("one", "rest", every("1h"), payload={"n": 5}, owner="cli", actor="api"))
    await note(made.update("one", trigger=cron("0 3 * * *", "Europe/Berlin"), jitter="10s", actor="api"))
    await note(made.update("one", jitter=None, job="greet", description="d", actor="api", **GREETING))
    await note(made.pause("one", reason="r", until=FAR, actor="api"))
    await note(made.resume("one", catch_up="latest", actor="api"))
    await note(made.disable("one", actor="api"))
    await note(made.enable("one", actor="api"))
    await note(made.trigger("one", force=True, actor="api"))
    await note(made.apply_documents([{"name": "two", "job": "rest", "every": "2h"}], "me", actor="api"))
    await note(made.apply_documents([], "me", actor="api"))
    await note(made.delete("one", actor="api"))
    await note(client.audit(limit=500))
    return told


GREETING: dict[str, Any] = {"payload": {"name": "Ada"}}


async def test_every_command_does_the_same(sqlite_url: str, tmp_path: Any) -> None:
    """The commands run on two databases, which must then have the same content."""
    twin = await introduced(f"sqlite:///{tmp_path / 'twin.db'}")
    near = await commands_to_schedules(await twin.connect())
    app = await introduced(sqlite_url)
    with serving(asgi(app), app) as site:
        async with RemoteClient(site.url) as client:
            other = await commands_to_schedules(cast("Client", client))
    await app.aclose()
    await twin.aclose()
    for place, (one, same) in enumerate(zip(other, near, strict=True)):
        assert (place, nameless(one)) == (place, nameless(same))
        assert type(one) is type(same) or isinstance(one, list)


REFUSALS: list[tuple[type[RotaError], Verb]] = [
    (UnknownSchedule, lambda client: client.schedules.get("nightly")),
    (UnknownSchedule, lambda client: client.schedules.disable("nightly")),
    (UnknownSchedule, lambda client: client.schedules.update("nightly", jitter="1s")),
    (UnknownSchedule, lambda client: client.schedules.delete("nightly")),
    (RotaError, lambda client: client.schedules.create("x", "by_hand", every("1h"))),
    (RotaError, lambda client: client.schedules.create("x", "rest", cron("61 * * * *"))),
    (Invalid, lambda client: client.schedules.create("x", "rest", every("1h"), overlap=cast("Any", "skp"))),
    (
        BadTrigger,
        lambda client: client.schedules.apply_documents([{"name": "x", "job": "rest", "cron": "61 * * * *"}], "me"),
    ),
    (UnknownWorker, lambda client: client.workers.get("w")),
    (UnknownWorker, lambda client: client.workers.find("w")),
    (UnknownWorker, lambda client: client.workers.drain("w")),
    (UnknownToken, lambda client: client.tokens.revoke("t")),
    (Invalid, lambda client: client.tokens.create("t", "boss")),
]


async def test_refusals_are_the_same(local: Client, far: RemoteClient) -> None:
    for place, (kind, verb) in enumerate(REFUSALS):
        with pytest.raises(kind) as near:
            await verb(local)
        with pytest.raises(kind) as other:
            await verb(cast("Client", far))
        assert (place, type(other.value)) == (place, type(near.value))
        told = (place, other.value.code, other.value.message, other.value.hint)
        assert told == (place, near.value.code, near.value.message, near.value.hint)


async def test_conflicts_say_what_they_are(app: Rota, local: Client, far: RemoteClient) -> None:
    run = await far.enqueue(Order("rest", {}))
    with pytest.raises(RunNotFinal):
        await far.retry(run.id)
    with pytest.raises(StillRunning):
        await far.wait(run.id, "10ms")
    with pytest.raises(BulkMismatch):
        await far.cancel_many(RunFilter(job="rest"), expected=0)
    await adrain(app)
    with pytest.raises(RunIsFinal) as refused:
        await far.cancel(run.id)
    assert refused.value.hint == "a final run never changes"
    made = await far.schedules.create("one", "rest", every("1h"))
    with pytest.raises(DuplicateSchedule):
        await far.schedules.create("one", "rest", every("1h"))
    await local.schedules.update("one", jitter="5s")
    with pytest.raises(ChangedMeanwhile):
        await far.schedules.update("one", jitter="6s", expected_revision=made.revision)


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
