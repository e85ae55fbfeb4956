"""Test progress and log lines: stored with the run within a second, at no cost to the handler."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from rota import Context, Fail, Retry, RunState, SyncContext
from rota.core.progress.notes import LONGEST_LINE
from rota.engine.observability.log_capture import capture
from rota.errors import Invalid
from rota.testing import Harness
from tests.support.databases.unreliable_store import ShakyNotes, ShakyStore
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import SECOND, Working
from tests.support.wait import forever, round_trips, until

Start = Callable[..., Awaitable[Working]]


async def test_progress_is_visible_while_it_works(either: Harness, working: Start) -> None:
    go_on = asyncio.Event()

    async def crawl(ctx: Context) -> None:
        await ctx.progress(40, "parsing")
        await go_on.wait()
        ctx.progress(summary="storing")

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    worker = await working(either)

    async def is_told() -> bool:
        progress = (await either.run(run)).progress
        return progress is not None and (progress.percentage, progress.summary) == (40.0, "parsing")

    await until(is_told)
    go_on.set()
    await worker.has_state(run, RunState.SUCCEEDED)
    said = (await either.run(run)).progress
    assert said
    assert (said.percentage, said.summary) == (100.0, "storing")
    assert (await either.client.progress(run.id)).percentage == 100.0


async def test_a_tight_loop_is_written_a_few_times_only(harness: Harness, working: Start) -> None:
    shaky = ShakyStore(harness.store)

    async def crawl(ctx: Context) -> None:
        for number in range(20_000):
            await ctx.progress(number % 101, f"page {number}")

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    worker = await working(harness, store=shaky)
    await worker.has_state(run, RunState.SUCCEEDED)
    said = (await harness.run(run)).progress
    assert said
    assert said.summary == "page 19999"
    assert isinstance(shaky.notes, ShakyNotes)
    assert 1 <= len(shaky.notes.written) <= 10


@pytest.mark.parametrize("percentage", [-1, 100.01, float("nan"), float("inf"), "half", True])
async def test_progress_outside_0_to_100_is_refused(harness: Harness, percentage: float) -> None:
    async def crawl(ctx: Context) -> None:
        with pytest.raises(Invalid, match="0 to 100"):
            ctx.progress(percentage)

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    await harness.drain()
    assert await harness.state(run) is RunState.SUCCEEDED


async def test_progress_of_a_step(either: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        async def fetch() -> None:
            ctx.progress(25, "half of the half", step="fetch")
            raise Retry(after="1h")

        with pytest.raises(Invalid, match="not open"):
            ctx.progress(10, step="fetch")
        await ctx.step("fetch", fetch)

    either.app.job(steps=["fetch", "parse"])(crawl)
    run = await either.enqueue("crawl")
    await either.drain()
    progress = await either.client.progress(run.id)
    assert progress.percentage == 12.5
    assert (progress.steps[0].percentage, progress.steps[0].summary) == (25.0, "half of the half")


async def test_tracking_an_iterable(either: Harness) -> None:
    async def pages() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    async def crawl(ctx: Context) -> list[int]:
        seen = [page async for page in ctx.track(pages(), total=4, summary="pages")]
        return [*seen, *[page async for page in ctx.track([7, 8])]]

    def plain(ctx: SyncContext) -> list[int]:
        raise Fail(f"that was all: {list(ctx.track(iter([5, 6]), summary='pages'))}")

    either.app.job(crawl)
    either.app.job(plain)
    runs = [await either.enqueue("crawl"), await either.enqueue("plain")]
    await either.drain()
    crawled, plainly = [await either.run(run) for run in runs]
    assert crawled.result == [0, 1, 2, 7, 8]
    assert crawled.progress
    assert (crawled.progress.percentage, crawled.progress.summary) == (100.0, "2 of 2")
    assert plainly.progress
    assert (plainly.progress.percentage, plainly.progress.summary) == (None, "pages: 2")


async def test_what_is_logged_is_kept_with_the_attempt(either: Harness, working: Start) -> None:
    other = logging.getLogger("somebody.elses")
    other.setLevel(logging.INFO)

    async def crawl(ctx: Context) -> None:
        ctx.log.info("fetching %s", "a")
        other.warning("slow")
        ctx.log.debug("too much")
        threading.Thread(target=other.error, args=("of another thread",)).start()
        if ctx.attempt == 1:
            raise Retry(after="0s")

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    worker = await working(either)
    await worker.has_state(run, RunState.SUCCEEDED)
    other.warning("outside")
    lines = await either.client.logs(run.id)
    assert [(line.attempt, line.level, line.logger, line.text) for line in lines] == [
        (1, "info", "rota.job.crawl", "fetching a"),
        (1, "warning", "somebody.elses", "slow"),
        (2, "info", "rota.job.crawl", "fetching a"),
        (2, "warning", "somebody.elses", "slow"),
    ]
    now = await either.client.time()
    assert all(abs(line.at - now) < SECOND for line in lines)
    assert await either.client.logs(run.id, cursor=lines[-1].cursor) == []
    assert [line.text for line in await either.client.logs(run.id, tail=1)] == ["slow"]


async def test_a_plain_function_logs_from_its_thread(harness: Harness, working: Start) -> None:
    def crawl(ctx: SyncContext) -> None:
        try:
            raise ValueError("odd")
        except ValueError:
            ctx.log.exception("it went wrong")

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    worker = await working(harness)
    await worker.has_state(run, RunState.SUCCEEDED)
    (line,) = await harness.client.logs(run.id)
    assert line.text.startswith("it went wrong\nTraceback")
    assert line.text.endswith("ValueError: odd")


async def test_a_process_says_what_it_does(either: Harness, working: Start) -> None:
    either.app.job(isolation="process")(isolated_jobs.talk)
    run = await either.enqueue("talk")
    worker = await working(either)
    await worker.has_state(run, RunState.SUCCEEDED)
    progress = await either.client.progress(run.id)
    assert (progress.summary, progress.steps[0].summary) == ("almost", "well on")
    assert [line.text for line in await either.client.logs(run.id)] == ["hello", "from logging"]


async def test_the_last_words_of_a_process_arrive(harness: Harness, working: Start) -> None:
    harness.app.job(isolation="process", max_attempts=1)(isolated_jobs.last_words)
    run = await harness.enqueue("last_words")
    worker = await working(harness)
    died = await worker.has_state(run, RunState.FAILED)
    assert died.progress
    assert died.progress.summary == "about to"
    assert [line.text for line in await harness.client.logs(run.id)] == ["first", "about to die"]


async def test_hostile_lines_are_cut_and_cleaned(either: Harness, working: Start) -> None:
    async def crawl(ctx: Context) -> None:
        ctx.log.info("x" * 1_000_000)
        ctx.log.info("nul \x00")
        ctx.progress(1, "half a pair \ud800" + "s" * 10_000)

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    worker = await working(either)
    await worker.has_state(run, RunState.SUCCEEDED)
    long, odd = await either.client.logs(run.id)
    assert len(long.text) < LONGEST_LINE + 50
    assert long.text.endswith("(992000 more characters)")
    assert odd.text == "nul �"
    said = (await either.run(run)).progress
    assert said
    assert said.summary
    assert said.summary.startswith("half a pair ?sss")
    assert len(said.summary) < 600


async def test_an_endless_log_keeps_its_head_and_its_tail(either: Harness, working: Start) -> None:
    async def crawl(ctx: Context) -> None:
        for number in range(5_000):
            ctx.log.info("line %d", number)
            if number % 500 == 0:
                await round_trips(either.store.database, 10)

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    worker = await working(either, log_limit=20_000)
    await worker.has_state(run, RunState.SUCCEEDED)
    lines = [line.text for line in await either.client.logs(run.id)]
    assert lines[:2] == ["line 0", "line 1"]
    assert lines[-1] == "line 4999"
    assert len(lines) < 1_000
    assert any("lines are missing here" in line for line in lines)


async def test_no_log_is_kept_where_none_is_wanted(harness: Harness, working: Start) -> None:
    async def crawl(ctx: Context) -> None:
        ctx.log.info("hello")

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    worker = await working(harness, log_limit=0)
    await worker.has_state(run, RunState.SUCCEEDED)
    assert await harness.client.logs(run.id) == []


async def test_notes_survive_the_database_going_away(harness: Harness, working: Start) -> None:
    shaky = ShakyStore(harness.store)
    shaky.note_faults.extend(["refused", "unanswered", "refused"])

    async def crawl(ctx: Context) -> int:
        ctx.log.info("before")
        ctx.progress(10, "before")
        done = await ctx.step("there", _seven)
        ctx.log.info("after")
        return done

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    worker = await working(harness, store=shaky)
    await worker.has_state(run, RunState.SUCCEEDED)
    assert not shaky.note_faults
    assert [line.text for line in await harness.client.logs(run.id)] == ["before", "after"]
    assert (await harness.client.steps(run.id))[0].result == 7


async def _seven() -> int:
    return 7


async def test_notes_under_a_lost_lease_are_refused_and_stop_the_attempt(either: Harness, working: Start) -> None:
    reached, go_on, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def crawl(ctx: Context) -> None:
        reached.set()
        await go_on.wait()
        ctx.progress(99, "a zombie's")
        ctx.log.warning("a zombie's")
        try:
            await forever()
        finally:
            stopped.set()

    either.app.job(crawl)
    run = await either.enqueue("crawl")
    worker = await working(either, deaf=True)
    await until(reached.is_set)
    await either.client.pause_queue("default")
    either.clock.advance(worker.config.lease + SECOND)
    await either.reaper.step()
    go_on.set()
    await until(stopped.is_set)
    await worker.stop()
    assert (await either.run(run)).progress is None
    assert await either.client.logs(run.id) == []


async def test_draining_keeps_what_was_logged(harness: Harness) -> None:
    async def crawl(ctx: Context) -> None:
        ctx.log.info("hello")

    harness.app.job(crawl)
    run = await harness.enqueue("crawl")
    await harness.drain()
    assert [line.text for line in await harness.client.logs(run.id)] == ["hello"]
    assert capture not in logging.root.handlers
