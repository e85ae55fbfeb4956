"""Test pipelines: one run through several workers, each part claimed, ended and fenced on its own."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import Context, LeaseLost, Rota, RunState, Snooze, every
from rota.client.client import Order
from rota.core.runs.run import Overrides, RunFilter
from rota.engine.loops.declare import declare_schedules
from rota.errors import AlreadyReported, BadPayload, Conflict, Invalid
from rota.store import Store, open_database
from rota.testing import Harness
from rota.testing.harness.drain import adrain
from tests.support.jobs import isolated_jobs
from tests.support.runs.audit_trails import trail, words
from tests.support.runs.real_worker import Working
from tests.support.schedules.ledger_oracle import rows

SECOND = timedelta(seconds=1)
PARTS: list[dict[str, Any]] = [
    {"step": "fetch", "job": "fetch"},
    {"step": "label", "job": "label", "payload": {"image": "{steps.fetch.image}", "of": "page {payload.page}"}},
    {"step": "tell", "job": "tell", "payload": {"labels": "{steps.label.labels}"}},
]


async def declare(harness: Harness, parts: list[dict[str, Any]] = PARTS, **options: Any) -> dict[str, int]:
    """Three kinds: a function, one outside, a function again. Returns how often each function was called."""
    calls = {"fetch": 0, "tell": 0}

    @harness.app.job(name="fetch")
    async def fetch(page: int) -> dict[str, Any]:
        calls["fetch"] += 1
        return {"image": f"{page}.png", "size": 3}

    harness.app.external("label", max_attempts=9)

    @harness.app.job(name="tell")
    async def tell(labels: list[str]) -> str:
        calls["tell"] += 1
        return " and ".join(labels)

    harness.app.pipeline("publish", parts, **{"backoff": "1s", **options})
    await harness.store.save_jobs(harness.app.registry.definitions())
    return calls


async def put(harness: Harness, **options: Any) -> str:
    return (await harness.client.enqueue(Order("publish", {"page": 7}, options))).id


async def steps(harness: Harness, run: str) -> dict[str, str]:
    return {step.id: step.state.value for step in await harness.client.steps(run)}


async def waits_for(harness: Harness, run: str) -> tuple[str, str, int, int]:
    ((job, queue, fence, attempt),) = await rows(
        harness.store, f"select job, queue, fence, attempt from rota_ready where run_id = '{run}'"
    )
    return job, queue, fence, attempt


async def labelled(harness: Harness) -> Any:
    (mine,) = await harness.client.external.claim("scanner")
    return mine


async def test_each_part_is_done_by_whoever_knows_its_job(either: Harness) -> None:
    calls = await declare(either)
    run = await put(either)
    assert await waits_for(either, run) == ("fetch", "default", 0, 0)
    await either.drain()
    assert await waits_for(either, run) == ("label", "default", 1, 0)
    assert await steps(either, run) == {"fetch": "succeeded", "label": "pending", "tell": "pending"}
    mine = await labelled(either)
    assert (mine.run_id, mine.job, mine.fence, mine.attempt) == (run, "label", 2, 1)
    assert mine.payload == {"image": "7.png", "of": "page 7"}
    assert mine.steps == {}
    assert await steps(either, run) == {"fetch": "succeeded", "label": "running", "tell": "pending"}
    state = await either.client.external.complete(run, mine.fence, {"labels": ["cat", "dog"]})
    assert state is RunState.QUEUED
    await either.drain()
    ended = await either.run(run)
    assert (ended.state, ended.result, ended.fence, ended.attempt) == (RunState.SUCCEEDED, "cat and dog", 3, 1)
    assert ended.job == "publish"
    assert ended.payload == {"page": 7}
    assert next(step.result for step in await either.client.steps(run)) == {"image": "7.png", "size": 3}
    assert calls == {"fetch": 1, "tell": 1}


async def test_a_program_is_a_part_too(database_url: str) -> None:
    async with Harness(url=database_url, enable_command=True) as harness:
        say = [sys.executable, "-c", "print('hello', '{payload.name}')"]
        harness.app.command_job("say", say)
        await declare(harness, [PARTS[0], {"step": "say", "job": "say", "payload": {"name": "{steps.fetch.image}"}}])
        run = await put(harness)
        await harness.drain()
        assert await harness.state(run) is RunState.SUCCEEDED
        assert "hello 7.png" in [line.text for line in await harness.client.logs(run)]


async def at_label(harness: Harness, **options: Any) -> tuple[str, Any]:
    await declare(harness, **options)
    run = await put(harness)
    await harness.drain()
    return run, await labelled(harness)


async def test_a_zombie_of_a_part_that_is_over_writes_nothing(either: Harness) -> None:
    await declare(either)
    run = await put(either)
    zombie = await either.worker("a").claim()
    await zombie.finish(run, {"image": "x.png"})
    await zombie.finish(run, {"image": "again"})  # the first answer
    mine = await labelled(either)
    with pytest.raises(LeaseLost):
        await zombie.fail(run)
    with pytest.raises(LeaseLost):
        await zombie.step("late", 1)
    await zombie.finish(run, {"image": "again"})
    assert mine.payload["image"] == "x.png"
    assert await steps(either, run) == {"fetch": "succeeded", "label": "running", "tell": "pending"}
    assert (await either.run(run)).fence == 2


async def test_a_lease_that_is_lost_does_not_repeat_earlier_parts(either: Harness) -> None:
    await declare(either)
    run = await put(either)
    lost = await either.worker("a").claim()
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    with pytest.raises(LeaseLost):
        await lost.finish(run, {"image": "lost"})
    assert await waits_for(either, run) == ("fetch", "default", 2, 1)
    await (await either.worker("b").claim()).finish(run, {"image": "b.png"})
    mine = await labelled(either)
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    assert await waits_for(either, run) == ("label", "default", 5, 2)
    assert await steps(either, run) == {"fetch": "succeeded", "label": "pending", "tell": "pending"}
    with pytest.raises(LeaseLost):
        await either.client.external.complete(run, mine.fence, {"labels": []})
    assert (await labelled(either)).payload["image"] == "b.png"


async def test_an_end_said_twice_gets_the_first_answer(either: Harness) -> None:
    run, mine = await at_label(either)
    for _ in range(2):
        assert await either.client.external.complete(run, mine.fence, {"labels": ["a"]}) is RunState.QUEUED
    with pytest.raises(AlreadyReported):
        await either.client.external.fail(run, mine.fence, "no")
    await either.drain()
    assert (await either.run(run)).result == "a"


async def test_attempts_are_those_of_the_run(either: Harness) -> None:
    """Advancing costs none; failures of all parts together may be as many as the pipeline says."""
    run, mine = await at_label(either, max_attempts=2)
    assert await either.client.external.fail(run, mine.fence, "jammed") is RunState.SCHEDULED
    assert await steps(either, run) == {"fetch": "succeeded", "label": "failed", "tell": "pending"}
    either.clock.advance(2 * SECOND)
    await either.promoter.step()
    assert await waits_for(either, run) == ("label", "default", 2, 1)
    again = await labelled(either)
    assert (again.attempt, again.max_attempts) == (2, 2)
    await either.client.external.complete(run, again.fence, {"labels": []})
    hand = await either.worker("a").claim()
    assert hand.claims[run].attempt == 2
    await hand.fail(run)
    ended = await either.run(run)
    assert (ended.state, ended.attempt) == (RunState.FAILED, 2)
    outcomes = [one.outcome and one.outcome.value for one in await either.attempts(run)]
    assert outcomes == ["succeeded", "failed", "succeeded", "failed"]


async def test_a_part_that_cannot_be_given_what_it_takes_fails_at_once(either: Harness) -> None:
    await declare(either)
    run = await put(either)
    await (await either.worker("a").claim()).finish(run, {"no": "image"})
    assert await either.client.external.claim("scanner") == []
    ended = await either.run(run)
    assert ended.state is RunState.FAILED
    assert ended.error is not None
    assert "steps.fetch.image" in ended.error.message


@pytest.mark.parametrize("at", ["waiting", "running", "between", "last"])
async def test_cancel_in_each_phase(either: Harness, at: str) -> None:
    await declare(either)
    run = await put(either)
    if at == "waiting":
        assert (await either.cancel(run)).state is RunState.CANCELLED
        assert await steps(either, run) == {"fetch": "skipped", "label": "skipped", "tell": "skipped"}
        return
    hand = await either.worker("a").claim()
    if at == "running":
        assert (await either.cancel(run)).state is RunState.CANCELLING
        for _ in range(2):
            await hand.finish(run, {"image": "a"})  # the part is done, and nothing after it
        assert await steps(either, run) == {"fetch": "succeeded", "label": "skipped", "tell": "skipped"}
        assert words(await trail(either.store, run))[-1] == "cancelled → cancelled"
    else:
        await hand.finish(run, {"image": "a"})
        if at == "between":
            assert (await either.cancel(run)).state is RunState.CANCELLED
        else:
            mine = await labelled(either)
            await either.client.external.complete(run, mine.fence, {"labels": ["x"]})
            last = await either.worker("b").claim()
            assert (await either.cancel(run)).state is RunState.CANCELLING
            await last.finish(run, "told")
            assert await either.state(run) is RunState.SUCCEEDED
            return
    assert await either.state(run) is RunState.CANCELLED
    assert await either.client.external.claim("scanner") == []


async def test_paused_none_of_its_parts_is_claimed(either: Harness) -> None:
    await declare(either)
    run = await put(either)
    other = await either.enqueue("fetch", page=1)
    await either.client.pause_job("publish")
    hand = await either.worker("a").claim(5)
    assert set(hand.claims) == {other.id}
    await hand.finish(other.id)
    assert await waits_for(either, run) == ("publish", "default", 2, 0)
    assert await steps(either, run) == {"fetch": "pending", "label": "pending", "tell": "pending"}
    late = await put(either)
    assert (await waits_for(either, late))[0] == "publish"
    await either.client.resume_job("publish")
    assert (await waits_for(either, run))[0] == (await waits_for(either, late))[0] == "fetch"
    await either.drain()
    assert (await waits_for(either, run))[0] == "label"


async def test_a_paused_job_holds_back_only_its_part(either: Harness) -> None:
    await declare(either)
    run = await put(either)
    await either.client.pause_job("label")
    await either.drain()
    assert await waits_for(either, run) == ("label", "default", 1, 0)
    assert await either.client.external.claim("scanner") == []
    told = await either.client.explain(run)
    assert "It is at step 'label', 2 of 3, which is job 'label'." in told.words
    assert any("'label' is paused" in word for word in told.words)
    await either.client.resume_job("label")
    assert (await labelled(either)).run_id == run


async def test_cancelling_the_job_of_a_part_leaves_pipelines_alone(either: Harness) -> None:
    await declare(either)
    run, other = await put(either), await either.enqueue("fetch", page=1)
    assert (await either.store.cancel_job("fetch", None, None)).total == 1
    assert [await either.state(one) for one in (run, other)] == [RunState.QUEUED, RunState.CANCELLED]
    assert (await either.store.cancel_job("publish", None, None)).total == 1
    assert await either.state(run) is RunState.CANCELLED


async def test_handed_back_and_snoozed_it_is_at_the_same_part(either: Harness) -> None:
    await declare(either)
    run = await put(either)
    hand = await either.worker("a").claim()
    await hand.hand_back(run)
    assert await waits_for(either, run) == ("fetch", "default", 2, 0)
    again = await either.worker("b").claim()
    await again.fail(run, Snooze("5s"))
    assert await waits_for(either, run) == ("fetch", "default", 3, 0)
    assert await either.state(run) is RunState.SCHEDULED


async def test_it_waits_in_the_queue_of_its_part_unless_it_has_one(either: Harness) -> None:
    either.app.job(name="slow", queue="slowly")(lambda **_: None)
    await declare(either, [{"step": "a", "job": "slow"}, {"step": "b", "job": "fetch"}], priority=3)
    run, own = await put(either), await put(either, queue="mine")
    assert [(await waits_for(either, one))[1] for one in (run, own)] == ["slowly", "mine"]
    hand = await either.worker("a", queues=["slowly", "mine"]).claim(2)
    for one in (run, own):
        await hand.finish(one)
    assert [(await waits_for(either, one))[:2] for one in (run, own)] == [("fetch", "default"), ("fetch", "mine")]


async def test_its_limits_count_what_is_being_done(either: Harness) -> None:
    await declare(either, max_concurrency=1)
    first, second = await put(either), await put(either)
    hand = await either.worker("a").claim(5)
    assert list(hand.claims) == [first]
    either.clock.advance(SECOND)
    await hand.finish(first, {"image": "1"})
    mine = await labelled(either)
    assert mine.run_id == first
    assert not (await either.worker("b").claim(5)).claims
    await either.client.external.complete(first, mine.fence, {"labels": []})
    third = await either.worker("c").claim(5)
    assert list(third.claims) == [first]  # it keeps its place
    await third.finish(first)
    assert list((await either.worker("d").claim(5)).claims) == [second]


async def test_steps_inside_a_part_are_its_own(either: Harness) -> None:
    calls: list[str] = []

    @either.app.job(name="twice")
    async def twice(ctx: Context, page: int) -> str:
        async def look() -> str:
            calls.append(ctx.idempotency_key)
            return f"{len(calls)}"

        found = await ctx.step("second", look)
        if len(calls) == 1 and ctx.attempt == 1:
            raise RuntimeError("once more")
        return found

    either.app.pipeline("both", [{"step": "first", "job": "twice"}, {"step": "second", "job": "twice"}], backoff="1s")
    await either.store.save_jobs(either.app.registry.definitions())
    run = (await either.client.enqueue(Order("both", {"page": 1}, {}))).id
    await either.drain()
    either.clock.advance(2 * SECOND)
    await either.promoter.step()
    await either.drain()
    assert (await either.run(run)).result == "2"
    assert calls == [f"{run}:first", f"{run}:second"]
    found = {step.id: step.result for step in await either.client.steps(run)}
    assert found == {"first": "1", "second": "2", "first/second": "1", "second/second": "2"}


async def test_a_retry_begins_with_the_first_part_that_is_not_done(either: Harness) -> None:
    run, mine = await at_label(either, max_attempts=1)
    await either.client.external.fail(run, mine.fence, "jammed")
    kept = await either.client.retry(run, keep_steps=True)
    assert (await waits_for(either, kept.id))[0] == "label"
    again = await labelled(either)
    assert again.payload["image"] == "7.png"
    assert again.idempotency_key == f"{run}:label"
    await either.client.external.complete(kept.id, again.fence, {"labels": ["b"]})
    await either.drain()
    assert (await either.run(kept.id)).result == "b"
    with pytest.raises(Conflict, match="every part"):
        await either.client.retry(kept.id, keep_steps=True)
    from_label = await either.client.retry(kept.id, from_step="label")
    assert (await waits_for(either, from_label.id))[0] == "label"
    anew = await either.client.retry(run)
    assert (await waits_for(either, anew.id))[0] == "fetch"


async def test_a_part_may_end_with_a_transaction_of_its_own(either: Harness) -> None:
    @either.app.job(name="sealed")
    async def sealed(ctx: Context, page: int) -> None:
        async with ctx.transaction() as tx:
            tx.finish({"page": page + 1})

    await declare(either, [{"step": "a", "job": "sealed"}, {"step": "b", "job": "sealed", "payload": "{steps.a}"}])
    run = await put(either)
    await either.drain()
    ended = await either.run(run)
    assert (ended.state, ended.result, ended.fence) == (RunState.SUCCEEDED, {"page": 9}, 2)


async def test_a_handler_may_wait_for_a_step_of_its_part(either: Harness) -> None:
    @either.app.job(name="ask")
    async def ask(ctx: Context, page: int) -> str:
        return f"{page}: {await ctx.wait_for_external('1d', step='yes')}"

    await declare(either, [{"step": "yes", "job": "ask"}, {"step": "two", "job": "ask", "payload": {"page": 2}}])
    run = await put(either)
    for fence in (1, 3):
        await either.drain()
        assert await either.state(run) is RunState.WAITING
        assert await either.client.external.complete(run, fence, "fine") is RunState.QUEUED
    await either.drain()
    assert (await either.run(run)).result == "2: fine"
    assert list(await steps(either, run)) == ["yes", "two", "yes/yes", "two/yes"]


async def test_a_handler_may_hand_its_part_over(either: Harness) -> None:
    await declare(either)
    run = await put(either)
    hand = await either.worker("a").claim()
    await hand.wait_for_external("1h", run=run)
    assert await either.state(run) is RunState.WAITING
    assert await either.client.external.complete(run, hand.fence(run), {"image": "theirs"}) is RunState.QUEUED
    assert (await labelled(either)).payload["image"] == "theirs"


async def test_many_are_retried_at_once(either: Harness) -> None:
    run, mine = await at_label(either, max_attempts=1)
    await either.client.external.fail(run, mine.fence, "jammed")
    await either.client.retry_many(RunFilter(job="publish"))
    await either.drain()
    again = await labelled(either)
    assert (again.payload["image"], again.idempotency_key) == ("7.png", f"{run}:label")


async def test_a_part_has_the_time_that_the_pipeline_gives_it(either: Harness) -> None:
    await declare(either, timeout="5m")
    run = await put(either, max_attempts=7)
    (mine,) = (await either.worker("a").claim()).claims.values()
    own = msgspec.json.decode(mine.overrides or "", type=Overrides)
    assert (own.timeout, own.retry and own.retry.max_attempts, mine.max_attempts) == (timedelta(minutes=5), 7, 7)
    assert mine.run_id == run


async def test_needs_are_those_of_the_pipeline(either: Harness) -> None:
    await declare(either, labels=["gpu"])
    run = await put(either)
    assert not (await either.worker("a").claim()).claims
    hand = await either.worker("b", labels=["gpu"]).claim()
    assert hand.claims[run].part == "fetch"
    await hand.hand_back(run)


async def test_it_is_counted_as_one_run(either: Harness, working: Callable[..., Awaitable[Working]]) -> None:
    twice = {"step": "again", "job": "fetch", "payload": {"page": "{steps.fetch.size}"}}
    calls = await declare(either, [PARTS[0], twice])
    run = await put(either)
    worker = await working(either)
    ended = await worker.has_state(run, RunState.SUCCEEDED)
    await worker.stop()
    assert (ended.result, calls["fetch"]) == ({"image": "3.png", "size": 3}, 2)
    told, chain = await either.client.metrics(), 'job="publish",queue="default"'
    assert f'rota_runs_total{{{chain},status="succeeded"}} 1' in told
    assert f'rota_attempts_total{{{chain},outcome="succeeded"}} 2' in told
    assert f'rota_attempts_total{{{chain},outcome="snoozed"}} 0' in told


async def test_the_trail_tells_each_advance(either: Harness) -> None:
    run, mine = await at_label(either)
    await either.client.external.complete(run, mine.fence, {"labels": []})
    await either.drain()
    events = await trail(either.store, run)
    assert words(events) == [
        "created → queued", "claimed → running", "advanced → queued", "claimed → running", "advanced → queued",
        "claimed → running", "succeeded → succeeded",
    ]  # fmt: skip
    advanced = [event for event in events if event.type == "advanced"]
    assert [(event.fence, event.details["step"], event.details["next"]) for event in advanced] == [
        (1, "fetch", "label"),
        (2, "label", "tell"),
    ]
    assert str(advanced[1].actor).startswith("scanner@")


async def test_schedules_make_them_too(either: Harness) -> None:
    await declare(either)
    either.app.schedule("nightly", "publish", every("1h"), payload={"page": 3})
    await declare_schedules(either.store, either.app.registry.schedules)
    either.clock.advance(timedelta(hours=2))
    await either.planner.step()
    await either.drain()
    assert (await labelled(either)).payload["of"] == "page 3"


async def test_one_that_was_skipped_has_its_parts_when_it_is_retried(either: Harness) -> None:
    await declare(either)
    either.app.schedule("nightly", "publish", every("1h"), payload={"page": 3})
    await declare_schedules(either.store, either.app.registry.schedules)
    either.clock.advance(timedelta(hours=2))
    await either.planner.step()
    either.clock.advance(timedelta(hours=1))
    await either.planner.step()
    skipped = next(run for run in await either.client.list() if run.state is RunState.SKIPPED)
    retried = (await either.client.retry(skipped.id)).id
    assert (await waits_for(either, retried))[0] == "fetch"
    await either.drain()
    assert await steps(either, retried) == {"fetch": "succeeded", "label": "pending", "tell": "pending"}


async def test_nothing_is_left_of_it_when_it_is_pruned(either: Harness) -> None:
    await declare(either, keep=0, keep_for="1s")
    run = await put(either)
    await either.cancel(run)
    either.clock.advance(timedelta(days=60))
    for _ in range(3):
        await either.janitor.step()
    assert await rows(either.store, "select run_id from rota_stage") == []


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([], "1 to 100 parts"),
        ([{"step": "a", "job": "x"}] * 2, "twice"),
        ([{"step": "a/b", "job": "x"}], "letters"),
        ([{"step": "a", "job": "me"}], "itself"),
        ([{"step": "a", "job": "pipe"}], "is a pipeline"),
        ([{"step": "a"}], "needs a step and a job"),
        ([{"step": "a", "job": "x", "paylod": {}}], "paylod"),
        ([{"step": "a", "job": "x", "payload": {"n": "{steps.b.x}"}}, {"step": "b", "job": "x"}], "no step before"),
        ([{"step": "a", "job": "x", "payload": {"n": "{steps}"}}], "unknown placeholder"),
        ([{"step": "a", "job": "x", "payload": 7}], "must be an object"),
    ],
)
async def test_what_cannot_be_is_refused_when_it_is_declared(harness: Harness, parts: Any, said: str) -> None:
    harness.app.pipeline("pipe", [{"step": "one", "job": "x"}])
    with pytest.raises(Invalid, match=said):
        harness.app.pipeline("me", parts)


async def test_what_is_a_part_cannot_become_a_pipeline(harness: Harness) -> None:
    harness.app.pipeline("pipe", [{"step": "one", "job": "x"}])
    with pytest.raises(Invalid, match="is a part of"):
        harness.app.pipeline("x", [{"step": "one", "job": "y"}])
    with pytest.raises(Invalid, match="replaced"):
        harness.app.pipeline("z", [{"step": "one", "job": "y"}], unique={"on_conflict": "replace"})
    with pytest.raises(Invalid, match="isolation"):
        harness.app.pipeline("z", [{"step": "one", "job": "y"}], isolation="process")


async def test_the_payload_has_what_its_parts_take(either: Harness) -> None:
    await declare(either)
    with pytest.raises(BadPayload, match="page"):
        await either.client.enqueue(Order("publish", {}, {}))


async def test_parts_in_processes_of_their_own(database_url: str) -> None:
    """Under the real clock, which is the only one that a process can share: steps, and an end in a transaction."""
    store = Store(open_database(database_url))
    await store.migrate()
    await store.database.transact(lambda tx: tx.script("create table account (name text, cents integer)"))
    app = Rota(database_url)
    for handler in (isolated_jobs.pay, isolated_jobs.two_steps):
        app.job(isolation="process")(handler)
    nothing: dict[str, Any] = {}
    jobs = [("first", "pay"), ("steps", "two_steps"), ("last", "pay")]
    app.pipeline("all", [{"step": step, "job": job, "payload": nothing} for step, job in jobs])
    client = await app.connect()
    run = await client.enqueue(Order("all", {}))
    for _ in range(5):
        await adrain(app)
    assert (await client.get(run.id)).result == "paid"
    found = {step.id: step.result for step in await client.steps(run.id)}
    assert found == {"first": "paid", "steps": [1, 2], "last": "paid", "steps/one": 1, "steps/two": 2}
    assert len(await rows(store, "select name from account")) == 2
    await app.aclose()
    await store.close()
