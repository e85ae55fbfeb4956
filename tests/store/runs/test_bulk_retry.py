"""Bulk retries are sets: few statements however many runs, and each refusal counted with its reason."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rota.client.client import Client
from rota.config import Config
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.core.runs.bulk import BulkResult
from rota.core.runs.run import RunFilter
from rota.core.states import Outcome, RunState
from rota.errors import LimitReached
from rota.registry.jobs import Registry
from rota.store import Store
from rota.values.scope import Scope
from tests.support.runs.runs import WORK, claim, claim_limited, finish_all, make, tell
from tests.support.schedules.ledger_oracle import rows

FAILED = RunFilter(states=(RunState.FAILED,))
UNIQUE = JobDefinition(name="unique", unique=Unique(("n",)))
LIMITED = JobDefinition(name="limited", limits=(Limit(max=2, when_full="reject"),))
JOBS = {job.name: 1 for job in (WORK, UNIQUE, LIMITED)}


@pytest.fixture
async def client(store: Store) -> Client:
    await store.save_jobs([WORK, UNIQUE, LIMITED])
    return Client(store, Registry(), Config())


async def failed(store: Store, job: JobDefinition, count: int, **options: Any) -> None:
    """Enqueue runs that fail, one after the other where a limit asks for it."""
    for n in range(count):
        await store.enqueue([make(job, payload={"n": n}, **options)])
    while held := [*await claim(store, 1_000, known=JOBS), *await claim_limited(store, known=JOBS)]:
        for each in held:
            await tell(store, each, Outcome.FAILED)


@contextmanager
def statements(store: Store) -> Iterator[Counter[str]]:
    """Count the statements of transactions that write, by name."""
    seen: Counter[str] = Counter()
    transact = store.database.transact

    async def watched(work: Any, **options: Any) -> Any:
        async def body(tx: Any) -> Any:
            return await work(_Watched(tx, seen))

        return await transact(body, **options)

    store.database.transact = watched  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        store.database.transact = transact  # type: ignore[method-assign]


class _Watched:
    def __init__(self, tx: Any, seen: Counter[str]) -> None:
        self._tx, self._seen = tx, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def fetch(self, statement: str, *args: Any, **values: Any) -> Any:
        self._seen[statement] += 1
        return await self._tx.fetch(statement, *args, **values)


def reasons(result: BulkResult) -> dict[str, int]:
    return {refused.code: refused.count for refused in result.refused}


@pytest.mark.parametrize("job", [WORK, UNIQUE], ids=["plain", "unique"])
async def test_a_batch_takes_as_many_statements_whatever_its_size(
    client: Client, store: Store, job: JobDefinition
) -> None:
    await failed(store, job, 5)
    with statements(store) as few:
        assert (await client.retry_many(FAILED)).done == 5
    await finish_all(store, await claim(store, 100, known=JOBS))
    await failed(store, job, 60)
    with statements(store) as many:
        assert (await client.retry_many(FAILED)).done == 60
    assert sum(many.values()) == sum(few.values()), many - few
    assert sum(many.values()) <= 25


async def test_keys_that_others_hold_refuse_their_runs_only(client: Client, store: Store) -> None:
    await failed(store, UNIQUE, 40)
    await store.enqueue([make(UNIQUE, payload={"n": n}) for n in range(10)])
    with statements(store) as seen:
        result = await client.retry_many(FAILED)
    assert (result.matched, result.done, reasons(result)) == (40, 30, {"duplicate-run": 10})
    assert sum(seen.values()) <= 25, seen
    keys = await rows(store, "select count(*), count(distinct key) from rota_unique")
    assert [tuple(row) for row in keys] == [(40, 40)], "each key leads to the run that has it"
    assert (await client.retry_many(FAILED)).done == 0


async def test_a_full_limit_refuses_the_rest_as_it_refuses_one(client: Client, store: Store) -> None:
    for _ in range(8):
        await failed(store, LIMITED, 1)
    with statements(store) as seen:
        result = await client.retry_many(FAILED)
    assert (result.matched, result.done, reasons(result)) == (8, 2, {"limit-reached": 6})
    assert sum(seen.values()) <= 25, seen
    left, *_ = await client.list(RunFilter(states=(RunState.FAILED,), retried=False))
    with pytest.raises(LimitReached) as refused:
        await client.retry(left.id)
    assert refused.value.message == result.refused[0].message


async def test_runs_of_a_cancelled_job_are_refused_beside_others(client: Client, store: Store) -> None:
    await failed(store, WORK, 3)
    await failed(store, UNIQUE, 4)
    await store.cancel_job("unique", "enough", "ada", guarded=False)
    result = await client.retry_many(FAILED, actor="ada")
    assert (result.matched, result.done) == (7, 3)
    assert sum(reasons(result).values()) == 4
    (event,) = await client.audit(kind="bulk")
    assert (event.type, event.details["matched"], event.details["done"]) == ("retried", 7, 3)
    await store.resume_job("unique", "skip", "ada")
    assert (await client.retry_many(FAILED)).done == 4


async def test_retries_of_a_paused_scope_wait_in_their_places(client: Client, store: Store) -> None:
    scope = Scope("tenant", "1")
    await failed(store, WORK, 3, scope=scope)
    await client.quotas.pause("tenant", "1", actor="ada")
    assert (await client.retry_many(FAILED)).done == 3
    assert await claim(store, known=JOBS) == []
    await client.quotas.resume("tenant", "1", actor="ada")


async def test_two_at_once_retry_each_run_once(client: Client, store: Store, second: Store) -> None:
    other = Client(second, Registry(), Config())
    await failed(store, UNIQUE, 30)
    await failed(store, WORK, 30)
    results = await asyncio.gather(client.retry_many(FAILED), other.retry_many(FAILED))
    assert sum(result.done for result in results) == 60
    retried = await rows(store, "select retry_of, count(*) from rota_run where retry_of is not null group by retry_of")
    assert Counter(count for _, count in retried) == {1: 60}
