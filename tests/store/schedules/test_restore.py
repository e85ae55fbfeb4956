"""A deleted schedule that is restored goes on as after a pause: nothing is lost, nothing of the time between is run."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from rota.core.alerts.expectations import Expectations
from rota.core.calendar.triggers import after, every, following, once
from rota.core.jobs.job import JobDefinition, JobKind, Retention
from rota.core.jobs.secrets import MASK
from rota.errors import DuplicateSchedule, RotaError, UnknownJob, UnknownSchedule
from rota.store import Store
from rota.store.ledger import compact
from rota.values.instants import instant
from rota.values.scope import GLOBAL, Scope
from tests.support.clock import ManualClock
from tests.support.forms import with_long_form
from tests.support.runs.runs import claim, finish
from tests.support.schedules.ledger_oracle import check_account, named_by_revisions, rows
from tests.support.schedules.random_history import ahead
from tests.support.schedules.schedules import (
    definition_of,
    edit,
    get_schedule,
    make_schedule,
    minutes,
    plan,
    runs_of,
)

EAGER: dict[str, Any] = {"overlap": "allow", "catch_up": "all"}
A, B = Scope("tenant", "a"), Scope("tenant", "b")


@pytest.fixture
def clock() -> ManualClock:
    return ahead()


async def deleted(store: Store, clock: ManualClock, **options: Any) -> str:
    """Make a schedule that fires twice and is deleted, and let ten minutes pass. Return its id."""
    schedule = await make_schedule(store, **{**EAGER, **options})
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    await store.schedules.delete("s", "ada")
    clock.advance(minutes(10))
    return schedule.id


async def checked(store: Store, clock: ManualClock, id: str, scopes: Sequence[Scope] = (GLOBAL,)) -> None:
    await check_account(store, id, await named_by_revisions(store, id, clock.micros()), scopes)
    verification = await store.ledger.verify("s")
    assert verification.ok, verification.findings


async def test_it_goes_on_from_now_with_its_history(store: Store, clock: ManualClock) -> None:
    id = await deleted(store, clock)
    restored = await store.schedules.restore("s", "ben")
    assert (restored.id, restored.state, restored.fired, restored.revision) == (id, "active", 2, 3)
    assert await plan(store) == 0, "the time since it was deleted is not caught up with"
    clock.advance(minutes(1))
    assert await plan(store) == 1
    await checked(store, clock, id)
    explanation = await store.ledger.explain("s", clock.micros() - 5 * 60_000_000, 30_000_000)
    assert "deleted" in str(explanation), explanation
    events = await store.events.of_schedule("s")
    assert [(event.type, event.actor) for event in events if event.type in ("deleted", "restored")] == [
        ("deleted", "ada"),
        ("restored", "ben"),
    ]


async def test_the_audit_log_shows_what_was_deleted_without_its_secrets(store: Store, clock: ManualClock) -> None:
    payload = {"url": "u", "password": "hunter2"}
    await deleted(store, clock, payload=payload, metadata={"api_key": "k-123", "team": "a"})
    (event,) = await store.events.audit({"kind": "schedule", "type": "deleted"}, 10, None)
    definition = event.details["definition"]
    assert (definition["name"], definition["every"], definition["catch_up"]) == ("s", "1m", "all")
    assert (definition["payload"], definition["metadata"]) == (
        {"url": "u", "password": MASK},
        {"api_key": MASK, "team": "a"},
    )
    restored = await store.schedules.restore("s", None)
    assert restored.definition.payload == payload


async def test_of_several_the_last_one_comes_back(store: Store, clock: ManualClock) -> None:
    await deleted(store, clock)
    last = await deleted(store, clock, description="the second")
    restored = await store.schedules.restore("s", None)
    assert (restored.id, restored.definition.description) == (last, "the second")


async def test_another_of_its_name_stays(store: Store, clock: ManualClock) -> None:
    await deleted(store, clock)
    heir = await make_schedule(store, trigger=every("7m"))
    with pytest.raises(DuplicateSchedule) as refused:
        await store.schedules.restore("s", None)
    assert "rota audit --subject s" in str(refused.value.hint)
    assert (await get_schedule(store)).id == heir.id


async def test_nothing_to_restore(store: Store, clock: ManualClock) -> None:
    await deleted(store, clock)
    with pytest.raises(UnknownSchedule) as refused:
        await store.schedules.restore("ss", None)
    assert "'s'" in str(refused.value.hint)


async def test_a_pause_outlasts_a_deletion(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, **EAGER)
    await store.schedules.pause("s", "mine", "ada", None)
    await store.schedules.delete("s", None)
    clock.advance(minutes(5))
    restored = await store.schedules.restore("s", None)
    assert (restored.state, restored.pause_reason, restored.paused_by) == ("paused", "mine", "ada")
    await store.schedules.resume("s", "all", None)
    assert await plan(store) == 0, "a resume catches up with the pause since it was restored only"
    clock.advance(minutes(1))
    assert await plan(store) == 1
    await checked(store, clock, schedule.id)


async def test_a_pause_that_ended_meanwhile_is_over(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, **EAGER)
    await store.schedules.pause("s", None, None, clock.micros() + 60_000_000)
    await store.schedules.delete("s", None)
    clock.advance(minutes(5))
    await store.schedules.restore("s", None)
    await plan(store)
    assert (await get_schedule(store)).state == "active"
    clock.advance(minutes(1))
    assert await plan(store) == 1
    await checked(store, clock, schedule.id)


@pytest.mark.parametrize("paused_when_deleted", [False, True])
async def test_whether_its_job_is_paused_is_read_anew(
    store: Store, clock: ManualClock, paused_when_deleted: bool
) -> None:
    change = [store.resume_job("work", "skip", None), store.pause_job("work", None, None)]
    if paused_when_deleted:
        change.reverse()
        await make_schedule(store, **EAGER)
        await change.pop(0)
        await store.schedules.delete("s", None)
        await change.pop(0)
    else:
        await make_schedule(store, **EAGER)
        await store.schedules.delete("s", None)
        await change.pop()
        change.pop().close()
    restored = await store.schedules.restore("s", None)
    assert restored.state == ("active" if paused_when_deleted else "job paused")
    await store.resume_job("work", "skip", None)
    assert (await get_schedule(store)).state == "active"


async def test_the_schedule_of_a_cancelled_job_rests_until_that_is_resumed(store: Store, clock: ManualClock) -> None:
    id = await deleted(store, clock)
    await store.cancel_job("work", "enough", "ada")
    assert (await store.schedules.restore("s", None)).job_paused
    clock.advance(minutes(2))
    assert await plan(store) == 0
    await store.resume_job("work", "skip", "ada")
    clock.advance(minutes(1))
    assert await plan(store) == 1
    await checked(store, clock, id)


async def test_a_job_that_is_gone_comes_first(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="review", kind=JobKind.EXTERNAL.value)
    await store.data_jobs.create(job, "api", None)
    await store.schedules.create("s", await definition_of(store, job=job), "api")
    await store.schedules.delete("s", None)
    await store.data_jobs.delete("review", "ada", force=False)
    with pytest.raises(UnknownJob) as refused:
        await store.schedules.restore("s", None)
    assert "rota job restore review" in str(refused.value.hint)
    made = await store.data_jobs.restore("review", "ben", lambda _: None)
    assert (made.job.version, made.job.kind) == (2, "external")
    assert (await store.schedules.restore("s", None)).state == "active"


async def test_max_runs_count_the_runs_before(store: Store, clock: ManualClock) -> None:
    id = await deleted(store, clock, max_runs=3)
    await store.schedules.restore("s", None)
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert ((await get_schedule(store)).state, len(await runs_of(store))) == ("ended", 3)
    await checked(store, clock, id)


async def test_a_single_time_that_passed_meanwhile_is_not_run(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=once(instant(clock.micros() + 60_000_000)), catch_up="all")
    await store.schedules.delete("s", None)
    clock.advance(minutes(10))
    await store.schedules.restore("s", None)
    assert (await plan(store), (await get_schedule(store)).next_plan) == (0, None)
    await edit(store, "s", once(instant(clock.micros() + 60_000_000)))
    clock.advance(minutes(1))
    assert await plan(store) == 1


async def test_its_scopes_and_open_runs_are_known_again(store: Store, clock: ManualClock) -> None:
    """Overlap still sees the run that began before the deletion."""
    schedule = await make_schedule(store, scopes=[("tenant", "a"), ("tenant", "b")], overlap="skip")
    clock.advance(minutes(1))
    await plan(store)
    scopes = {run.id: run.scope for run in await runs_of(store)}
    held = {scopes[claimed.run_id]: claimed for claimed in await claim(store)}
    await finish(store, held[B])
    await store.schedules.delete("s", None)
    clock.advance(minutes(3))
    await store.schedules.restore("s", None)
    clock.advance(minutes(1))
    await plan(store)
    newest = [(run.scope.id, run.state.value) for run in (await runs_of(store))[-2:]]
    assert newest == [("a", "skipped"), ("b", "queued")]
    await finish(store, held[A])
    clock.advance(minutes(1))
    await plan(store)
    assert [run.state.value for run in (await runs_of(store))[-2:]] == ["queued", "skipped"]
    await checked(store, clock, schedule.id, (A, B))


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "cancel_previous"])
@pytest.mark.parametrize("scopes", [1, 2])
async def test_runs_that_were_pruned_meanwhile_hold_nothing(
    store: Store, clock: ManualClock, overlap: str, scopes: int
) -> None:
    """While it is deleted, retention need not keep what planning has not looked at since."""
    named = (A, B)[:scopes]
    schedule = await make_schedule(store, scopes=named, overlap=overlap)
    clock.advance(minutes(2))
    await plan(store)
    await store.schedules.delete("s", None)
    while claimed := await claim(store):
        for each in claimed:
            await finish(store, each)
    clock.advance(minutes(2))
    assert await store.prune(lambda _: Retention(keep=0, keep_for=timedelta(0))) == scopes
    await store.schedules.restore("s", None)
    clock.advance(minutes(1))
    assert await plan(store) == scopes
    assert {run.state.value for run in await runs_of(store)} == {"queued"}
    await checked(store, clock, schedule.id, named)


async def test_one_that_follows_its_own_runs_begins_again(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("1m"))
    clock.advance(minutes(1))
    await plan(store)
    await store.schedules.delete("s", None)
    for claimed in await claim(store):
        await finish(store, claimed)
    clock.advance(minutes(30))
    await store.schedules.restore("s", None)
    clock.advance(minutes(1))
    assert await plan(store) == 1


async def test_one_that_follows_a_job_hears_of_ends_again(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([JobDefinition(name="other")])
    await make_schedule(store, trigger=following("other", on="end"))
    await store.schedules.delete("s", None)
    listeners = "select job from rota_listener where what = 'schedule'"
    assert await rows(store, listeners) == []
    await store.schedules.restore("s", None)
    assert [tuple(row) for row in await rows(store, listeners)] == [("other",)]


async def test_its_own_expectation_comes_back(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, expect=Expectations(start_within=minutes(5)))
    await store.schedules.delete("s", None)
    expected = "select subject from rota_expectation"
    assert await rows(store, expected) == []
    await store.schedules.restore("s", None)
    assert [tuple(row) for row in await rows(store, expected)] == [("s",)]


async def test_after_retention_it_is_gone_for_good(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    await store.schedules.delete("s", None)
    clock.advance(timedelta(days=29))
    await store.prune(lambda _: Retention())
    await store.schedules.restore("s", None)
    await store.schedules.delete("s", None)
    clock.advance(timedelta(days=31))
    await store.prune(lambda _: Retention())
    with pytest.raises(UnknownSchedule):
        await store.schedules.restore("s", None)


async def test_a_lost_answer_may_be_repeated(store: Store, clock: ManualClock) -> None:
    await deleted(store, clock)
    transact = store.database.transact

    async def twice(work: Any, **options: Any) -> Any:
        await transact(work, **options)
        return await transact(work, **options)

    store.database.transact = twice  # type: ignore[method-assign]
    assert (await store.schedules.restore("s", None)).revision == 3


@pytest.mark.parametrize("seed", with_long_form(range(4), range(4, 60)))
async def test_whatever_races_there_is_one_of_a_name_and_its_ledger_adds_up(
    store: Store, second: Store, clock: ManualClock, seed: int
) -> None:
    """Two processes delete, restore, create, plan and drop for good, all at once."""
    chance = random.Random(seed)
    await make_schedule(store, trigger=every("7s"), **EAGER)

    async def drop_old(one: Store) -> None:
        async def old(tx: Any) -> Any:
            return await tx.fetch_sql("select id from rota_schedule where deleted_at is not null limit 2")

        if chance.random() < 0.2:
            await one.database.transact(compact.drop_schedules(await one.database.read(old)))

    async def act(one: Store) -> None:
        definition = await definition_of(store, every("5s"), **EAGER)
        acts: list[Any] = [
            lambda: one.schedules.delete("s", None),
            lambda: one.schedules.restore("s", None),
            lambda: one.schedules.restore("s", None),
            lambda: one.schedules.create("s", definition, "test"),
            lambda: plan(one, 3),
            lambda: drop_old(one),
            lambda: one.pause_job("work", None, None),
            lambda: one.resume_job("work", "skip", None),
        ]
        with suppress(UnknownSchedule, DuplicateSchedule):
            await chance.choice(acts)()

    for _ in range(15):
        clock.advance(timedelta(milliseconds=chance.randint(0, 20_000)))
        await asyncio.gather(*[act(chance.choice([store, second])) for _ in range(5)])
    with suppress(RotaError):
        await store.schedules.restore("s", None)
    await store.resume_job("work", "skip", None)
    clock.advance(minutes(1))
    await plan(store)
    live = await rows(store, "select id from rota_schedule where name = 's' and deleted_at is null")
    assert len(live) <= 1
    for (id,) in live:
        await checked(store, clock, str(id))
