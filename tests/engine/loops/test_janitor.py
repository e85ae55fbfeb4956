"""Test retention by number and by age, whichever keeps more."""

from __future__ import annotations

import pytest

from rota import Enqueued, Order, Outcome, RunState
from rota.core.runs.outcome import Report
from rota.errors import Unavailable, UnknownRun
from rota.store.monitoring import count_runs
from rota.testing import Harness


async def finished(harness: Harness, job: str, count: int) -> list[Enqueued]:
    runs = []
    for _ in range(count):
        runs.append(await harness.enqueue(job))
        await (await harness.worker().claim()).finish()
    return runs


async def kept(harness: Harness, runs: list[Enqueued]) -> list[bool]:
    there = []
    for run in runs:
        try:
            await harness.run(run)
        except UnknownRun:
            there.append(False)
        else:
            there.append(True)
    return there


async def test_old_runs_beyond_the_newest_go(either: Harness) -> None:
    await either.declare("chatty", keep=2, keep_for="1d")
    runs = await finished(either, "chatty", 5)
    either.clock.advance("2d")
    await either.janitor.step()
    assert await kept(either, runs) == [False, False, False, True, True]


async def test_young_runs_stay_however_many(either: Harness) -> None:
    await either.declare("chatty", keep=2, keep_for="1d")
    old = await finished(either, "chatty", 2)
    either.clock.advance("23h")
    young = await finished(either, "chatty", 4)
    await either.janitor.step()
    assert all(await kept(either, old + young))
    either.clock.advance("2h")
    await either.janitor.step()
    assert await kept(either, old + young) == [False, False, True, True, True, True]


async def test_with_nothing_to_keep_everything_old_goes_with_its_attempts(either: Harness) -> None:
    await either.declare("forgettable", keep=0, keep_for="0s")
    runs = await finished(either, "forgettable", 3)
    either.clock.advance("1ms")
    await either.janitor.step()
    assert await kept(either, runs) == [False] * 3


async def test_runs_that_are_not_final_stay(either: Harness) -> None:
    await either.declare("chatty", keep=0, keep_for="0s")
    running, queued = await either.enqueue("chatty"), await either.enqueue("chatty")
    delayed = await either.enqueue("chatty", {"delay": "300d"})
    worker = await either.worker().claim()
    either.clock.advance("100d")
    await either.janitor.step()
    assert await kept(either, [running, queued, delayed]) == [True] * 3
    states = [await either.state(run) for run in (running, queued, delayed)]
    assert sorted(states) == [RunState.QUEUED, RunState.RUNNING, RunState.SCHEDULED]
    await worker.finish()


async def test_each_job_has_its_own_retention(either: Harness) -> None:
    await either.declare("short", keep=0, keep_for="1h")
    await either.declare("long", keep=0, keep_for="10d")
    short, long = await finished(either, "short", 2), await finished(either, "long", 2)
    either.clock.advance("1d")
    await either.janitor.step()
    assert await kept(either, short + long) == [False, False, True, True]


async def test_more_than_one_bite_is_pruned_in_one_step(harness: Harness) -> None:
    await harness.declare("many", keep=10, keep_for="1h")
    await harness.client.enqueue_many([Order("many", {}) for _ in range(2_050)])
    worker = await harness.worker().claim(2_050)
    done = [Report(claim.run_id, claim.fence, Outcome.SUCCEEDED) for claim in worker.claims.values()]
    await harness.store.report(done)
    harness.clock.advance("2h")
    await harness.janitor.step()
    assert len(await harness.client.list(limit=500)) == 10


async def test_a_thorough_look_that_fails_is_not_begun_anew_at_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await harness.declare("chatty")
    await finished(harness, "chatty", 1)
    looks = 0

    async def passed_runs(*_: object, **__: object) -> list[object]:
        nonlocal looks
        looks += 1
        raise Unavailable("it takes too long")

    monkeypatch.setattr(count_runs, "passed_runs", passed_runs)
    for _ in range(3):
        assert await harness.janitor.step() == harness.config.janitor
    assert looks == 1
    assert "it takes too long" in caplog.text
