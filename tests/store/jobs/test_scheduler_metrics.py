"""Metrics of the scheduler: from the database, the same from every server, by few statements for any number of jobs."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.monitoring.executions import metrics_of
from rota.core.states import Outcome
from rota.store import Store
from rota.store.databases.database import Tx, Work
from tests.support.clock import MINUTE, ManualClock
from tests.support.runs.runs import claim, put, put_and_claim, tell

ONCE = msgspec.structs.replace(JobDefinition(name="x").retry, max_attempts=1)


def job(name: str) -> JobDefinition:
    return JobDefinition(name=name, retry=ONCE)


class Spy:
    """A transaction that notes the statements."""

    def __init__(self, tx: Tx, statements: list[str]) -> None:
        self._tx = tx
        self._statements = statements

    async def fetch(self, name: str, /, *rows: Any, **values: Any) -> Sequence[Any]:
        self._statements.append(name)
        return await self._tx.fetch(name, *rows, **values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


async def statements_of(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    noted: list[str] = []
    read = store.database.read

    async def spied(work: Work[Any]) -> Any:
        return await read(lambda tx: work(Spy(tx, noted)))

    with monkeypatch.context() as patched:
        patched.setattr(store.database, "read", spied)
        await store.executions.scheduler()
    return noted


async def test_many_jobs_take_as_many_statements_as_few(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for first, last in ((0, 3), (3, 60)):
        await store.save_jobs([job(f"job-{number}") for number in range(first, last)])
        for number in range(first, last):
            held = await put_and_claim(store, job(f"job-{number}"))
            await tell(store, held, Outcome.SUCCEEDED)
        counts.append(await statements_of(store, monkeypatch))
        clock.advance(MINUTE)  # what was counted is too old now
    assert counts[0] == counts[1]


async def test_they_agree_with_the_statistics_of_each_job(store: Store, second: Store, clock: ManualClock) -> None:
    await store.save_jobs([job("a"), job("b")])
    for name, outcome in (("a", Outcome.SUCCEEDED), ("a", Outcome.FAILED), ("b", Outcome.SUCCEEDED)):
        await tell(store, await put_and_claim(store, job(name)), outcome, busy=2_000_000)
    await put(store, job("b"))
    await store.prune(lambda _: Retention(keep=1, keep_for=MINUTE))
    for asked in (store, second):
        metrics = metrics_of(await asked.executions.scheduler())
        stats = [await asked.job_stats(name) for name in ("a", "b")]
        assert metrics.executions.total == sum(found.total for found in stats) == 3
        assert metrics.executions.success_rate == 2 / 3
        assert metrics.executions.average_duration_ms == 2_000
        assert {state: count for state, count in metrics.jobs.items() if count} == {
            "failed": 1, "scheduled": 1,
        }  # fmt: skip


async def test_leases_that_any_process_took_away_are_counted(store: Store, second: Store, clock: ManualClock) -> None:
    await store.save_jobs([job("work")])
    for reaper in (store, second):
        await put(store, job("work"))
        assert len(await claim(store, known={"work": 1})) == 1
        clock.advance(10 * MINUTE)
        assert (await reaper.reap(10)).requeued + (await reaper.reap(10)).ended >= 0
    for asked in (store, second):
        assert metrics_of(await asked.executions.scheduler()).stale_locks_cleared == 2
