"""Jobs as a whole: pause, resume and cancel; their state; statistics that pruning does not change."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.jobs.job import CancelPolicy, JobDefinition, Retention
from rota.core.jobs.status import JobFilter, JobState, JobStatus, status_of
from rota.core.monitoring import statistics as core_statistics
from rota.core.monitoring.statistics import JobStats
from rota.core.runs.run import RunFilter
from rota.core.states import Outcome, RunState
from rota.errors import Conflict, JobRefuses
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.store.jobs import cancel_job
from rota.store.monitoring import statistics
from rota.store.runs import prune
from rota.store.runs.read import RetryFacts
from rota.store.schedules import schedules_of_job
from rota.values.clock import HostClock
from rota.values.instants import instant
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import claim, make, put, put_and_claim, state_of, tell
from tests.support.schedules.schedules import make_schedule

DAY = timedelta(days=1)
NOTHING = Retention(keep=0, keep_for=timedelta(0))
ONCE = JobDefinition(name="work", retry=msgspec.structs.replace(JobDefinition(name="x").retry, max_attempts=1))


@pytest.fixture
def clock() -> ManualClock:
    """A clock not behind the host's, whose time is in the ids: a run that looks younger than it is would be kept."""
    clock = ManualClock()
    clock.advance(timedelta(microseconds=HostClock().micros() - clock.micros()) + SECOND)
    return clock


async def status(store: Store, job: str = "work") -> JobStatus:
    return status_of((await store.job_facts([job]))[0])


async def end(store: Store, outcome: Outcome, busy_ms: int = 0, job: JobDefinition = ONCE) -> str:
    held = await put_and_claim(store, job)
    assert await tell(store, held, outcome, busy=busy_ms * 1_000)
    return held.run_id


async def fetch(store: Store, sql: str, **values: object) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql(sql, **values))

    return await store.database.read(body)


async def test_a_pause_keeps_the_first_with_who_and_why(store: Store, clock: ManualClock) -> None:
    at = instant(clock.micros())
    await store.pause_job("work", "too loud", "ada")
    clock.advance(SECOND)
    await store.pause_job("work", "another reason", "bob")
    found = await status(store)
    assert (found.state, found.paused_at, found.paused_by, found.pause_reason) == (
        JobState.PAUSED, at, "ada", "too loud",
    )  # fmt: skip
    assert (await status(store, "other")).state is JobState.PENDING
    await store.resume_job("work", "skip", "ada")
    assert (await status(store)).paused_at is None
    await store.resume_job("work", "skip", "ada")


async def test_schedules_follow_their_job_in_bites(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules_of_job, "_BITE", 2)
    for number in range(5):
        await make_schedule(store, f"s{number}")

    async def states() -> set[str]:
        return {schedule.state for schedule in await store.schedules.list()}

    await store.resume_job("work", "all", "ada")  # it is not paused: nothing to resume
    assert await states() == {"active"}
    await store.pause_job("work", None, "ada")
    assert await states() == {"job paused"}
    await store.resume_job("work", "latest", "bob")
    assert await states() == {"active"}
    done = await store.cancel_job("work", None, "eve")
    assert sorted(done.schedules) == [f"s{number}" for number in range(5)]
    assert await states() == {"job cancelled"}
    await store.resume_job("work", "skip", "eve")
    assert await states() == {"active"}


@pytest.mark.parametrize("verb", ["pause", "cancel"])
async def test_no_schedule_rests_after_a_resume_that_another_verb_interrupted(
    store: Store, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(schedules_of_job, "_BITE", 2)
    for number in range(5):
        await make_schedule(store, f"s{number}")
    await store.pause_job("work", None, None)
    transact = store.database.transact

    async def then_interrupted(*args: Any, **options: Any) -> Any:
        answer = await transact(*args, **options)
        monkeypatch.setattr(store.database, "transact", transact)
        await (store.pause_job if verb == "pause" else store.cancel_job)("work", None, None)
        return answer

    monkeypatch.setattr(store.database, "transact", then_interrupted)
    await store.resume_job("work", "skip", None)
    found = await status(store)
    assert (found.paused_at, found.cancelled_at) == (None, None)
    assert {schedule.state for schedule in await store.schedules.list()} == {"active"}


async def test_a_pause_that_fails_halfway_is_finished_by_another(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules_of_job, "_BITE", 2)
    for number in range(5):
        await make_schedule(store, f"s{number}")
    whole, bites = schedules_of_job.pause_schedules_of, 0

    async def once(tx: Tx, **facts: Any) -> str | None:
        nonlocal bites
        bites += 1
        if bites > 1:
            raise Conflict("in between")
        return await whole(tx, **facts)

    with monkeypatch.context() as patched:
        patched.setattr(schedules_of_job, "pause_schedules_of", once)
        with pytest.raises(Conflict):
            await store.pause_job("work", None, None)
    assert (await status(store)).state is JobState.PAUSED
    assert {schedule.state for schedule in await store.schedules.list()} == {"active", "job paused"}
    await store.pause_job("work", None, None)
    assert {schedule.state for schedule in await store.schedules.list()} == {"job paused"}


async def test_the_state_through_the_life_of_a_job(store: Store, clock: ManualClock) -> None:
    assert (await status(store)).state is JobState.PENDING
    due = instant(clock.micros())
    run_id = await put(store, ONCE)
    found = await status(store)
    assert (found.state, found.waiting, found.running, found.next_at) == (JobState.SCHEDULED, 1, 0, due)
    clock.advance(SECOND)
    (held,) = await claim(store)
    assert held.run_id == run_id
    found = await status(store)
    assert (found.state, found.waiting, found.running) == (JobState.RUNNING, 0, 1)
    assert found.last_run_at == instant(clock.micros())
    await tell(store, held, Outcome.FAILED)
    assert (await status(store)).state is JobState.FAILED
    await end(store, Outcome.SUCCEEDED)
    assert (await status(store)).state is JobState.COMPLETED
    await store.cancel(await put(store), None, None)
    assert (await status(store)).state is JobState.PENDING, "a run was cancelled, not the job"


async def test_the_last_run_is_the_newest_that_began(store: Store, clock: ManualClock) -> None:
    await end(store, Outcome.SUCCEEDED)
    ran = (await status(store)).last_run_at
    assert ran is not None
    clock.advance(SECOND)
    await store.cancel(await put(store), None, None)
    found = await status(store)
    assert (found.state, found.last_run_at) == (JobState.PENDING, ran)
    assert (await store.job_stats("work")).last_execution_at == ran


async def test_many_jobs_at_once_in_the_order_asked_for(store: Store) -> None:
    await put(store, "a")
    await end(store, Outcome.SUCCEEDED)
    await store.pause_job("c", None, None)
    found = [status_of(facts) for facts in await store.job_facts(["c", "work", "a", "never"])]
    assert [(one.job, one.state.value) for one in found] == [
        ("c", "paused"), ("work", "completed"), ("a", "scheduled"), ("never", "pending"),
    ]  # fmt: skip
    assert await store.job_facts([]) == []


async def test_a_job_whose_runs_were_all_pruned_is_not_pending(store: Store, clock: ManualClock) -> None:
    await end(store, Outcome.SUCCEEDED)
    clock.advance(SECOND)
    await end(store, Outcome.FAILED)
    before = await status(store)
    clock.advance(SECOND)
    assert await store.prune(lambda _: NOTHING) == 2
    assert await status(store) == before
    assert before.state is JobState.FAILED


async def test_an_active_schedule_makes_a_job_scheduled(store: Store, clock: ManualClock) -> None:
    plan = clock.micros() + 5_000_000
    await put_schedule(store, next_plan=plan)
    found = await status(store)
    assert (found.state, found.next_at) == (JobState.SCHEDULED, instant(plan))
    assert (await store.job_stats("work")).next_scheduled_at == instant(plan)


@pytest.mark.parametrize("change", [{"enabled": 0}, {"paused_at": 1}, {"job_paused": 1}, {"deleted_at": 1}])
async def test_a_schedule_that_rests_does_not(store: Store, clock: ManualClock, change: dict[str, int]) -> None:
    await put_schedule(store, next_plan=clock.micros() + 5_000_000, **change)
    assert (await status(store)).state is JobState.PENDING


async def put_schedule(store: Store, **facts: int) -> str:
    id = store.new_id()
    row: dict[str, object] = {
        "id": id, "cursor_no": 1, "name": "nightly", "job": "work", "definition": "{}", "owner": "code", "revision": 1,
        "enabled": 1, "paused_at": None, "job_paused": 0, "created_at": 0, "updated_at": 0, "deleted_at": None,
    }  # fmt: skip
    cursor: dict[str, object] = {"no": 1, "cursor_at": 0, "tzdata": "x", "next_plan": None}
    for name, fact in facts.items():
        (cursor if name in cursor else row)[name] = fact

    async def body(tx: Tx) -> None:
        for table, columns in (("rota_cursor", cursor), ("rota_schedule", row)):
            values = ", ".join(f":{name}" for name in columns)
            await tx.fetch_sql(f"insert into {table} ({', '.join(columns)}) values ({values})", **columns)

    await store.database.transact(body)
    return id


async def test_runs_are_listed_by_the_schedule_that_made_them(store: Store) -> None:
    schedule_id = await put_schedule(store)
    planned, _ = await put(store), await put(store)
    await store.database.transact(
        lambda tx: tx.fetch_sql(
            "update rota_run set schedule_id = :schedule, plan_time = 1 where id = :id",
            schedule=schedule_id,
            id=planned,
        )
    )
    (found,) = await store.list_runs(RunFilter(schedule="nightly", job="work"), 10)
    assert (found.id, found.schedule, found.plan_time) == (planned, "nightly", instant(1))
    assert await store.list_runs(RunFilter(schedule="hourly"), 10) == []


async def test_cancelling_a_job_ends_what_waits_and_asks_what_runs(store: Store) -> None:
    running = await put_and_claim(store)
    waiting, later, other = await put(store), await put(store, delay="1h"), await put(store, "other")
    assert (await store.cancel_job("work", "enough", "ada")).total == 3
    assert await state_of(store, running.run_id) is RunState.CANCELLING
    ended = [await store.get_run(run_id) for run_id in (waiting, later)]
    assert [(run.state, run.reason) for run in ended] == [(RunState.CANCELLED, "enough")] * 2
    assert await state_of(store, other) is RunState.QUEUED
    with pytest.raises(JobRefuses, match="possible now: resume"):
        await store.cancel_job("work", "enough", "ada")
    await tell(store, running, Outcome.CANCELLED)


async def test_what_cannot_be_cancelled_runs_on(store: Store) -> None:
    firm = JobDefinition(name="work", cancel=CancelPolicy(supported=False))
    await store.save_jobs([firm])
    held = await put_and_claim(store, firm)
    waiting = await put(store, firm)
    assert (await store.cancel_job("work", None, None)).total == 1
    assert await state_of(store, held.run_id) is RunState.RUNNING
    assert await state_of(store, waiting) is RunState.CANCELLED
    await tell(store, held, Outcome.SUCCEEDED)


async def test_a_job_is_cancelled_in_bites(store: Store, second: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancel_job, "_BITE", 7)
    await store.enqueue([make(name) for _ in range(30) for name in ("work", "other")])
    cancels = [store.cancel_job("work", None, None), second.cancel_job("work", None, None)]
    answers = await asyncio.gather(*cancels, return_exceptions=True)
    assert sum(done.total for done in answers if isinstance(done, cancel_job.Cancelled)) >= 30
    assert all(isinstance(answer, cancel_job.Cancelled | JobRefuses) for answer in answers)
    assert (await status(store)).state is JobState.CANCELLED
    assert (await status(store, "other")).waiting == 30


async def test_the_newest_run_is_the_one_to_retry(store: Store) -> None:
    async def newest() -> tuple[str, RunState]:
        facts = await store.facts_of_newest("work")
        assert isinstance(facts, RetryFacts)
        return facts.run.id, facts.run.state

    assert await store.facts_of_newest("work") is None
    failed = await end(store, Outcome.FAILED)
    assert await newest() == (failed, RunState.FAILED)
    waiting = await put(store)
    assert await newest() == (waiting, RunState.QUEUED)


OUTCOMES = [Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.SUCCEEDED]


async def some_history(store: Store, clock: ManualClock, days: int = 4) -> None:
    """Create runs in every final state but `skipped`, with durations from nothing to hours, over several days."""
    busy = 0
    for _ in range(days):
        for outcome in OUTCOMES:
            await end(store, outcome, busy)
            busy = busy * 3 + 1
        await store.cancel(await put(store), None, None)
        held = await put_and_claim(store, msgspec.structs.replace(ONCE, on_lost="fail"))
        assert await tell(store, held, Outcome.LOST)
        clock.advance(DAY)


async def test_statistics_of_a_history(store: Store, clock: ManualClock) -> None:
    first = instant(clock.micros())
    await some_history(store, clock, days=2)
    stats = await store.job_stats("work")
    assert (stats.total, stats.succeeded, stats.failed, stats.timed_out) == (14, 6, 2, 2)
    assert (stats.cancelled, stats.expired, stats.skipped) == (2, 2, 0)
    assert stats.success_rate == 6 / 12
    assert stats.first_at == first
    busy = [(3**place - 1) // 2 for place in range(10)]
    assert stats.average_duration_ms == round(sum(busy) / 10)
    assert stats.p95_duration_ms == pytest.approx(busy[-1], rel=0.05)


async def test_statistics_of_several_jobs_are_those_of_each(store: Store, clock: ManualClock) -> None:
    """Counted, uncounted, late and pruned runs, a job that never ran, and one that runs and has a schedule."""
    await some_history(store, clock, days=2)
    for name in ("never", "other", "work"):
        await store.save_jobs([JobDefinition(name=name)])
    await store.prune(lambda _: Retention(3, timedelta(0)))
    other = await put_and_claim(store, JobDefinition(name="other"))
    await put_and_claim(store)
    assert await tell(store, other, Outcome.FAILED, busy=1_000)
    listed = await store.job_views.stats(JobFilter(), {}, 10, None)
    assert [stats.job for stats in listed] == ["never", "other", "work"]
    assert listed == [await store.job_stats(stats.job) for stats in listed]
    assert [stats.total for stats in listed] == [0, 1, 14]
    assert await store.job_views.stats(JobFilter(text="R"), {}, 1, "never") == listed[1:2]


@pytest.mark.parametrize("keep", [0, 1, 9, 20])
async def test_pruning_changes_no_statistics(store: Store, clock: ManualClock, keep: int) -> None:
    await some_history(store, clock)
    before = await store.job_stats("work")
    assert before.total == 28
    retention = Retention(keep, timedelta(0))
    assert await store.prune(lambda _: retention) == 28 - keep
    assert await store.job_stats("work") == before
    await end(store, Outcome.SUCCEEDED, 5)
    clock.advance(SECOND)
    again = await store.job_stats("work")
    assert await store.prune(lambda _: NOTHING) == keep + 1
    assert await store.job_stats("work") == again
    assert again.total == 29


async def test_the_database_and_the_fold_sort_durations_alike(store: Store, clock: ManualClock) -> None:
    durations = [0, 1, 9, 10, 99, 100, 101, 999, 1_000, 10_999, 11_000, 999_999, 1_000_000, 86_400_000_000]
    for micros in durations:
        held = await put_and_claim(store)
        assert await tell(store, held, Outcome.SUCCEEDED, busy=micros)
    before = (await store.database.read(lambda tx: statistics.tallies(tx, ["work"])))["work"]
    clock.advance(SECOND)
    await store.prune(lambda _: NOTHING)
    after = (await store.database.read(lambda tx: statistics.tallies(tx, ["work"])))["work"]
    assert after.durations == before.durations
    assert (after.timed, after.busy) == (before.timed, before.busy) == (len(durations), sum(durations))


async def test_two_janitors_count_nothing_twice(
    store: Store, second: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "_BATCH", 5)
    await some_history(store, clock, days=6)
    before = await store.job_stats("work")
    pruned = await asyncio.gather(*(janitor.prune(lambda _: NOTHING) for janitor in (store, second) for _ in range(2)))
    assert sum(pruned) == before.total
    assert await store.job_stats("work") == before


async def test_a_janitor_killed_halfway_counts_nothing(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await some_history(store, clock, days=1)
    before = await store.job_stats("work")
    whole = statistics.fold

    async def killed(tx: Tx, dropped: Any) -> None:
        await whole(tx, dropped)
        raise Conflict("in between")

    monkeypatch.setattr(statistics, "fold", killed)
    with pytest.raises(Conflict):
        await store.prune(lambda _: NOTHING)
    assert await fetch(store, "select day from rota_job_stats") == []
    assert await store.job_stats("work") == before
    monkeypatch.undo()
    assert await store.prune(lambda _: NOTHING) == before.total
    assert await store.job_stats("work") == before


async def test_a_prune_repeated_after_an_unknown_outcome_counts_once(store: Store, clock: ManualClock) -> None:
    await some_history(store, clock, days=1)
    before = await store.job_stats("work")
    found = await store.database.read(lambda tx: prune.prunable(tx, "work", NOTHING))
    assert await store.database.transact(prune.drop_runs(found, NOTHING)) == before.total
    assert await store.database.transact(prune.drop_runs(found, NOTHING)) == 0
    assert await store.job_stats("work") == before


async def test_old_days_become_one(store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_statistics, "MOST_DAYS", 3)
    seen: list[JobStats] = []
    for _ in range(6):
        await end(store, Outcome.SUCCEEDED, 20)
        clock.advance(DAY)
        await store.prune(lambda _: NOTHING)
        assert len(await fetch(store, "select day from rota_job_stats")) <= 3
        seen.append(await store.job_stats("work"))
    assert [stats.total for stats in seen] == [1, 2, 3, 4, 5, 6]
    assert {stats.first_at for stats in seen} == {seen[0].first_at}


async def test_jobs_are_counted_apart(store: Store, clock: ManualClock) -> None:
    other = msgspec.structs.replace(ONCE, name="other")
    await end(store, Outcome.SUCCEEDED)
    await end(store, Outcome.FAILED, job=other)
    clock.advance(SECOND)
    await store.prune(lambda _: NOTHING)
    assert (await store.job_stats("work")).success_rate == 1.0
    assert (await store.job_stats("other")).success_rate == 0.0
    assert (await store.job_stats("never")).success_rate is None
