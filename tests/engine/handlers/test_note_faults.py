"""Test notes that cannot be written: they stay bounded, and affect no other run."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import threading
import warnings
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from rota import Context, RunState, SyncContext
from rota.core.progress.notes import Notes
from rota.core.runs.claim import Claim
from rota.engine.handlers.note_buffer import AttemptNotes, NoteBuffer
from rota.engine.observability.log_capture import capture
from rota.errors import Invalid, Unavailable
from rota.store.progress.notes import NoteStore
from rota.testing import Harness
from tests.support.databases.unreliable_store import ShakyNotes, ShakyStore
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import Working
from tests.support.wait import wait_for

Start = Callable[..., Awaitable[Working]]


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.worker.reporter._REST_AFTER_TROUBLE", 0.01)
    monkeypatch.setattr("rota.engine.handlers.note_buffer._REST_AFTER_TROUBLE", 0.01)


class Refusing(ShakyNotes):
    """Writes no note, for the reason given, of runs that are named; of no run at all, if none is."""

    def __init__(self, store: ShakyStore, error: Exception, *run_ids: str) -> None:
        super().__init__(store)
        self._error, self._run_ids = error, set(run_ids)

    async def write(self, notes: Notes) -> set[tuple[str, int]]:
        named = {run_id for run_id, _ in notes.leases}
        if not self._run_ids or named & self._run_ids:
            raise self._error
        self.written.append(notes)
        return await NoteStore.write(self, notes)


async def claims_of(harness: Harness, count: int) -> list[Claim]:
    worker = harness.worker()
    for _ in range(count):
        await harness.enqueue("work")
        await worker.claim()
    return list(worker.claims.values())


async def test_reports_do_not_wait_for_them_for_ever(either: Harness, working: Start) -> None:
    store = ShakyStore(either.store)
    store.notes = Refusing(store, Unavailable("rota_log is locked"))

    async def talk(ctx: Context) -> None:
        ctx.log.info("hello")

    async def work() -> None: ...

    either.app.job(talk)
    either.app.job(work)
    runs = [await either.enqueue(name) for name in ("talk", "work")]
    worker = await working(either, store=store)
    for run in runs:
        await worker.has_state(run, RunState.SUCCEEDED)


async def test_what_is_unsent_stays_within_the_limit_of_the_log(harness: Harness) -> None:
    (claim,) = await claims_of(harness, 1)
    page = AttemptNotes(claim, 100_000, harness.clock, lambda _: None)
    taken: list[Notes] = []
    for number in range(40):
        for _ in range(20):
            page.line(logging.INFO, "me", f"{number} " + "x" * 1_000)
        taken.append(page.take())
        page.give_back(taken[-1])
    assert max(sum(len(note.lines) for note in notes.logs) for notes in taken) < 150_000
    assert "0 xxx" in taken[-1].logs[0].lines
    assert "39 xxx" in taken[-1].logs[-1].lines


async def test_pages_are_written_in_bites(either: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.handlers.note_buffer._BYTES", 10_000, raising=False)
    store = ShakyStore(either.store)
    claims = await claims_of(either, 6)
    note_buffer = NoteBuffer(store, 100_000, lambda *_: None)
    for claim in claims:
        page = note_buffer.notes_of(claim)
        for _ in range(3):
            page.line(logging.INFO, "me", "x" * 2_000)
    await note_buffer.flush()
    assert isinstance(store.notes, ShakyNotes)
    assert [len(notes.logs) for notes in store.notes.written] == [2, 2, 2]
    for claim in claims:
        assert len(await either.client.logs(claim.run_id)) == 3


async def test_what_a_bite_could_not_write_is_written_later(either: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.handlers.note_buffer._BYTES", 1, raising=False)
    store = ShakyStore(either.store)
    claims = await claims_of(either, 3)
    note_buffer = NoteBuffer(store, 100_000, lambda *_: None)
    for claim in claims:
        note_buffer.notes_of(claim).line(logging.INFO, "me", "hello")
    store.note_faults.append("refused")
    with pytest.raises(Unavailable):
        await note_buffer.flush()
    await note_buffer.flush()
    for claim in claims:
        assert [line.text for line in await either.client.logs(claim.run_id)] == ["hello"]


async def test_one_that_cannot_be_stored_does_not_spoil_it_for_others(either: Harness) -> None:
    claims = await claims_of(either, 3)
    store = ShakyStore(either.store)
    store.notes = Refusing(store, Invalid("a value cannot be stored"), claims[1].run_id)
    note_buffer = NoteBuffer(store, 100_000, lambda *_: None)
    for claim in claims:
        note_buffer.notes_of(claim).progress(4_000, "mine")
    await note_buffer.flush()
    said = [(await either.run(claim.run_id)).progress for claim in claims]
    assert [progress and progress.summary for progress in said] == ["mine", None, "mine"]


async def test_a_logger_whose_name_is_no_text(either: Harness) -> None:
    await either.enqueue("work")
    ((_, claim),) = (await either.worker().claim()).claims.items()
    page = AttemptNotes(claim, 1_000_000, either.clock, lambda _: None)
    page.line(20, "half a pair \ud800", "hello")
    assert await either.store.notes.write(page.take()) == set()
    (line,) = await either.client.logs(claim.run_id)
    assert (line.logger, line.text) == ("half a pair ?", "hello")


async def test_such_a_logger_in_a_process(harness: Harness, working: Start) -> None:
    harness.app.job(isolation="process", max_attempts=1)(isolated_jobs.name_a_logger_oddly)
    run = await harness.enqueue("name_a_logger_oddly")
    worker = await working(harness)
    assert (await worker.has_state(run, RunState.SUCCEEDED)).result == 7
    (line,) = await harness.client.logs(run.id)
    assert (line.logger, line.text) == ("?", "hello")


@pytest.mark.parametrize("spoke_before", [True, False])
async def test_what_a_task_says_that_outlives_its_attempt_is_ignored(
    either: Harness, working: Start, spoke_before: bool
) -> None:
    store = ShakyStore(either.store)
    notes = store.notes
    assert isinstance(notes, ShakyNotes)
    go_on = asyncio.Event()
    kept: list[asyncio.Task[None]] = []
    other = logging.getLogger("a.pool")

    async def keeper() -> None:
        await go_on.wait()
        other.warning("a late word")

    async def work() -> None:
        if spoke_before:
            other.warning("an early word")
        kept.append(asyncio.create_task(keeper()))

    either.app.job(work)
    run = await either.enqueue("work")
    worker = await working(either, store=store)
    await worker.has_state(run, RunState.SUCCEEDED)
    await worker.idle()
    before = len(notes.written)
    go_on.set()
    await kept[0]
    await worker.worker._note_buffer.flush()
    assert len(notes.written) == before
    assert worker.worker._note_buffer.refused == 0
    early = ["an early word"] if spoke_before else []
    assert [line.text for line in await either.client.logs(run.id)] == early


async def test_what_a_forked_process_says_is_not_ours(harness: Harness, working: Start) -> None:
    page_lock = threading.Lock()
    exits: list[int] = []

    def work(ctx: SyncContext) -> None:
        ctx.log.info("before")
        backend = ctx._backend
        backend._notes._lock = page_lock  # type: ignore[attr-defined]
        with page_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            forked = os.fork()  # as it may happen while somebody writes on the page
            if not forked:
                ctx.log.info("in the fork")
                os._exit(0)
        exits.append(exit_of(forked))

    harness.app.job(work)
    run = await harness.enqueue("work")
    worker = await working(harness)
    await worker.has_state(run, RunState.SUCCEEDED)
    assert exits == [0]
    assert [line.text for line in await harness.client.logs(run.id)] == ["before"]


def exit_of(pid: int) -> int:
    """Return the exit status of a child; kill it if it does not end by itself."""
    status: list[int] = []

    def has_ended() -> bool:
        ended, code = os.waitpid(pid, os.WNOHANG)
        status.extend([code] if ended else [])
        return bool(ended)

    try:
        wait_for(has_ended)
    except TimeoutError:
        os.kill(pid, 9)
        status.append(os.waitpid(pid, 0)[1])
    return os.waitstatus_to_exitcode(status[0])


async def test_what_is_for_developers_does_not_reach_the_programs_own_handlers(
    harness: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = io.StringIO()
    monkeypatch.setattr(logging.root, "handlers", [logging.StreamHandler(console)])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)

    async def talk_to_developers(ctx: Context) -> None:
        ctx.log.debug("too much")
        ctx.log.warning("enough")

    harness.app.job(talk_to_developers)
    run = await harness.enqueue("talk_to_developers")
    worker = await working(harness, heartbeat=timedelta(seconds=10))  # else it warns of slow ones on a busy machine
    await worker.has_state(run, RunState.SUCCEEDED)
    assert console.getvalue() == "enough\n"
    await worker.stop()


async def test_a_program_may_configure_its_logging_meanwhile(
    harness: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)

    async def talk(ctx: Context) -> None:
        ctx.log.info("hello")

    harness.app.job(talk)
    worker = await working(harness)
    assert logging.root.handlers == [capture]
    logging.basicConfig(force=True, stream=io.StringIO())
    assert capture not in logging.root.handlers
    run = await harness.enqueue("talk")
    await worker.has_state(run, RunState.SUCCEEDED)
    assert [line.text for line in await harness.client.logs(run.id)] == ["hello"]
    await worker.stop()
    assert capture not in logging.root.handlers
