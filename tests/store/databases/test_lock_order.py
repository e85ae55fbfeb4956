"""Who meets over the same runs and limits waits for the other, and no two wait for each other. PostgreSQL only."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from rota.core.external.external import ExternalReport, StepReport
from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.progress.notes import Notes, StepNote
from rota.core.progress.steps import StepState
from rota.core.runs.outcome import Wait
from rota.core.runs.run import Run, RunError
from rota.core.states import Outcome, RunState
from rota.errors import AlreadyReported, Conflict, LeaseLost, RunIsFinal
from rota.registry.data_jobs import define_data_job
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.store.databases.postgres import postgres
from rota.store.databases.postgres.postgres import PostgresDatabase, PostgresTx
from rota.store.external.external import Ended
from rota.store.limits import strays
from rota.store.runs import enqueue as enqueues
from rota.store.schedules import change, trigger_now
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import (
    LEASE_MICROS,
    claim,
    claim_limited,
    finish,
    ids,
    make,
    put,
    put_and_claim,
    state_of,
    tell,
)
from tests.support.schedules.schedules import definition_of, make_schedule, minutes, plan, runs_of, told
from tests.support.wait import until

NEWEST = JobDefinition(name="work", limits=(Limit(max=1, when_full="cancel_oldest"),))
ONE_EACH = JobDefinition(name="work", limits=(Limit(max=1, by=("a",)),))
BOTH = JobDefinition(name="work", limits=(Limit(max=3), Limit(max=2, by=("a",))))

Act = Callable[[], Coroutine[Any, Any, Any]]
Meet = Callable[[tuple[str, Act], tuple[str, Act]], Awaitable[list[Any]]]


async def somebody_waits(store: Store) -> bool:
    sql = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    return bool(await store.database.read(lambda tx: tx.fetch_sql(sql)))


@pytest.fixture
def meet(postgres_store: Store, monkeypatch: pytest.MonkeyPatch) -> Meet:
    """Two acts at once. Each rests after its statement until the other has come to its own, or waits for a lock.

    A deadlock is an error here: transactions are not tried again.
    """
    monkeypatch.setattr(postgres, "_TRIES", 1)
    acting: ContextVar[str | None] = ContextVar("acting", default=None)
    came: set[str] = set()
    fetch = PostgresTx.fetch

    async def other_came() -> bool:
        return len(came) == 2 or await somebody_waits(postgres_store)

    async def resting(self: PostgresTx, name: str, rows: Sequence[Row] | None = None, /, **values: object) -> Any:
        found = await fetch(self, name, rows, **values)
        if acting.get() == name and name not in came:
            came.add(name)
            await until(other_came)
        return found

    monkeypatch.setattr(PostgresTx, "fetch", resting)

    async def act(statement: str, what: Act) -> Any:
        acting.set(statement)
        answer = await what()
        came.add(statement)
        return answer

    async def both(one: tuple[str, Act], other: tuple[str, Act]) -> list[Any]:
        return list(await asyncio.gather(act(*one), act(*other)))

    return both


async def put_after(store: Store, before: str) -> str:
    run_id = await put(store)

    async def body(tx: Tx) -> None:
        await tx.fetch("mark_followed", [(before,)])
        await tx.fetch("insert_waits", [(run_id, before)])
        await tx.fetch_sql("update rota_ready set hold = 3 where run_id = :id", id=run_id)

    await store.database.transact(body)
    return run_id


async def test_the_cancel_of_a_run_that_waits_and_the_end_of_the_one_before(postgres_store: Store, meet: Meet) -> None:
    held = await put_and_claim(postgres_store)
    waiting = await put_after(postgres_store, held.run_id)
    await meet(
        ("end_waits_for", lambda: finish(postgres_store, held)),
        ("end_unclaimed", lambda: postgres_store.cancel(waiting, None, None)),
    )
    states = [await state_of(postgres_store, id) for id in (held.run_id, waiting)]
    assert states == [RunState.SUCCEEDED, RunState.CANCELLED]
    left = await postgres_store.database.read(lambda tx: tx.fetch_sql("select run_id from rota_wait"))
    assert list(left) == []


async def test_planning_that_supersedes_and_the_end_of_the_run_before(
    postgres_store: Store, clock: ManualClock, meet: Meet
) -> None:
    store = postgres_store
    await make_schedule(store, overlap="cancel_previous")
    clock.advance(minutes(1))
    await plan(store)
    (held,) = await claim(store)
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(minutes(1))
    await meet(
        ("end_waits_for", lambda: tell(store, held, Outcome.CANCELLED)),
        ("end_unclaimed", lambda: plan(store)),
    )
    assert [state for _, state in told(await runs_of(store))] == ["cancelled", "skipped", "queued"]


@pytest.mark.parametrize("limit", [{}, {"max_concurrency": 1, "when_full": "skip"}])
async def test_planning_that_stops_a_run_which_is_claimed_while_it_is_reserved(
    postgres_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any]
) -> None:
    """Leases are looked at before what is ready: one that is claimed in between is there all the same, and its end must
    not meet a planner that has the run, or its limit, and wants the lease."""
    store, ends = postgres_store, list[asyncio.Task[bool]]()
    monkeypatch.setattr(postgres, "_TRIES", 1)
    await make_schedule(store, overlap="cancel_previous", **limit)
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(minutes(1))
    fetch, held = PostgresTx.fetch, list[Any]()

    async def met() -> bool:
        return ends[0].done() or await somebody_waits(store)

    async def claiming(self: PostgresTx, name: str, rows: Sequence[Row] | None = None, /, **values: object) -> Any:
        mine = asyncio.current_task() is planning
        if mine and name == "lock_waiting" and not held:
            held.extend(await claim_limited(store) if limit else await claim(store))
        found = await fetch(self, name, rows, **values)
        if mine and name == ("lock_limits" if limit else "lock_runs") and not ends:
            ends.append(asyncio.create_task(tell(store, held[0], Outcome.SUCCEEDED)))
            await until(met)
        return found

    planning = asyncio.create_task(plan(store))
    monkeypatch.setattr(PostgresTx, "fetch", claiming)
    await planning
    assert await ends[0]
    assert [state for _, state in told(await runs_of(store))] == ["succeeded", "queued"]


async def test_an_enqueue_that_stops_the_oldest_and_its_end(postgres_store: Store, meet: Meet) -> None:
    await put(postgres_store, NEWEST)
    (held,) = await claim_limited(postgres_store)
    _, newest = await meet(
        ("complete", lambda: finish(postgres_store, held)),
        ("lock_limits", lambda: put(postgres_store, NEWEST)),
    )
    assert await state_of(postgres_store, held.run_id) is RunState.SUCCEEDED
    assert ids(await claim_limited(postgres_store)) == [newest]


async def test_the_oldest_is_stopped_though_somebody_has_it_at_that_moment(postgres_store: Store) -> None:
    """A heartbeat, for one: it is waited for before the limit is locked."""
    await put(postgres_store, NEWEST)
    (held,) = await claim_limited(postgres_store)
    has, go = asyncio.Event(), asyncio.Event()

    async def renew(tx: Tx) -> None:
        await tx.fetch("extend", [(held.run_id, held.fence)], lease=30_000_000)
        has.set()
        await go.wait()

    renewing = asyncio.create_task(postgres_store.database.transact(renew))
    await has.wait()
    coming = asyncio.create_task(put(postgres_store, NEWEST))
    await until(lambda: somebody_waits(postgres_store))
    go.set()
    await asyncio.gather(renewing, coming)
    assert await state_of(postgres_store, held.run_id) is RunState.CANCELLING
    assert await tell(postgres_store, held, Outcome.CANCELLED)


async def test_keyed_runs_and_others_in_one_call(postgres_store: Store, meet: Meet) -> None:
    async def enqueue(*keys: str | None) -> None:
        await postgres_store.enqueue([make(ONE_EACH, payload={"a": 1}, key=key) for key in keys])

    await meet(("make_limits", lambda: enqueue(None, "k")), ("lock_keys", lambda: enqueue("k")))
    assert len(await claim_limited(postgres_store)) == 1
    assert await postgres_store.queue_counts() == [("default", 1, 1, 0)]


async def test_a_limit_is_dropped_while_an_enqueue_under_it_is_not_to_be_seen(
    postgres_store: Store, clock: ManualClock
) -> None:
    store = postgres_store
    await put(store, BOTH, payload={"a": 1})
    (held,) = await claim_limited(store)
    await finish(store, held)
    clock.advance(SECOND)
    await claim_limited(store)
    clock.advance(120 * SECOND)
    run = make(BOTH, payload={"a": 2})

    async def enqueue(tx: Tx) -> None:
        await enqueues.enqueue(tx, [run])
        await store.database.transact(tidy)

    async def tidy(tx: Tx) -> None:
        await strays.tidy(tx, await strays.look_astray(tx))

    await store.database.transact(enqueue)
    assert ids(await claim_limited(store)) == [run.id]


async def test_two_who_write_notes_of_the_same_steps(
    postgres_store: Store, postgres_database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would hold an end and wait for the middle, which somebody else holds until both are there."""
    monkeypatch.setattr(postgres, "_TRIES", 1)
    held = sorted([await put_and_claim(postgres_store) for _ in range(3)], key=lambda claim: claim.run_id)
    steps = [StepNote(one.run_id, one.fence, one.attempt, "one", 1, StepState.RUNNING, 0) for one in held]
    await postgres_store.notes.write(Notes(steps=tuple(steps)))
    waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    other = await asyncpg.connect(postgres_database.url)

    async def both_wait() -> bool:
        return len(await postgres_store.database.read(lambda tx: tx.fetch_sql(waiting))) == 2

    async with other.transaction():
        await other.execute("select 1 from rota_step where run_id = $1 for update", held[1].run_id)
        ways = [Notes(steps=tuple(steps)), Notes(steps=tuple(reversed(steps)))]
        writing = [asyncio.create_task(postgres_store.notes.write(notes)) for notes in ways]
        await until(both_wait)
    await other.close()
    assert await asyncio.gather(*writing) == [set(), set()]


HOUR = 3_600_000_000


async def put_and_hand_over(store: Store, step: str | None = None) -> tuple[str, int]:
    held = await put_and_claim(store)
    assert await tell(store, held, Outcome.SNOOZED, wait=Wait(HOUR, step))
    return held.run_id, held.fence


async def answer_of(act: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await act
    except Conflict as refused:
        return type(refused)


async def test_two_outsiders_end_the_same_run_otherwise(postgres_store: Store, meet: Meet) -> None:
    run_id, fence = await put_and_hand_over(postgres_store)
    external = postgres_store.external
    failed = ExternalReport(Outcome.FAILED, error=RunError("Jam", "paper"), retry=False)
    answers = await meet(
        ("lock_outside", lambda: _state(external.finish(run_id, fence, ExternalReport(Outcome.SUCCEEDED)))),
        ("lock_held", lambda: _state(external.finish(run_id, fence, failed))),
    )
    state = await state_of(postgres_store, run_id)
    assert state in answers
    assert AlreadyReported in answers or LeaseLost in answers


async def _state(ending: Coroutine[Any, Any, Ended]) -> Any:
    answer = await answer_of(ending)
    return answer.state if isinstance(answer, Ended) else answer


async def test_an_outsider_ends_it_as_it_is_cancelled(postgres_store: Store, meet: Meet) -> None:
    run_id, fence = await put_and_hand_over(postgres_store)
    answers = await meet(
        (
            "lock_outside",
            lambda: _state(postgres_store.external.finish(run_id, fence, ExternalReport(Outcome.SUCCEEDED))),
        ),
        ("lock_lease", lambda: answer_of(postgres_store.cancel(run_id, None, "ann"))),
    )
    assert answers[0] is RunState.SUCCEEDED
    assert answers[1] in (RunState.CANCELLING, RunIsFinal)
    assert await state_of(postgres_store, run_id) is RunState.SUCCEEDED


async def test_an_outsider_ends_it_as_its_time_is_up(postgres_store: Store, clock: ManualClock, meet: Meet) -> None:
    run_id, fence = await put_and_hand_over(postgres_store)
    clock.advance(2 * HOUR / 1_000_000 * SECOND)
    said, reaped = await meet(
        (
            "lock_outside",
            lambda: _state(postgres_store.external.finish(run_id, fence, ExternalReport(Outcome.SUCCEEDED))),
        ),
        ("lock_expired", lambda: postgres_store.reap(10)),
    )
    taken = reaped.requeued + reaped.ended
    assert (said, taken) in ((RunState.SUCCEEDED, 0), (LeaseLost, 1))


async def test_it_is_handed_over_as_somebody_quick_ends_the_step(postgres_store: Store, meet: Meet) -> None:
    """Whichever comes first, nobody waits for a step that is done."""
    held = await put_and_claim(postgres_store)
    word = StepReport("approval", StepState.SUCCEEDED, "1")
    await meet(
        ("lock_leases", lambda: tell(postgres_store, held, Outcome.SNOOZED, wait=Wait(HOUR, "approval"))),
        ("lock_held", lambda: answer_of(postgres_store.external.step(held.run_id, held.fence, LEASE_MICROS, word))),
    )
    assert await state_of(postgres_store, held.run_id) is RunState.QUEUED


async def test_it_is_handed_over_as_it_is_cancelled(postgres_store: Store, meet: Meet) -> None:
    held = await put_and_claim(postgres_store)
    _, run = await meet(
        ("lock_leases", lambda: tell(postgres_store, held, Outcome.SNOOZED, wait=Wait(HOUR))),
        ("lock_lease", lambda: answer_of(postgres_store.cancel(held.run_id, None, "ann"))),
    )
    assert isinstance(run, Run)
    assert run.state is RunState.CANCELLING
    assert await state_of(postgres_store, held.run_id) in (RunState.CANCELLING, RunState.CANCELLED)


async def test_a_trigger_and_the_drop_of_its_job(postgres_store: Store) -> None:
    """The drop waits for whoever has a cursor of the job, and finds the run that is made meanwhile."""
    store = postgres_store
    job = await store.data_jobs.create(define_data_job("ping", "http", {"url": "https://example.com/"}), "api", None)
    await store.schedules.create("s", await definition_of(store, job=job, enabled=False), "test")
    has, go = asyncio.Event(), asyncio.Event()

    async def trigger(tx: Tx) -> list[str]:
        row = await change.locked(tx, "s")
        made = await trigger_now.trigger(tx, row, store.new_id, row.definition.lanes, force=False)
        has.set()
        await go.wait()
        return made

    async def drop() -> None:
        left = await store.data_jobs.delete("ping", None, force=True)
        await store.cancel_left("ping", left, None, None)

    triggering_it = asyncio.create_task(store.database.transact(trigger))
    await has.wait()
    dropping = asyncio.create_task(drop())

    async def waits_or_is_done() -> bool:
        return dropping.done() or await somebody_waits(store)

    await until(waits_or_is_done)
    go.set()
    made, _ = await asyncio.gather(triggering_it, dropping)
    assert [await state_of(store, id) for id in made] == [RunState.CANCELLED]


async def test_an_enqueue_under_a_limit_and_the_drop_of_its_job(postgres_store: Store, meet: Meet) -> None:
    """The job comes before its limits: a drop plans what its schedule has due, and so comes to them after the job."""
    store = postgres_store
    options = {"url": "https://example.com/", "limit": {"max": 2, "when_full": "skip"}}
    job = await store.data_jobs.create(define_data_job("ping", "http", options), "api", None)
    await put(store, job)  # so that the limit is there
    run = replace(make(job), droppable=True)

    async def drop(tx: Tx) -> None:
        await tx.fetch("lock_job_to_drop", job="ping")
        await tx.fetch("lock_limits", [(gate.key,) for gate in run.gates])

    await meet(
        ("lock_limits", lambda: store.enqueue([run])), ("lock_job_to_drop", lambda: store.database.transact(drop))
    )
    assert await state_of(store, run.id) is RunState.QUEUED
