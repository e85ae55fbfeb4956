"""Lists of jobs and queues, on both databases: pages, filters, and what a page reads."""

from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import JobFilter, JobState
from rota.store import Store
from rota.store.databases.database import Tx
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import put


def jobs(count: int) -> list[JobDefinition]:
    return [
        JobDefinition(name=f"job-{number:05}", queue=f"q{number % 3}", tags=("odd",) * (number % 2))
        for number in range(count)
    ]


async def names(store: Store, limit: int, after: str | None = None, **conditions: Any) -> list[str]:
    declared = {"declared": JobDefinition(name="declared", kind="external")}
    return [job.name for job in await store.job_views.page(JobFilter(**conditions), declared, limit, after)]


async def test_pages_follow_each_other(store: Store) -> None:
    await store.save_jobs(jobs(5))
    assert await names(store, 3) == ["declared", "job-00000", "job-00001"]
    assert await names(store, 3, "job-00001") == ["job-00002", "job-00003", "job-00004"]
    assert await names(store, 3, "job-00004") == []


async def test_only_the_newest_version_counts(store: Store) -> None:
    await store.save_jobs([JobDefinition(name="a", version=version, queue=f"q{version}") for version in (1, 2, 3)])
    (view,) = await store.job_views.page(JobFilter(), {}, 10, None)
    assert (view.version, view.queue, view.status.state) == (3, "q3", JobState.PENDING)


async def test_conditions(store: Store) -> None:
    await store.save_jobs(jobs(5))
    await store.pause_job("job-00003", None, "ann")
    assert await names(store, 9, tag="odd") == ["job-00001", "job-00003"]
    assert await names(store, 1, "job-00001", tag="odd") == ["job-00003"]
    assert await names(store, 9, queue="q1") == ["job-00001", "job-00004"]
    assert await names(store, 9, kind="external") == ["declared"]
    assert await names(store, 9, state="paused") == ["job-00003"]
    assert await names(store, 9, name="job-0000[12]") == ["job-00001", "job-00002"]
    assert await names(store, 9, text="JOB", state="paused", tag="odd") == ["job-00003"]


async def test_queues_are_those_of_jobs_runs_and_pauses(store: Store) -> None:
    await store.save_jobs(jobs(5))
    await put(store, queue="mail")
    await store.pause_queue("still", "full", "ann")
    queues = await store.job_views.queues({}, 100, None)
    assert [(queue.queue, queue.queued) for queue in queues] == [
        ("default", 0), ("mail", 1), ("q0", 0), ("q1", 0), ("q2", 0), ("still", 0),
    ]  # fmt: skip
    assert [queue.queue for queue in await store.job_views.queues({}, 2, "mail")] == ["q0", "q1"]


async def test_a_page_reads_as_much_however_many_jobs_there_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of them, to cut a page from."""

    async def read_rows() -> int:
        rows = 0

        async def counted(tx: Tx) -> None:
            nonlocal rows
            fetch = tx.fetch

            async def counting(statement: str, *positional: Any, **named: Any) -> Any:
                nonlocal rows
                found = await fetch(statement, *positional, **named)
                rows += len(found)
                return found

            monkeypatch.setattr(tx, "fetch", counting)

        original = store.database.read

        async def read(work: Any) -> Any:
            async def body(tx: Tx) -> Any:
                await counted(tx)
                try:
                    return await work(tx)
                finally:
                    monkeypatch.undo()

            return await original(body)

        with monkeypatch.context() as patched:
            patched.setattr(store.database, "read", read)
            assert len(await names(store, 10)) == 10
        return rows

    await store.save_jobs(jobs(20))
    few = await read_rows()
    await store.save_jobs(jobs(2_000))
    assert await read_rows() == few


async def test_definitions_are_read_once_for_the_queues(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.save_jobs(jobs(200))
    read: list[object] = []
    original = store.database.read

    class Counted:
        def __init__(self, tx: Tx) -> None:
            self._tx = tx

        async def fetch(self, statement: str, *positional: Any, **named: Any) -> Any:
            rows = await self._tx.fetch(statement, *positional, **named)
            read.extend(rows if statement == "queues_of_jobs" else ())
            return rows

    monkeypatch.setattr(store.database, "read", lambda body: original(lambda tx: body(Counted(tx))))
    before = [queue.queue for queue in await store.job_views.queues({}, 100, None)]
    assert len(read) == 200
    assert [queue.queue for queue in await store.job_views.queues({}, 100, None)] == before
    assert len(read) == 200
    clock.advance(SECOND)
    await store.save_jobs([JobDefinition(name="job-00007", queue="moved"), JobDefinition(name="new", queue="fresh")])
    names = [queue.queue for queue in await store.job_views.queues({}, 100, None)]
    assert names == ["default", "fresh", "moved", "q0", "q1", "q2"]
    assert len(read) == 202
