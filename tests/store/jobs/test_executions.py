"""Executions: attempts with numbers that pruning does not change, whatever of a job is pruned."""

import asyncio
import random
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.monitoring.executions import Execution
from rota.core.states import Outcome
from rota.errors import NotFound
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.databases.postgres.postgres import PostgresTx
from rota.store.jobs import execution_numbers, executions
from rota.store.runs import prune
from rota.values.clock import HostClock, new_id
from tests.support.clock import SECOND, ManualClock
from tests.support.forms import with_long_form
from tests.support.runs.runs import WORK, claim, put, tell

TWICE = JobDefinition(name="work", retry=msgspec.structs.replace(JobDefinition(name="x").retry, max_attempts=2))
HOUR = timedelta(hours=1)
NOTHING = Retention(keep=0, keep_for=timedelta(0))


def id_at(micros: int) -> str:
    return str(UUID(int=micros // 1_000 << 80 | UUID(new_id()).int & (1 << 80) - 1))


ENDS = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED)


@pytest.fixture
def clock() -> ManualClock:
    """A clock not behind the host's, whose time is in the ids: a run that looks younger than it is would be kept."""
    clock = ManualClock()
    clock.advance(timedelta(microseconds=HostClock().micros() - clock.micros()) + SECOND)
    return clock


async def listed(store: Store) -> list[Execution]:
    found: list[Execution] = []
    while True:
        page = await store.executions.page("work", 7, len(found), declared=None)
        assert (page.limit, page.offset) == (7, len(found))
        found += page.executions
        if not page.executions:
            assert page.total == len(found)
            return found


@pytest.mark.parametrize("seed", with_long_form(range(3), range(3, 60)))
async def test_numbers_stay_whatever_is_pruned(store: Store, clock: ManualClock, seed: int) -> None:
    chance, numbers, order = random.Random(seed), dict[str, int](), list[str]()
    for _ in range(12):
        for _ in range(chance.randrange(4)):
            order.append(await put(store, TWICE))
        for lease in await claim(store, chance.randrange(4)):
            await tell(store, lease, chance.choice(ENDS), retry_in=0)
        clock.advance(chance.choice([SECOND, HOUR]))
        await store.promote(100)
        if chance.random() < 0.5:
            retention = Retention(keep=chance.randrange(3), keep_for=timedelta(0))
            await store.prune(lambda _: retention)  # noqa: B023
        for tried in await listed(store):
            assert numbers.setdefault(tried.run_id, tried.execution_number or 0) == tried.execution_number
            assert tried.execution_number == 1 + sorted(order).index(tried.run_id)
            run, _, fence = tried.id.partition(":")
            assert await store.executions.get(run, int(fence), None) == tried


async def test_each_attempt_has_its_own_times_and_error(store: Store, clock: ManualClock) -> None:
    run = await put(store, TWICE)
    with pytest.raises(NotFound):
        await store.executions.get(run, None, None)
    for outcome in (Outcome.FAILED, Outcome.SUCCEEDED):
        (lease,) = await claim(store)
        running = await store.executions.get(run, None, None)
        assert (running.status, running.completed_at, running.outcome) == ("running", None, None)
        clock.advance(SECOND)
        await tell(store, lease, outcome, busy=250_000, retry_in=0)
    last, first = await listed(store)
    assert [(tried.retry_attempt, tried.status, tried.duration_ms) for tried in (first, last)] == [
        (0, "failed", 250),
        (1, "completed", 250),
    ]
    assert first.completed_at is not None
    assert first.completed_at < last.started_at
    assert (first.error_message is None, last.error_message) == (False, None)
    assert {first.execution_number, last.execution_number} == {1}


@pytest.mark.parametrize("forgetful", [False, True])
async def test_numbers_are_counted_from_runs_whose_numbers_are_known(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, forgetful: bool
) -> None:
    """Whichever of the known runs are pruned meanwhile, and in whatever order somebody asks."""
    ids = [await put(store, WORK, id=id_at(clock.micros() + place * 60 * 1_000_000)) for place in range(40)]
    while leases := await claim(store, 20):
        for lease in leases:
            await tell(store, lease, Outcome.SUCCEEDED)
    clock.advance(2 * HOUR)  # young runs are not remembered: others may still come between them
    if forgetful:
        monkeypatch.setattr(execution_numbers, "_OF_A_JOB", 2)
    chance = random.Random(7)
    kept = list(ids)
    while kept:
        for run in chance.sample(kept, min(5, len(kept))):
            assert (await store.executions.get(run, None, None)).execution_number == 1 + ids.index(run)
        page = await store.executions.page("work", 4, chance.randrange(len(kept)), declared=None)
        assert [tried.execution_number for tried in page.executions] == [
            1 + ids.index(tried.run_id) for tried in page.executions
        ]
        gone = chance.sample(kept, min(6, len(kept)))
        kept = [run for run in kept if run not in gone]
        await store.database.transact(prune.drop_runs([(run,) for run in gone], NOTHING))


async def test_a_count_goes_on_from_the_last_one(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To count all runs of the job for each page would take longer and longer."""
    ids = [await put(store, WORK, id=id_at(clock.micros() + place * 1_000)) for place in range(30)]
    for lease in await claim(store, 30):
        await tell(store, lease, Outcome.SUCCEEDED)
    clock.advance(2 * HOUR)
    await store.executions.page("work", 3, 0, declared=None)
    spans: list[tuple[str, str]] = []
    counted = execution_numbers._kept

    async def noted(tx: Tx, job: str, after: str, last: str) -> int:
        spans.append((after, last))
        return await counted(tx, job, after, last)

    monkeypatch.setattr(execution_numbers, "_kept", noted)
    await store.executions.page("work", 3, 3, declared=None)
    assert spans, "it asks for what is between"
    assert all(ids.index(after) >= ids.index(last) - 5 for after, last in spans), spans


async def test_several_who_ask_at_once_forget_a_pruned_run_together(
    postgres_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres_store
    ids = [await put(store, WORK, id=id_at(clock.micros() + place * 60 * 1_000_000)) for place in range(9)]
    for lease in await claim(store, 9):
        await tell(store, lease, Outcome.SUCCEEDED)
    clock.advance(2 * HOUR)
    await store.executions.get(ids[3], None, None)
    await store.database.transact(prune.drop_runs([(ids[3],)], NOTHING))
    asked, both_asked = 0, asyncio.Event()
    fetch = PostgresTx.fetch

    async def together(tx: PostgresTx, name: str, *rows: Any, **values: Any) -> Any:
        nonlocal asked
        found = await fetch(tx, name, *rows, **values)
        if name == "is_kept":
            asked += 1
            if asked == 2:
                both_asked.set()
            await both_asked.wait()
        return found

    monkeypatch.setattr(PostgresTx, "fetch", together)
    told = await asyncio.gather(*(store.executions.get(run, None, None) for run in ids[5:7]))
    assert [execution.execution_number for execution in told] == [6, 7]


async def test_a_job_has_as_many_known_numbers_as_it_may(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [await put(store, WORK, id=id_at(clock.micros() + place * 1_000)) for place in range(12)]
    for lease in await claim(store, 12):
        await tell(store, lease, Outcome.SUCCEEDED)
    clock.advance(2 * HOUR)
    monkeypatch.setattr(execution_numbers, "_OF_A_JOB", 10)
    counted: list[str] = []
    for place, run in enumerate(ids, 1):
        await store.executions.get(run, None, None)
        counted.append(run)
        known = store.executions._numbers._known["work"]
        assert known == [(id, ids.index(id) + 1) for id in sorted(counted)[-10:]], place


@pytest.mark.parametrize("window", [1, 3, 100])
async def test_pages_are_the_same_in_windows_of_any_size(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    for place in range(12):
        await put(store, TWICE)
        for lease in await claim(store, 1):
            outcome = (Outcome.FAILED, Outcome.SUCCEEDED, Outcome.CANCELLED)[place % 3]
            await tell(store, lease, outcome, retry_in=0 if place % 2 else None)
        clock.advance(SECOND)
        await store.promote(100)
    await put(store, TWICE)  # it waits, and has no execution
    whole = await store.executions.page("work", 50, 0, declared=None)
    assert (whole.capped, whole.total) == (False, len(whole.executions))
    monkeypatch.setattr(executions, "_WINDOW", window)
    for offset in range(whole.total + 2):
        page = await store.executions.page("work", 4, offset, declared=None)
        assert list(page.executions) == list(whole.executions)[offset : offset + 4]
        assert page.total == whole.total if not page.capped else page.total < whole.total or window < 100
        assert page.total >= min(whole.total, offset + 4)
