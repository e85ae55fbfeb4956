"""Runs returned without reading them equal what the database has."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rota.app import Rota
from rota.client.client import Client, Order
from rota.core.runs.run import Run
from rota.core.states import RunState
from rota.store import Store


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[Client]:
    app = Rota(database_url)

    @app.job(tags=["kind"], max_attempts=7, queue="slow", metadata={"m": [1]})
    def greet(name: str = "you", times: int = 1) -> None: ...

    @app.job(limit={"max": 1, "when_full": "skip"})
    def alone() -> None: ...

    @app.job(replicas=2)
    def everywhere() -> None: ...

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield client
    await app.aclose()


ORDERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("greet", {}, {}),
    ("greet", {"name": "Ada\u2028 ☃"}, {"scope": ("tenant", "7"), "priority": 3, "tags": [], "metadata": {}}),
    ("greet", {}, {"delay": "1h", "queue": "other", "timeout": "5s", "backoff": "5s", "max_attempts": 2}),
    ("greet", {}, {"run_at": datetime(2030, 1, 1, tzinfo=UTC)}),
    ("greet", {}, {"run_at": datetime(2020, 1, 1, tzinfo=UTC)}),
    ("greet", {}, {"key": "k", "tags": ["a", "b"], "metadata": {"x": {"y": None}}}),
    ("greet", {}, {"key": "k"}),
    ("greet", {}, {"idempotency_key": "i"}),
    ("greet", {}, {"unique": {"fields": ["name"], "period": "1h"}}),
    ("greet", {}, {"only_workers": ["w"]}),
    ("alone", {}, {}),
    ("alone", {}, {}),
    ("everywhere", {}, {"delay": "1h"}),
]


async def seen(client: Client, shown: Run) -> None:
    assert await client.get(shown.id) == shown


async def test_one_by_one(client: Client) -> None:
    states = []
    for order in ORDERS:
        ((run, _),) = await client.enqueue_shown([Order(*order)])
        await seen(client, run)
        states.append(run.state)
    assert {RunState.QUEUED, RunState.SCHEDULED, RunState.SKIPPED} <= set(states)


async def test_all_at_once(client: Client) -> None:
    found = await client.enqueue_shown([Order(*order) for order in ORDERS])
    for run, _ in found:
        await seen(client, run)
    assert [new for _, new in found].count(False) == 1
    follower = Order("greet", {}, {"after": ["first"]})
    for run, _ in await client.enqueue_shown([Order("greet", {}, {"ref": "first"}), follower]):
        await seen(client, run)


async def test_those_that_are_alike(client: Client) -> None:
    later = {"delay": "1h", "tags": ["a"], "metadata": {"x": 1}}
    orders = [Order("greet", {"name": str(number)}, later) for number in range(3)]
    plain = [Order("greet", {"name": str(number)}, {}) for number in range(2)]
    found = await client.enqueue_shown([*orders, *plain, *orders])
    for run, new in found:
        assert new
        await seen(client, run)
    assert [run.payload for run, _ in found] == [order.arguments for order in (*orders, *plain, *orders)]


async def test_under_a_quota(client: Client) -> None:
    await client.quotas.update("tenant", max_concurrency=1)
    for _ in range(2):
        ((run, _),) = await client.enqueue_shown([Order("greet", {}, {"scope": ("tenant", "7")})])
        await seen(client, run)


async def test_most_are_not_asked_for(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(*_: object) -> list[Run]:
        raise AssertionError("it is known")

    monkeypatch.setattr(Store, "get_runs", asked)
    await client.enqueue_shown([Order("greet", {})])
    await client.enqueue_shown([Order("greet", {}), Order("greet", {}, {"delay": "5s"})])


async def test_options_that_are_changed_afterwards_say_nothing_of_other_requests(client: Client) -> None:
    mine = {"idempotency_key": "one"}
    await client.enqueue(Order("greet", {}, mine))
    mine["queue"] = "other"
    first = await client.enqueue(Order("greet", {}, {"idempotency_key": "two"}))
    client._builders.clear()  # as another process, which made no run before
    again = await client.enqueue(Order("greet", {}, {"idempotency_key": "two"}))
    assert (again.id, again.created) == (first.id, False)
