"""Server-sent events: change hints, and logs as they grow; on both databases."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.types import ASGIApp, Message

from rota.api.operations.event_stream import Streams
from rota.app import Rota
from rota.client.client import Order
from rota.core.progress.notes import LogNote, Notes, encoded
from rota.server import asgi
from rota.store import Store, open_database
from rota.testing.harness.manual_worker import HandWorker
from tests.support.runs.runs import WORKER
from tests.support.wait import PATIENCE

Event = dict[str, Any]


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    app = Rota(database_url)

    @app.job
    def hello() -> str:
        return "hello"

    await (await app.connect()).store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


@pytest.fixture
def served(app: Rota) -> ASGIApp:
    return asgi(app)


class Listener:
    """A caller that reads events as they come, and disconnects when it has enough."""

    def __init__(self, served: ASGIApp, path: str, headers: dict[str, str] | None = None) -> None:
        self.status: int | None = None
        self.events: list[Event] = []
        self._gone = asyncio.Event()
        self._more = asyncio.Event()
        route, _, query = path.partition("?")
        given = {"host": "localhost", **(headers or {})}
        self._scope = {
            "type": "http", "method": "GET", "path": route, "raw_path": route.encode(), "root_path": "",
            "query_string": query.encode(), "scheme": "http", "http_version": "1.1", "server": ("localhost", 80),
            "client": ("127.0.0.1", 5), "headers": [(name.encode(), text.encode()) for name, text in given.items()],
        }  # fmt: skip
        self._served = served
        self._text = ""

    async def __aenter__(self) -> "Listener":
        self._task = asyncio.ensure_future(self._served(self._scope, self._receive, self._send))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gone.set()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self._text += message.get("body", b"").decode()
            *whole, self._text = self._text.split("\n\n")
            self.events += [event for part in whole if (event := parsed(part))]
        self._more.set()

    async def until(self, enough: Callable[[list[Event]], bool]) -> list[Event]:
        async with asyncio.timeout(PATIENCE):
            while not enough(self.events):
                self._more.clear()
                await self._more.wait()
        return self.events


def parsed(text: str) -> Event | None:
    fields = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(":"))
    return {**fields, "data": msgspec.json.decode(fields["data"])} if fields else None


def topics(events: list[Event]) -> set[str]:
    return {event["data"]["topic"] for event in events if event["event"] == "hint"}


async def test_a_change_is_hinted(app: Rota, served: ASGIApp) -> None:
    async with Listener(served, "/api/v1/stream?topics=runs,queues") as listener:
        first = len(await listener.until(lambda events: topics(events) == {"runs", "queues"}))
        await enqueue(app)
        events = await listener.until(lambda events: len(events) > first)
        ids = [event["id"] for event in events]
        assert len(set(ids)) == len(ids)


async def enqueue(app: Rota) -> str:
    return (await (await app.connect()).enqueue(Order("hello", {}))).id


async def test_one_run_is_followed_to_its_end(app: Rota, served: ASGIApp) -> None:
    run = await enqueue(app)
    client = await app.connect()
    async with Listener(served, f"/api/v1/stream?topics=run:{run}") as listener:
        await listener.until(bool)
        await client.cancel(run)
        events = await listener.until(lambda events: events[-1]["data"]["state"] == "cancelled")
        assert events[-1]["data"]["id"] == run


async def test_whoever_comes_back_is_told_to_look_anew(served: ASGIApp) -> None:
    async with Listener(served, "/api/v1/stream", {"last-event-id": "old-7"}) as listener:
        events = await listener.until(lambda events: len(events) >= 2)
        assert [event["event"] for event in events[:2]] == ["reset", "hint"]


async def test_a_log_is_followed_until_the_run_is_over(app: Rota, served: ASGIApp) -> None:
    run = await enqueue(app)
    client = await app.connect()
    worker = HandWorker(client, WORKER)
    await worker.claim()
    await worker.say("one")
    async with Listener(served, f"/api/v1/runs/{run}/logs?follow=1") as listener:
        await listener.until(lambda events: [event["data"].get("text") for event in events] == ["one"])
        await worker.say("two")
        await worker.finish()
        events = await listener.until(lambda events: events[-1]["event"] == "end")
    assert [event["data"].get("text") for event in events] == ["one", "two", None]
    assert events[-1]["data"]["state"] == "succeeded"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=served), base_url="http://localhost") as http:
        rest = await http.get(f"/api/v1/runs/{run}/logs?follow=1", headers={"Last-Event-ID": events[0]["id"]})
        assert "two" in rest.text
        assert '"one"' not in rest.text
        last = await http.get(f"/api/v1/runs/{run}/logs?follow=1&tail=1")
        assert ['"one"' in last.text, '"two"' in last.text, "event: end" in last.text] == [False, True, True]


async def test_a_stream_that_breaks_within_a_batch_of_lines_misses_none(app: Rota, served: ASGIApp) -> None:
    run = await enqueue(app)
    client = await app.connect()
    worker = HandWorker(client, WORKER)
    await worker.claim()
    batch = encoded([(0, 20, "me", word) for word in ("one", "two", "three")])
    (held,) = worker.claims.values()
    await client.store.notes.write(Notes(logs=(LogNote(run, held.fence, held.attempt, 1, batch),)))
    await worker.finish()
    async with Listener(served, f"/api/v1/runs/{run}/logs?follow=1") as listener:
        events = await listener.until(lambda events: len(events) == 4)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=served), base_url="http://localhost") as http:
        rest = await http.get(f"/api/v1/runs/{run}/logs?follow=1", headers={"Last-Event-ID": events[0]["id"]})
    assert ['"one"' in rest.text, '"two"' in rest.text, '"three"' in rest.text] == [False, True, True]


@pytest.mark.parametrize("path", ["stream?topics=nothing", "stream?topics=run:x", "stream?topics=", "stream?x=1"])
async def test_a_bad_question_is_refused_before_anything_is_sent(served: ASGIApp, path: str) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=served), base_url="http://localhost") as http:
        assert (await http.get(f"/api/v1/{path}")).status_code == 422


async def test_nobody_takes_all_the_streams(app: Rota) -> None:
    served = asgi(app)
    served.state.streams = Streams(most=2)
    async with Listener(served, "/api/v1/stream") as one, Listener(served, "/api/v1/stream") as two:
        await one.until(bool)
        await two.until(bool)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=served), base_url="http://localhost") as http:
            refused = await http.get("/api/v1/stream")
            assert (refused.status_code, refused.json()["code"]) == (429, "too-many-streams")
    async with Listener(served, "/api/v1/stream") as third:
        await third.until(bool)


async def test_everything_is_exported_line_by_line(app: Rota, served: ASGIApp) -> None:
    ids = [await enqueue(app) for _ in range(3)]
    client = await app.connect()
    await client.cancel(ids[0], actor="ada")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=served), base_url="http://localhost") as http:
        runs = [msgspec.json.decode(line) for line in (await http.get("/api/v1/export/runs")).text.splitlines()]
        assert [run["id"] for run in runs] == ids[::-1]
        some = (await http.get("/api/v1/export/runs?state=cancelled")).text.splitlines()
        assert len(some) == 1
        assert (await http.get("/api/v1/export/attempts")).text == ""
        events = [msgspec.json.decode(line) for line in (await http.get("/api/v1/export/events")).text.splitlines()]
        assert events[0]["actor"] == "ada"
        assert (await http.get("/api/v1/export/runs?state=dead")).status_code == 422
