"""Documents of schedules are applied whole, or not at all; also while others apply, pause and plan."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from rota.core.calendar.triggers import every, following
from rota.core.jobs.job import JobDefinition
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import DuplicateSchedule, FollowingRing
from rota.store import Store, open_database
from rota.store.databases.postgres import postgres
from tests.support.clock import ManualClock
from tests.support.schedules.schedules import definition_of, get_schedule, make_schedule, minutes, plan

JOBS = [JobDefinition(name="work"), JobDefinition(name="other")]
NAMES = [f"s{number}" for number in range(6)]


async def test_a_document_that_is_refused_takes_the_others_with_it(store: Store) -> None:
    await make_schedule(store, "old")
    await make_schedule(store, "theirs")
    wanted = {"new": await definition_of(store), "ring": await definition_of(store, following("work"), name="ring")}
    with pytest.raises(FollowingRing):
        await store.schedules.apply("test", wanted, ["old"], None)
    with pytest.raises(DuplicateSchedule):
        await store.schedules.apply("me", {"new": wanted["new"], "theirs": wanted["new"]}, ["old"], None)
    assert await store.schedules.names() == ["old", "theirs"]
    await store.schedules.apply("me", {"new": wanted["new"]}, ["old"], None)  # which is of another owner
    assert await store.schedules.names() == ["new", "old", "theirs"]


async def test_what_is_applied_again_changes_nothing(store: Store) -> None:
    await store.save_jobs(JOBS)
    wanted = {name: await definition_of(store, name=name) for name in NAMES}
    await store.schedules.apply("me", wanted, [], "ann")
    first = await store.schedules.list()
    await store.schedules.apply("me", wanted, ["gone"], "ann")
    assert await store.schedules.list() == first
    await store.schedules.apply("me", {}, NAMES, "ann")
    await store.schedules.apply("me", {}, NAMES, "ann")
    assert await store.schedules.names() == []


@pytest.fixture
async def stores(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[list[Store], ManualClock]]:
    """Two programs. A deadlock is an error: transactions are not retried."""
    monkeypatch.setattr(postgres, "_TRIES", 1)
    clock = ManualClock()
    stores = [Store(open_database(database_url, clock)) for _ in range(2)]
    await stores[0].migrate()
    await stores[0].save_jobs(JOBS)
    yield stores, clock
    for store in stores:
        await store.close()


async def test_of_two_files_at_once_one_wins_whole(stores: tuple[list[Store], ManualClock]) -> None:
    (one, two), clock = stores

    async def file(words: str, names: list[str]) -> Mapping[str, ScheduleDefinition]:
        jobs = [JOBS[number % 2] for number in range(len(names))]
        return {
            name: await definition_of(one, every("1m"), job, name, overlap="allow", description=words)
            for name, job in zip(names, jobs, strict=True)
        }

    for turn in range(6):
        files = [await file(f"{turn} first", NAMES), await file(f"{turn} second", NAMES[::-1])]
        clock.advance(minutes(2))
        await asyncio.gather(
            one.schedules.apply("me", files[0], [], None),
            two.schedules.apply("me", files[1], [], None),
            two.pause_job("work", None, None),
            plan(one),
        )
        await one.resume_job("work", "latest", None)
        words = {(await get_schedule(one, name)).definition.description for name in NAMES}
        assert words in ({f"{turn} first"}, {f"{turn} second"})
        for name in NAMES:
            assert (await one.ledger.verify(name)).ok
        await asyncio.gather(
            one.schedules.apply("me", {}, NAMES, None), two.schedules.apply("me", {}, NAMES[::-1], None)
        )
        assert await one.schedules.names() == []
