"""Cancel: at once if nobody has begun, asked for if somebody has, refused if it is over."""

import asyncio

import pytest

from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.run import Run, RunError
from rota.core.states import Outcome, RunState
from rota.errors import NotCancellable, RunIsFinal, UnknownRun
from rota.store import Store, new_id
from rota.store.runs import cancel
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, claim, finish, outcomes_of, put, put_and_claim, state_of, tell

OUT_OF_PAPER = stored_error(RunError(type="ValueError", message="out of paper"), telling="out of paper")
STUBBORN = JobDefinition(name="work", cancel=CancelPolicy(supported=False))


@pytest.mark.parametrize("delay", ["0s", "10m"])
async def test_an_unclaimed_run_is_cancelled_at_once(store: Store, delay: str) -> None:
    run_id = await put(store, delay=delay)
    assert (await store.cancel(run_id, "not needed", "someone")).state is RunState.CANCELLED
    run = await store.get_run(run_id)
    assert (run.state, run.reason, run.attempt, run.fence) == (RunState.CANCELLED, "not needed", 0, 1)
    assert run.finished_at is not None
    assert run.started_at is None
    assert await claim(store) == []
    assert (await store.promote(10)).next_in is None


async def test_a_run_that_backs_off_is_cancelled_at_once(store: Store) -> None:
    held = await put_and_claim(store)
    await tell(store, held, Outcome.FAILED, retry_in=60_000_000)
    assert (await store.cancel(held.run_id, None, None)).state is RunState.CANCELLED
    run = await store.get_run(held.run_id)
    assert (run.attempt, run.fence) == (1, 2)
    assert await outcomes_of(store, held.run_id) == [Outcome.FAILED]


async def test_a_cancelled_run_that_backed_off_keeps_its_error(store: Store) -> None:
    held = await put_and_claim(store)
    await tell(store, held, Outcome.FAILED, error=OUT_OF_PAPER, retry_in=60_000_000)
    before = (await store.get_run(held.run_id)).error
    await store.cancel(held.run_id, None, None)
    after = (await store.get_run(held.run_id)).error
    assert after is not None
    assert after.message == "out of paper"
    assert after == before


async def test_a_superseded_run_that_backed_off_keeps_its_error(store: Store) -> None:
    held = await put_and_claim(store)
    await tell(store, held, Outcome.FAILED, error=OUT_OF_PAPER, retry_in=60_000_000)
    await store.database.transact(lambda tx: cancel.supersede(tx, held.run_id, "superseded", "policy:test"))
    run = await store.get_run(held.run_id)
    assert run.error is not None
    assert (run.state, run.error.message) == (RunState.CANCELLED, "out of paper")


async def test_a_run_that_never_began_is_cancelled_without_an_error(store: Store) -> None:
    run_id = await put(store)
    await store.cancel(run_id, None, None)
    assert (await store.get_run(run_id)).error is None


async def test_a_running_run_is_asked_to_stop(store: Store) -> None:
    held = await put_and_claim(store)
    assert (await store.cancel(held.run_id, "enough", "someone")).state is RunState.CANCELLING
    run = await store.get_run(held.run_id)
    assert (run.state, run.reason, run.fence, run.finished_at) == (RunState.CANCELLING, "enough", 1, None)


async def test_asking_again_does_not_lengthen_the_grace(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    await store.cancel(held.run_id, None, None)
    clock.advance(LEASE - SECOND)
    assert (await store.cancel(held.run_id, None, None)).state is RunState.CANCELLING
    clock.advance(2 * SECOND)
    assert (await store.reap(10)).ended == 1
    assert await state_of(store, held.run_id) is RunState.CANCELLED


async def test_a_job_that_does_not_support_it_refuses_once_begun(store: Store) -> None:
    await store.save_jobs([STUBBORN])
    held = await put_and_claim(store, STUBBORN)
    with pytest.raises(NotCancellable):
        await store.cancel(held.run_id, None, None)
    assert await state_of(store, held.run_id) is RunState.RUNNING
    assert (await store.cancel(await put(store, STUBBORN), None, None)).state is RunState.CANCELLED


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome.SUCCEEDED, RunState.SUCCEEDED),
        (Outcome.FAILED, RunState.FAILED),
        (Outcome.TIMED_OUT, RunState.TIMED_OUT),
    ],
)
async def test_a_final_run_never_changes(store: Store, outcome: Outcome, state: RunState) -> None:
    held = await put_and_claim(store)
    await tell(store, held, outcome)
    before = await store.get_run(held.run_id)
    with pytest.raises(RunIsFinal, match=state.value):
        await store.cancel(held.run_id, "too late", "someone")
    assert await store.get_run(held.run_id) == before


async def test_a_cancel_may_be_repeated_and_changes_nothing(store: Store) -> None:
    run_id = await put(store)
    await store.cancel(run_id, "first", "ada")
    before = await store.get_run(run_id)
    assert (await store.cancel(run_id, "second", "grace")).state is RunState.CANCELLED
    assert await store.get_run(run_id) == before


async def test_an_unknown_run(store: Store) -> None:
    with pytest.raises(UnknownRun):
        await store.cancel(new_id(), None, None)


async def test_cancel_racing_claim(store: Store, second: Store) -> None:
    """Whoever is first: it never begins, or its worker is asked to stop."""
    for _ in range(10):
        run_id = await put(store)
        answer, found = await asyncio.gather(store.cancel(run_id, None, None), claim(second))
        assert answer.state is (RunState.CANCELLING if found else RunState.CANCELLED)
        assert await state_of(store, run_id) is answer.state
        for held in found:
            assert await tell(store, held, Outcome.CANCELLED)


async def test_cancel_racing_completion(store: Store, second: Store) -> None:
    for _ in range(10):
        held = await put_and_claim(store)
        answers = await asyncio.gather(
            store.cancel(held.run_id, None, None), finish(second, held), return_exceptions=True
        )
        assert answers[1] is None
        asked = answers[0]
        assert isinstance(asked, RunIsFinal) or (isinstance(asked, Run) and asked.state is RunState.CANCELLING)
        assert await state_of(store, held.run_id) is RunState.SUCCEEDED


async def test_cancel_racing_the_reaper(store: Store, second: Store, clock: ManualClock) -> None:
    for _ in range(5):
        held = await put_and_claim(store)
        clock.advance(LEASE + SECOND)
        answer, _ = await asyncio.gather(store.cancel(held.run_id, None, None), second.reap(10))
        clock.advance(LEASE + SECOND)
        await store.reap(10)
        assert answer.state in (RunState.CANCELLED, RunState.CANCELLING)
        assert await state_of(store, held.run_id) is RunState.CANCELLED


async def test_two_people_cancel_at_once(store: Store, second: Store) -> None:
    run_id = await put(store)
    answers = await asyncio.gather(store.cancel(run_id, None, "a"), second.cancel(run_id, None, "b"))
    assert [run.state for run in answers] == [RunState.CANCELLED, RunState.CANCELLED]


@pytest.mark.parametrize(("reason", "actor"), [("enough", "ann"), (None, None)])
async def test_what_a_person_cancelled_no_policy_takes_over(
    store: Store, reason: str | None, actor: str | None
) -> None:
    held = await put_and_claim(store)
    await store.cancel(held.run_id, reason, actor)
    superseded = await store.database.transact(
        lambda tx: cancel.supersede(tx, held.run_id, "superseded by another", "policy:overlap")
    )
    assert superseded is RunState.CANCELLING
    assert await tell(store, held, Outcome.CANCELLED)
    rows = await store.database.read(lambda tx: tx.fetch_sql("select reason, cancelled_by from rota_run"))
    assert [tuple(row) for row in rows] == [(reason, actor)]


async def test_what_a_policy_stopped_stays_so(store: Store) -> None:
    held = await put_and_claim(store)
    await store.database.transact(lambda tx: cancel.supersede(tx, held.run_id, "superseded", "policy:overlap"))
    await store.cancel(held.run_id, "enough", "ann")
    assert await tell(store, held, Outcome.CANCELLED)
    rows = await store.database.read(lambda tx: tx.fetch_sql("select reason, cancelled_by from rota_run"))
    assert [tuple(row) for row in rows] == [("superseded", "policy:overlap")]
