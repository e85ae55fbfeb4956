"""Scope providers are asked before a schedule with one is stored, and when it is triggered."""

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest

from rota.app import Rota
from rota.core.calendar.triggers import every
from rota.errors import Invalid, UnknownSchedule
from rota.testing import Harness
from rota.values.instants import instant

BAD_ANSWERS: dict[str, Any] = {"raises": RuntimeError("no connection"), "no list": 7, "no pairs": ["tenant", 3]}


def app_with(answer: Any) -> Rota:
    app = Rota()

    @app.job
    def work() -> None: ...

    @app.scopes("tenants")
    def tenants() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return app


@pytest.mark.parametrize("bad", BAD_ANSWERS)
async def test_one_that_is_in_trouble_is_refused_and_nothing_is_stored(bad: str, database_url: str) -> None:
    app = app_with(BAD_ANSWERS[bad])
    async with Harness(app, database_url) as harness:
        schedules = harness.client.schedules
        with pytest.raises(Invalid, match=r"schedule 's': scope provider 'tenants': .*nothing is stored"):
            await schedules.create("s", "work", every("1h"), scopes="tenants")
        document = {"name": "s", "job": "work", "every": "1h", "scopes": "tenants"}
        with pytest.raises(Invalid, match="scope provider 'tenants'"):
            await schedules.apply_documents([document], "me")
        with pytest.raises(UnknownSchedule):
            await schedules.get("s")
        await schedules.create("s", "work", every("1h"))
        with pytest.raises(Invalid, match="scope provider 'tenants'"):
            await schedules.update("s", scopes="tenants")
        assert (await schedules.get("s")).definition.provider is None


async def test_a_program_starts_whatever_its_providers_do() -> None:
    """Planning asks until one answers; its schedules must exist by then."""
    app = app_with(RuntimeError("no connection"))
    app.schedule("s", "work", every("1h"), scopes="tenants")
    async with Harness(app) as harness:
        harness.clock.advance("1h")
        await harness.planner.step()
        trouble = (await harness.client.schedules.get("s")).trouble
    assert trouble == "scope provider 'tenants': RuntimeError: no connection"


async def test_one_that_is_not_known_here_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    app = app_with([("tenant", "a")])
    app.schedule("s", "work", every("1h"), scopes="tenant")
    with caplog.at_level(logging.WARNING):
        async with Harness(app) as harness:
            assert (await harness.client.schedules.get("s")).definition.provider == "tenant"
            await harness.client.schedules.create("t", "work", every("1h"), scopes="elsewhere")
    assert "no scope provider 'tenant' is registered in this process" in caplog.text
    assert "did you mean 'tenants'?" in caplog.text
    assert "'elsewhere' is registered" in caplog.text


async def test_a_trigger_asks(database_url: str) -> None:
    answer: list[Any] = [("tenant", "a"), ("tenant", "b")]
    app = app_with(answer)
    async with Harness(app, database_url) as harness:
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("1h"), scopes="tenants")
        scopes = [run.scope for run in await schedules.trigger("s")]
        assert [(scope.kind, scope.id) for scope in scopes if scope] == answer
        await harness.drain()


async def test_a_trigger_says_that_the_provider_failed(database_url: str) -> None:
    answer: list[Any] = [("tenant", "a")]
    app = app_with(answer)
    async with Harness(app, database_url) as harness:
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("1h"), scopes="tenants")
        answer.append("nonsense")
        with pytest.raises(Invalid, match=r"no scopes yet .name one: scope provider 'tenants': "):
            await schedules.trigger("s")
        assert "scope provider 'tenants'" in ((await schedules.get("s")).trouble or "")


@pytest.mark.parametrize("is_async", [True, False])
async def test_one_may_take_the_time_of_the_database(is_async: bool, database_url: str) -> None:
    app, asked = app_with([]), list[datetime]()

    def shards(now: datetime) -> list[tuple[str, str]]:
        asked.append(now)
        return [("hour", f"{now:%H}")]

    async def coroutine(*, now: datetime) -> list[tuple[str, str]]:
        return shards(now)

    app.scopes("shards")(coroutine if is_async else shards)
    async with Harness(app, database_url) as harness:
        await harness.client.schedules.create("s", "work", every("1h"), scopes="shards")
        runs = await harness.client.schedules.trigger("s")
        now = await harness.client.store.now()
        harness.clock.advance("1h")
        await harness.planner.step()
        await harness.drain()
    assert [run.scope.id for run in runs if run.scope] == [f"{instant(now):%H}"]
    assert len(asked) == 3
    assert all(at.utcoffset() == timedelta(0) for at in asked)
    assert asked == sorted(asked)
