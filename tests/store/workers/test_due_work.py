"""Test the one look of an idle process: whatever a loop would do is seen by it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from rota import every
from rota.core.jobs.job import JobDefinition
from rota.store import Store
from rota.store.workers.due_work import DueWork
from rota.testing import Harness
from rota.values.durations import in_micros

LOOPS = ("planner", "promoter", "conductor", "messenger", "reaper", "watchman", "worker")


@pytest.fixture
async def either(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=database_url) as harness:
        yield harness


async def look(store: Store, *queues: str) -> DueWork:
    return await store.due_work.look(queues or ("default",), ())


def due(work: DueWork) -> dict[str, int]:
    return {loop: due_in for loop in LOOPS if (due_in := getattr(work, loop)) is not None}


async def test_in_a_new_database_nothing_is_due(either: Harness) -> None:
    work = await look(either.store)
    assert due(work) == {}
    assert work.now == either.clock.micros()
    assert not work.notifications


async def waiting(harness: Harness) -> None:
    await harness.enqueue("work")


async def later(harness: Harness) -> None:
    await harness.enqueue("work", {"delay": "1m"})


async def limited(harness: Harness) -> None:
    await harness.declare("narrow", limit={"max": 1})
    await harness.enqueue("narrow")


async def labelled(harness: Harness) -> None:
    await harness.declare("labelled", labels=["gpu"])
    await harness.enqueue("labelled")


async def replicated(harness: Harness) -> None:
    await harness.declare("many", replicas=2)
    await harness.enqueue("many")


async def leased(harness: Harness) -> None:
    await harness.enqueue("work")
    await harness.worker("a").claim()


async def following(harness: Harness) -> None:
    first = await harness.enqueue("work", {"delay": "1m"})
    await harness.enqueue("work", {"after": [first.id]})


async def planned(harness: Harness) -> None:
    await harness.declare("work")
    await harness.client.schedules.create("minutely", "work", every("1m"))


async def expected(harness: Harness) -> None:
    await harness.declare("work", expect={"success_every": "1h"})
    await harness.store.save_jobs(harness.app.registry.definitions())


MINUTE = in_micros(timedelta(minutes=1))
CASES: dict[Callable[[Harness], Awaitable[None]], dict[str, int]] = {
    waiting: {"worker": 0},
    later: {"promoter": MINUTE},
    limited: {"worker": 0, "reaper": 0},
    labelled: {"worker": 0},
    replicated: {"conductor": 0},
    leased: {"reaper": 0},
    following: {"promoter": MINUTE, "reaper": 0},
    planned: {"planner": MINUTE},
    expected: {"watchman": 0},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_what_is_there_is_due_for_whoever_sees_to_it(
    either: Harness, case: Callable[[Harness], Awaitable[None]]
) -> None:
    await case(either)
    assert due(await look(either.store)) == CASES[case]


async def test_a_run_in_another_queue_is_nothing_for_a_worker(either: Harness) -> None:
    await either.enqueue("work")
    assert (await look(either.store, "other")).worker is None
    assert (await look(either.store, "other", "default")).worker == 0


async def test_a_new_data_job_is_noticed(either: Harness) -> None:
    before = (await look(either.store)).data_jobs
    await either.store.data_jobs.create(JobDefinition(name="ping", kind="http"), "me", None)
    assert (await look(either.store)).data_jobs != before
