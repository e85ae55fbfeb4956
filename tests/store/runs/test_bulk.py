"""Many runs at once, by filter: counted, cancelled, retried, a bite at a time, and again after an interruption."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from rota.client.client import Client
from rota.config import Config
from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.runs.bulk import BulkResult, Counted, SoFar
from rota.core.runs.run import RunFilter
from rota.core.states import Outcome, RunState
from rota.errors import BulkMismatch, Invalid
from rota.registry.jobs import Registry
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.instants import instant
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import WORK, claim, ids, make, put, put_and_claim, state_of, tell

FAILED = RunFilter(states=(RunState.FAILED,))
MINE = RunFilter(job="work")


class Interrupted(Exception):
    pass


@pytest.fixture
async def client(store: Store) -> Client:
    await store.save_jobs([WORK])
    return Client(store, Registry(), Config())


@pytest.fixture
async def other(second: Store, client: Client) -> Client:
    """Somebody else with the same command."""
    return Client(second, Registry(), Config())


async def failed(store: Store, **options: Any) -> str:
    held = await put_and_claim(store, **options)
    assert await tell(store, held, Outcome.FAILED)
    return held.run_id


async def retries_of(store: Store, run_id: str) -> list[str]:
    async def body(tx: Tx) -> Sequence[object]:
        return [row[1] for row in await tx.fetch("retries_of", [(run_id,)])]

    return [str(id) for id in await store.database.read(body)]


def refusals(result: BulkResult) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {refused.code: (refused.count, refused.examples) for refused in result.refused}


def interrupting(after: int) -> SoFar:
    def progress(result: BulkResult) -> None:
        if result.handled >= after:
            raise Interrupted

    return progress


async def test_a_count_stops_where_it_is_told(store: Store, client: Client) -> None:
    await store.enqueue([make() for _ in range(7)])
    assert await client.count(MINE) == Counted(7, exact=True)
    assert await client.count(MINE, most=7) == Counted(7, exact=True)
    assert await client.count(MINE, most=6) == Counted(6, exact=False)
    assert await client.count(RunFilter(job="another")) == Counted(0, exact=True)
    with pytest.raises(Invalid):
        await client.count(most=0)


async def test_what_waits_is_cancelled_and_what_runs_is_asked_to_stop(store: Store, client: Client) -> None:
    held = await put_and_claim(store)
    await tell(store, await put_and_claim(store), Outcome.SUCCEEDED)
    waiting = [await put(store), await put(store, delay="1h")]
    spared = await put(store, "spared")
    result = await client.cancel_many(MINE, reason="enough", actor="ada")
    assert result == BulkResult(matched=3, done=3)
    assert await state_of(store, held.run_id) is RunState.CANCELLING
    for run_id in waiting:
        run = await store.get_run(run_id)
        assert (run.state, run.reason, run.cancelled_by) == (RunState.CANCELLED, "enough", "ada")
    assert await state_of(store, spared) is RunState.QUEUED
    assert await client.cancel_many(MINE) == BulkResult(matched=1, done=1), "it is still asked to stop, no more"


async def test_refusals_are_told_by_code_with_a_few_examples(store: Store, client: Client) -> None:
    surgery = JobDefinition(name="surgery", cancel=CancelPolicy(supported=False))
    await store.save_jobs([surgery])
    begun = [(await put_and_claim(store, surgery)).run_id for _ in range(7)]
    waiting = await put(store, surgery)
    result = await client.cancel_many(RunFilter(job="surgery"))
    assert (result.matched, result.done, result.handled) == (8, 1, 8)
    assert refusals(result) == {"not-cancellable": (7, tuple(begun[:5]))}
    assert "does not support cancelling" in result.refused[0].message
    assert await state_of(store, waiting) is RunState.CANCELLED


async def test_more_than_expected_is_a_conflict_and_nothing_is_done(store: Store, client: Client) -> None:
    await store.enqueue([make() for _ in range(3)])
    with pytest.raises(BulkMismatch, match="more runs match than the 2"):
        await client.cancel_many(MINE, expected=2)
    assert await client.count(RunFilter(states=(RunState.QUEUED,))) == Counted(3, exact=True)
    assert (await client.cancel_many(MINE, expected=3)).done == 3


async def test_every_run_must_be_asked_for_in_so_many_words(store: Store, client: Client) -> None:
    await put(store)
    await failed(store, job="other")
    for verb in (client.cancel_many, client.retry_many):
        with pytest.raises(Invalid, match="every run"):
            await verb(RunFilter())
    assert (await client.cancel_many(RunFilter(), everything=True)).done == 1


async def test_states_that_cannot_be_are_refused(client: Client) -> None:
    with pytest.raises(Invalid, match="is succeeded cannot be cancelled"):
        await client.cancel_many(RunFilter(states=(RunState.QUEUED, RunState.SUCCEEDED)))
    with pytest.raises(Invalid, match="is running cannot be retried"):
        await client.retry_many(RunFilter(states=(RunState.RUNNING,)))
    with pytest.raises(Invalid, match="retried already"):
        await client.retry_many(RunFilter(job="work", retried=True))


async def test_an_interrupted_cancel_is_finished_by_another(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.client.runs.bulk._BATCH", 2)
    await store.enqueue([make() for _ in range(7)])
    with pytest.raises(Interrupted):
        await client.cancel_many(MINE, progress=interrupting(4))
    assert len(await claim(store, 1)) == 1, "workers come in between"
    assert await client.count(RunFilter(states=(RunState.CANCELLED,))) == Counted(4, exact=True)
    assert (await client.cancel_many(MINE)).done == 3
    assert await claim(store) == []


async def test_each_run_that_did_not_go_well_is_retried(store: Store, client: Client) -> None:
    runs = [await failed(store), await failed(store)]
    await tell(store, await put_and_claim(store), Outcome.SUCCEEDED)
    cancelled = await put(store)
    await store.cancel(cancelled, None, None)
    await put(store)
    assert await client.retry_many(MINE) == BulkResult(matched=3, done=3)
    for run_id in (*runs, cancelled):
        (again,) = await retries_of(store, run_id)
        assert (await store.get_run(again)).retry_of == run_id


async def test_what_was_retried_is_not_retried_again(store: Store, client: Client) -> None:
    """Repeating the command is safe; what failed once more is another run, and has its own turn."""
    first = await failed(store)
    assert (await client.retry_many(FAILED)).done == 1
    assert await client.retry_many(FAILED) == BulkResult(matched=0)
    (again,) = await claim(store)
    await tell(store, again, Outcome.FAILED)
    assert (await client.retry_many(FAILED)).done == 1
    assert await retries_of(store, first) == [again.run_id]
    assert len(await retries_of(store, again.run_id)) == 1


async def test_an_interrupted_retry_is_finished_by_another(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.client.runs.bulk._BATCH", 2)
    runs = [await failed(store) for _ in range(5)]
    with pytest.raises(Interrupted):
        await client.retry_many(FAILED, progress=interrupting(2))
    assert (await client.retry_many(FAILED)).done == 3
    assert [len(await retries_of(store, run_id)) for run_id in runs] == [1] * 5


async def test_two_who_retry_at_once_make_one_retry_of_each(store: Store, client: Client, other: Client) -> None:
    runs = [await failed(store) for _ in range(5)]
    results = await asyncio.gather(client.retry_many(FAILED), other.retry_many(FAILED))
    assert sum(result.done for result in results) == 5
    assert {code for result in results for code in refusals(result)} <= {"already-retried"}
    assert [len(await retries_of(store, run_id)) for run_id in runs] == [1] * 5


async def test_a_retry_that_was_committed_unheard_is_not_made_twice(store: Store, client: Client) -> None:
    run_id = await failed(store)
    again = [await client._again(run_id, None)]
    assert await store.bulk.retry(again) == {}
    assert await store.bulk.retry(again) == {}, "the same, asked again after an unknown outcome"
    late = await store.bulk.retry([await client._again(run_id, None)])
    assert late[run_id].code == "already-retried"
    assert await retries_of(store, run_id) == [again[0].id]


async def test_one_that_is_refused_does_not_spoil_it_for_the_others(store: Store, client: Client) -> None:
    runs = [await failed(store), await failed(store, key="held"), await failed(store)]
    holder = await put(store, key="held")
    result = await client.retry_many(FAILED)
    assert (result.matched, result.done) == (3, 2)
    assert refusals(result) == {"duplicate-run": (1, (runs[1],))}
    assert holder in result.refused[0].message
    assert [len(await retries_of(store, run_id)) for run_id in runs] == [1, 0, 1]


async def test_runs_by_worker_error_age_and_retry(store: Store, client: Client, clock: ManualClock) -> None:
    old = await failed(store)
    clock.advance(60 * SECOND)
    (mine,) = await claim(store) if await put(store) else []
    clock.advance(60 * SECOND)
    (theirs,) = await claim(store, worker="worker-2") if await put(store) else []
    await store.enqueue([await client._again(old, None)])
    now = instant(clock.micros())

    async def found(**wanted: object) -> list[str]:
        return ids(await client.list(RunFilter(**wanted)))  # type: ignore[arg-type]

    assert await found(worker="worker-2") == [theirs.run_id]
    assert await found(worker="worker-1") == [mine.run_id, old]
    assert await found(worker="worker") == []
    for said in ("no luck", "ValueError", "Error: no"):
        assert await found(error=said) == [old]
    for unsaid in ("message", "type", "NO LUCK", "%"):
        assert await found(error=unsaid) == []
    assert await found(created_before=now - timedelta(seconds=61)) == [old]
    assert await found(created_after=now - timedelta(seconds=60), created_before=now) == [mine.run_id]
    assert await found(retried=True) == [old]
    assert old not in await found(retried=False)
    with pytest.raises(Invalid, match="has no zone"):
        await found(created_after=now.replace(tzinfo=None))


async def test_runs_by_the_name_that_several_workers_have(store: Store, client: Client) -> None:
    for _ in range(4):
        await put(store)
    held = {
        id: (await claim(store, 1, worker=id))[0].run_id for id in ("web@aa11", "web@bb22", "web-2@aa11", "Web@aa11")
    }

    async def found(worker: str) -> set[str]:
        return set(ids(await client.list(RunFilter(worker=worker))))

    assert await found("web") == {held["web@aa11"], held["web@bb22"]}
    assert await found("web@aa11") == {held["web@aa11"]}
    for other in ("we", "web@", "w%", "%", "_eb", ""):
        assert await found(other) == set()


async def statements_of_cancel(store: Store, client: Client, monkeypatch: pytest.MonkeyPatch, count: int) -> int:
    """Count the statements that cancel so many waiting runs, in the transactions that write."""
    await store.enqueue([make() for _ in range(count)])
    asked: list[str] = []
    transact = store.database.transact

    async def counted(work: Any, *args: Any, **kwargs: Any) -> Any:
        async def body(tx: Tx) -> Any:
            fetch = tx.fetch

            def told(statement: str, *rest: Any, **values: Any) -> Any:
                asked.append(statement)
                return fetch(statement, *rest, **values)

            with monkeypatch.context() as patched:
                patched.setattr(tx, "fetch", told, raising=False)
                return await work(tx)

        return await transact(body, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(store.database, "transact", counted)
        assert (await client.cancel_many(MINE)).done == count
    return len(asked)


async def test_a_batch_of_cancels_takes_as_many_statements_as_one(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = await statements_of_cancel(store, client, monkeypatch, 2)
    many = await statements_of_cancel(store, client, monkeypatch, 300)
    assert many == few < 20


async def test_a_bulk_command_is_one_entry_with_filter_and_count(store: Store, client: Client) -> None:
    await store.enqueue([make() for _ in range(7)])
    await client.cancel_many(MINE, reason="enough", actor="ann")
    (entry,) = await client.audit(kind="bulk")
    assert (entry.type, entry.actor, entry.subject) == ("cancelled", "ann", "runs")
    assert (entry.details["filter"]["job"], entry.details["matched"], entry.details["done"]) == ("work", 7, 7)


async def test_the_entry_names_fields_of_payloads_but_not_their_values(store: Store, client: Client) -> None:
    await store.enqueue([make(payload={"token": "hunter2"})])
    await client.cancel_many(RunFilter(payload={"token": "hunter2"}), actor="ann")
    (entry,) = await client.audit(kind="bulk")
    assert (entry.details["filter"]["payload"], entry.details["done"]) == (["token"], 1)
    assert "hunter2" not in str(entry)


async def test_those_that_wait_for_the_turn_of_others_are_cancelled_with_them(store: Store, client: Client) -> None:
    first = await put(store)
    second = await put(store, after=[first])
    third = await put(store, after=[second])
    assert (await client.cancel_many(MINE)).done == 3
    assert [await state_of(store, id) for id in (first, second, third)] == [RunState.CANCELLED] * 3
    assert [event.type for event in await client.events(first)][-1] == "cancelled"
