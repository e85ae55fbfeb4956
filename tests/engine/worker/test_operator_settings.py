"""Test operators' requests to a worker: they apply from the next claim and heartbeat, and spare active runs."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota import Context, RunState
from rota.core.workers.worker import OperatorRequest, WorkerSettings, WorkerState, write_asked
from rota.engine.engine import Engine, worker_info
from rota.engine.worker.heartbeat import Beat
from rota.engine.worker.worker import Worker
from rota.store import Extended
from rota.testing import Harness
from tests.support.databases.unreliable_store import ShakyStore
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import BEAT, Working
from tests.support.wait import PATIENCE, until

Start = Callable[..., Awaitable[Working]]


def still_worker(harness: Harness, **settings: Any) -> Worker:
    """A worker without its loops: it claims when stepped."""
    registry = harness.app.registry
    queues = settings.pop("queues", None)
    config = msgspec.structs.replace(harness.config, **settings)
    return Worker(harness.store, registry, worker_info(registry, config, "still", queues), config)


def tell(worker: Worker, state: WorkerState = WorkerState.WORKING, **settings: Any) -> None:
    """Deliver a request as the heartbeat's answer does."""
    asked = write_asked(OperatorRequest(state, WorkerSettings(**settings)))
    worker.on_heartbeat(Beat(0.0, {}, Extended(set(), set(), asked)))


async def end(worker: Worker) -> None:
    tell(worker, WorkerState.DRAINING)
    await worker.drain_once()
    await worker.stop()


class Gate:
    """A job whose runs go on until they are let go."""

    def __init__(self, harness: Harness) -> None:
        self.begun: list[str] = []
        self.open = asyncio.Event()

        @harness.app.job(name="gated")
        async def gated(ctx: Context) -> None:
            self.begun.append(ctx.run_id)
            await self.open.wait()


async def state_of(harness: Harness) -> list[WorkerState]:
    return [worker.state for worker in await harness.client.workers.list()]


async def test_drained_it_ends_what_runs_and_claims_nothing_until_it_is_resumed(
    either: Harness, working: Start
) -> None:
    gate = Gate(either)
    first = await either.enqueue("gated")
    real = await working(either)
    await until(lambda: gate.begun == [first.id])

    async def shown(state: WorkerState) -> None:
        async def is_shown() -> bool:
            return await state_of(either) == [state]

        await until(is_shown)

    await shown(WorkerState.WORKING)
    await either.client.workers.drain("real")
    await shown(WorkerState.DRAINING)
    second = await either.enqueue("gated")
    assert await either.state(first) is RunState.RUNNING
    gate.open.set()
    await real.has_state(first, RunState.SUCCEEDED)
    assert await real.worker.step() > 0
    assert (await either.state(second), gate.begun) == (RunState.QUEUED, [first.id])
    await either.client.workers.resume("real")
    await real.has_state(second, RunState.SUCCEEDED)
    await shown(WorkerState.WORKING)


async def test_a_drain_hands_back_what_has_not_begun(harness: Harness, working: Start) -> None:
    gate = Gate(harness)
    runs = [await harness.enqueue("gated") for _ in range(3)]
    store = ShakyStore(harness.store)
    store.claims_answered.clear()
    real = await working(harness, store=store)
    await store.claims_done.wait()
    tell(real.worker, WorkerState.DRAINING)  # while the answer of a claim is under way
    store.claims_answered.set()
    await until(lambda: len(store.reports) >= 1)
    await real.idle()
    assert [await harness.state(run) for run in runs] == [RunState.QUEUED] * 3
    assert [(await harness.run(run)).attempt for run in runs] == [0] * 3
    assert gate.begun == []


async def test_hearing_it_again_changes_nothing(harness: Harness) -> None:
    Gate(harness)
    worker = still_worker(harness)
    tell(worker, WorkerState.DRAINING, slots=3)
    info, positions = worker.info, worker._operator_settings.positions
    tell(worker, WorkerState.DRAINING, slots=3)
    assert (worker.info, worker._operator_settings.positions) == (info, positions)
    worker.on_heartbeat(Beat(0.0, {}, Extended(set(), set())))
    assert worker.info is info


async def test_settings_hold_from_the_next_claim_on(harness: Harness) -> None:
    gate = Gate(harness)
    for _ in range(9):
        await harness.enqueue("gated")
    worker = still_worker(harness, concurrency=2)
    await worker.step()
    await until(lambda: len(gate.begun) == 2)
    tell(worker, slots=5, poll=timedelta(seconds=7))
    await worker.step()
    await until(lambda: len(gate.begun) == 5)
    assert await worker.step() == 7
    tell(worker, slots=1)
    await worker.step()
    assert (len(gate.begun), len(worker.active)) == (5, 5)  # what runs is not affected
    assert (worker.info.slots, worker.info.pace and worker.info.pace.poll) == (1, harness.config.poll)
    gate.open.set()
    await end(worker)


async def test_queues_hold_from_the_next_claim_on(harness: Harness) -> None:
    gate = Gate(harness)
    here = await harness.enqueue("gated")
    there = await harness.enqueue("gated", {"queue": "there"})
    worker = still_worker(harness)
    tell(worker, queues={"there": 1})
    await worker.step()
    await until(lambda: bool(gate.begun))
    await worker.step()
    assert gate.begun == [there.id]
    tell(worker)
    await worker.step()
    await until(lambda: gate.begun == [there.id, here.id])
    gate.open.set()
    await end(worker)


async def test_full_queues_are_claimed_by_weight(harness: Harness) -> None:
    queues = Counter[str]()

    @harness.app.job
    async def note(queue: str) -> None:
        queues[queue] += 1

    for queue in ("a", "b"):
        for _ in range(60):
            await harness.enqueue("note", {"queue": queue}, queue=queue)
    worker = still_worker(harness, queues={"a": 3, "b": 1}, concurrency=1)
    while sum(queues.values()) < 40:
        await worker.drain_once()
    assert abs(queues["a"] - 30) <= 2
    while await worker.drain_once():
        pass
    assert queues == {"a": 60, "b": 60}
    await worker.stop()


async def test_more_slots_are_more_threads(harness: Harness, working: Start) -> None:
    together = threading.Barrier(3)

    @harness.app.job
    def meet() -> None:
        together.wait(PATIENCE)

    runs = [await harness.enqueue(meet) for _ in range(3)]
    real = await working(harness, concurrency=1)
    await real.has_state(runs[0], RunState.RUNNING)
    await harness.client.workers.update("real", slots=3)
    for run in runs:
        await real.has_state(run, RunState.SUCCEEDED)


async def test_more_slots_are_more_processes(harness: Harness, working: Start, tmp_path: Path) -> None:
    harness.app.job(isolation="process")(isolated_jobs.leave_pid_and_hang)
    places = [tmp_path / str(number) for number in range(2)]
    for place in places:
        await harness.enqueue("leave_pid_and_hang", place=str(place))
    await working(harness, concurrency=1)
    await until(places[0].exists)
    await harness.client.workers.update("real", slots=2)
    await until(places[1].exists)


async def test_the_heartbeat_changes_with_the_next_one(harness: Harness, working: Start) -> None:
    Gate(harness)
    real = await working(harness, heartbeat=BEAT)
    before = await started(harness)
    await harness.client.workers.update("real", heartbeat="9s")

    async def is_shown() -> bool:
        return (await harness.client.workers.get("real")).heartbeat == timedelta(seconds=9)

    await until(is_shown)
    assert real.worker._heartbeat._interval == 9
    assert (await harness.client.workers.get("real")).started_at == before


async def started(harness: Harness) -> Any:
    async def is_there() -> bool:
        return bool(await harness.client.workers.list())

    await until(is_there)
    return (await harness.client.workers.get("real")).started_at


@pytest.mark.parametrize(
    "asked",
    [
        "no json",
        '{"state": "dancing"}',
        write_asked(OperatorRequest(settings=WorkerSettings(heartbeat=timedelta(days=1)))),
    ],
)
async def test_what_cannot_be_done_is_left(harness: Harness, asked: str, caplog: pytest.LogCaptureFixture) -> None:
    Gate(harness)
    worker = still_worker(harness)
    info = worker.info
    for _ in range(3):
        worker.on_heartbeat(Beat(0.0, {}, Extended(set(), set(), asked)))
    assert worker.info is info
    assert caplog.text.count("cannot apply") == 1


async def test_an_embedded_engine_asked_to_stop_stops_its_worker_only(either: Harness) -> None:
    gate = Gate(either)
    run = await either.enqueue("gated")
    config = msgspec.structs.replace(either.config, heartbeat=BEAT)
    engine = Engine(either.store, either.app.registry, config, name="real")
    await engine.start()
    await until(lambda: gate.begun == [run.id])
    await started(either)
    await either.client.workers.stop("real")
    await engine.stop_asked.wait()

    async def is_shown() -> bool:
        return await state_of(either) == [WorkerState.STOPPING]

    await until(is_shown)
    gate.open.set()

    async def is_gone() -> bool:
        return await state_of(either) == []

    await until(is_gone)
    assert await either.state(run) is RunState.SUCCEEDED
    waits = await either.enqueue("gated")
    assert engine._planner._task is not None
    assert not engine._planner._task.done()
    assert await either.state(waits) is RunState.QUEUED
    await engine.stop()
