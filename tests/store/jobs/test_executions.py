"""Executions: attempts with numbers that pruning does not change, whatever of a job is pruned."""

import random
from datetime import timedelta

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.monitoring.executions import Execution
from rota.core.states import Outcome
from rota.errors import NotFound
from rota.store import Store
from rota.values.clock import HostClock
from tests.support.clock import SECOND, ManualClock
from tests.support.forms import with_long_form
from tests.support.runs.runs import claim, put, tell

TWICE = JobDefinition(name="work", retry=msgspec.structs.replace(JobDefinition(name="x").retry, max_attempts=2))
HOUR = timedelta(hours=1)
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
