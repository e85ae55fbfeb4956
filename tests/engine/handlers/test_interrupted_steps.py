"""Test steps that are interrupted, time out or fail: results stay, and a step that still runs is not repeated."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from rota import Context, Fail, Outcome, Retry, RunState
from rota.core.progress.notes import Notes
from rota.core.progress.steps import StepState
from rota.store.progress.notes import NoteStore
from rota.testing import Harness
from tests.engine.handlers.test_steps import states_of
from tests.support.databases.unreliable_store import ShakyNotes, ShakyStore
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import AT_ONCE, Working
from tests.support.wait import PATIENCE, round_trips, until

Start = Callable[..., Awaitable[Working]]


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """A thread cannot be killed: the test lets it go."""
    event = threading.Event()
    yield event
    event.set()


class SlowRecords(ShakyNotes):
    """The record that a step is done is on its way until `go_on`."""

    def __init__(self, store: ShakyStore) -> None:
        super().__init__(store)
        self.under_way, self.go_on = asyncio.Event(), asyncio.Event()

    async def write(self, notes: Notes) -> set[tuple[str, int]]:
        await self._hold(notes)
        return await NoteStore.write(self, notes)

    async def unshield(self, notes: Notes, grace: int, no: int) -> set[tuple[str, int]]:
        await self._hold(notes)
        return await super().unshield(notes, grace, no)

    async def _hold(self, notes: Notes) -> None:
        if any(note.state is StepState.SUCCEEDED for note in notes.steps):
            self.under_way.set()
            await self.go_on.wait()


@pytest.mark.parametrize("cancelable", [True, False])
@pytest.mark.parametrize("ending", ["stop", "timeout"])
async def test_a_record_on_its_way_arrives_although_the_attempt_is_interrupted(
    either: Harness, working: Start, monkeypatch: pytest.MonkeyPatch, cancelable: bool, ending: str
) -> None:
    monkeypatch.setattr("rota.engine.worker.worker._LAST_REPORTS", PATIENCE)
    monkeypatch.setattr("rota.engine.worker.reporter._PATIENCE", PATIENCE)
    store = ShakyStore(either.store)
    records = store.notes = SlowRecords(store)
    charged: list[int] = []

    async def charge() -> int:
        charged.append(1)
        return len(charged)

    async def pay(ctx: Context) -> int:
        return await ctx.step("charge", charge)

    limit = "1s" if ending == "timeout" else "1h"  # not before the record is on its way
    either.app.job(steps=[{"id": "charge", "cancelable": cancelable}], timeout=limit, backoff="0s", max_attempts=2)(pay)
    run = await either.enqueue("pay")
    worker = await working(either, store=store)
    await until(records.under_way.is_set)
    await either.client.pause_queue("default")
    stopping = asyncio.create_task(worker.stop(AT_ONCE) if ending == "stop" else asyncio.sleep(0))
    await until(lambda: not worker.worker.active)
    await round_trips(either.store.database)  # a report that does not wait is there then
    records.go_on.set()
    await stopping
    await worker.has_state(run, RunState.QUEUED)
    assert await states_of(either, run) == {"charge": StepState.SUCCEEDED}
    await worker.stop()
    await either.client.resume_queue("default")
    await either.drain()
    assert (await either.run(run)).result == 1
    assert charged == [1]
    first = Outcome.HANDED_BACK if ending == "stop" else Outcome.TIMED_OUT
    assert [attempt.outcome for attempt in await either.attempts(run)] == [first, Outcome.SUCCEEDED]


async def test_a_thread_whose_step_took_too_long_keeps_its_slot(
    harness: Harness, working: Start, release: threading.Event
) -> None:
    async def crawl(ctx: Context) -> None:
        await ctx.step("slow", release.wait, 20)

    async def other() -> None: ...

    harness.app.job(steps=[{"id": "slow", "timeout": "30ms"}], max_attempts=1)(crawl)
    harness.app.job(other)
    run = await harness.enqueue("crawl")
    worker = await working(harness, concurrency=1)
    await worker.has_state(run, RunState.TIMED_OUT)
    await worker.idle()
    assert worker.worker._executor.slots_taken == 1
    waiting = await harness.enqueue("other")
    assert await harness.state(waiting) is RunState.QUEUED
    release.set()
    await worker.has_state(waiting, RunState.SUCCEEDED)
    await until(lambda: worker.worker._executor.slots_taken == 0)


async def test_a_coroutine_that_resists_keeps_its_slot_whatever_it_did_before(harness: Harness, working: Start) -> None:
    leave = asyncio.Event()

    async def crawl(ctx: Context) -> None:
        await ctx.step("quick", lambda: 1)
        while not leave.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await leave.wait()

    harness.app.job(max_attempts=1, timeout="1s", cancel_grace="50ms")(crawl)  # after the step
    run = await harness.enqueue("crawl")
    worker = await working(harness, concurrency=1)
    await worker.has_state(run, RunState.TIMED_OUT)
    await worker.idle()
    taken = worker.worker._executor.slots_taken
    leave.set()
    assert taken == 1
    await until(lambda: worker.worker._executor.slots_taken == 0)


async def test_a_step_left_behind_by_the_last_call_is_not_begun_a_second_time(either: Harness, working: Start) -> None:
    go_on, again = asyncio.Event(), asyncio.Event()
    seen: list[str] = []
    calls: list[int] = []

    async def slow() -> str:
        seen.append("begins")
        await go_on.wait()
        seen.append("ends")
        return "page"

    async def fail_once() -> None:
        if len(calls) == 1:
            await until(lambda: bool(seen))
            raise LookupError
        again.set()  # the step was asked for before

    async def crawl(ctx: Context) -> str:
        calls.append(1)
        page, _ = await asyncio.gather(ctx.step("slow", slow), fail_once())
        return page

    either.app.job(local_retries=1, max_attempts=1)(crawl)
    run = await either.enqueue("crawl")
    worker = await working(either)
    await until(again.is_set)
    await round_trips(either.store.database, 3)
    assert seen == ["begins"]
    go_on.set()
    await until(lambda: not worker.worker.active)
    await worker.has_state(run, RunState.SUCCEEDED)
    assert (await either.run(run)).result == "page"
    assert seen == ["begins", "ends"]


async def test_a_function_that_takes_too_long_in_a_process_is_killed(harness: Harness) -> None:
    harness.app.job(isolation="process", max_attempts=1, steps=[{"id": "slow", "timeout": "100ms"}])(
        isolated_jobs.slow_function
    )
    run = await harness.enqueue("slow_function")
    async with asyncio.timeout(PATIENCE):
        await harness.drain()
    late = await harness.run(run)
    assert late.state is RunState.TIMED_OUT
    assert late.error
    assert late.error.message == "step 'slow' took longer than 100ms"


async def test_a_coroutine_of_a_lambda_runs_on_the_loop_of_its_handler(harness: Harness) -> None:
    here = asyncio.get_running_loop()

    async def where(loop: asyncio.AbstractEventLoop) -> bool:
        return asyncio.get_running_loop() is loop

    async def crawl(ctx: Context) -> bool:
        return await ctx.step("where", lambda: where(here))

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    await harness.drain()
    assert (await harness.run(run)).result is True


async def fails_once_here(ctx: Context) -> int:
    tried: list[int] = []

    async def fetch() -> int:
        tried.append(1)
        if len(tried) == 1:
            raise LookupError
        return len(tried)

    with pytest.raises(LookupError):
        await ctx.step("fetch", fetch)
    return await ctx.step("fetch", fetch)


@pytest.mark.parametrize(
    ("isolation", "handler"),
    [("none", fails_once_here), ("process", isolated_jobs.fails_once)],
    ids=["here", "process"],
)
async def test_a_step_that_failed_may_be_opened_again(either: Harness, isolation: str, handler: Any) -> None:
    options: dict[str, Any] = {"isolation": "process"} if isolation == "process" else {}
    job = either.app.job(max_attempts=1, **options)(handler)
    run = await either.enqueue(job)
    await either.drain()
    assert (await either.run(run)).result == 2
    assert await states_of(either, run) == {"fetch": StepState.SUCCEEDED}


async def test_what_a_second_attempt_skips_comes_after_what_the_first_one_did(either: Harness) -> None:
    done: list[str] = []

    async def note(name: str) -> str:
        done.append(name)
        return name

    async def crawl(ctx: Context) -> None:
        if ctx.attempt == 2 or len(done) > 2:
            ctx.skip_step("c")
        for name in ("a", "b"):
            await ctx.step(name, note, name)
        raise Retry(after="0s") if ctx.attempt == 1 else Fail("no luck")

    either.app.job(max_attempts=2)(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    assert await either.state(run) is RunState.FAILED
    assert list(await states_of(either, run)) == ["a", "b", "c"]
    assert list(await states_of(either, await either.client.retry(run.id, from_step="c"))) == ["a", "b"]
    assert list(await states_of(either, await either.client.retry(run.id, from_step="b"))) == ["a"]


async def test_a_retry_from_a_step_that_was_never_reached_keeps_all_before_it(either: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        for name in ("a", "b"):
            await ctx.step(name, asyncio.sleep, 0, name)
        raise Fail("no luck")

    either.app.job(steps=["a", "b", "c", "d"])(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    again = await either.client.retry(run.id, from_step="d")
    kept = {step.id: step.result for step in await either.client.steps(again.id) if step.kept_from == run.id}
    assert kept == {"a": "a", "b": "b"}
