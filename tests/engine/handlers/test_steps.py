"""Test steps: done once across attempts; some finish before a cancel takes effect."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota import Context, Fail, Outcome, Retry, RunState, Snooze, SyncContext
from rota.core.progress.steps import Step, StepState
from rota.errors import Invalid, LeaseLost, StepTwice, UnknownStep
from rota.testing import Harness
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import SECOND, Working
from tests.support.wait import forever, until

Start = Callable[..., Awaitable[Working]]


async def steps_of(harness: Harness, run: Any) -> dict[str, Step]:
    return {step.id: step for step in await harness.client.steps(run.id)}


async def states_of(harness: Harness, run: Any) -> dict[str, StepState]:
    return {id: step.state for id, step in (await steps_of(harness, run)).items()}


async def test_a_step_that_is_done_is_not_repeated_by_later_attempts(either: Harness) -> None:
    done: list[str] = []

    async def fetch(url: str) -> dict[str, object]:
        done.append(url)
        return {"url": url, "size": 3}

    async def crawl(ctx: Context, url: str) -> object:
        page = await ctx.step("fetch", fetch, url)
        if ctx.attempt == 1:
            raise Retry(after="0s")
        return page

    either.app.job(crawl)
    run = await either.enqueue("crawl", url="a")
    await either.drain()
    assert (await either.run(run)).result == {"url": "a", "size": 3}
    assert done == ["a"]
    fetched = (await steps_of(either, run))["fetch"]
    assert (fetched.state, fetched.attempt, fetched.result) == (StepState.SUCCEEDED, 1, {"url": "a", "size": 3})


async def test_plain_functions_have_steps_too(either: Harness) -> None:
    done: list[int] = []

    def count() -> int:
        done.append(1)
        return 1

    def crawl(ctx: SyncContext) -> int:
        first = ctx.step("first", count)
        second = ctx.step("second", _later, first)
        if ctx.attempt == 1:
            raise Retry(after="0s")
        return second

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    assert (await either.run(run)).result == 2
    assert done == [1]


async def _later(value: int) -> int:
    await asyncio.sleep(0)
    return value + 1


async def test_a_plain_function_of_a_coroutine_gets_a_thread(harness: Harness) -> None:
    async def crawl(ctx: Context) -> bool:
        return await ctx.step("where", lambda: threading.current_thread() is threading.main_thread())

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    await harness.drain()
    assert (await harness.run(run)).result is False


async def test_steps_of_a_process_are_kept_by_its_worker(either: Harness) -> None:
    either.app.job(isolation="process")(isolated_jobs.two_steps)
    either.app.job(isolation="process")(isolated_jobs.two_async_steps)
    runs = [await either.enqueue("two_steps"), await either.enqueue("two_async_steps")]
    await either.drain()
    for run in runs:
        assert (await either.run(run)).result == [1, 2]
        assert await states_of(either, run) == {"one": StepState.SUCCEEDED, "two": StepState.SUCCEEDED}
        assert (await steps_of(either, run))["one"].attempt == 1
        assert (await either.run(run)).attempt == 2


async def test_a_failed_step_is_begun_again(either: Harness) -> None:
    tried: list[int] = []

    async def fetch() -> str:
        tried.append(1)
        if len(tried) < 2:
            raise RuntimeError("no route")
        return "page"

    async def crawl(ctx: Context) -> str:
        return await ctx.step("fetch", fetch)

    either.app.job(backoff="1s")(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    failed = (await steps_of(either, run))["fetch"]
    assert (failed.state, failed.error.message) == (StepState.FAILED, "no route")
    either.clock.advance("10s")
    await either.drain()
    assert (await either.run(run)).result == "page"
    mended = (await steps_of(either, run))["fetch"]
    assert (mended.state, mended.attempt, mended.error) == (StepState.SUCCEEDED, 2, None)


async def test_declared_steps_are_pending_and_then_skipped(either: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        await ctx.step("fetch", _later, 1)
        ctx.skip_step("parse", "nothing new")

    either.app.job(steps=["fetch", {"id": "parse", "name": "Parse it"}, "store"])(crawl)
    run = await either.enqueue("crawl")
    assert set((await states_of(either, run)).values()) == set()  # nobody has declared it to the database yet
    await either.drain()
    steps = await steps_of(either, run)
    assert [(step.id, step.state.value) for step in steps.values()] == [
        ("fetch", "succeeded"),
        ("parse", "skipped"),
        ("store", "skipped"),
    ]
    assert (steps["parse"].name, steps["parse"].summary) == ("Parse it", "nothing new")


@pytest.mark.parametrize(
    ("open_them", "error"),
    [
        (lambda ctx: _in_turn(ctx, "a", "a"), StepTwice),
        (lambda ctx: _in_turn(ctx, "a", "c"), UnknownStep),
        (lambda ctx: _in_turn(ctx, ""), UnknownStep),
    ],
)
async def test_a_step_twice_or_unknown_is_a_clear_error(
    harness: Harness, open_them: Callable[[Context], Awaitable[None]], error: type[Exception]
) -> None:
    async def crawl(ctx: Context) -> None:
        with pytest.raises(error):
            await open_them(ctx)

    harness.app.job(steps=["a", "b"])(crawl)
    run = await harness.enqueue("crawl")
    await harness.drain()
    assert await harness.state(run) is RunState.SUCCEEDED


async def _in_turn(ctx: Context, *ids: str) -> None:
    for id in ids:
        await ctx.step(id, _later, 1)


async def test_a_result_that_is_no_json_fails_the_run_for_good(either: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        await ctx.step("odd", object)

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    failed = await either.run(run)
    assert failed.state is RunState.FAILED
    assert failed.error
    assert "step 'odd' cannot be stored" in failed.error.message
    assert await states_of(either, run) == {"odd": StepState.FAILED}


async def test_too_many_steps_are_refused(harness: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        for number in range(1_000):
            ctx.skip_step(f"s{number}")
        with pytest.raises(Invalid, match="at most 1000"):
            ctx.skip_step("one more")

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    await harness.drain()
    assert await harness.state(run) is RunState.SUCCEEDED
    assert len(await harness.client.steps(run.id)) == 1_000


async def test_a_snoozed_step_is_pending(either: Harness) -> None:
    async def wait() -> None:
        raise Snooze("1h")

    async def crawl(ctx: Context) -> None:
        await ctx.step("wait", wait)

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    assert await states_of(either, run) == {"wait": StepState.PENDING}
    await either.cancel(run)
    assert await states_of(either, run) == {"wait": StepState.CANCELLED}


async def test_steps_at_the_same_time(either: Harness) -> None:
    async def crawl(ctx: Context) -> list[int]:
        return list(await asyncio.gather(*[ctx.step(f"page-{number}", _later, number) for number in range(20)]))

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    assert (await either.run(run)).result == list(range(1, 21))


async def test_a_step_of_a_lost_attempt_is_refused(either: Harness, working: Start) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()
    errors: list[type[BaseException]] = []

    async def crawl(ctx: Context) -> None:
        reached.set()
        await go_on.wait()
        try:
            await ctx.step("late", _later, 1)
        except BaseException as error:
            errors.append(type(error))
            raise

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    stopped = await working(either, deaf=True)
    await until(reached.is_set)
    await either.client.pause_queue("default")  # or this worker itself claims it anew, and so hears of it
    either.clock.advance(stopped.config.lease + SECOND)
    await either.reaper.step()
    go_on.set()
    await until(lambda: bool(errors))
    assert errors == [LeaseLost]
    assert await states_of(either, run) == {}
    await stopped.stop()


async def test_a_step_that_takes_too_long(either: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        await ctx.step("slow", asyncio.sleep, 100)

    either.app.job(steps=[{"id": "slow", "timeout": "50ms"}], max_attempts=1)(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    late = await either.run(run)
    assert late.state is RunState.TIMED_OUT
    assert late.error
    assert late.error.message == "step 'slow' took longer than 50ms"
    assert await states_of(either, run) == {"slow": StepState.FAILED}


async def test_a_handler_may_live_without_a_slow_step(harness: Harness) -> None:
    async def crawl(ctx: Context) -> str:
        try:
            await ctx.step("slow", asyncio.sleep, 100)
        except Exception as error:
            return type(error).__name__
        return ""

    harness.app.job(steps=[{"id": "slow", "timeout": "20ms"}])(crawl)
    run = await harness.enqueue("crawl")
    await harness.drain()
    assert (await harness.run(run)).result == "StepTimedOut"


async def test_a_plain_functions_step_that_takes_too_long_is_given_up(harness: Harness) -> None:
    release = threading.Event()

    def crawl(ctx: SyncContext) -> None:
        ctx.step("slow", release.wait, 1)

    harness.app.job(steps=[{"id": "slow", "timeout": "50ms"}], max_attempts=1)(crawl)
    run = await harness.enqueue("crawl")
    try:
        await harness.drain()
        late = await harness.run(run)
        assert late.state is RunState.TIMED_OUT
        assert late.error
        assert "step 'slow' took longer" in late.error.message
    finally:
        release.set()


async def test_a_step_that_is_not_cancelable_finishes_first(either: Harness, working: Start) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def transfer() -> str:
        reached.set()
        await go_on.wait()
        return "moved"

    async def pay(ctx: Context) -> None:
        await ctx.step("transfer", transfer)
        await ctx.step("notify", _later, 1)

    either.app.job(steps=[{"id": "transfer", "cancelable": False}, "notify"], cancel_grace="1s")(pay)
    run = await either.enqueue("pay")
    worker = await working(either)
    await until(reached.is_set)
    assert (await either.cancel(run)).state is RunState.CANCELLING
    await until(lambda: any(attempt.cancelled for attempt in worker.worker.active.values()))
    either.clock.advance("5s")  # beyond its grace, within its lease
    await either.reaper.step()
    assert await either.state(run) is RunState.CANCELLING
    go_on.set()
    await worker.has_state(run, RunState.CANCELLED)
    assert await states_of(either, run) == {"transfer": StepState.SUCCEEDED, "notify": StepState.SKIPPED}
    assert [attempt.outcome for attempt in await either.attempts(run)] == [Outcome.CANCELLED]


async def test_after_such_a_step_the_grace_begins_anew(either: Harness, working: Start) -> None:
    reached, go_on, stubborn = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def transfer() -> None:
        reached.set()
        await go_on.wait()

    async def pay(ctx: Context) -> None:
        try:
            await ctx.step("transfer", transfer)
        except BaseException:
            stubborn.set()
            await forever()

    either.app.job(steps=[{"id": "transfer", "cancelable": False}], cancel_grace="3s")(pay)
    run = await either.enqueue("pay")
    worker = await working(either)
    await until(reached.is_set)
    await either.cancel(run)
    await until(lambda: any(attempt.cancelled for attempt in worker.worker.active.values()))
    either.clock.advance("10s")
    go_on.set()
    await until(stubborn.is_set)
    await either.reaper.step()
    assert await either.state(run) in (RunState.CANCELLING, RunState.CANCELLED)

    async def grace_is_over() -> bool:
        """The grace begins when the worker has written that the step is over, which may come after any of these."""
        either.clock.advance("4s")
        await either.reaper.step()
        return await either.state(run) is RunState.CANCELLED

    await until(grace_is_over)


async def test_such_a_step_does_not_begin_once_the_run_is_cancelled(either: Harness, working: Start) -> None:
    reached, go_on, begun = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def transfer() -> None:
        begun.set()

    async def pay(ctx: Context) -> None:
        reached.set()
        await go_on.wait()
        await ctx.step("transfer", transfer)

    either.app.job(steps=[{"id": "transfer", "cancelable": False}])(pay)
    run = await either.enqueue("pay")
    # The worker has not heard of the cancel yet: the database says no.
    worker = await working(either, deaf=True)
    await until(reached.is_set)
    await either.cancel(run)
    go_on.set()
    await worker.has_state(run, RunState.CANCELLED)
    assert not begun.is_set()


async def test_a_retry_by_hand_may_keep_what_was_done(either: Harness) -> None:
    done: list[str] = []

    async def note(name: str) -> str:
        done.append(name)
        return name

    async def crawl(ctx: Context) -> list[str]:
        pages = [await ctx.step(name, note, name) for name in ("fetch", "parse", "store")]
        if len(done) == 3:
            raise Fail("the disk is full")
        return pages

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    assert await either.state(run) is RunState.FAILED
    with pytest.raises(UnknownStep, match="did you mean 'parse'"):
        await either.client.retry(run.id, from_step="pars")
    done.append("again")
    again = await either.client.retry(run.id, from_step="parse")
    kept = await steps_of(either, again)
    assert {id: step.kept_from for id, step in kept.items()} == {"fetch": run.id}
    await either.drain()
    assert (await either.run(again)).result == ["fetch", "parse", "store"]
    assert done == ["fetch", "parse", "store", "again", "parse", "store"]
    whole = await either.client.retry(again.id, keep_steps=True)
    await either.drain()
    assert (await either.run(whole)).result == ["fetch", "parse", "store"]
    assert len(done) == 6
    anew = await either.client.retry(run.id)
    await either.drain()
    assert await either.state(anew) is RunState.SUCCEEDED
    assert len(done) == 9


async def test_steps_go_with_their_run(either: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        await ctx.step("fetch", _later, 1)
        ctx.log.info("done")
        ctx.progress(50)

    either.app.job(keep=0, keep_for="1m")(crawl)
    await either.enqueue("crawl")
    await either.drain()
    either.clock.advance("10m")
    await either.janitor.step()
    for table in ("rota_run", "rota_step", "rota_log", "rota_progress"):
        rows = await either.store.database.read(lambda tx, table=table: tx.fetch_sql(f"select * from {table}"))  # type: ignore[misc]
        assert len(rows) == 0, table


async def test_a_local_retry_opens_them_again_and_keeps_what_was_done(either: Harness) -> None:
    done: list[str] = []

    async def note(name: str) -> str:
        done.append(name)
        if done == ["fetch", "parse"]:
            raise LookupError("not yet")
        return name

    async def crawl(ctx: Context) -> list[str]:
        return [await ctx.step(name, note, name) for name in ("fetch", "parse")]

    either.app.job(local_retries=1, max_attempts=1)(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    assert (await either.run(run)).result == ["fetch", "parse"]
    assert done == ["fetch", "parse", "parse"]
    assert await states_of(either, run) == {"fetch": StepState.SUCCEEDED, "parse": StepState.SUCCEEDED}


async def test_a_retry_may_begin_at_a_step_that_was_never_reached(either: Harness) -> None:
    done: list[str] = []

    async def note(name: str) -> None:
        done.append(name)

    async def crawl(ctx: Context) -> None:
        for name in ("fetch", "store") if not done else ("fetch", "parse", "store"):
            await ctx.step(name, note, name)
        if len(done) == 2:
            raise Fail("parse was forgotten")

    either.app.job(steps=["fetch", "parse", "store", "tell"])(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    again = await either.client.retry(run.id, from_step="parse")
    assert [step.id for step in await either.client.steps(again.id) if step.kept_from] == ["fetch"]
    await either.drain()
    assert done == ["fetch", "store", "parse", "store"]
    last = await either.client.retry(run.id, from_step="tell")
    assert [step.id for step in await either.client.steps(last.id) if step.kept_from] == ["fetch", "store"]
    with pytest.raises(UnknownStep):
        await either.client.retry(run.id, from_step="nothing like it")


async def test_a_step_is_a_function(harness: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        with pytest.raises(Invalid, match="a step is a function, not 5"):
            await ctx.step("a", 5)  # type: ignore[call-overload]

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    await harness.drain()
    assert await harness.state(run) is RunState.SUCCEEDED
