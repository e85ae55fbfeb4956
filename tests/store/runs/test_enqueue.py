"""Enqueue: all of it or nothing, in order, and the same again when repeated."""

from datetime import timedelta

import pytest

from rota.core.states import Outcome, RunState
from rota.errors import DuplicateRun
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.runs import claim, finish, ids, make, outcomes_of, put, put_and_claim, state_of


async def test_runs_are_answered_in_the_order_asked(store: Store) -> None:
    runs = [make() for _ in range(20)]
    answers = await store.enqueue(runs)
    assert [answer.id for answer in answers] == [run.id for run in runs]
    assert all(answer.created for answer in answers)


async def test_answers_keep_the_order_of_plain_and_keyed_runs(store: Store) -> None:
    runs = [make(key="b"), make(), make(key="a"), make()]
    assert [answer.id for answer in await store.enqueue(runs)] == [run.id for run in runs]


async def test_a_run_reads_back_as_it_was_made(store: Store, clock: ManualClock) -> None:
    run_id = await put(
        store,
        payload={"url": "https://example.com", "deep": [{"ü": None}]},
        queue="mail",
        priority=7,
        scope=("account", "42"),
        key="front-page",
        tags=["a", "b"],
        metadata={"by": "me"},
        max_attempts=9,
    )
    run = await store.get_run(run_id)
    assert run.payload == {"url": "https://example.com", "deep": [{"ü": None}]}
    assert (run.job, run.job_version, run.queue, run.priority) == ("work", 1, "mail", 7)
    assert (run.scope.kind, run.scope.id, run.key) == ("account", "42", "front-page")
    assert (run.tags, run.metadata, run.max_attempts) == (("a", "b"), {"by": "me"}, 9)
    assert (run.state, run.attempt, run.fence) == (RunState.QUEUED, 0, 0)
    assert run.created_at == run.run_at == instant(clock.micros())
    assert {run.started_at, run.finished_at, run.result, run.error, run.worker_id} == {None}


async def test_the_answer_says_when_it_was_created_and_is_due(store: Store, clock: ManualClock) -> None:
    (answer,) = await store.enqueue([make(delay="10s")])
    assert answer.created_at == instant(clock.micros())
    assert answer.run_at == instant(clock.micros()) + timedelta(seconds=10)


async def test_delayed_runs_are_scheduled(store: Store, clock: ManualClock) -> None:
    run_id = await put(store, delay="10m")
    run = await store.get_run(run_id)
    assert run.state is RunState.SCHEDULED
    assert run.run_at == instant(clock.micros()) + timedelta(minutes=10)
    assert await claim(store) == []


async def test_run_at_in_the_future_is_scheduled_and_in_the_past_is_queued(store: Store, clock: ManualClock) -> None:
    now = instant(clock.micros())
    later, past = await store.enqueue([make(run_at=now + SECOND), make(run_at=now - MINUTE)])
    assert await state_of(store, later.id) is RunState.SCHEDULED
    assert await state_of(store, past.id) is RunState.QUEUED
    assert (await store.get_run(past.id)).run_at == now - MINUTE


async def test_repeating_an_enqueue_changes_nothing(store: Store) -> None:
    runs = [make(), make(delay="10m"), make(key="front-page")]
    first = await store.enqueue(runs)
    again = await store.enqueue(runs)
    assert [(a.id, a.created) for a in again] == [(a.id, a.created) for a in first]
    assert len(await claim(store)) == 2


async def test_repeating_an_enqueue_that_was_claimed_makes_no_second_run(store: Store) -> None:
    runs = [make(), make(key="front-page")]
    await store.enqueue(runs)
    assert len(await claim(store)) == 2
    assert all(answer.created for answer in await store.enqueue(runs))
    assert await claim(store) == []
    assert await state_of(store, runs[0].id) is RunState.RUNNING


async def test_repeating_an_enqueue_that_was_finished_makes_no_second_run(store: Store) -> None:
    run, keyed = make(), make(key="front-page")
    await store.enqueue([run, keyed])
    for claimed in await claim(store):
        await finish(store, claimed)
    assert [answer.id for answer in await store.enqueue([run, keyed])] == [run.id, keyed.id]
    assert await claim(store) == []
    assert await state_of(store, run.id) is RunState.SUCCEEDED
    assert await outcomes_of(store, run.id) == [Outcome.SUCCEEDED]


async def test_a_repeat_with_one_new_run_adds_only_that(store: Store) -> None:
    old, new = make(), make()
    await store.enqueue([old])
    await store.enqueue([old, new])
    assert sorted(ids(await claim(store))) == sorted([old.id, new.id])


async def test_one_refused_run_refuses_the_whole_enqueue(store: Store) -> None:
    await put(store, key="taken")
    with pytest.raises(DuplicateRun):
        await store.enqueue([make(), make(key="free"), make(key="taken", unique={"on_conflict": "reject"})])
    assert sum(queued for _, _, queued, _ in await store.queue_counts()) == 1
    assert (await store.enqueue([make(key="free")]))[0].created


async def test_a_large_enqueue(store: Store) -> None:
    await store.enqueue([make() for _ in range(3_000)])
    assert await store.queue_counts() == [("default", 0, 3_000, 0)]


async def test_the_copy_of_a_run_is_the_same_work(store: Store) -> None:
    held = await put_and_claim(store, payload={"a": 1}, queue="default", priority=3, tags=["x"])
    copy = await store.copy_of(held.run_id)
    assert (copy.payload, copy.priority, copy.tags, copy.delay, copy.run_at) == ('{"a":1}', 3, '["x"]', 0, None)
