"""A paused scope: nothing of it begins or is planned, and what waits keeps its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Retry
from rota.client.client import Order
from rota.core.calendar.triggers import every
from rota.core.ledger.audit import Event
from rota.core.states import RunState
from rota.errors import Invalid, QuotaExceeded
from rota.testing import Harness
from rota.values.scope import Scope

START = datetime(2000, 1, 1, tzinfo=UTC)
TENANT = ("tenant", "42")
OTHER = ("tenant", "7")


async def begun(harness: Harness) -> list[str]:
    """Do all that a worker may have now, and return which runs that were, in order."""
    return [run.id for run in await harness.drain()]


async def put(harness: Harness, scope: tuple[str, str] = TENANT, **options: Any) -> str:
    return (await harness.client.enqueue(Order("work", {}, {"scope": scope, **options}))).id


@pytest.fixture
async def harness(either: Harness) -> Harness:
    await either.declare("work")
    return either


async def test_nothing_of_it_begins_until_it_is_resumed(harness: Harness) -> None:
    first, second = await put(harness), await put(harness)
    paused = await harness.client.quotas.pause(*TENANT, reason="their database moves")
    assert (paused.paused, paused.reason, paused.max_concurrency) == (True, "their database moves", None)
    third, other = await put(harness), await put(harness, OTHER)
    assert await begun(harness) == [other]
    assert (await harness.client.quotas.resume(*TENANT)).was_paused
    assert await begun(harness) == [first, second, third]
    assert await harness.client.quotas.list() == []


async def test_what_waits_keeps_its_place(harness: Harness) -> None:
    low, high = await put(harness, priority=-1), await put(harness, priority=1)
    await harness.client.quotas.pause(*TENANT)
    middle = await put(harness)
    await harness.client.quotas.resume(*TENANT)
    assert await begun(harness) == [high, middle, low]


async def test_what_runs_runs_on_and_its_retry_waits(harness: Harness) -> None:
    run_id = await put(harness)
    worker = await harness.worker("a").claim()
    await harness.client.quotas.pause(*TENANT)
    assert await harness.state(run_id) is RunState.RUNNING
    await worker.fail(run_id, Retry("not yet", after="0s"))
    assert await harness.state(run_id) is RunState.QUEUED
    assert await begun(harness) == []
    await harness.client.quotas.resume(*TENANT)
    assert await begun(harness) == [run_id]


async def test_a_run_that_becomes_due_waits_too(harness: Harness) -> None:
    run_id = await put(harness, delay="10s")
    await harness.client.quotas.pause(*TENANT)
    harness.clock.advance(timedelta(seconds=11))
    await harness.store.promote(10)
    assert await begun(harness) == []
    await harness.client.quotas.resume(*TENANT)
    assert await begun(harness) == [run_id]


async def test_its_plan_times_are_skipped_and_say_why(harness: Harness) -> None:
    await harness.client.schedules.create("pay", "work", every("1h"), scopes=[TENANT, OTHER])
    await harness.client.quotas.pause(*TENANT)
    await harness.pass_time("1h")
    occurrences = await harness.client.schedules.occurrences("pay")
    found = {one.scope.id: (one.state, one.reason) for one in occurrences if one.scope}
    assert found["7"][0] != RunState.SKIPPED
    state, reason = found["42"]
    assert state == RunState.SKIPPED
    assert reason is not None
    assert "tenant/42" in reason
    assert "paused" in reason
    await harness.client.quotas.resume(*TENANT)
    await harness.pass_time("1h")
    own = [one for one in await harness.client.schedules.occurrences("pay") if one.scope == Scope(*TENANT)]
    newest = max(own, key=lambda one: one.plan_time or START)
    assert newest.state != RunState.SKIPPED


async def test_a_quota_of_zero_is_a_pause(harness: Harness) -> None:
    run_id = await put(harness)
    quota = await harness.client.quotas.update(*TENANT, max_concurrency=0)
    assert quota.paused
    assert await begun(harness) == []
    assert (await harness.client.quotas.resume(*TENANT)).was_paused
    assert await begun(harness) == [run_id]


async def test_a_kind_may_be_paused_by_its_quota(harness: Harness) -> None:
    runs = [await put(harness), await put(harness, OTHER)]
    await harness.client.quotas.update("tenant", max_concurrency=0)
    assert await begun(harness) == []
    await harness.client.quotas.update("tenant", max_concurrency=0, max_queued=10)
    assert await begun(harness) == []
    # A kind cannot be resumed: the next number replaces its pause, and so does none.
    assert not (await harness.client.quotas.update("tenant", max_concurrency=5)).paused
    assert await begun(harness) == runs
    await harness.client.quotas.update("tenant", max_concurrency=0, max_queued=10)
    last = await put(harness)
    assert await begun(harness) == []
    await harness.client.quotas.delete("tenant")
    assert await begun(harness) == [last]
    assert await harness.client.quotas.list() == []


@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_a_forgotten_id_is_not_every_scope_of_the_kind(harness: Harness, verb: str) -> None:
    run_id = await put(harness)
    with pytest.raises(Invalid, match="kind of scopes"):
        await getattr(harness.client.quotas, verb)("tenant", None)
    assert await harness.client.quotas.list() == []
    assert await begun(harness) == [run_id]


async def test_its_own_quota_applies_again_afterwards(harness: Harness) -> None:
    await harness.client.quotas.update(*TENANT, max_concurrency=1)
    runs = [await put(harness), await put(harness)]
    await harness.client.quotas.pause(*TENANT)
    assert await begun(harness) == []
    await harness.client.quotas.resume(*TENANT)
    assert [*(await harness.worker("a").claim(5)).claims] == runs[:1]
    assert (await harness.client.quotas.get(*TENANT)).max_concurrency == 1


async def test_the_quota_of_its_kind_bounds_what_waits(harness: Harness) -> None:
    await harness.client.quotas.update("tenant", max_concurrency=2, max_queued=1)
    await harness.client.quotas.pause(*TENANT)
    await put(harness)
    with pytest.raises(QuotaExceeded):
        await put(harness)
    await harness.client.quotas.resume(*TENANT)
    await put(harness)
    await put(harness)


async def test_pauses_are_repeatable_and_audited(harness: Harness) -> None:
    for _ in range(2):
        await harness.client.quotas.pause(*TENANT, reason="why", actor="ann")
    assert [(await harness.client.quotas.resume(*TENANT, actor="bob")).was_paused for _ in range(2)] == [True, False]
    events: list[Event] = [*await harness.client.audit(kind="quota")]
    assert [(event.type, event.actor) for event in events] == [("resumed", "bob"), ("paused", "ann")]


async def claimed(harness: Harness, name: str) -> list[Scope | None]:
    """Let a worker claim what it may have, finish it, and return the scopes."""
    worker = await harness.worker(name).claim(20)
    scopes: list[Scope | None] = [(await harness.run(run_id)).scope for run_id in worker.claims]
    for run_id in list(worker.claims):
        await worker.finish(run_id)
    return scopes


async def conduct(harness: Harness) -> None:
    while await harness.conductor.step() == timedelta(0):
        pass


@pytest.mark.parametrize("limit", [None, 2])
async def test_a_backfill_makes_runs_that_wait_and_those_of_others_go_on(harness: Harness, limit: int | None) -> None:
    await harness.declare("limited", **({"max_concurrency": limit} if limit else {}))
    await harness.client.schedules.create("hourly", "limited", every("1h"), scopes=[TENANT, OTHER])
    await harness.client.quotas.pause(*TENANT)
    now = harness.clock.now()
    done = await harness.client.schedules.backfill("hourly", now - timedelta(hours=4), now)
    begun: list[Scope | None] = []
    while scopes := await claimed(harness, "a"):
        begun += scopes
    assert begun == [Scope(*OTHER)] * (done.count // 2)
    await harness.client.quotas.resume(*TENANT)
    while scopes := await claimed(harness, "a"):
        begun += scopes
    assert len(begun) == done.count


async def test_replicas_wait_and_those_that_run_run_on(harness: Harness) -> None:
    await harness.declare("each", replicas=2)
    await harness.client.quotas.pause(*TENANT)
    run_id = (await harness.client.enqueue(Order("each", {}, {"scope": TENANT}))).id
    await conduct(harness)
    assert [await claimed(harness, name) for name in "ab"] == [[], []]
    await harness.client.quotas.resume(*TENANT)
    first = await harness.worker("a").claim()
    await harness.client.quotas.pause(*TENANT)
    assert await claimed(harness, "b") == []
    await first.finish()
    await conduct(harness)
    explained = " ".join((await harness.client.explain(run_id)).words)
    assert "Its scope 'tenant/42' is paused" in explained
    await harness.client.quotas.resume(*TENANT)
    assert len(await claimed(harness, "b")) == 1
    await conduct(harness)
    assert await harness.state(run_id) is RunState.SUCCEEDED


async def test_the_next_part_of_a_pipeline_waits(harness: Harness) -> None:
    harness.app.pipeline("parts", [{"step": "one", "job": "work"}, {"step": "two", "job": "work"}])
    await harness.store.save_jobs(harness.app.registry.definitions())
    run_id = (await harness.client.enqueue(Order("parts", {}, {"scope": TENANT}))).id
    worker = await harness.worker("a").claim()
    await harness.client.quotas.pause(*TENANT)
    await worker.finish()
    assert await claimed(harness, "b") == []
    assert await harness.state(run_id) is RunState.QUEUED
    await harness.client.quotas.resume(*TENANT)
    assert await claimed(harness, "b") == [Scope(*TENANT)]
    assert await harness.state(run_id) is RunState.SUCCEEDED


async def test_the_timeout_of_an_external_run_counts_on_and_its_next_attempt_waits(harness: Harness) -> None:
    harness.app.external("label", timeout="5s", max_attempts=2, backoff=["0s"])
    await harness.store.save_jobs(harness.app.registry.definitions())
    run_id = (await harness.client.enqueue(Order("label", {}, {"scope": TENANT}))).id
    (held,) = await harness.client.external.claim("labeller@1")
    await harness.client.quotas.pause(*TENANT)
    harness.clock.advance(timedelta(seconds=6))
    await harness.reaper.step()
    assert await harness.client.external.claim("labeller@1") == []
    await harness.client.quotas.resume(*TENANT)
    (again,) = await harness.client.external.claim("labeller@1")
    assert (again.run_id, again.attempt, held.attempt) == (run_id, 2, 1)
    await harness.client.external.complete(again.run_id, again.fence)
