"""Test middleware around enqueues, from every kind of caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import apsw
import pytest

from rota import BadPayload, Enqueue, Invalid, Order, Rota

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


@pytest.fixture
def app(database_url: str) -> Iterator[Rota]:
    app = Rota(database_url)

    @app.job
    def ship(order: int) -> int:
        return order

    yield app
    app.close()


def test_it_sees_each_run_and_adds_to_it(app: Rota) -> None:
    seen: list[tuple[Any, ...]] = []

    @app.around_enqueue
    def tagged(enqueue: Enqueue) -> Iterator[None]:
        enqueue.options["metadata"] = {"request": request_id.get()}
        try:
            yield
        except BadPayload as error:
            seen.append((enqueue.job, "refused", error.path))
            raise
        seen.append((enqueue.job, dict(enqueue.arguments), enqueue.run_id, enqueue.created))

    @app.around_enqueue
    async def slow(enqueue: Enqueue) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        assert enqueue.options["metadata"]  # the first one declared is the outermost
        yield

    request_id.set("r-7")
    client = app.blocking
    handle = client.enqueue(Order("ship", {"order": 1}))
    keyed = Order("ship", {"order": 2}, {"key": "2"})
    many = [*client.enqueue_many([keyed, Order("ship", {"order": 3})]), client.enqueue(keyed)]
    assert [client.get(run.id).metadata for run in (handle, *many)] == [{"request": "r-7"}] * 4
    with pytest.raises(BadPayload):
        client.enqueue(Order("ship", {"order": "x"}))
    assert seen == [
        ("ship", {"order": 1}, handle.id, True),
        ("ship", {"order": 3}, many[1].id, True),
        ("ship", {"order": 2}, many[0].id, True),
        ("ship", {"order": 2}, many[0].id, False),
        ("ship", "refused", "$.order"),
    ]
    request_id.set(None)


def test_what_it_raises_enqueues_nothing(app: Rota) -> None:
    @app.around_enqueue
    def refuses(enqueue: Enqueue) -> Iterator[None]:
        if enqueue.arguments["order"] == 2:
            raise PermissionError("not this one")
        yield

    with pytest.raises(PermissionError):
        app.blocking.enqueue_many([Order("ship", {"order": 1}), Order("ship", {"order": 2})])
    assert app.blocking.list() == []
    with pytest.raises(Invalid, match="cannot be called with the enqueue"):
        app.around_enqueue(lambda: None)


def test_what_is_no_middleware(app: Rota) -> None:
    async def other_librarys(call: Any) -> None: ...

    for declare in (app.around, app.around_enqueue):
        with pytest.raises(Invalid, match=r"other_librarys is a coroutine function .*yield"):
            declare(other_librarys)

    @app.around_enqueue
    def forgetful(enqueue: Enqueue) -> None: ...

    with pytest.raises(Invalid, match=r"forgetful returned None, which is no context manager .*yield"):
        app.blocking.enqueue(Order("ship", {"order": 1}))
    assert app.blocking.list() == []


def test_it_cannot_swallow_the_error_of_an_enqueue(app: Rota) -> None:
    """Nothing was enqueued, so there is nothing to return."""

    @app.around_enqueue
    def careless(_: Enqueue) -> Iterator[None]:
        with suppress(BadPayload):
            yield

    wrong = Order("ship", {"order": "x"})
    for enqueue in (app.blocking.enqueue, lambda order: app.blocking.enqueue_many([order])):
        with pytest.raises(BadPayload):
            enqueue(wrong)


def test_it_cannot_swallow_the_error_of_an_enqueue_in_a_transaction(sqlite_url: str, tmp_path: Path) -> None:
    app = Rota(sqlite_url)

    @app.job
    def ship(order: int) -> int:
        return order

    @app.around_enqueue
    def careless(_: Enqueue) -> Iterator[None]:
        with suppress(BadPayload):
            yield

    with closing(apsw.Connection(str(tmp_path / "own.db"))) as connection, pytest.raises(BadPayload):
        app.enqueue_many_in(connection, [Order("ship", {"order": "x"})])
