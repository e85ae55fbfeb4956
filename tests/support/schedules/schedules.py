"""Helpers for tests of schedules: make one, let time pass, plan, read the result."""

from datetime import timedelta
from typing import Any

from rota.core.calendar.triggers import Trigger, every
from rota.core.jobs.job import JobDefinition
from rota.core.runs.run import Run, RunFilter
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import Schedule, ScheduleDefinition, define
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import START, ManualClock
from tests.support.runs.runs import WORK

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND


async def definition_of(
    store: Store, trigger: Trigger | None = None, job: JobDefinition = WORK, name: str = "s", **options: Any
) -> ScheduleDefinition:
    return define(job, trigger or every("1m"), options, name=name, now=await store.now())


async def make_schedule(
    store: Store, name: str = "s", trigger: Trigger | None = None, *, job: JobDefinition = WORK, **options: Any
) -> Schedule:
    """A schedule of a job that does nothing, once a minute unless told otherwise."""
    await store.save_jobs([job])
    definition = await definition_of(store, trigger, job, name, **options)
    await store.schedules.create(name, definition, "test")
    return await get_schedule(store, name)


async def edit(store: Store, name: str, trigger: Trigger | None = None, **options: Any) -> None:
    definition = await definition_of(store, trigger, name=name, **options)
    await store.schedules.update(name, definition, Change(note="edited"))


async def get_schedule(store: Store, name: str = "s") -> Schedule:
    found = await store.schedules.get(name)
    assert found is not None
    return found


async def plan(store: Store, limit: int = 100, **providers: Any) -> int:
    """Plan all that is due now; return the number of runs made, skipped ones included."""
    total = 0
    await store.planning.wake_followers(limit)
    while True:
        planned = await store.planning.plan(limit, providers)
        total += planned.runs
        if not planned.schedules:
            return total


async def runs_of(store: Store, name: str = "s") -> list[Run]:
    """Return the runs by plan time; those triggered by hand come last."""
    runs = await store.list_runs(RunFilter(), 500)
    mine = [run for run in runs if run.schedule == name]
    return sorted(mine, key=lambda run: (run.plan_time is None, run.plan_time or run.created_at, run.scope.id, run.id))


def told(runs: list[Run]) -> list[tuple[str, str]]:
    """(time of the day, state) of each."""
    return [(f"{run.plan_time:%H:%M:%S}" if run.plan_time else "-", run.state.value) for run in runs]


async def ranges_of(store: Store, schedule: Schedule) -> list[tuple[str, str, int, str]]:
    """(first, last, count, kind) of the plan times without a run."""
    sql = "select from_at, to_at, count, kind from rota_range where schedule_id = :id order by from_at"

    async def body(tx: Any) -> Any:
        return await tx.fetch_sql(sql, id=schedule.id)

    rows = await store.database.read(body)
    return [(f"{instant(a):%H:%M:%S}", f"{instant(b):%H:%M:%S}", n, kind) for a, b, n, kind in rows]


def minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


def noon() -> ManualClock:
    """A clock that stands at 12:00:00."""
    clock = ManualClock()
    clock.advance(timedelta(microseconds=-(START - DAY // 2) % DAY))
    return clock
