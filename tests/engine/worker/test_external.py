"""Test external jobs: claim, report and end them under their fence, with each verb."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import LeaseLost, Outcome, RunError, RunState
from rota.client.client import Order
from rota.core.external.external import Assignment
from rota.core.progress.steps import StepState
from rota.core.runs.claim import OrderedRequest
from rota.core.runs.error_fingerprint import fingerprint_of
from rota.core.workers.worker import WorkerState
from rota.errors import (
    AlreadyReported,
    BadPayload,
    Conflict,
    Invalid,
    NotAsked,
    NotFound,
    NotHandedOver,
    UnknownJob,
    UnknownRun,
    UnknownStep,
)
from rota.registry.data_jobs import define_data_job
from rota.store import new_id
from rota.testing import Harness
from tests.support.runs.audit_trails import trail, words
from tests.support.schedules.ledger_oracle import rows
from tests.support.wait import PATIENCE

SECOND = timedelta(seconds=1)
SCHEMA = {"type": "object", "properties": {"image": {"type": "string"}}, "required": ["image"]}

Verb = Callable[[Harness, str, int], Awaitable[Any]]

NOTING: dict[str, Verb] = {
    "heartbeat": lambda harness, run, fence: harness.client.external.heartbeat(run, fence),
    "progress": lambda harness, run, fence: harness.client.external.progress(run, fence, 40, "labelling"),
    "step": lambda harness, run, fence: harness.client.external.step(run, fence, "look", "succeeded", result=1),
    "logs": lambda harness, run, fence: harness.client.external.logs(run, fence, ["a line"]),
}
ENDING: dict[str, Verb] = {
    "complete": lambda harness, run, fence: harness.client.external.complete(run, fence, {"labels": 3}),
    "fail": lambda harness, run, fence: harness.client.external.fail(run, fence, "jammed"),
    "cancelled": lambda harness, run, fence: harness.client.external.cancelled(run, fence),
}
VERBS = {**NOTING, **ENDING}


def fingerprinted(error: RunError) -> RunError:
    return msgspec.structs.replace(error, fingerprint=fingerprint_of(error))


async def declare(harness: Harness, name: str = "label", **options: Any) -> None:
    harness.app.external(name, SCHEMA, **options)
    await harness.store.save_jobs(harness.app.registry.definitions())


async def put(harness: Harness, job: str = "label", **options: Any) -> str:
    return (await harness.client.enqueue(Order(job, {"image": "a.png"}, options))).id


async def take(harness: Harness, worker: str = "scanner", **wanted: Any) -> Assignment:
    (found,) = await harness.client.external.claim(worker, **wanted)
    return found


async def taken(harness: Harness, **options: Any) -> Assignment:
    await declare(harness, **options)
    await put(harness)
    return await take(harness)


async def everything(harness: Harness) -> list[Any]:
    """All that is kept of runs: to see that nothing changed."""
    tables = ("run", "lease", "ready", "outside", "attempt", "step", "progress", "log", "event", "gate")
    return [await rows(harness.store, f"select * from rota_{table} order by 1, 2") for table in tables]


async def test_a_claim_brings_what_is_to_be_done(either: Harness) -> None:
    await declare(either)
    run_id = await put(either, key="front", scope=("account", "42"))
    found = await take(either)
    assert (found.run_id, found.fence, found.attempt, found.max_attempts) == (run_id, 1, 1, 4)
    assert (found.job, found.job_version, found.payload) == ("label", 1, {"image": "a.png"})
    assert (found.scope.kind, found.scope.id, found.key) == ("account", "42", "front")
    assert (found.plan_time, found.idempotency_key, found.steps) == (None, run_id, {})
    assert found.lease_until == either.clock.now() + either.lease
    assert await either.state(run_id) is RunState.RUNNING
    assert await either.client.external.claim("scanner") == []


async def test_its_payload_is_checked_by_its_schema(either: Harness) -> None:
    await declare(either)
    with pytest.raises(BadPayload, match="image"):
        await either.client.enqueue(Order("label", {"picture": 1}))
    with pytest.raises(BadPayload, match="image"):
        await either.client.enqueue_many([Order("label", {"image": "a"}), Order("label", {"image": 7})])


async def test_no_worker_of_ours_claims_it(either: Harness) -> None:
    await declare(either)
    run_id = await put(either)
    assert await either.drain() == []
    worker = await either.worker("a").claim()
    assert not worker.claims
    assert await either.state(run_id) is RunState.QUEUED
    assert "label" not in either.app.registry.known()
    assert either.app.registry.for_run("label", 1) is None


async def test_outsiders_claim_nothing_but_external_jobs(either: Harness) -> None:
    await either.declare("own")
    await declare(either)
    await either.enqueue("own")
    assert await either.client.external.claim("scanner", max=5) == []
    with pytest.raises(Invalid, match="is not external"):
        await either.client.external.claim("scanner", jobs=["own"])
    with pytest.raises(UnknownJob, match="labl"):
        await either.client.external.claim("scanner", jobs=["labl"])


async def test_one_that_was_made_by_a_command_is_claimed_until_it_is_dropped(either: Harness) -> None:
    await either.client.data_jobs.create("label", "external", payload_schema=SCHEMA)
    await either.client.data_jobs.create("ping", "http", url="https://example.com", body={"kind": "external"})
    run_id = await put(either)
    assert (await take(either)).run_id == run_id
    assert (await either.client.workers.get("scanner")).jobs == ("label",)
    await either.client.data_jobs.delete("label", force=True)
    with pytest.raises(UnknownJob):
        await either.client.external.claim("scanner", jobs=["label"])


async def test_jobs_queues_and_how_many(either: Harness) -> None:
    await declare(either)
    await declare(either, "scan", queue="slow")
    first, second, third = await put(either), await put(either), await put(either, "scan")
    assert await either.client.external.claim("a", jobs=["scan"]) == []
    (only,) = await either.client.external.claim("a", jobs=["scan"], queues=["slow", "default"], max=9)
    assert only.run_id == third
    both = await either.client.external.claim("a", max=2)
    assert [found.run_id for found in both] == [first, second]


async def test_a_paused_job_is_not_claimed(either: Harness) -> None:
    await declare(either)
    await put(either)
    await either.client.pause_job("label")
    assert await either.client.external.claim("a") == []
    await either.client.resume_job("label")
    assert await take(either)


async def test_those_under_limits_are_claimed_too(either: Harness) -> None:
    await declare(either, max_concurrency=1)
    first, second = await put(either), await put(either)
    held = await take(either, max=5)
    assert held.run_id == first
    assert await either.client.external.claim("b", max=5) == []
    await either.client.external.complete(held.run_id, held.fence)
    assert (await take(either)).run_id == second


async def test_neither_those_under_limits_nor_the_others_wait_for_ever(either: Harness) -> None:
    await declare(either)
    await declare(either, "scan", max_concurrency=100)
    for _ in range(4):
        await put(either)
        await put(either, "scan")
    assert {(await take(either)).job for _ in range(2)} == {"label", "scan"}


async def test_a_claim_waits_until_something_comes(either: Harness) -> None:
    await declare(either)
    waiting = asyncio.create_task(either.client.external.claim("a", wait="30s"))
    await asyncio.sleep(0)
    run_id = await put(either)
    (found,) = await waiting
    assert found.run_id == run_id


async def test_a_claim_does_not_wait_longer_than_it_was_asked_to(harness: Harness) -> None:
    await declare(harness)
    async with asyncio.timeout(PATIENCE):
        assert await harness.client.external.claim("a", wait="50ms") == []


async def test_who_meets_its_needs_gets_it_and_nobody_else(either: Harness) -> None:
    await declare(either, labels=["gpu"], min_worker_version="1.4")
    run_id = await put(either)
    claim = either.client.external.claim
    assert await claim("a") == await claim("a", labels=["gpu"]) == await claim("a", version="1.5") == []
    assert await claim("a", labels=["gpu"], version="1.3") == []
    assert (await take(either, "a", labels=["gpu=big"], version="1.10")).run_id == run_id


async def test_under_limits_needs_are_kept_too(either: Harness) -> None:
    await declare(either, max_concurrency=1, only_workers=["scanner"])
    run_id = await put(either)
    assert await either.client.external.claim("other") == []
    assert (await take(either)).run_id == run_id


async def test_those_with_needs_and_the_others_are_claimed_by_age(either: Harness) -> None:
    await declare(either, labels=["gpu"])
    await declare(either, "scan")
    await declare(either, "read", max_concurrency=100)
    jobs = ("read", "label", "scan", "label", "read", "scan")
    for job in jobs:
        await put(either, job)
        either.clock.advance("1ms")
    assert [(await take(either, "outside", labels=["gpu"])).job for _ in jobs] == list(jobs)


async def test_new_requirements_of_others_do_not_keep_a_claim_from_its_run(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come between what the claim has read of requirements and what it takes."""
    await declare(either)
    run_id = await put(either)
    claim = either.store.claim_assigned

    async def claim_later(request: OrderedRequest) -> Any:
        await put(either, only_workers=["somebody else"])
        return await claim(request)

    monkeypatch.setattr(either.store, "claim_assigned", claim_later)
    assert (await take(either)).run_id == run_id


@pytest.mark.parametrize("replicas", [2, "all"])
async def test_several_outsiders_do_a_run_with_replicas(either: Harness, replicas: Any) -> None:
    await declare(either, replicas=replicas)
    for name in ("a", "b"):
        assert await either.client.external.claim(name) == []  # known from now on, which matters to "all"
    run_id = await put(either)
    while await either.conductor.step() == timedelta(0):
        pass
    first = await take(either, "a", max=5)
    assert await either.client.external.claim("a", max=5) == []
    second = await take(either, "b", max=5)
    for held in (first, second):
        assert held.run_id != run_id
        await either.client.external.complete(held.run_id, held.fence)
    while await either.conductor.step() == timedelta(0):
        pass
    assert await either.state(run_id) is RunState.SUCCEEDED


async def test_it_is_shown_among_the_workers(either: Harness) -> None:
    await declare(either)
    await put(either)
    held = await take(either, "scanner@7", labels=["gpu=yes"], version="3.1")
    (worker,) = await either.client.workers.list()
    assert (worker.id, worker.name, worker.state, worker.jobs) == (
        "scanner@7",
        "scanner",
        WorkerState.WORKING,
        ("label",),
    )
    assert [run.id for run in worker.runs] == [held.run_id]
    assert (worker.labels, worker.app_version) == (("gpu=yes",), "3.1")
    await either.client.external.claim("scanner@7")
    (worker,) = await either.client.workers.list()
    assert (worker.labels, worker.app_version) == ((), "")  # what it says now
    either.clock.advance(20 * SECOND)
    await either.client.external.heartbeat(held.run_id, held.fence)
    either.clock.advance(20 * SECOND)
    assert (await either.client.workers.get("scanner")).state is WorkerState.WORKING
    either.clock.advance(either.lease)
    assert (await either.client.workers.get("scanner")).state is WorkerState.GONE


async def test_one_that_was_asked_to_drain_claims_nothing(either: Harness) -> None:
    await declare(either)
    await either.client.external.claim("scanner@7")
    await put(either)
    await either.client.workers.drain("scanner")
    assert await either.client.external.claim("scanner@7") == []
    assert (await either.client.workers.get("scanner")).state is WorkerState.DRAINING
    await either.client.workers.resume("scanner")
    assert await take(either, "scanner@7")


async def test_leases_that_the_caller_does_not_know_are_handed_back(either: Harness) -> None:
    await declare(either)
    await put(either)
    await put(either)
    known = await take(either, "scanner@7")
    lost = await take(either, "scanner@7")  # its answer never arrived
    again = await take(either, "scanner@7", held=[(known.run_id, known.fence)])
    assert (again.run_id, again.fence, again.attempt) == (lost.run_id, lost.fence + 2, 1)
    assert await either.state(known.run_id) is RunState.RUNNING
    with pytest.raises(LeaseLost):
        await either.client.external.complete(lost.run_id, lost.fence)


async def test_another_boot_keeps_its_leases(either: Harness) -> None:
    await declare(either)
    await put(either)
    held = await take(either, "scanner@7")
    assert await either.client.external.claim("scanner@8", held=[]) == []
    await either.client.external.heartbeat(held.run_id, held.fence)


async def test_a_lost_lease_costs_an_attempt_and_is_claimed_again(either: Harness) -> None:
    held = await taken(either)
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    again = await take(either)
    assert (again.run_id, again.attempt, again.fence) == (held.run_id, 2, held.fence + 2)


async def test_a_lease_of_ones_own_length(either: Harness) -> None:
    await declare(either)
    await put(either)
    held = await take(either, lease="2m")
    assert held.lease_until == either.clock.now() + timedelta(minutes=2)
    either.clock.advance(timedelta(seconds=90))
    beat = await either.client.external.heartbeat(held.run_id, held.fence)
    assert (beat.cancelling, beat.lease_until) == (False, either.clock.now() + timedelta(minutes=2))
    for asked in ("1ms", "2h"):
        with pytest.raises(Invalid, match="lease must be"):
            await either.client.external.claim("a", lease=asked)


async def test_a_heartbeat_renews(either: Harness) -> None:
    held = await taken(either)
    for _ in range(3):
        either.clock.advance(either.lease - SECOND)
        await either.client.external.heartbeat(held.run_id, held.fence)
        await either.reaper.step()
    assert await either.state(held.run_id) is RunState.RUNNING


async def test_progress_is_a_heartbeat_and_keeps_what_is_not_said(either: Harness) -> None:
    held = await taken(either)
    await either.client.external.progress(held.run_id, held.fence, 12.5, "first")
    either.clock.advance(either.lease - SECOND)
    beat = await either.client.external.progress(held.run_id, held.fence, summary="second")
    assert beat.lease_until == either.clock.now() + either.lease
    said = (await either.run(held.run_id)).progress
    assert said is not None
    assert (said.percentage, said.summary) == (12.5, "second")


async def test_steps_are_recorded_and_told_to_the_next_attempt(either: Harness) -> None:
    held = await taken(either, backoff=["0s"])
    external = either.client.external
    assert await external.step(held.run_id, held.fence, "look", "running") is StepState.RUNNING
    either.clock.advance(SECOND)
    assert await external.step(held.run_id, held.fence, "look", "succeeded", result=[1]) is StepState.SUCCEEDED
    assert await external.step(held.run_id, held.fence, "look", "running") is StepState.SUCCEEDED
    assert await external.step(held.run_id, held.fence, "draw", "failed", error="no ink") is StepState.FAILED
    look, draw = await either.client.steps(held.run_id)
    assert (look.id, look.state, look.result) == ("look", StepState.SUCCEEDED, [1])
    assert look.started_at is not None
    assert look.finished_at == look.started_at + SECOND
    assert draw.error == fingerprinted(RunError(type="Failed", message="no ink"))
    assert await external.fail(held.run_id, held.fence, "once more") is RunState.QUEUED
    again = await take(either)
    assert (again.attempt, again.steps) == (2, {"look": [1]})


async def test_declared_steps_are_the_only_ones(either: Harness) -> None:
    held = await taken(either, steps=["look"])
    with pytest.raises(UnknownStep):
        await either.client.external.step(held.run_id, held.fence, "lok", "running")
    with pytest.raises(Invalid, match="the state of a step must be"):
        await either.client.external.step(held.run_id, held.fence, "look", "pending")


async def test_lines_of_its_log(either: Harness) -> None:
    held = await taken(either)
    external = either.client.external
    await external.logs(held.run_id, held.fence, ["one", {"text": "two", "level": "warning", "logger": "lens"}], no=1)
    await external.logs(held.run_id, held.fence, ["one", "two"], no=1)  # said again
    await external.logs(held.run_id, held.fence, ["three"])
    told = [(line.level, line.logger, line.text) for line in await either.client.logs(held.run_id)]
    assert told == [("info", "external", "one"), ("warning", "lens", "two"), ("info", "external", "three")]


async def test_a_log_that_grows_too_long_loses_its_oldest_lines(database_url: str) -> None:
    async with Harness(url=database_url, log_limit=2_000) as harness:
        held = await taken(harness)
        for number in range(10):
            await harness.client.external.logs(held.run_id, held.fence, [f"{number}" * 500])
        told = [line.text[0] for line in await harness.client.logs(held.run_id) if line.logger != "rota"]
        assert told == ["7", "8", "9"]
        await harness.client.external.complete(held.run_id, held.fence)


async def test_it_is_done(either: Harness) -> None:
    held = await taken(either)
    either.clock.advance(5 * SECOND)
    assert await either.client.external.complete(held.run_id, held.fence, {"labels": 3}) is RunState.SUCCEEDED
    run = await either.run(held.run_id)
    assert (run.state, run.result, run.attempt, run.fence) == (RunState.SUCCEEDED, {"labels": 3}, 1, 1)
    assert run.started_at == either.clock.now() - 5 * SECOND
    assert words(await trail(either.store, held.run_id)) == [
        "created → queued",
        "claimed → running",
        "succeeded → succeeded",
    ]


async def test_a_failure_is_retried_as_its_policy_says(either: Harness) -> None:
    held = await taken(either, backoff=["10m"], max_attempts=2)
    either.clock.advance(SECOND)
    assert await either.client.external.fail(held.run_id, held.fence, "jammed") is RunState.SCHEDULED
    run = await either.run(held.run_id)
    assert run.error == fingerprinted(RunError(type="Failed", message="jammed"))
    assert run.run_at == either.clock.now() + timedelta(minutes=10)
    either.clock.advance(timedelta(minutes=10))
    await either.promoter.step()
    again = await take(either)
    assert await either.client.external.fail(again.run_id, again.fence, "jammed") is RunState.FAILED


async def test_a_failure_may_say_when_or_that_it_is_for_good(either: Harness) -> None:
    held = await taken(either)
    external = either.client.external
    assert await external.fail(held.run_id, held.fence, "busy", after="0s") is RunState.QUEUED
    again = await take(either)
    error = {"type": "Jam", "message": "paper", "code": "E7"}
    assert await external.fail(again.run_id, again.fence, error, retry=False) is RunState.FAILED
    assert (await either.run(held.run_id)).error == fingerprinted(RunError(type="Jam", message="paper", code="E7"))


async def test_the_policy_of_the_run_comes_first(either: Harness) -> None:
    await declare(either, backoff=["10m"])
    await put(either, max_attempts=1)
    held = await take(either)
    assert await either.client.external.fail(held.run_id, held.fence, "jammed") is RunState.FAILED


async def test_a_cancel_is_told_and_acknowledged(either: Harness) -> None:
    held = await taken(either)
    external = either.client.external
    with pytest.raises(NotAsked):
        await external.cancelled(held.run_id, held.fence)
    assert (await either.cancel(held.run_id)).state is RunState.CANCELLING
    assert (await external.heartbeat(held.run_id, held.fence)).cancelling
    assert (await external.progress(held.run_id, held.fence, 1)).cancelling
    assert await external.cancelled(held.run_id, held.fence) is RunState.CANCELLED
    assert await external.cancelled(held.run_id, held.fence) is RunState.CANCELLED


async def test_what_happened_while_it_was_asked_to_stop_is_what_happened(either: Harness) -> None:
    held = await taken(either)
    await either.cancel(held.run_id)
    assert await either.client.external.complete(held.run_id, held.fence) is RunState.SUCCEEDED


async def test_a_failure_while_it_was_asked_to_stop_is_the_end(either: Harness) -> None:
    held = await taken(either)
    await either.cancel(held.run_id)
    assert await either.client.external.fail(held.run_id, held.fence, "jammed") is RunState.CANCELLED
    assert await either.client.external.fail(held.run_id, held.fence, "jammed") is RunState.CANCELLED


@pytest.mark.parametrize("said", ["complete", "fail"])
@pytest.mark.parametrize("again", list(ENDING))
async def test_said_again_it_gets_the_first_answer_and_said_otherwise_none(
    either: Harness, said: str, again: str
) -> None:
    held = await taken(either)
    first = await ENDING[said](either, held.run_id, held.fence)
    before = await everything(either)
    if said == again:
        assert await ENDING[again](either, held.run_id, held.fence) is first
    else:
        with pytest.raises(AlreadyReported):
            await ENDING[again](either, held.run_id, held.fence)
    assert await everything(either) == before


@pytest.mark.parametrize("verb", list(VERBS))
async def test_a_stale_fence_writes_nothing(either: Harness, verb: str) -> None:
    old = await taken(either)
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    again = await take(either)
    before = await everything(either)
    for fence in (old.fence, again.fence + 1):
        with pytest.raises(LeaseLost):
            await VERBS[verb](either, old.run_id, fence)
    assert await everything(either) == before


@pytest.mark.parametrize("verb", list(VERBS))
async def test_a_run_that_is_not_ours(either: Harness, verb: str) -> None:
    held = await taken(either)
    await either.client.external.fail(held.run_id, held.fence, "again", after="0s")
    held = await take(either)
    assert held.fence == 2
    other = await put(either)
    final = await put(either)
    await either.cancel(final)
    before = await everything(either)
    for run_id in (other, final):
        with pytest.raises(LeaseLost):
            await VERBS[verb](either, run_id, held.fence)
    unknown: list[Any] = [new_id(), held.run_id[:13], "", "x" * 5000, "\x00", None]
    for run_id in unknown:
        with pytest.raises(UnknownRun):
            await VERBS[verb](either, run_id, held.fence)
    for fence in (0, -1, 2**31, True, "2", None, 2.0):
        with pytest.raises(Invalid, match="fence"):
            await VERBS[verb](either, held.run_id, fence)  # type: ignore[arg-type]
    assert await everything(either) == before


@pytest.mark.parametrize("verb", list(VERBS))
async def test_once_it_is_final_nothing_is_written(either: Harness, verb: str) -> None:
    held = await taken(either)
    await either.cancel(held.run_id)
    either.clock.advance(timedelta(minutes=2))
    await either.reaper.step()
    assert await either.state(held.run_id) is RunState.CANCELLED
    before = await everything(either)
    with pytest.raises(Conflict, match="is no longer current"):
        await VERBS[verb](either, held.run_id, held.fence)
    assert await everything(either) == before


@pytest.mark.parametrize("verb", list(ENDING))
async def test_what_a_worker_of_ours_holds_is_not_for_others_to_end(either: Harness, verb: str) -> None:
    run = await either.enqueue("own")
    worker = await either.worker("a").claim()
    before = await everything(either)
    with pytest.raises(NotHandedOver):
        await ENDING[verb](either, run.id, worker.fence())
    assert await everything(either) == before
    await worker.finish()


GARBAGE: list[tuple[str, Callable[[Harness, Assignment], Awaitable[Any]]]] = [
    ("max", lambda h, _: h.client.external.claim("a", max=0)),
    ("max", lambda h, _: h.client.external.claim("a", max=101)),
    ("wait", lambda h, _: h.client.external.claim("a", wait="31s")),
    ("queue", lambda h, _: h.client.external.claim("a", queues=[])),
    ("queue", lambda h, _: h.client.external.claim("a", queues=["\x00"])),
    ("job", lambda h, _: h.client.external.claim("a", jobs=[])),
    ("worker", lambda h, _: h.client.external.claim("")),
    ("worker", lambda h, _: h.client.external.claim("@7")),
    ("labels", lambda h, _: h.client.external.claim("a", labels=[1])),  # type: ignore[list-item]
    ("version", lambda h, _: h.client.external.claim("a", version=3)),  # type: ignore[arg-type]
    ("has no option", lambda h, _: h.client.external.claim("a", lables={})),  # type: ignore[call-arg]
    ("fence", lambda h, _: h.client.external.claim("a", held=[("x", 0)])),
    ("percentage", lambda h, a: h.client.external.progress(a.run_id, a.fence, 101)),
    ("percentage", lambda h, a: h.client.external.progress(a.run_id, a.fence, float("nan"))),
    ("result", lambda h, a: h.client.external.complete(a.run_id, a.fence, object())),
    ("result", lambda h, a: h.client.external.complete(a.run_id, a.fence, "x" * 2_000_000)),
    ("result", lambda h, a: h.client.external.step(a.run_id, a.fence, "s", "succeeded", result=object())),
    ("error", lambda h, a: h.client.external.fail(a.run_id, a.fence, "")),
    ("error", lambda h, a: h.client.external.fail(a.run_id, a.fence, 7)),  # type: ignore[arg-type]
    ("error", lambda h, a: h.client.external.fail(a.run_id, a.fence, {"message": "a", "colour": "red"})),
    ("error", lambda h, a: h.client.external.fail(a.run_id, a.fence, {"message": "a", "type": 7})),
    ("negative", lambda h, a: h.client.external.fail(a.run_id, a.fence, "a", after=timedelta(seconds=-1))),
    ("lines", lambda h, a: h.client.external.logs(a.run_id, a.fence, [])),
    ("lines", lambda h, a: h.client.external.logs(a.run_id, a.fence, ["x"] * 1001)),
    ("line", lambda h, a: h.client.external.logs(a.run_id, a.fence, [7])),  # type: ignore[list-item]
    ("level", lambda h, a: h.client.external.logs(a.run_id, a.fence, [{"text": "a", "level": "loud"}])),
    ("no must", lambda h, a: h.client.external.logs(a.run_id, a.fence, ["a"], no=0)),
    ("step", lambda h, a: h.client.external.step(a.run_id, a.fence, "", "running")),
]


async def test_garbage_is_refused_in_words(harness: Harness) -> None:
    held = await taken(harness)
    before = await everything(harness)
    for words_of_it, act in GARBAGE:
        with pytest.raises((Invalid, NotFound), match=words_of_it):
            await act(harness, held)
    assert await everything(harness) == before


async def test_text_that_no_database_takes_is_made_storable(either: Harness) -> None:
    held = await taken(either)
    await either.client.external.logs(held.run_id, held.fence, ["a\x00b\ud800c"])
    await either.client.external.progress(held.run_id, held.fence, 1, "s\x00")
    await either.client.external.fail(held.run_id, held.fence, "bad \x00 \ud800", retry=False)
    assert (await either.run(held.run_id)).error is not None


async def test_declaring_it(harness: Harness) -> None:
    with pytest.raises(Invalid, match="isolation"):
        harness.app.external("a", isolation="process")
    with pytest.raises(Invalid, match="JSON Schema"):
        harness.app.external("a", {"type": "no such type"})
    with pytest.raises(Invalid, match="as an object"):
        harness.app.external("a", "object")  # type: ignore[arg-type]
    job = harness.app.external("a", timeout="1h", description="by hand", notify="mailto:me@example.com")
    assert job.handler.definition == define_data_job("a", "external", {"timeout": "1h", "description": "by hand"})
    assert harness.app.external("a", version=2, steps=["look"]).handler.definition.version == 2
    with pytest.raises(BadPayload, match="positional"):
        await job.aenqueue(1)
    await harness.store.save_jobs(harness.app.registry.definitions())
    run = await job.options(priority=3).aenqueue(anything=[1])
    assert (await harness.run(run)).priority == 3
    assert [one.kind for one in await harness.client.jobs() if one.name == "a"] == ["external"]
    assert await harness.drain() == []


async def test_what_is_counted(harness: Harness) -> None:
    held = await taken(harness)
    await harness.client.external.complete(held.run_id, held.fence)
    with pytest.raises(LeaseLost):
        await harness.client.external.heartbeat(held.run_id, held.fence)
    text = await harness.client.metrics()
    assert 'queue="default",outcome="succeeded"} 1' in text
    assert "rota_reports_refused_total 1" in text
    assert "rota_claimed_runs_total 1" in text


async def test_outcomes_are_those_of_any_attempt(either: Harness) -> None:
    held = await taken(either)
    await either.client.external.fail(held.run_id, held.fence, "a", after="0s")
    assert [attempt.outcome for attempt in await either.attempts(held.run_id)] == [Outcome.FAILED]
