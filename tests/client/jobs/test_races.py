"""Races between two programs that create, delete, schedule and run jobs: nothing is half-made, or left without its
job."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import asyncpg
import pytest

from rota import Conflict, Invalid, Rota, every
from rota.client.client import Client, Order
from rota.core.jobs.status import JobFilter, JobState
from rota.core.jobs.unique import KeyHold
from rota.core.runs.run import EnqueuedRun, NewRun, RunFilter
from rota.core.states import RunState
from rota.errors import ChangedMeanwhile, NotFound, NothingToRetry, UnknownRun
from rota.store import Store, open_database
from rota.store.databases.database import Tx
from rota.store.databases.postgres import postgres
from rota.store.limits.live import live_limits
from rota.store.runs import idempotency, read
from tests.support.forms import with_long_form

URL: dict[str, Any] = {"url": "https://example.com/health"}
TRIES, FEWER = 5, 1

Act = Callable[[Client, str], Awaitable[object]]


def document(job: str) -> dict[str, Any]:
    return {"name": job, "job": job, "interval_minutes": 30, "interval_type": "minutes"}


async def make(client: Client, job: str) -> object:
    return await client.data_jobs.create(job, "http", **URL, schedule=document(job))


async def make_and_run(client: Client, job: str) -> object:
    return await client.data_jobs.create(job, "http", **URL, run={})


async def add(client: Client, job: str) -> object:
    return await client.data_jobs.create(job, "http", **URL)


async def drop(client: Client, job: str) -> None:
    await client.data_jobs.delete(job)


async def force(client: Client, job: str) -> None:
    await client.data_jobs.delete(job, force=True)


async def schedule(client: Client, job: str) -> object:
    return await client.schedules.create(f"{job}-more", job, every("1m"))


async def enqueue(client: Client, job: str) -> object:
    return await client.enqueue(Order(job, {}, {}))


async def enqueue_keyed(client: Client, job: str) -> object:
    return await client.enqueue_many([Order(job, {}, {"key": job}), Order(job, {}, {"idempotency_key": job})])


async def retry(client: Client, job: str) -> object:
    return await client.retry_job(job)


async def trigger(client: Client, job: str) -> object:
    return await client.schedules.trigger(job)


async def move(client: Client, job: str) -> object:
    return await client.schedules.update(f"{job}-moved", job=job)


async def pause(client: Client, job: str) -> object:
    return await client.pause_job(job)


async def resume(client: Client, job: str) -> object:
    return await client.resume_job(job)


async def cancel(client: Client, job: str) -> object:
    return await client.cancel_job(job)


async def cancel_and_resume(client: Client, job: str) -> None:
    await client.cancel_job(job)
    await client.resume_job(job)


async def change(client: Client, job: str) -> object:
    return await client.data_jobs.update(job, description="changed")


async def reschedule(client: Client, job: str) -> object:
    return await client.data_jobs.update(job, schedule={"interval_minutes": 5}, priority=1)


async def pause_schedule(client: Client, job: str) -> None:
    await client.schedules.pause(job)
    await client.schedules.resume(job)


async def drop_schedule(client: Client, job: str) -> None:
    await client.schedules.delete(job)


async def switch(client: Client, job: str) -> None:
    await client.schedules.disable(job)
    await client.schedules.enable(job)


async def restore(client: Client, job: str) -> object:
    return await client.data_jobs.restore(job)


async def restore_schedule(client: Client, job: str) -> object:
    return await client.schedules.restore(job)


async def limit(client: Client, job: str) -> object:
    return await client.limit_job(job, rate="5/s")


async def expect(client: Client, job: str) -> object:
    return await client.expectations.update("job", job, success_every="1h")


async def expect_schedule(client: Client, job: str) -> object:
    return await client.expectations.update("schedule", job, success_every="1h")


async def pause_all(client: Client, job: str) -> object:
    return await client.change_jobs("pause", JobFilter(name=job))


async def cancel_runs(client: Client, job: str) -> object:
    return await client.cancel_many(RunFilter(job=job))


async def retry_runs(client: Client, job: str) -> object:
    return await client.retry_many(RunFilter(job=job, states=(RunState.CANCELLED,), retried=False))


async def purge(client: Client, job: str) -> object:
    return await client.purge(RunFilter(job=job))


MAKING = (make, make_and_run, add)
RESTORING = (restore, restore_schedule)
HALF = (make_and_run, add, drop_schedule, *RESTORING)
"""Acts after which a job may be without a schedule of its own."""
DROPPING = (drop, force)
OTHERS = (
    schedule, enqueue, enqueue_keyed, retry, trigger, move, pause, resume, cancel, cancel_and_resume, change,
    reschedule, pause_schedule, drop_schedule, switch, limit, expect, expect_schedule, pause_all,
    cancel_runs, retry_runs, purge,
)  # fmt: skip
ACTS: tuple[Act, ...] = (*DROPPING, *MAKING, *RESTORING, *OTHERS)


@pytest.fixture
async def clients(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Client]]:
    """Two programs, with two callers each. A deadlock is an error: such transactions are not retried."""
    monkeypatch.setattr(postgres, "_RETRIED", (asyncpg.UniqueViolationError,))
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    apps = [Rota(database_url), Rota(database_url)]
    found = [await app.connect() for app in apps]
    yield [*found, *found]
    for app in apps:
        await app.aclose()


async def all_at_once(clients: list[Client], job: str, acts: list[Act]) -> list[Any]:
    """Run all at once; return each answer. Refusals must be of the expected kinds."""
    acting = [act(client, job) for act, client in zip(acts, clients, strict=False)]
    answers = await asyncio.gather(*acting, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, Conflict | NotFound):
            raise answer
    return answers


async def count(client: Client, sql: str, job: str) -> int:
    ((found,),) = await client.store.database.read(lambda tx: tx.fetch_sql(sql, job=job))
    return int(found)


async def check_whole(client: Client, job: str, *, made_whole: bool) -> None:
    there = await count(client, "select count(*) from rota_job where name = :job and dropped_at is null", job)
    going = (
        "select count(*) from rota_schedule where job = :job and deleted_at is null and enabled = 1 and job_paused = 0"
    )
    schedules = await count(client, going, job)
    live = await count(client, "select count(*) from rota_run where job = :job and state is null", job)
    due = "select count(*) from rota_cursor where next_at is not null and schedule_id in "
    plans = await count(client, f"{due} (select id from rota_schedule where job = :job)", job)
    if not there:
        assert (schedules, live, plans) == (0, 0, 0), "left without a job"
    assert plans == schedules
    held = await count(client, "select count(*) from rota_pause where kind = 'job' and name = :job", job)
    if not there:
        limits = await client.store.database.read(live_limits)
        assert (held, [name for _, name in limits if name == job]) == (0, []), "a pause or a limit of no job"
    resting = "select count(*) from rota_schedule where job = :job and deleted_at is null and job_paused"
    assert await count(client, f"{resting} <> {held}", job) == 0, "a schedule rests though its job does not, or not"
    own = await count(client, "select count(*) from rota_schedule where name = :job and deleted_at is null", job)
    for kind, known in (("job", there), ("schedule", own)):
        expected = "select count(*) from rota_expectation where subject = :job and kind = "
        assert known or not await count(client, f"{expected}'{kind}'", job), f"an expectation of no {kind}"
    if made_whole:
        assert own == min(there, 1), "half of it"
    repeated = "select coalesce(max(times), 0) from (select count(*) as times from rota_run"
    twice = await count(client, f"{repeated} where job = :job and retry_of is not null group by retry_of) as r", job)
    assert twice <= 1


async def set_up(client: Client, job: str, acts: list[Act], *, there: bool) -> None:
    restoring = bool({*acts} & {*RESTORING})
    if there or restoring:
        await make(client, job)
        run = await client.enqueue(Order(job, {}, {}))
        await client.cancel(run.id)
    if restoring and there:
        await drop_schedule(client, job)
    elif restoring:
        await force(client, job)
    if move in acts:
        await client.schedules.create(f"{job}-moved", "elsewhere", every("1m"))


@pytest.mark.parametrize("seed", with_long_form(range(1), range(1, 5)))
@pytest.mark.parametrize("first", ACTS, ids=lambda act: act.__name__)
async def test_any_two_at_once(clients: list[Client], first: Act, seed: int) -> None:
    """Every pair of verbs of jobs and schedules: more than a thousand tries on each database in the long form."""
    chance = random.Random(f"{first.__name__}/{seed}")
    await add(clients[0], "elsewhere")
    for other in ACTS[ACTS.index(first) :]:
        for number in range(TRIES if first in DROPPING else FEWER):
            job, acts = f"{first.__name__}-{other.__name__}-{number}", [first, other]
            chance.shuffle(acts)
            there = chance.random() < 0.5 or not {*acts} & {*MAKING, *RESTORING}
            await set_up(clients[0], job, acts, there=there)
            await all_at_once(clients, job, acts)
            await check_whole(clients[0], job, made_whole=not {*HALF} & {*acts})


@pytest.mark.parametrize("seed", with_long_form(range(1), range(1, 25)))
async def test_any_three_at_once(clients: list[Client], seed: int) -> None:
    """The long form makes a thousand tries on each database."""
    chance = random.Random(seed)
    await add(clients[0], "elsewhere")
    for number in range(40):
        job, acts = f"three-{number}", chance.sample(ACTS, 3)
        there = number % 2 == 0 or not {*acts} & {*MAKING, *RESTORING}
        await set_up(clients[0], job, acts, there=there)
        await all_at_once(clients, job, acts)
        await check_whole(clients[0], job, made_whole=not {*HALF} & {*acts})


@pytest.mark.parametrize("there", [False, True], ids=["created", "changed"])
async def test_no_pipeline_becomes_a_part_of_another_at_the_same_instant(clients: list[Client], there: bool) -> None:
    """Each names the other as a part: of two that are made at once, one is refused."""

    async def define(client: Client, name: str, other: str) -> object:
        return await client.data_jobs.replace(name, pipeline=[{"step": "one", "job": other}])

    for number in range(10):
        names = [f"ring-{number}-{place}" for place in range(4)]
        if there:
            for name in names:
                await define(clients[0], name, f"{name}-part")
        ring = zip(clients, names, [*names[1:], names[0]], strict=True)
        answers = await asyncio.gather(*(define(*pair) for pair in ring), return_exceptions=True)
        assert {type(answer) for answer in answers if isinstance(answer, BaseException)} <= {Invalid}
        parts = {
            name: definition.pipeline[0].job
            for name in names
            if (definition := await clients[0].store.job(name)) is not None
        }
        assert not {*parts} & {*parts.values()}, "a pipeline is a part of another"


async def test_many_that_make_the_same_are_answered_alike(clients: list[Client]) -> None:
    for number in range(8):
        made = await all_at_once(clients, f"ping-{number}", [make] * 4)
        assert sorted(one.created for one in made) == [False, False, False, True]
        await check_whole(clients[0], f"ping-{number}", made_whole=True)


async def test_dropped_and_made_again_while_others_do_the_same(clients: list[Client]) -> None:
    for _ in range(8):
        await all_at_once(clients, "ping", [make, drop, make, force])
        await check_whole(clients[0], "ping", made_whole=True)


async def test_one_made_again_behind_a_forced_drop_is_left_alone(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(clients[0], "ping")
    jobs = clients[0].store.data_jobs
    dropped = jobs.delete

    async def and_made_again(name: str, actor: str | None, **facts: Any) -> object:
        answer = await dropped(name, actor, **facts)
        await clients[1].data_jobs.create("ping", "http", **URL, schedule=document("ping"), run={})
        return answer

    monkeypatch.setattr(jobs, "delete", and_made_again)
    await force(clients[0], "ping")
    assert (await clients[0].schedules.get("ping")).definition.enabled
    assert await count(clients[0], "select count(*) from rota_run where job = :job and state is null", "ping") == 1


async def test_what_comes_while_a_forced_drop_cancels_is_stopped(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(clients[0], "ping")
    await pause(clients[0], "ping")
    store = clients[0].store
    cancelled = store.cancel_job

    async def and_more_come(job: str, reason: str | None, actor: str | None, **facts: Any) -> object:
        monkeypatch.undo()
        answer = await cancelled(job, reason, actor, **facts)
        await resume(clients[1], "ping")
        await schedule(clients[1], "ping")
        await enqueue(clients[1], "ping")
        return answer

    monkeypatch.setattr(store, "cancel_job", and_more_come)
    await force(clients[0], "ping")
    await check_whole(clients[0], "ping", made_whole=True)
    assert not (await clients[0].schedules.get("ping-more")).definition.enabled


async def test_a_forced_drop_of_a_job_that_changes_meanwhile_cancels_nothing(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    await clients[0].data_jobs.create("ping", "http", **URL, schedule=document("ping"), run={})
    jobs = clients[0].store.data_jobs
    read = jobs.get

    async def and_changed(name: str) -> object:
        job = await read(name)
        await clients[1].data_jobs.update(name, priority=7)
        return job

    monkeypatch.setattr(jobs, "get", and_changed)
    with pytest.raises(ChangedMeanwhile):
        await clients[0].data_jobs.delete("ping", force=True, expected_revision=1)
    assert (await clients[0].job("ping")).status.state is not JobState.CANCELLED
    assert (await clients[0].schedules.get("ping")).definition.enabled
    assert await count(clients[0], "select count(*) from rota_run where job = :job and state is null", "ping") == 1


async def test_of_many_that_retry_a_job_one_does(clients: list[Client]) -> None:
    for number in range(6):
        job = f"ping-{number}"
        await make(clients[0], job)
        run = await clients[0].enqueue(Order(job, {}, {}))
        await clients[0].cancel(run.id)
        answers = await all_at_once(clients, job, [retry] * 4)
        refused = [answer for answer in answers if isinstance(answer, NothingToRetry)]
        assert (len(answers), len(refused)) == (4, 3)
        await check_whole(clients[0], job, made_whole=True)


async def test_with_one_key_all_are_answered_with_the_same_retry(clients: list[Client]) -> None:
    await make(clients[0], "ping")
    run = await clients[0].enqueue(Order("ping", {}, {}))
    await clients[0].cancel(run.id)
    answers = await asyncio.gather(*[client.retry_job("ping", idempotency_key="k") for client in clients])
    assert len({answer.id for answer in answers}) == 1
    assert sorted(answer.created for answer in answers) == [False, False, False, True]


async def test_a_retry_that_is_repeated_while_the_first_commits_has_its_answer(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL, where each statement of a read sees what committed before it; SQLite reads from one snapshot."""
    app = Rota(postgres_url)
    client = await app.connect()
    await make(client, "ping")
    run = await client.enqueue(Order("ping", {}, {}))
    await client.cancel(run.id)
    ask = idempotency.asked_before
    first: list[EnqueuedRun] = []

    async def and_retried(tx: Tx, request: KeyHold) -> list[str]:
        made = await ask(tx, request)
        monkeypatch.undo()
        first.append(await client.retry_job("ping", idempotency_key="k"))
        return made

    monkeypatch.setattr(idempotency, "asked_before", and_retried)
    again = await client.retry_job("ping", idempotency_key="k")
    assert (again.id, again.created, first[0].created) == (first[0].id, False, True)
    await app.aclose()


async def test_one_that_is_gone_does_not_spoil_it_for_others(clients: list[Client]) -> None:
    """Runs enqueued at the same moment share a transaction, but each gets its own answer."""
    client = clients[0]
    await add(client, "ping")
    await add(client, "pong")
    definitions = {name: await client.job(name) for name in ("ping", "pong")}
    await drop(client, "ping")
    runs = [client._of_stored(definitions[job], Order(job, {}, {}), client.store.new_id()) for job in definitions]
    answers = await asyncio.gather(*[client._gatherer.add(run) for run in runs], return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == ["UnknownJob", "Enqueued"]


async def test_runs_that_are_purged_while_they_are_read_are_not_retried(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(clients[0], "ping")
    runs = [await clients[0].enqueue(Order("ping", {}, {})) for _ in range(3)]
    await clients[0].cancel_many(RunFilter(job="ping"))
    seen = read.copies_of

    async def and_one_is_purged(tx: Tx, run_ids: Sequence[str]) -> dict[str, NewRun]:
        return {id: copy for id, copy in (await seen(tx, run_ids)).items() if id != runs[1].id}

    monkeypatch.setattr(read, "copies_of", and_one_is_purged)
    with pytest.raises(UnknownRun):
        await clients[0].retry(runs[1].id)
    result = await clients[0].retry_many(RunFilter(job="ping"))
    assert (result.matched, result.done, sum(refused.count for refused in result.refused)) == (3, 2, 1)
