"""Unique and idempotency keys: which enqueue gets a run of its own, and what the others get."""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.jobs.unique import Unique
from rota.core.runs.run import Enqueued
from rota.core.states import Outcome, RunState
from rota.errors import DuplicateRun, KeyReused, NotRepeatable
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.databases.postgres import postgres
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.store.runs import enqueue
from rota.values.instants import instant
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.runs import claim, finish, make, put, state_of, tell
from tests.support.wait import PATIENCE, until_blocked

ONCE = JobDefinition(name="work", repeatable=False)
DAY = timedelta(days=1)


async def answer(store: Store, **options: object) -> Enqueued:
    return (await store.enqueue([make(**options)]))[0]  # type: ignore[arg-type]


async def live_runs(store: Store) -> int:
    return sum(queued + scheduled for _, _, queued, scheduled in await store.queue_counts())


async def test_the_second_enqueue_of_a_key_gets_the_first_run(store: Store) -> None:
    first = await answer(store, key="front-page", payload={"n": 1})
    second = await answer(store, key="front-page", payload={"n": 2})
    assert (second.id, second.created) == (first.id, False)
    assert (await store.get_run(first.id)).payload == {"n": 1}
    assert await live_runs(store) == 1


@pytest.mark.parametrize("other", [{"key": "back-page"}, {"scope": ("account", "2")}, {"job": "other"}])
async def test_other_keys_scopes_and_jobs_are_other_work(store: Store, other: dict[str, object]) -> None:
    await answer(store, key="front-page")
    assert (await answer(store, **{"key": "front-page", **other})).created


async def test_a_key_is_held_while_its_run_is_claimed_or_backs_off(store: Store) -> None:
    first = await answer(store, key="k")
    (held,) = await claim(store)
    assert (await answer(store, key="k")).id == first.id
    await tell(store, held, Outcome.FAILED, retry_in=1_000_000)
    assert (await answer(store, key="k")).id == first.id


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED])
async def test_a_key_is_free_once_its_run_is_final(store: Store, outcome: Outcome) -> None:
    first = await answer(store, key="k")
    (held,) = await claim(store)
    await tell(store, held, outcome)
    second = await answer(store, key="k")
    assert second.created
    assert second.id != first.id
    assert (await answer(store, key="k")).id == second.id


async def test_a_key_is_free_once_its_run_is_final_though_the_clock_was_set_back(
    store: Store, clock: ManualClock
) -> None:
    first = await answer(store, key="front-page")
    (held,) = await claim(store)
    await finish(store, held)
    clock.advance(-MINUTE)
    second = await answer(store, key="front-page")
    assert second.created
    assert second.id != first.id


async def test_unique_by_chosen_fields(store: Store) -> None:
    unique = {"fields": ["user"]}
    first = await answer(store, unique=unique, payload={"user": 1, "text": "a"})
    assert (await answer(store, unique=unique, payload={"text": "b", "user": 1})).id == first.id
    assert (await answer(store, unique=unique, payload={"user": 2, "text": "a"})).created


async def test_unique_false_lifts_what_the_job_declares(store: Store) -> None:
    job = JobDefinition(name="work", unique=Unique())
    await put(store, job)
    assert not (await store.enqueue([make(job)]))[0].created
    assert (await store.enqueue([make(job, unique=False)]))[0].created


async def test_a_key_does_not_switch_off_what_its_job_declares_unique(store: Store) -> None:
    job = JobDefinition(name="work", unique=Unique())
    first = await put(store, job, key="a")
    for options in ({"key": "b"}, {}, {"key": "a", "payload": {"other": 1}}):
        (again,) = await store.enqueue([make(job, **options)])
        assert (again.id, again.created) == (first, False)
    assert await live_runs(store) == 1


async def test_replace_rewrites_an_unclaimed_run(store: Store, clock: ManualClock) -> None:
    first = await answer(store, key="k", payload={"n": 1}, delay="1h")
    replace: dict[str, object] = {"key": "k", "unique": {"on_conflict": "replace"}}
    second = await answer(
        store, **replace, payload={"n": 2}, priority=9, queue="mail", tags=["new"], metadata={"a": 1}, max_attempts=7
    )
    assert (second.id, second.created) == (first.id, False)
    run = await store.get_run(first.id)
    assert (run.payload, run.priority, run.queue, run.tags, run.metadata, run.max_attempts) == (
        {"n": 2}, 9, "mail", ("new",), {"a": 1}, 7,
    )  # fmt: skip
    assert (run.state, run.run_at) == (RunState.QUEUED, instant(clock.micros()))
    (held,) = await claim(store, queues=["mail"])
    assert (held.payload, held.rank) == ('{"n":2}', -9)


async def test_replace_may_put_off(store: Store, clock: ManualClock) -> None:
    run_id = await put(store, key="k")
    await put(store, key="k", delay="1m", unique={"on_conflict": "replace"})
    assert await state_of(store, run_id) is RunState.SCHEDULED
    clock.advance(MINUTE)
    assert (await store.promote(10)).count == 1


async def test_replace_leaves_a_claimed_run_alone(store: Store) -> None:
    first = await answer(store, key="k", payload={"n": 1})
    (held,) = await claim(store)
    second = await answer(store, key="k", payload={"n": 2}, unique={"on_conflict": "replace"})
    assert (second.id, second.created) == (first.id, False)
    assert (await store.get_run(first.id)).payload == {"n": 1}
    await finish(store, held)


async def test_replace_racing_claim(store: Store, second: Store) -> None:
    for _ in range(10):
        run_id = await put(store, key="k", payload={"n": 1})
        _, found = await asyncio.gather(
            put(store, key="k", payload={"n": 2}, unique={"on_conflict": "replace"}), claim(second)
        )
        (held,) = found or await claim(second)
        assert held.run_id == run_id
        assert (await store.get_run(run_id)).payload == {"n": 1 if held.payload == '{"n":1}' else 2}
        await finish(store, held)


async def test_reject_names_the_holder(store: Store) -> None:
    first = await answer(store, key="k")
    with pytest.raises(DuplicateRun) as caught:
        await answer(store, key="k", unique={"on_conflict": "reject"})
    assert caught.value.holder == first.id
    assert await live_runs(store) == 1


async def test_a_period_outlasts_the_run(store: Store, clock: ManualClock) -> None:
    hourly: dict[str, object] = {"key": "k", "unique": {"period": "1h"}}
    first = await answer(store, **hourly)
    (held,) = await claim(store)
    await finish(store, held)
    clock.advance(timedelta(minutes=59))
    assert (await answer(store, **hourly)).id == first.id
    clock.advance(MINUTE)
    assert (await answer(store, **hourly)).created


async def test_a_live_run_outlasts_the_period(store: Store, clock: ManualClock) -> None:
    hourly: dict[str, object] = {"key": "k", "unique": {"period": "1h"}}
    first = await answer(store, **hourly)
    clock.advance(2 * DAY)
    assert (await answer(store, **hourly)).id == first.id


async def test_a_job_that_is_not_repeatable_succeeds_once(store: Store) -> None:
    first = await put(store, ONCE)
    with pytest.raises(NotRepeatable):
        await put(store, ONCE)
    (held,) = await claim(store)
    await finish(store, held)
    with pytest.raises(NotRepeatable) as caught:
        await put(store, ONCE)
    assert caught.value.holder == first
    assert await put(store, ONCE, scope=("account", "2"))


async def test_a_job_that_is_not_repeatable_may_be_tried_again_after_it_failed(store: Store) -> None:
    await put(store, ONCE)
    (held,) = await claim(store)
    await tell(store, held, Outcome.FAILED)
    assert await put(store, ONCE)
    with pytest.raises(NotRepeatable):
        await put(store, ONCE)


async def test_an_idempotency_key_names_one_run_for_a_day(store: Store, clock: ManualClock) -> None:
    request: dict[str, object] = {"idempotency_key": "abc", "payload": {"n": 1}}
    first = await answer(store, **request)
    (held,) = await claim(store)
    await finish(store, held)
    clock.advance(DAY - SECOND)
    again = await answer(store, **request)
    assert (again.id, again.created) == (first.id, False)
    clock.advance(SECOND)
    assert (await answer(store, **request)).created


@pytest.mark.parametrize(
    "other", [{"payload": {"n": 2}}, {"priority": 3}, {"job": "other"}, {"scope": ("account", "1")}, {"delay": "1s"}]
)
async def test_an_idempotency_key_with_other_content_is_refused(store: Store, other: dict[str, object]) -> None:
    request: dict[str, object] = {"idempotency_key": "abc", "payload": {"n": 1}}
    await answer(store, **request)
    with pytest.raises(KeyReused, match="idempotency key 'abc'"):
        await answer(store, **{**request, **other})
    assert await live_runs(store) == 1


async def test_an_idempotency_key_is_never_answered_with_other_content(store: Store, clock: ManualClock) -> None:
    """Also after its day, while its run is still there to be found."""
    await answer(store, idempotency_key="abc", payload={"n": 1}, delay="2d")
    clock.advance(DAY + SECOND)
    with pytest.raises(KeyReused):
        await answer(store, idempotency_key="abc", payload={"n": 2})


async def test_an_idempotency_key_that_met_a_unique_key_names_its_run(store: Store) -> None:
    holder = await answer(store, key="k")
    for _ in range(2):
        found = await answer(store, key="k", idempotency_key="abc")
        assert (found.id, found.created) == (holder.id, False)
    (held,) = await claim(store)
    await finish(store, held)
    assert (await answer(store, key="k", idempotency_key="abc")).id == holder.id


@pytest.mark.parametrize("prior", ["never used", "used and final"])
async def test_racing_enqueues_of_one_key_make_one_run(store: Store, second: Store, prior: str) -> None:
    for turn in range(5):
        if prior == "used and final":
            await put(store, key=f"k{turn}")
            (held,) = await claim(store)
            await finish(store, held)
        racers = [[store, second][n % 2].enqueue([make(key=f"k{turn}")]) for n in range(8)]
        answers = [found for (found,) in await asyncio.gather(*racers)]
        assert sum(found.created for found in answers) == 1
        assert len({found.id for found in answers}) == 1
        (held,) = await claim(store)
        await finish(store, held)


async def test_a_key_taken_over_while_another_waits_for_it(
    postgres_store: Store, postgres_database: PostgresDatabase
) -> None:
    """The one who waited must see the new holder, and not what its statement saw before the wait."""
    await put(postgres_store, key="k")
    (held,) = await claim(postgres_store)
    await finish(postgres_store, held)
    inside, leave = asyncio.Event(), asyncio.Event()
    first, other = make(key="k"), make(key="k")

    async def slowly(tx: Tx) -> list[Enqueued]:
        await tx.fetch_sql("select key from rota_unique for update")
        inside.set()
        await leave.wait()
        return await enqueue.enqueue(tx, [first])

    slow = asyncio.create_task(postgres_database.transact(slowly))
    await inside.wait()
    waiting = asyncio.create_task(postgres_store.enqueue([other]))
    await until_blocked(postgres_database)
    leave.set()
    assert (await slow)[0].created
    (found,) = await waiting
    assert (found.id, found.created) == (first.id, False)


async def test_bulk_enqueues_in_opposite_order_do_not_deadlock(store: Store, second: Store) -> None:
    keys = [f"key-{n}" for n in range(30)]
    async with asyncio.timeout(PATIENCE):
        forth, back = await asyncio.gather(
            store.enqueue([make(key=key) for key in keys]), second.enqueue([make(key=key) for key in reversed(keys)])
        )
    assert [found.id for found in forth] == [found.id for found in reversed(back)]
    assert await live_runs(store) == len(keys)


async def test_bulk_enqueues_whose_runs_hold_two_keys_do_not_deadlock(
    store: Store, second: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of a call's idempotency keys says nothing about the order of its unique keys."""
    monkeypatch.setattr(postgres, "_RETRIED", ())
    order = random.Random(1)

    async def bulk(where: Store, name: str) -> list[Enqueued]:
        numbers = order.sample(range(20), 20)
        made = await where.enqueue([make(key=f"k{n}", idempotency_key=f"{name}-{m}") for m, n in enumerate(numbers)])
        return [made[numbers.index(n)] for n in range(20)]

    for turn in range(5):
        bulks = await asyncio.gather(*[bulk(where, f"{turn}-{n}") for n, where in enumerate((store, second, store))])
        assert len({tuple(found.id for found in answers) for answers in bulks}) == 1
        if turn == 0:
            assert sum(found.created for answers in bulks for found in answers) == 20
    assert await live_runs(store) == 20


async def test_a_key_that_an_answered_run_wanted_goes_to_the_next_that_wants_it(
    store: Store, clock: ManualClock
) -> None:
    again: dict[str, Any] = {"key": "k", "idempotency_key": "abc"}
    held = await answer(store, **again)
    await finish_only(store)
    clock.advance(SECOND)
    await store.prune(lambda _: Retention())  # the unique key is forgotten, the idempotency key is not
    repeated, other = await store.enqueue([make(**again), make(key="k")])
    assert (repeated.id, repeated.created) == (held.id, False)
    assert other.created
    await store.cancel(other.id, None, None)
    clock.advance(SECOND)
    await store.prune(lambda _: Retention())
    assert (await answer(store, **again)).id == held.id
    assert (await answer(store, key="k")).created


async def finish_only(store: Store) -> None:
    (held,) = await claim(store)
    await finish(store, held)


async def test_one_enqueue_may_name_a_key_twice(store: Store) -> None:
    first, second = await store.enqueue([make(key="k"), make(key="k")])
    assert first.id == second.id
    assert (first.created, second.created) == (True, False)
