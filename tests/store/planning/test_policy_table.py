"""Every combination of overlap, failure, concurrency and misfire, planned in earnest: it does what the words say."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import Delays, RetryPolicy
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.store import Store
from tests.support.clock import ManualClock
from tests.support.schedules.planned_scenarios import live_through
from tests.support.schedules.policy_oracle import CASES, MOST_ATTEMPTS, STORIES, Case, Story, as_told, expected
from tests.support.schedules.schedules import definition_of, noon
from tests.support.schedules.simulated_scenarios import simulated

RETRY = RetryPolicy(MOST_ATTEMPTS, Delays(()))
TASKS = {f"{case.name}-{where}": (case, where) for case in CASES for where in ("schedule", "job")}


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def make_tasks(store: Store, story: Story) -> None:
    """Each combination twice, under a limit of its schedule and under one of its job; each has a job of its own."""
    jobs = {name: job_of(name, case, where) for name, (case, where) in TASKS.items()}
    await store.save_jobs(list(jobs.values()))
    for name, (case, where) in TASKS.items():
        own = {} if where == "job" else {"max_concurrency": 1, "when_full": case.concurrency.lower()}
        options = {**case.options, **own}
        definition = await definition_of(store, every(f"{story.step}s"), jobs[name], name, **options)
        await store.schedules.create(name, definition, "test")


def job_of(name: str, case: Case, where: str) -> JobDefinition:
    limits = (Limit(max=1, when_full=case.concurrency.lower()),) if where == "job" else ()
    return JobDefinition(name=name, limits=limits, retry=RETRY)


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
async def test_all_combinations(store: Store, clock: ManualClock, story: Story) -> None:
    await make_tasks(store, story)
    got = await live_through(store, clock, story, TASKS)
    differing = {
        name: (told, wanted)
        for name, (case, _) in TASKS.items()
        if (told := as_told(got[name])) != (wanted := as_told(expected(case, story)))
    }
    assert not differing, "\n".join(f"{name}:\n  {a}\n  {b}" for name, (a, b) in differing.items())


RETRIED = Story(lasts=lambda n: (8, 2, 3, 12)[n % 4], fails=lambda n: n % 3 != 0, retries=(4,))
OVERLAPS = ("skip", "allow", "cancel_previous", {"mode": "parallel", "max_overlap": 3}, "queue_one", "queue_all")
FULL: dict[str, dict[str, Any]] = {
    "skip": {"when_full": "skip"},
    "reject": {"when_full": "reject"},
    "none-wait": {"max_queued": 0},
    "one-waits": {"max_queued": 1},
    "cancel-oldest": {"when_full": "cancel_oldest"},
    "queue": {},
}
KEYS: dict[str, dict[str, Any]] = {
    "unique": {"unique": Unique()},
    "rejected": {"unique": Unique(on_conflict="reject")},
    "replaced": {"unique": Unique(on_conflict="replace")},
    "for-a-while": {"unique": Unique(period=timedelta(seconds=12))},
}
Task = tuple[JobDefinition, dict[str, Any]]


def all_tasks() -> Iterator[tuple[str, Task]]:
    """Overlap with every limit, and with every key; both together for a few limits; and with what a failure does."""
    for overlap in OVERLAPS:
        mode = overlap if isinstance(overlap, str) else str(overlap["mode"])
        options: dict[str, Any] = {"overlap": overlap, "catch_up": "all"}
        limited = {full: {"max_concurrency": 1, **more} for full, more in FULL.items()}
        for full, more in FULL.items():
            yield f"{mode}/schedule-{full}", (JobDefinition(name=""), {**options, **limited[full]})
            for kind, by in (("job", ()), ("key", ("scope",))):
                yield f"{mode}/{kind}-{full}", (JobDefinition(name="", limits=(Limit(max=1, by=by, **more),)), options)
        for key, of_job in KEYS.items():
            job = JobDefinition(name="", **of_job)
            yield f"{mode}/{key}", (job, options)
            for full in ("skip", "none-wait", "cancel-oldest"):
                yield f"{mode}/{key}-{full}", (job, {**options, **limited[full]})
        for failure in ("skip", "retry", "backoff", "half_open", "pause"):
            yield f"{mode}/failure-{failure}", (JobDefinition(name=""), {**options, "failure": failure})


async def test_limits_and_keys_do_what_a_simulation_says(store: Store, clock: ManualClock) -> None:
    story, tasks = RETRIED, dict(all_tasks())
    retry = RetryPolicy(2, Delays((timedelta(seconds=4),)))
    wanted = {}
    for name, (shape, options) in tasks.items():
        job = msgspec.structs.replace(shape, name=name, retry=retry)
        await store.save_jobs([job])
        definition = await definition_of(store, every(f"{story.step}s"), job, name, **options)
        await store.schedules.create(name, definition, "test")
        wanted[name] = as_told(simulated(definition, job, retry, story))
    got = await live_through(store, clock, story, tasks)
    differing = {name: (told, wanted[name]) for name in tasks if (told := as_told(got[name])) != wanted[name]}
    assert not differing, "\n".join(f"{name}:\n  {a}\n  {b}" for name, (a, b) in differing.items())
