"""Test loops: they survive errors in a step, and stop when told to, also when woken at the same time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from rota.engine.loop import Loop
from rota.errors import Unavailable
from tests.support.clock import ManualClock
from tests.support.wait import PATIENCE, until

LONG = timedelta(hours=1)


class Steps:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.taken = 0
        self.troubles = 0

    def on_error(self) -> None:
        self.troubles += 1

    async def step(self) -> timedelta:
        self.taken += 1
        if self.errors:
            raise self.errors.pop(0)
        return LONG


async def test_a_loop_woken_and_stopped_at_the_same_moment_stops() -> None:
    """`asyncio.wait_for` of Python 3.11 would forget that it was cancelled, and the stop would wait for ever."""
    steps = Steps()
    loop = Loop("test", steps)
    loop.start()
    await until(lambda: steps.taken == 1)
    async with asyncio.timeout(PATIENCE):
        loop.wake()
        await asyncio.sleep(0)
        await loop.stop()


async def test_a_hint_ends_its_rest() -> None:
    steps = Steps()
    loop = Loop("test", steps)
    loop.start()
    await until(lambda: steps.taken == 1)
    loop.wake()
    await until(lambda: steps.taken == 2)
    await loop.stop()


async def test_it_survives_the_database_and_its_own_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.loop._TROUBLE", timedelta(milliseconds=1))
    steps = Steps(Unavailable("away"), ZeroDivisionError())
    loop = Loop("test", steps)
    loop.start()
    await until(lambda: steps.taken == 3)
    assert steps.troubles == 2
    await loop.stop()


async def test_a_database_that_is_away_for_long_does_not_fill_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.engine.loop._TROUBLE", timedelta(milliseconds=1))
    caplog.set_level("INFO")
    clock = ManualClock()
    loop = Loop("test", Steps(*[Unavailable("away")] * 30, Unavailable("starting"), Unavailable("away")), clock=clock)
    for _ in range(33):
        await loop._step()
        clock.advance(timedelta(seconds=5))
    assert [record.getMessage() for record in caplog.records] == [
        "test: away; retrying",
        "test: away; retrying",
        "test: away; retrying",
        "test: starting; retrying",
        "test: recovered after 2m40s",
    ]
    await loop._step()
    assert len(caplog.records) == 5


async def test_a_bug_is_told_with_where_it_is(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop("test", Steps(ZeroDivisionError("of a bug")))
    await loop._step()
    (record,) = caplog.records
    assert record.getMessage() == "test: of a bug; retrying"
    assert record.exc_info
    assert record.exc_info[0] is ZeroDivisionError
