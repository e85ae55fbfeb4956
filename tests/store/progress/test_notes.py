"""Notes of runs in progress: fenced, and idempotent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.progress.notes import LogNote, Notes, ProgressNote, StepNote, encoded
from rota.core.progress.steps import StepDefinition, StepState
from rota.core.states import Outcome
from rota.errors import Invalid, UnknownRun
from rota.store import Store
from rota.store.databases.database import Row
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, LEASE_MICROS, WORKER, claim, finish, put_and_claim, tell

STEPPED = JobDefinition(name="work", steps=(StepDefinition("one", "First"), StepDefinition("two")))


def progress(held: Any, done: int | None = 1_000, summary: str | None = "so far") -> Notes:
    return Notes(progress=(ProgressNote(held.run_id, held.fence, done, summary),))


def step(held: Any, id: str = "one", state: StepState = StepState.SUCCEEDED, no: int = 1, **facts: Any) -> Notes:
    return Notes(steps=(StepNote(held.run_id, held.fence, held.attempt, id, no, state, 1_000_000, **facts),))


def lines(held: Any, no: int, *texts: str, drops: tuple[int, ...] = ()) -> Notes:
    said = encoded([(1_000_000, 20, "me", text) for text in texts])
    return Notes(logs=(LogNote(held.run_id, held.fence, held.attempt, no, said, drops),))


async def rows(store: Store, table: str) -> list[Row]:
    return [tuple(row) for row in await store.database.read(lambda tx: tx.fetch_sql(f"select * from {table}"))]


ALL = pytest.mark.parametrize(
    "notes", [progress, step, lambda held: lines(held, 1, "hello")], ids=["progress", "step", "log"]
)


@ALL
async def test_written_under_the_current_fence(store: Store, notes: Any) -> None:
    held = await put_and_claim(store)
    assert await store.notes.write(notes(held)) == set()
    before = [await rows(store, table) for table in ("rota_progress", "rota_step", "rota_log")]
    assert sum(map(len, before)) == 1
    assert await store.notes.write(notes(held)) == set()
    assert [await rows(store, table) for table in ("rota_progress", "rota_step", "rota_log")] == before


@ALL
@pytest.mark.parametrize("how", ["finished", "failed", "lost", "reclaimed", "handed back", "cancelled", "older"])
async def test_refused_under_any_other(store: Store, clock: ManualClock, notes: Any, how: str) -> None:
    held = await put_and_claim(store)
    match how:
        case "finished":
            await finish(store, held)
        case "failed":
            await tell(store, held, Outcome.FAILED, retry_in=60_000_000)
        case "lost" | "reclaimed":
            clock.advance(LEASE + SECOND)
            await store.reap(10)
            if how == "reclaimed":
                assert await claim(store)
        case "handed back":
            await tell(store, held, Outcome.HANDED_BACK)
        case "cancelled":
            await store.cancel(held.run_id, None, None)
            await tell(store, held, Outcome.CANCELLED)
        case "older":
            held = msgspec.structs.replace(held, fence=held.fence - 1)
    assert await store.notes.write(notes(held)) == {(held.run_id, held.fence)}
    assert [await rows(store, table) for table in ("rota_progress", "rota_step", "rota_log")] == [[], [], []]


async def test_an_expired_lease_that_nobody_took_away_may_still_write(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    clock.advance(LEASE + SECOND)
    assert await store.notes.write(progress(held)) == set()


async def test_one_stale_lease_does_not_spoil_it_for_others(store: Store) -> None:
    gone, held = await put_and_claim(store), await put_and_claim(store)
    await finish(store, gone)
    both = Notes(progress=progress(gone).progress + progress(held).progress, steps=step(held).steps)
    assert await store.notes.write(both) == {(gone.run_id, gone.fence)}
    assert [str(run_id) for run_id, *_ in await rows(store, "rota_progress")] == [held.run_id]


async def test_a_cancelling_run_may_still_say_things(store: Store) -> None:
    held = await put_and_claim(store)
    await store.cancel(held.run_id, None, None)
    assert await store.notes.write(step(held)) == set()


async def test_what_is_recorded_as_done_stays_so(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    await store.notes.write(step(held, result="1"))
    await store.notes.write(step(held, state=StepState.RUNNING))
    await store.notes.write(step(held, state=StepState.FAILED, error='{"type": "E", "message": "no"}'))
    clock.advance(LEASE + SECOND)
    await store.reap(10)
    (again,) = await claim(store)
    await store.notes.write(step(again, result="2"))
    (recorded,) = await store.notes.recorded_steps(held.run_id)
    assert (recorded.state, recorded.result) == (StepState.SUCCEEDED, "1")


async def test_steps_as_they_stand(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([STEPPED])
    held = await put_and_claim(store, STEPPED)
    one, two = await store.notes.steps(held.run_id)
    assert (one.name, one.state, two.state) == ("First", StepState.PENDING, StepState.PENDING)
    await store.notes.write(step(held, state=StepState.RUNNING, done=5_000, summary="half"))
    one, _ = await store.notes.steps(held.run_id)
    assert (one.state, one.percentage, one.summary, one.finished_at) == (StepState.RUNNING, 50.0, "half", None)
    clock.advance(LEASE + SECOND)
    await store.reap(10)
    one, _ = await store.notes.steps(held.run_id)
    assert (one.state, one.percentage) == (StepState.PENDING, None)
    (again,) = await claim(store)
    await store.notes.write(step(again))
    await finish(store, again)
    one, two = await store.notes.steps(held.run_id)
    assert (one.state, one.attempt, two.state) == (StepState.SUCCEEDED, 2, StepState.SKIPPED)
    with pytest.raises(UnknownRun):
        await store.notes.steps("00000000-0000-0000-0000-000000000000")


async def test_a_shield_holds_the_reaper_off_a_cancelled_run(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    assert await store.notes.shield(held.run_id, held.fence, 1) is True
    await store.cancel(held.run_id, None, None)
    for _ in range(3):
        clock.advance(20 * SECOND)
        await store.extend(WORKER, [(held.run_id, held.fence)], LEASE_MICROS)
        assert (await store.reap(10)).ended == 0
    assert await store.notes.unshield(step(held), LEASE_MICROS, 1) == set()
    clock.advance(29 * SECOND)
    await store.extend(WORKER, [(held.run_id, held.fence)], LEASE_MICROS)
    assert (await store.reap(10)).ended == 0
    clock.advance(2 * SECOND)
    assert (await store.reap(10)).ended == 1


async def test_a_shield_does_not_keep_an_expired_lease(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    await store.notes.shield(held.run_id, held.fence, 1)
    await store.cancel(held.run_id, None, None)
    clock.advance(LEASE + SECOND)
    assert (await store.reap(10)).ended == 1


async def test_no_shield_for_a_run_that_was_asked_to_stop_or_is_gone(store: Store) -> None:
    held = await put_and_claim(store)
    await store.cancel(held.run_id, None, None)
    assert await store.notes.shield(held.run_id, held.fence, 1) is False
    await tell(store, held, Outcome.CANCELLED)
    assert await store.notes.shield(held.run_id, held.fence, 1) is None
    assert await store.notes.unshield(step(held), 1, 1) == {(held.run_id, held.fence)}


async def test_a_shield_that_comes_too_late_leaves_another_where_it_is(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    await store.notes.shield(held.run_id, held.fence, 1)
    await store.cancel(held.run_id, None, None)
    assert await store.notes.shield(held.run_id, held.fence, 2, another=True) is False
    clock.advance(LEASE - SECOND)
    await store.extend(WORKER, [(held.run_id, held.fence)], LEASE_MICROS)
    clock.advance(LEASE - SECOND)
    assert (await store.reap(10)).ended == 0
    # Its own, of which nobody has heard: asked for again, it goes.
    assert await store.notes.shield(held.run_id, held.fence, 2) is False
    assert (await store.reap(10)).ended == 1


async def test_a_shield_that_is_asked_for_again_stays_though_a_cancel_came_between(store: Store) -> None:
    """The caller may have had the answer by then, and be at work; the first request arrives late."""
    held = await put_and_claim(store)
    assert await store.notes.shield(held.run_id, held.fence, 1) is True
    await store.cancel(held.run_id, None, None)
    assert await store.notes.shield(held.run_id, held.fence, 1) is True
    ((shielded,),) = await store.database.read(lambda tx: tx.fetch_sql("select shielded from rota_lease"))
    assert shielded == 1
    assert await store.notes.shield(held.run_id, held.fence, 2) is False


async def test_what_arrives_late_neither_lifts_the_next_shield_nor_sets_one_again(store: Store) -> None:
    """The caller gave up, asked again and went on; then the server did the first request."""
    held = await put_and_claim(store)

    async def shielded() -> bool:
        ((value,),) = await store.database.read(lambda tx: tx.fetch_sql("select shielded from rota_lease"))
        return bool(value > 0)

    assert await store.notes.shield(held.run_id, held.fence, 1)
    await store.notes.unshield(step(held), LEASE_MICROS, 1)
    await store.notes.shield(held.run_id, held.fence, 1)
    assert not await shielded()
    assert await store.notes.shield(held.run_id, held.fence, 2)
    await store.notes.unshield(step(held), LEASE_MICROS, 1)
    await store.notes.shield(held.run_id, held.fence, 1)
    assert await shielded()
    await store.notes.unshield(step(held), LEASE_MICROS, 2)
    assert not await shielded()


async def test_logs_are_read_a_page_at_a_time(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    for no in range(1, 301):
        await store.notes.write(lines(held, no, f"line {no}"))
    first = await store.notes.logs(held.run_id, limit=200)
    assert (first[0].text, first[-1].text) == ("line 1", "line 200")
    rest = await store.notes.logs(held.run_id, first[-1].cursor)
    assert (rest[0].text, rest[-1].text) == ("line 201", "line 300")
    assert await store.notes.logs(held.run_id, rest[-1].cursor) == []
    now = rest[-1].at + timedelta(seconds=1)
    assert now.timestamp() * 1e6 == clock.micros()
    assert [line.text for line in await store.notes.last_logs(held.run_id, 2)] == ["line 299", "line 300"]
    assert len(await store.notes.last_logs(held.run_id, 250)) == 250


async def test_a_page_may_end_and_begin_within_a_row(store: Store) -> None:
    held = await put_and_claim(store)
    await store.notes.write(lines(held, 1, "a", "b"))
    await store.notes.write(lines(held, 3, "c", "d", "e"))
    whole = await store.notes.logs(held.run_id)
    assert [line.text[:5] for line in whole] == ["a", "b", "lines", "c", "d", "e"]
    assert len({line.cursor for line in whole}) == len(whole)
    for seen, line in enumerate(whole, 1):
        for limit in (1, 2, 6):
            assert await store.notes.logs(held.run_id, line.cursor, limit=limit) == whole[seen : seen + limit]
    await store.notes.write(lines(held, 4, "f", drops=(3,)))
    rest = await store.notes.logs(held.run_id, whole[3].cursor)
    assert [line.text[:5] for line in rest] == ["lines", "f"], "the row that it was in is gone"


async def test_a_gap_in_a_log_is_told(store: Store) -> None:
    held = await put_and_claim(store)
    await store.notes.write(lines(held, 1, "first"))
    await store.notes.write(lines(held, 2, "second"))
    await store.notes.write(lines(held, 3, "third", drops=(2,)))
    await store.notes.write(lines(held, 5, "fifth"))
    texts = [line.text for line in await store.notes.logs(held.run_id)]
    assert texts[0] == "first"
    assert texts[1].startswith("lines are missing here")
    assert texts[2] == "third"
    assert texts[3].startswith("lines are missing here")
    assert texts[4:] == ["fifth"]


@pytest.mark.parametrize("cursor", ["1", "1.x", "-1.2", "1.2.3.4", "1.2.", "9" * 12 + ".1", "9" * 30 + ".1", "٣.٣"])
async def test_a_cursor_that_is_none(store: Store, cursor: str) -> None:
    held = await put_and_claim(store)
    with pytest.raises(Invalid, match="cursor"):
        await store.notes.logs(held.run_id, cursor)


async def test_lines_that_waited_to_be_written_keep_their_times(store: Store, clock: ManualClock) -> None:
    """Ages are taken before the wait for a connection and for the lease's lock, which may be long."""
    held = await put_and_claim(store)
    begun = clock.micros()

    def chunk(no: int, *ages: int) -> Notes:
        said = encoded([(age * 1_000_000, 20, "me", f"{no}.{age}") for age in ages])
        note = LogNote(held.run_id, held.fence, held.attempt, no, said, taken_at=clock.monotonic())
        return Notes(logs=(note,))

    clock.advance(2 * SECOND)
    first = chunk(1, 2, 0)
    clock.advance(9 * SECOND)  # the first chunk waits
    await store.notes.write(first)
    clock.advance(SECOND)
    await store.notes.write(chunk(2, 1, 0))
    lines = await store.notes.logs(held.run_id)
    assert [round(line.at.timestamp() - begun / 1_000_000, 3) for line in lines] == [0, 2, 11, 12]


async def test_a_step_that_waited_to_be_written_keeps_its_beginning(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    begun = clock.micros()
    clock.advance(SECOND)
    late = msgspec.structs.replace(step(held).steps[0], age=1_000_000, taken_at=clock.monotonic())
    clock.advance(9 * SECOND)
    await store.notes.write(Notes(steps=(late,)))
    (recorded,) = [one for one in await store.notes.steps(held.run_id) if one.id == "one"]
    assert recorded.started_at is not None
    assert recorded.started_at.timestamp() * 1_000_000 == pytest.approx(begun, abs=1)


async def test_lines_never_go_back_in_time(store: Store, clock: ManualClock) -> None:
    """Hosts measure the ages: two rows may disagree by as much as a statement takes."""
    held = await put_and_claim(store)
    clock.advance(10 * SECOND)
    for no, age in ((1, 1_000_000), (2, 1_500_000)):
        said = encoded([(age, 20, "me", str(no))])
        await store.notes.write(Notes(logs=(LogNote(held.run_id, held.fence, held.attempt, no, said),)))
    for lines in (await store.notes.logs(held.run_id), await store.notes.last_logs(held.run_id, 2)):
        assert [line.text for line in lines] == ["1", "2"]
        assert lines[0].at <= lines[1].at
