"""Cancelling in every state that a run can be in: what it answers, what it leaves, who it names."""

from collections.abc import Awaitable, Callable

import pytest

from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.runs.outcome import Wait
from rota.core.states import FINAL_STATES, LIVE_STATES, Outcome, RunState
from rota.errors import Conflict, NotCancellable, RunIsFinal
from rota.store import Store
from rota.store.runs import cancel
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, claim, put, put_and_claim, tell

FRAGILE = JobDefinition(name="work", on_lost="fail")
STUBBORN = JobDefinition(name="work", cancel=CancelPolicy(supported=False))

Make = Callable[[Store], Awaitable[str]]


async def ended(store: Store, outcome: Outcome) -> str:
    held = await put_and_claim(store, FRAGILE if outcome is Outcome.HANDED_BACK else "work")
    assert await tell(store, held, outcome)
    return held.run_id


async def backing_off(store: Store) -> str:
    held = await put_and_claim(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=60_000_000)
    return held.run_id


async def asked_to_stop(store: Store) -> str:
    held = await put_and_claim(store)
    await store.cancel(held.run_id, "first", "ann")
    return held.run_id


async def cancelled(store: Store) -> str:
    run_id = await put(store)
    await store.cancel(run_id, "first", "ann")
    return run_id


async def skipped(store: Store) -> str:
    run_id = await put(store)
    await store.database.transact(lambda tx: cancel.supersede(tx, run_id, "first", "policy:overlap"))
    return run_id


async def running(store: Store) -> str:
    return (await put_and_claim(store)).run_id


async def handed_over(store: Store) -> str:
    held = await put_and_claim(store)
    assert await tell(store, held, Outcome.SNOOZED, wait=Wait(3_600_000_000))
    return held.run_id


async def asked_to_stop_outside(store: Store) -> str:
    run_id = await handed_over(store)
    await store.cancel(run_id, "first", "ann")
    return run_id


TABLE: list[tuple[str, RunState, Make, RunState | None]] = [
    ("queued", RunState.QUEUED, put, RunState.CANCELLED),
    ("delayed", RunState.SCHEDULED, lambda store: put(store, delay="1h"), RunState.CANCELLED),
    ("backing off", RunState.SCHEDULED, backing_off, RunState.CANCELLED),
    ("running", RunState.RUNNING, running, RunState.CANCELLING),
    ("cancelling", RunState.CANCELLING, asked_to_stop, RunState.CANCELLING),
    ("waiting", RunState.WAITING, handed_over, RunState.CANCELLING),
    ("cancelling outside", RunState.CANCELLING, asked_to_stop_outside, RunState.CANCELLING),
    ("cancelled", RunState.CANCELLED, cancelled, RunState.CANCELLED),
    ("succeeded", RunState.SUCCEEDED, lambda store: ended(store, Outcome.SUCCEEDED), None),
    ("failed", RunState.FAILED, lambda store: ended(store, Outcome.FAILED), None),
    ("timed out", RunState.TIMED_OUT, lambda store: ended(store, Outcome.TIMED_OUT), None),
    ("expired", RunState.EXPIRED, lambda store: ended(store, Outcome.HANDED_BACK), None),
    ("skipped", RunState.SKIPPED, skipped, None),
]
NAMES = [name for name, *_ in TABLE]


def test_the_table_has_every_state() -> None:
    assert {state for _, state, *_ in TABLE} == LIVE_STATES | FINAL_STATES


@pytest.mark.parametrize(("name", "state", "make", "becomes"), TABLE, ids=NAMES)
async def test_cancelling_it(store: Store, name: str, state: RunState, make: Make, becomes: RunState | None) -> None:
    """`becomes` None: refused. Who asked first, and why, stays."""
    run_id = await make(store)
    before = await store.get_run(run_id)
    assert before.state is state
    if becomes is None:
        with pytest.raises(RunIsFinal, match=state.value) as refused:
            await store.cancel(run_id, "second", "bob")
        assert isinstance(refused.value, Conflict)
        assert await store.get_run(run_id) == before
        return
    assert (await store.cancel(run_id, "second", "bob")).state is becomes
    after = await store.get_run(run_id)
    first = state in (RunState.CANCELLING, RunState.CANCELLED)
    assert (after.state, after.reason, after.cancelled_by) == (
        *(becomes, "first" if first else "second", "ann" if first else "bob"),
    )
    assert after.fence == before.fence + (becomes is RunState.CANCELLED and not first), "nobody else may write now"
    assert (after.finished_at is not None) is becomes.is_final
    assert await claim(store) == []


@pytest.mark.parametrize("make", [make for name, _, make, _ in TABLE if name in ("running", "cancelling", "waiting")])
async def test_what_ignores_it_is_cancelled_after_its_grace(store: Store, make: Make, clock: ManualClock) -> None:
    """However often its lease is renewed; and its last word comes too late."""
    run_id = await make(store)
    await store.cancel(run_id, "first", "ann")
    fence = (await store.get_run(run_id)).fence
    clock.advance(LEASE + SECOND)
    assert (await store.reap(10)).ended == 1
    run = await store.get_run(run_id)
    assert (run.state, run.fence, run.reason, run.cancelled_by) == (RunState.CANCELLED, fence + 1, "first", "ann")


@pytest.mark.parametrize("hold", ["queued", "running"])
async def test_a_job_that_refuses_does_so_only_once_begun(store: Store, hold: str) -> None:
    await store.save_jobs([STUBBORN])
    run_id = await put(store, STUBBORN)
    if hold == "queued":
        assert (await store.cancel(run_id, None, None)).state is RunState.CANCELLED
        return
    (held,) = await claim(store)
    before = await store.get_run(run_id)
    with pytest.raises(NotCancellable):
        await store.cancel(run_id, "no", "ann")
    assert await store.get_run(run_id) == before
    assert await tell(store, held, Outcome.SUCCEEDED)
