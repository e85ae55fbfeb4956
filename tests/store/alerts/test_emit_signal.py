"""Signals: an end that somebody listens for leaves one, however the run ends; other ends leave none."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import RetryPolicy
from rota.core.limits.limits import Limit
from rota.core.runs.outcome import Report
from rota.core.states import Outcome
from rota.store import Store
from rota.store.alerts.emit_signal import MESSENGER
from rota.store.databases.database import Tx
from tests.support.clock import ManualClock
from tests.support.runs.runs import LEASE, claim, claim_limited, finish, put, put_and_claim, tell
from tests.support.schedules.schedules import make_schedule, minutes, noon, plan

ONCE = JobDefinition(name="work", retry=RetryPolicy(1))
SKIPS = JobDefinition(name="work", limits=(Limit(max=1, when_full="skip"),))


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def listen(store: Store, job: str = "work", what: str = "test") -> None:
    await store.database.transact(lambda tx: tx.fetch("add_listeners", [(job, what, "me")]))


async def signals(store: Store) -> list[tuple[str, str, str | None]]:
    """Return (type, subject, schedule) of each signal, oldest first."""

    async def body(tx: Tx) -> Any:
        return await tx.fetch("take_signals", [], limit=100)

    rows = await store.database.transact(body)
    return [(event, subject, schedule) for _, _, event, _, subject, _, schedule, _ in rows]


async def succeed(store: Store, _: ManualClock) -> str:
    held = await put_and_claim(store, ONCE)
    await finish(store, held)
    return held.run_id


async def fail(store: Store, _: ManualClock) -> str:
    held = await put_and_claim(store, ONCE)
    await tell(store, held, Outcome.FAILED)
    return held.run_id


async def time_out(store: Store, _: ManualClock) -> str:
    held = await put_and_claim(store, ONCE)
    await tell(store, held, Outcome.TIMED_OUT)
    return held.run_id


async def be_lost(store: Store, clock: ManualClock) -> str:
    held = await put_and_claim(store, ONCE)
    clock.advance(LEASE * 2)
    await store.reap(10)
    return held.run_id


async def be_cancelled_waiting(store: Store, _: ManualClock) -> str:
    run_id = await put(store, ONCE)
    await store.cancel(run_id, None, None)
    return run_id


async def be_cancelled_running(store: Store, _: ManualClock) -> str:
    held = await put_and_claim(store, ONCE)
    await store.cancel(held.run_id, None, None)
    await store.report([Report(held.run_id, held.fence, Outcome.CANCELLED)])
    return held.run_id


async def be_cancelled_in_bulk(store: Store, _: ManualClock) -> str:
    run_id = await put(store, ONCE)
    await store.save_jobs([ONCE])
    await store.cancel_job("work", None, None)
    return run_id


async def be_skipped(store: Store, _: ManualClock) -> str:
    await put(store, SKIPS)
    return await put(store, SKIPS)


Ending = Callable[[Store, ManualClock], Awaitable[str]]
ENDINGS: list[tuple[Ending, str]] = [
    (succeed, "succeeded"),
    (fail, "failed"),
    (time_out, "timed_out"),
    (be_lost, "expired"),
    (be_cancelled_waiting, "cancelled"),
    (be_cancelled_running, "cancelled"),
    (be_cancelled_in_bulk, "cancelled"),
    (be_skipped, "skipped"),
]


@pytest.mark.parametrize(("end", "state"), ENDINGS)
@pytest.mark.parametrize("job", ["work", "*"])
async def test_an_end_leaves_one_signal(store: Store, clock: ManualClock, end: Ending, state: str, job: str) -> None:
    await listen(store, job)
    await listen(store, job, "another")
    run_id = await end(store, clock)
    assert await signals(store) == [(state, run_id, None)]


@pytest.mark.parametrize(("end", "state"), ENDINGS)
async def test_nobody_listens(store: Store, clock: ManualClock, end: Ending, state: str) -> None:
    await listen(store, "another job")
    run_id = await end(store, clock)
    assert (await store.get_run(run_id)).state == state
    assert await signals(store) == []


async def test_an_attempt_that_is_tried_again_is_no_end(store: Store) -> None:
    await listen(store)
    await tell(store, await put_and_claim(store, JobDefinition(name="work")), Outcome.FAILED, retry_in=1)
    assert await signals(store) == []


async def test_a_limited_run_that_ends(store: Store) -> None:
    await listen(store)
    run_id = await put(store, SKIPS)
    (held,) = await claim_limited(store)
    await finish(store, held)
    assert await signals(store) == [("succeeded", run_id, None)]


async def test_runs_of_schedules_say_whose_they_are(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="skip")
    await listen(store)
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(minutes(1))
    await plan(store)  # skipped: the first is not over
    (held,) = await claim(store)
    await finish(store, held)
    assert [(what, schedule) for what, _, schedule in await signals(store)] == [("skipped", "s"), ("succeeded", "s")]


async def test_what_a_schedule_misses(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="none")
    await listen(store)
    clock.advance(minutes(30))
    await plan(store)
    # One for each reason: 28 are later than their grace, the last is due together with the newer one that runs.
    assert [one for one in await signals(store) if one[0] == "missed"] == [("missed", "s", "s")] * 2


async def test_what_a_schedule_misses_is_told_to_nobody(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="none")
    clock.advance(minutes(30))
    await plan(store)
    assert await signals(store) == []


async def test_the_messenger_is_hinted_to_if_an_enqueue_ends_a_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await listen(store)
    failed = await fail(store, store.clock)  # type: ignore[arg-type]
    hinted: set[str] = set()
    monkeypatch.setattr(store.database, "notify", hinted.update)
    await put(store)
    assert MESSENGER not in hinted
    in_vain = await put(store, after=[failed])
    assert ("skipped", in_vain, None) in await signals(store)
    assert MESSENGER in hinted


async def test_and_if_a_limit_ends_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await listen(store)
    await put(store, SKIPS)
    await claim_limited(store)
    hinted: set[str] = set()
    monkeypatch.setattr(store.database, "notify", hinted.update)
    skipped = await put(store, SKIPS)
    assert await signals(store) == [("skipped", skipped, None)]
    assert MESSENGER in hinted
