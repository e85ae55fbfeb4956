"""The state machine of jobs as the store applies it: every pair of a state and a verb, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Conflict, JobState, Rota, every
from rota.client.client import Client, Order
from rota.core.jobs.status import JobVerb, Standing, decide_verb, possible_verbs, standing_of
from rota.errors import JobDisabled, JobRefuses
from rota.store import Store, open_database

URL: dict[str, Any] = {"url": "https://example.com/health"}
Act = Callable[[Client, str], Awaitable[object]]

VERBS: dict[JobVerb, Act] = {
    JobVerb.PAUSE: lambda client, job: client.pause_job(job),
    JobVerb.RESUME: lambda client, job: client.resume_job(job),
    JobVerb.CANCEL: lambda client, job: client.cancel_job(job, reason="enough", actor="ada"),
    JobVerb.RETRY: lambda client, job: client.retry_job(job),
    JobVerb.RUN: lambda client, job: client.enqueue(Order(job, {}, {})),
    JobVerb.SCHEDULE: lambda client, job: client.schedules.create(f"{job}-more", job, every("1h")),
    JobVerb.UPDATE: lambda client, job: client.data_jobs.update(job, description="changed"),
    JobVerb.DELETE: lambda client, job: client.data_jobs.delete(job, force=True),
}


@pytest.fixture
async def clients(database_url: str) -> AsyncIterator[list[Client]]:
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    apps = [Rota(database_url), Rota(database_url)]
    yield [await app.connect() for app in apps]
    for app in apps:
        await app.aclose()


async def bring(client: Client, job: str, state: Standing) -> None:
    """Make a job in this state, whose newest run has ended, so that it can be retried."""
    await client.data_jobs.create(job, "http", **URL)
    await client.cancel((await client.enqueue(Order(job, {}, {}))).id)
    match state:
        case Standing.IDLE:
            return
        case Standing.ACTIVE:
            await client.schedules.create(job, job, every("1h"))
        case Standing.PAUSED:
            await client.pause_job(job)
        case Standing.CANCELLED:
            await client.schedules.create(job, job, every("1h"))
            await client.cancel_job(job)


async def state_of(client: Client, job: str) -> Standing:
    ((facts,),) = [await client.store.job_facts([job])]
    return standing_of(facts)


@pytest.mark.parametrize("verb", JobVerb)
@pytest.mark.parametrize("state", Standing)
async def test_each_pair(clients: list[Client], state: Standing, verb: JobVerb) -> None:
    client, other = clients
    await bring(client, "work", state)
    assert await state_of(client, "work") is state
    expected = decide_verb("work", state, verb)
    if isinstance(expected, Conflict):
        with pytest.raises(JobRefuses) as refusal:
            await VERBS[verb](other, "work")
        assert (refusal.value.message, refusal.value.hint) == (expected.message, expected.hint)
        assert await state_of(client, "work") is state
        return
    await VERBS[verb](other, "work")
    after = await state_of(client, "work")
    if verb is JobVerb.DELETE:
        assert [job.name for job in await client.jobs()] == []
    elif verb is JobVerb.RESUME and state is Standing.PAUSED:
        assert after is Standing.IDLE, "it has neither runs nor schedules"
    else:
        assert after is expected


@pytest.mark.parametrize("state", Standing)
async def test_a_disabled_job_refuses_runs_and_retries(clients: list[Client], state: Standing) -> None:
    client, _ = clients
    await bring(client, "work", state)
    await client.data_jobs.update("work", enabled=False)
    for verb in (JobVerb.RUN, JobVerb.RETRY):
        with pytest.raises(JobDisabled):
            await VERBS[verb](client, "work")
    assert JobVerb.RUN not in possible_verbs(state, enabled=False)


async def test_a_cancel_says_who_when_why_and_what_rests(clients: list[Client]) -> None:
    client, _ = clients
    await bring(client, "work", Standing.ACTIVE)
    await client.schedules.create("off", "work", every("1h"), enabled=False)
    run = await client.enqueue(Order("work", {}, {}))
    done = await client.cancel_job("work", reason="enough", actor="ada")
    assert (done.cancelled, done.schedules) == (1, ("work",))
    status = await client.job_status("work")
    assert done.status == status
    assert (status.state, status.cancelled_by, status.cancel_reason) == (JobState.CANCELLED, "ada", "enough")
    assert (status.cancelled_at is not None, status.paused_at, status.next_at) == (True, None, None)
    assert [(await client.schedules.get(name)).state for name in ("work", "off")] == ["job cancelled", "disabled"]
    with pytest.raises(JobRefuses):
        await client.schedules.trigger("work")
    revived = await client.resume_job("work", actor="bob")
    assert (revived.state, revived.cancelled_at, revived.next_at is not None) == (JobState.SCHEDULED, None, True)
    assert [(await client.schedules.get(name)).state for name in ("work", "off")] == ["active", "disabled"]
    assert (await client.retry(run.id)).retry_of == run.id


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_cancelled_job_gets_no_runs_for_past_plan_times(clients: list[Client], *, dry_run: bool) -> None:
    client, _ = clients
    now = datetime.now(UTC)
    await client.data_jobs.create("work", "http", **URL)
    await client.schedules.create("work", "work", every("1h"), start_at=now - timedelta(days=1))
    await client.cancel_job("work")
    with pytest.raises(JobRefuses, match="cannot run job 'work': it is cancelled"):
        await client.schedules.backfill("work", now - timedelta(hours=5), now, dry_run=dry_run)
    assert (await client.job_status("work")).waiting == 0
    await client.resume_job("work")
    done = await client.schedules.backfill("work", now - timedelta(hours=5), now, dry_run=dry_run)
    assert done.count > 0


async def test_a_pause_that_is_cancelled_is_one_cancel(clients: list[Client]) -> None:
    client, _ = clients
    await bring(client, "work", Standing.PAUSED)
    done = await client.cancel_job("work")
    assert (done.status.state, done.status.paused_at) == (JobState.CANCELLED, None)
    assert (await client.resume_job("work")).state is JobState.PENDING


async def test_a_cancel_takes_what_came_since_and_then_refuses(clients: list[Client], database_url: str) -> None:
    """A run of a job in code is enqueued without a look at the job: it waits, and another cancel ends it."""
    app = Rota(database_url)

    @app.job
    def greet() -> None: ...

    client = await app.connect()
    try:
        await client.enqueue(Order("greet", {}, {}))
        assert (await client.cancel_job("greet")).cancelled == 1
        run = await client.enqueue(Order("greet", {}, {}))
        assert any("'greet' is cancelled" in words for words in (await client.explain(run.id)).words)
        assert (await client.cancel_job("greet")).cancelled == 1
        with pytest.raises(JobRefuses):
            await client.cancel_job("greet")
    finally:
        await app.aclose()


async def test_of_many_at_once_each_change_happens_once(clients: list[Client]) -> None:
    for number in range(6):
        job = f"work-{number}"
        await bring(clients[0], job, Standing.ACTIVE)
        verbs = (JobVerb.CANCEL, JobVerb.CANCEL, JobVerb.PAUSE)
        acts = [VERBS[verb](client, job) for verb in verbs for client in clients]
        answers = await asyncio.gather(*acts, return_exceptions=True)
        assert all(not isinstance(answer, BaseException) or isinstance(answer, JobRefuses) for answer in answers)
        assert await state_of(clients[0], job) is Standing.CANCELLED
        events = [event.type for event in await clients[0].audit(kind="job", subject=job)]
        assert (events.count("cancelled"), events.count("paused") <= 1) == (1, True)
        acts = [VERBS[JobVerb.RESUME](client, job) for client in clients]
        await asyncio.gather(*acts)
        assert await state_of(clients[0], job) is Standing.ACTIVE
        events = [event.type for event in await clients[0].audit(kind="job", subject=job)]
        assert events.count("resumed") == 1
