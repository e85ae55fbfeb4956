"""Test hooks: jobs that events make runs of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from rota import Invalid, Order, Rota, RunState
from rota.registry.hooks.events import EVENTS, EventWord
from rota.testing import drain


@pytest.fixture
def app(database_url: str) -> Iterator[Rota]:
    app = Rota(database_url)

    @app.job(max_attempts=1)
    def sell(item: str) -> str:
        if item == "nothing":
            raise ValueError("sold out")
        return item

    @app.job(max_attempts=1)
    def other() -> None:
        raise ValueError

    yield app
    app.close()


def test_a_hook_is_told_of_its_events(app: Rota) -> None:
    told: list[dict[str, Any]] = []

    @app.on("run.failed", jobs=["sell"], include_payload=True, max_attempts=2, backoff="0s")
    async def page(event: dict[str, Any]) -> None:
        told.append(event)
        if len(told) == 1:
            raise ConnectionError("tried again, as any run")

    @app.on("run.succeeded", "run.failed")
    def count(event: dict[str, Any]) -> str:
        return f"{event['job']} {event['type']}"

    drain(app)  # what is told is what happens after the hooks were stored

    client = app.blocking
    failed = client.enqueue(Order("sell", {"item": "nothing"}))
    client.enqueue_many([Order("sell", {"item": "tea"}), Order("other", {})])
    drain(app)
    assert [(event["type"], event["job"], event["run"]["id"]) for event in told] == [
        ("run.failed", "sell", failed.id)
    ] * 2
    assert told[0]["run"]["payload"] == {"item": "nothing"}
    runs = [run for run in client.list() if run.job == "on.count"]
    assert sorted(str(run.result) for run in runs) == ["other run.failed", "sell run.failed", "sell run.succeeded"]
    paged = next(run for run in client.list() if run.job == "on.page")
    assert (paged.state, paged.attempt) == (RunState.SUCCEEDED, 2)
    assert not [run for run in client.list() if run.queue == "rota"], "hooks call no hooks"


def test_a_hook_of_a_wrong_event(app: Rota) -> None:
    with pytest.raises(Invalid, match=r"no event 'run\.faild'.*did you mean 'run\.failed'"):
        app.on("run.faild")(print)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="a hook needs an event"):
        app.on()(lambda event: None)
    with pytest.raises(Invalid, match=r"the hook on\.<lambda> takes no event"):
        app.on("run.failed")(lambda: None)
    assert list(EVENTS) == list(get_args(EventWord)), "type checkers know other events"
