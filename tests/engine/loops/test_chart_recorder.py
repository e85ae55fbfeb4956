"""Test the chart recorder: each count is stored once, whatever happens to the database's answer."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from rota.core.monitoring.counters import HOUR, MINUTE, Counted, Rows
from rota.core.states import RunState
from rota.engine.loops.chart_recorder import ChartRecorder
from rota.engine.observability.meters import Meters
from rota.errors import Unavailable
from rota.store.databases.database import Tx
from rota.testing import Harness

ROWS = "select span, at, source, counted from rota_count order by span, at, source"


async def counted(harness: Harness) -> dict[tuple[int, int, str], Counted]:
    async def body(tx: Tx) -> dict[tuple[int, int, str], Counted]:
        return {
            (span, at, source): msgspec.json.decode(text, type=Counted)
            for span, at, source, text in await tx.fetch_sql(ROWS)
        }

    return await harness.store.database.read(body)


async def runs(harness: Harness, span: int = 60) -> dict[tuple[int, str], dict[str, int]]:
    """(minutes since the first, source) → how runs ended."""
    rows = {(at, source): row for (one, at, source), row in (await counted(harness)).items() if one == span and source}
    begin = min((at for at, _ in rows), default=0)
    return {((at - begin) // MINUTE, source): row.runs for (at, source), row in rows.items()}


def ended(meters: Meters, count: int = 1, state: RunState = RunState.SUCCEEDED) -> None:
    meters.of["job", "queue"].runs[state].add(count)


async def at_noon(harness: Harness) -> int:
    """A whole hour, so that steps do not happen to fall into another minute."""
    now = harness.clock.micros()
    harness.clock.advance(f"{(-now % HOUR) / 1_000_000:.6f}s")
    return harness.clock.micros()


async def test_it_adds_to_its_minute_and_to_its_hour(either: Harness) -> None:
    noon = await at_noon(either)
    meters = Meters()
    recorder = ChartRecorder(either.store, meters, "a")
    either.clock.advance("20s")
    ended(meters, 2)
    meters.lag.observe(5_000)
    await recorder.flush()
    either.clock.advance("10s")
    ended(meters, 1, RunState.FAILED)
    await recorder.flush()
    either.clock.advance("60s")
    ended(meters)
    await recorder.flush()
    found = await counted(either)
    assert found[60, noon, "a"] == Counted(runs={"succeeded": 2, "failed": 1}, lag={4_900: 1})
    assert found[60, noon + MINUTE, "a"] == Counted(runs={"succeeded": 1})
    assert found[3_600, noon, "a"].runs == {"succeeded": 3, "failed": 1}
    assert found[300, noon, "a"] == found[3_600, noon, "a"]
    assert len(found) == 4


async def test_who_counted_nothing_writes_nothing(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    meters = Meters()
    ended(meters)  # before its time
    recorder = ChartRecorder(harness.store, meters, "a")
    await recorder.step()
    await recorder.close()
    assert await counted(harness) == {}


async def test_processes_have_rows_of_their_own(either: Harness) -> None:
    for source in ("a", "b"):
        meters = Meters()
        recorder = ChartRecorder(either.store, meters, source)
        ended(meters)
        await recorder.flush()
    assert await runs(either) == {(0, "a"): {"succeeded": 1}, (0, "b"): {"succeeded": 1}}


async def test_an_answer_that_got_lost_counts_nothing_twice(either: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await at_noon(either)
    meters = Meters()
    recorder = ChartRecorder(either.store, meters, "a")
    record = either.store.monitoring.record

    async def lost(source: str, rows: Rows) -> None:
        await record(source, rows)
        raise Unavailable("the answer got lost")

    ended(meters, 3)
    either.clock.advance("50s")
    with monkeypatch.context() as patch:
        patch.setattr(either.store.monitoring, "record", lost)
        with pytest.raises(Unavailable):
            await recorder.flush()
    either.clock.advance("20s")  # another minute by now
    await recorder.flush()
    assert await runs(either) == {(0, "a"): {"succeeded": 3}}
    ended(meters)
    await recorder.flush()
    assert await runs(either) == {(0, "a"): {"succeeded": 3}, (1, "a"): {"succeeded": 1}}


async def test_what_could_not_be_written_is_written_later(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await at_noon(harness)
    meters = Meters()
    recorder = ChartRecorder(harness.store, meters, "a")

    async def away(*_: Any) -> None:
        raise Unavailable("away")

    harness.clock.advance("30s")
    for _ in range(3):
        ended(meters)
        with monkeypatch.context() as patch:
            patch.setattr(harness.store.monitoring, "record", away)
            with pytest.raises(Unavailable):
                await recorder.flush()
        harness.clock.advance("60s")
    await recorder.step()
    assert await runs(harness) == {(no, "a"): {"succeeded": 1} for no in range(3)}
    assert (await runs(harness, 3_600))[0, "a"] == {"succeeded": 3}


async def test_an_orderly_end_writes_the_last_seconds(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    meters = Meters()
    recorder = ChartRecorder(harness.store, meters, "a")
    ended(meters)
    await recorder.close()
    assert await runs(harness) == {(0, "a"): {"succeeded": 1}}

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    ended(meters)
    monkeypatch.setattr(harness.store.monitoring, "record", never)
    monkeypatch.setattr("rota.engine.loops.chart_recorder._LAST_WORDS", 0.01)
    await recorder.close()  # and waits for nobody


async def test_levels_are_measured_by_whoever_comes_first(either: Harness) -> None:
    noon = await at_noon(either)
    await either.declare("work")
    for _ in range(3):
        await either.enqueue("work")
    await either.worker().claim()
    recorders = [ChartRecorder(either.store, Meters(), source) for source in "ab"]
    either.clock.advance("10s")
    for recorder in recorders:
        await recorder.step()
    await either.enqueue("work")
    for recorder in recorders:
        await recorder.step()
    level = Counted(levels={"default": (2, 1, 0)})
    assert await counted(either) == {(span, noon, ""): level for span in (60, 300, 3_600)}
    either.clock.advance("50s")
    for recorder in recorders:
        await recorder.step()
    found = await counted(either)
    assert found[60, noon + MINUTE, ""].levels == {"default": (3, 1, 0)}
    assert found[3_600, noon, ""] == level


async def test_old_ones_go(either: Harness) -> None:
    meters = Meters()
    recorder = ChartRecorder(either.store, meters, "a")
    ended(meters)
    await recorder.flush()
    either.clock.advance("3d")
    ended(meters)
    await recorder.flush()
    await either.janitor.step()
    assert [(span, row.runs) for (span, _, _), row in (await counted(either)).items()] == [
        (60, {"succeeded": 1}),
        (300, {"succeeded": 1}),
        (3_600, {"succeeded": 1}),
        (3_600, {"succeeded": 1}),
    ]
    either.clock.advance("61d")
    await either.janitor.step()
    assert await counted(either) == {}


async def test_an_engine_keeps_what_its_worker_did(harness: Harness) -> None:
    @harness.app.job
    async def quick() -> None: ...

    async with harness.app.running():
        run = await quick.aenqueue()
        await (await harness.app.connect()).wait(run.id, "60s")
    rows = {source: row for (span, _, source), row in (await counted(harness)).items() if span == 60 and source}
    (row,) = rows.values()
    assert row.runs == {"succeeded": 1}
    assert sum(row.durations.values()) == 1
    assert "@" in next(iter(rows))
