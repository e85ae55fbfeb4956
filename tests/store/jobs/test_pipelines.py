"""Pipelines in the database: a death at every statement of an advance, and races of pauses, ends and losses."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.pipelines import Part
from rota.core.runs.claim import SUSPECTS, ClaimRequest, QueueRequest
from rota.core.runs.outcome import Report
from rota.core.states import Outcome, RunState
from rota.errors import Unavailable
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.jobs import pipeline_claims
from rota.store.runs import report
from tests.support.accounts import rows
from tests.support.clock import ManualClock
from tests.support.dying import Deaths, Died, Moment
from tests.support.runs import LEASE, claim, make, put, state_of

PARTS = (Part("one", "first"), Part("two", "second", {"n": "{steps.one.n}"}))
PIPE = JobDefinition(name="pipe", kind="pipeline", pipeline=PARTS)
RESULT = '{"n":1}'


class Held:
    """A transaction that has done its work, and commits on request."""

    def __init__(self, store: Store, work: Callable[[Tx], Awaitable[Any]]) -> None:
        self._done, self._go = asyncio.Event(), asyncio.Event()
        self._work = work
        self._task = asyncio.create_task(store.database.transact(self._body))

    async def _body(self, tx: Tx) -> Any:
        answer = await self._work(tx)
        self._done.set()
        await self._go.wait()
        return answer

    async def ready(self) -> None:
        await self._done.wait()

    async def commit(self) -> Any:
        self._go.set()
        return await self._task


async def first_part(store: Store) -> Report:
    """Build the report of the first part of a claimed run."""
    await put(store, PIPE)
    (mine,) = await claim(store, known={"first": 1})
    assert (mine.job, mine.part, mine.fence) == ("first", "one", 1)
    return Report(mine.run_id, mine.fence, Outcome.SUCCEEDED, result=RESULT, part=mine.part)


async def facts(store: Store) -> list[Any]:
    tables = ("ready", "lease", "stage", "attempt", "step", "event")
    return [await rows(store, f"select * from rota_{table} order by 1, 2") for table in tables]


@pytest.mark.parametrize("moment", ["before", "after", "unanswered"])
async def test_a_death_while_it_advances(store: Store, second: Store, moment: Moment) -> None:
    """The step and the advance are atomic. A repetition gets the first answer."""
    deaths, number = Deaths(second), 0
    while True:
        said = await first_part(store)
        before = await facts(store)
        deaths.at(number, moment)
        try:
            await second.report([said])
        except (Died, Unavailable):
            if moment != "unanswered":
                assert await facts(store) == before
        if not deaths.died:
            break
        deaths.never()
        assert not (await second.report([said])).refused
        after = await facts(store)
        assert not (await store.report([said])).refused
        assert await facts(store) == after
        (mine,) = await claim(store, known={"second": 1})
        assert (mine.run_id, mine.part, mine.fence, mine.attempt, mine.payload) == (said.run_id, "two", 2, 1, RESULT)
        await store.report([Report(mine.run_id, mine.fence, Outcome.SUCCEEDED, part=mine.part)])
        assert await state_of(store, mine.run_id) is RunState.SUCCEEDED
        number += 1
    assert number >= (1 if moment == "unanswered" else 8)


async def test_ordinary_runs_have_no_stage(store: Store) -> None:
    await put(store)
    (mine,) = await claim(store)
    assert mine.part is None
    assert await rows(store, "select run_id from rota_stage") == []
    assert make().overrides is None


async def test_a_pipeline_that_is_resumed_while_its_claim_is_put_back(postgres_store: Store) -> None:
    """The claim locks the pause: the resume waits, and then sees the run that was put back."""
    store = postgres_store
    run_id = await put(store, PIPE)
    await store.pause_job("pipe", None, None)
    request = _asking()
    held = Held(store, lambda tx: pipeline_claims.claim(tx, request))
    await held.ready()
    resuming = asyncio.create_task(store.resume_job("pipe", "skip", None))
    await _blocked(store)
    assert await held.commit() == []
    await resuming
    (mine,) = await claim(store, known={"first": 1})
    assert (mine.run_id, mine.part, mine.attempt) == (run_id, "one", 1)


async def test_an_end_and_a_loss_of_the_same_part(postgres_store: Store, clock: ManualClock) -> None:
    """The first one decides; the other changes nothing."""
    store = postgres_store
    said = await first_part(store)
    clock.advance(2 * LEASE)
    held = Held(store, lambda tx: report.report(tx, [said]))
    await held.ready()
    assert (await store.reap(10)).requeued == 0
    assert not (await held.commit()).refused
    assert (await store.reap(10)).requeued == 0
    (mine,) = await claim(store, known={"second": 1})
    again = Report(mine.run_id, mine.fence, Outcome.SUCCEEDED, part="two")
    clock.advance(2 * LEASE)
    taking = Held(store, lambda tx: report.reap(tx, 10))
    await taking.ready()
    late = asyncio.create_task(store.report([again]))
    await _blocked(store)
    assert (await taking.commit()).requeued == 1
    assert (await late).refused == [again]
    assert await state_of(store, mine.run_id) is RunState.QUEUED
    (anew,) = await claim(store, known={"second": 1})
    assert (anew.part, anew.attempt) == ("two", 2)


def _asking() -> ClaimRequest:
    return ClaimRequest("worker-9", (QueueRequest("default", 10),), {"first": 1}, 30_000_000, SUSPECTS)


async def _blocked(store: Store) -> None:
    """Wait until a transaction waits for a lock."""
    sql = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"

    async def body(tx: Tx) -> int:
        ((count,),) = await tx.fetch_sql(sql)
        return int(count)

    async with asyncio.timeout(20):
        while not await store.database.read(body):
            await asyncio.sleep(0.01)
