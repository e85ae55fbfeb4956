"""Test runs with replicas: one for each worker name, and an end that depends on theirs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest

from rota import Fail, Retry, Rota, cron
from rota.client.client import Order
from rota.core.runs.claim import SUSPECTS, RestrictedRequest
from rota.core.runs.run import Enqueued, RunFilter
from rota.core.states import RunState
from rota.core.workers.replicas import Replica
from rota.core.workers.requirements import met_by
from rota.engine.loops.replica_conductor import ReplicaConductor
from rota.errors import Conflict, Invalid, UnknownRun
from rota.store import Store, open_database
from rota.store.databases.database import Tx
from rota.store.runs.read import RetryFacts
from rota.store.workers import replica_parents
from rota.store.workers.replicas import reserve
from rota.testing import Harness
from rota.testing.harness.manual_worker import HandWorker
from tests.support.clock import MINUTE, SECOND
from tests.support.runs.real_worker import Working
from tests.support.wait import until_blocked

Start = Callable[..., Awaitable[Working]]
S = RunState


async def conduct(harness: Harness) -> None:
    while await harness.conductor.step() == timedelta(0):
        pass


async def begun(harness: Harness, **options: object) -> Enqueued:
    """A run of a job with these options, and its replicas."""
    await harness.declare("install", **options)
    run = await harness.enqueue("install")
    await conduct(harness)
    return run


async def replicas(harness: Harness, run: Enqueued) -> list[Replica]:
    return list(await harness.client.replicas(run.id))


async def states(harness: Harness, run: Enqueued) -> list[str]:
    return sorted(one.state.value for one in await replicas(harness, run) if one.counts)


async def claimed(harness: Harness, name: str) -> HandWorker:
    worker = harness.worker(name)
    await worker.heartbeat()
    return await worker.claim(10)


async def only(worker: HandWorker) -> str:
    (run_id,) = worker.claims
    return run_id


async def test_each_of_so_many_workers_does_it_once(either: Harness) -> None:
    run = await begun(either, replicas=3)
    assert await either.state(run) is S.WAITING
    assert await states(either, run) == ["queued", "queued", "queued"]
    for name in ("a", "b", "c"):
        worker = await claimed(either, name)
        assert len(worker.claims) == 1
        assert (await claimed(either, name)).claims == {}
        await worker.finish(result={"by": name})
        await conduct(either)
    done = await either.run(run)
    assert done.state is S.SUCCEEDED
    assert done.result == {"replicas": {"a": {"by": "a"}, "b": {"by": "b"}, "c": {"by": "c"}}}
    assert (await either.client.progress(run.id)).percentage == 100.0


async def test_replicas_are_runs_of_their_own(either: Harness) -> None:
    await either.declare("install", replicas=2, max_attempts=4)
    run = await either.enqueue("install", {"priority": 7, "tags": ["t"], "scope": ("tenant", "x"), "key": "k"}, page=3)
    await conduct(either)
    parent = await either.run(run)
    for replica in await replicas(either, run):
        child = await either.run(replica.run_id)
        assert child.parent_id == run.id
        assert (child.payload, child.priority, child.tags, child.scope) == ({"page": 3}, 7, ("t",), parent.scope)
        assert (child.key, child.schedule, child.max_attempts) == (None, None, 4)


async def test_not_before_its_time(either: Harness) -> None:
    await either.declare("install", replicas=1)
    run = await either.enqueue("install", {"delay": "1m"})
    await conduct(either)
    assert (await either.state(run), await replicas(either, run)) == (S.SCHEDULED, [])
    either.clock.advance(MINUTE)
    await conduct(either)
    assert await either.state(run) is S.WAITING


async def test_not_while_its_job_is_paused(either: Harness) -> None:
    await either.declare("install", replicas=1)
    run = await either.enqueue("install")
    await either.client.pause_job("install")
    await conduct(either)
    assert await either.state(run) is S.SCHEDULED
    await either.client.resume_job("install")
    await conduct(either)
    assert await either.state(run) is S.WAITING


async def test_a_failed_attempt_is_tried_again_by_the_same_worker(either: Harness) -> None:
    run = await begun(either, replicas=2)
    worker = await claimed(either, "a")
    await worker.fail(error=Retry(after=SECOND))
    either.clock.advance(2 * SECOND)
    await either.promoter.step()
    other = await claimed(either, "b")
    assert other.claims.keys() != worker.claims.keys()
    again = await claimed(either, "a")
    assert again.claims.keys() == worker.claims.keys()
    assert await states(either, run) == ["running", "running"]


async def test_a_worker_whose_heart_stops_is_replaced_by_another(either: Harness) -> None:
    run = await begun(either, replicas=1)
    zombie = await claimed(either, "a")
    assert (await claimed(either, "b")).claims == {}
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    other = await claimed(either, "b")
    assert other.claims.keys() == zombie.claims.keys()
    await other.finish()
    await conduct(either)
    assert (await either.run(run)).result == {"replicas": {"b": None}}


async def test_one_that_is_handed_back_is_anybodys(either: Harness) -> None:
    await begun(either, replicas=1)
    first = await claimed(either, "a")
    await first.hand_back()
    assert (await claimed(either, "b")).claims.keys() == first.claims.keys()


async def test_one_failure_too_many_ends_it_and_stops_the_others(either: Harness) -> None:
    run = await begun(either, replicas=3)
    failing, running = await claimed(either, "a"), await claimed(either, "b")
    await failing.fail(error=Fail("no room"))
    await conduct(either)
    assert await states(either, run) == ["cancelled", "cancelling", "failed"]
    assert await either.state(run) is S.WAITING
    await running.cancelled()
    await conduct(either)
    ended = await either.run(run)
    assert ended.state is S.FAILED
    assert ended.error is not None
    assert "a: " in ended.error.message
    assert "no room" in ended.error.message


async def test_as_many_failures_as_are_allowed_are_made_up_for_by_others(either: Harness) -> None:
    run = await begun(either, replicas={"count": 2, "allowed_failures": 1})
    await (await claimed(either, "a")).fail(error=Fail("no"))
    await conduct(either)
    assert await states(either, run) == ["failed", "queued", "queued"]
    assert (await claimed(either, "a")).claims == {}
    for name in ("b", "c"):
        await (await claimed(either, name)).finish()
    await conduct(either)
    done = await either.run(run)
    assert done.state is S.SUCCEEDED
    assert done.result["replicas"] == {"b": None, "c": None}
    assert list(done.result["failed"]) == ["a"]


async def test_all_are_those_that_are_alive_then(either: Harness) -> None:
    await either.declare("install", replicas="all")
    run = await either.enqueue("install")
    await conduct(either)
    assert await either.state(run) is S.SCHEDULED  # nobody is there
    told = await either.client.explain(run.id)
    assert any("No worker is alive" in words for words in told.words)
    for name in ("a", "b"):
        await either.worker(name).heartbeat()
    await either.worker("elsewhere", queues=["mail"]).heartbeat()
    await conduct(either)
    late = await claimed(either, "late")
    assert late.claims == {}
    assert [(one.worker, one.bound) for one in await replicas(either, run)] == [("a", True), ("b", True)]
    for name in ("a", "b"):
        await (await claimed(either, name)).finish()
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED


async def test_all_are_those_that_meet_its_needs(either: Harness) -> None:
    await either.declare("install", replicas="all", labels=["gpu"])
    run = await either.enqueue("install")
    await either.worker("web").heartbeat()
    await either.worker("gpu-1", labels=["gpu"]).heartbeat()
    await conduct(either)
    assert [one.worker for one in await replicas(either, run)] == ["gpu-1"]


async def test_one_of_all_waits_for_its_worker_until_that_is_absent_for_too_long(either: Harness) -> None:
    await either.declare("install", replicas={"all": True, "absent_after": "5m"})
    await either.worker("a").heartbeat()
    run = await either.enqueue("install")
    await conduct(either)
    await claimed(either, "a")
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    assert (await claimed(either, "b")).claims == {}
    either.clock.advance(4 * MINUTE)
    await conduct(either)
    assert await states(either, run) == ["queued"]
    again = await claimed(either, "a")  # it is back
    assert len(again.claims) == 1
    await again.hand_back()
    either.clock.advance(6 * MINUTE)
    await conduct(either)
    (gone,) = await replicas(either, run)
    assert (gone.state, gone.error) == (S.EXPIRED, "WorkerGone: worker a is gone")
    assert await either.state(run) is S.FAILED


@pytest.mark.parametrize("limited", [False, True])
async def test_one_that_is_to_be_tried_again_goes_to_others_if_its_worker_stays_away(
    either: Harness, *, limited: bool
) -> None:
    if limited:
        await either.client.quotas.update("tenant", "x", max_concurrency=1)
    await either.declare("install", replicas=1, max_attempts=2)
    run = await either.enqueue("install", {"scope": ("tenant", "x")})
    await conduct(either)
    await (await claimed(either, "a")).fail()
    either.clock.advance(4 * MINUTE)
    await either.promoter.step()
    await conduct(either)
    assert (await claimed(either, "b")).claims == {}
    either.clock.advance(2 * MINUTE)
    await conduct(either)
    other = await claimed(either, "b")
    assert len(other.claims) == 1
    assert (await claimed(either, "a")).claims == {}, "somebody else has it now"
    await other.finish()
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED


async def test_absent_workers_are_looked_for_in_turn(either: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one run at a time here: each look goes on where the last one ended."""
    monkeypatch.setattr(replica_parents, "_WATCHED", 1)
    await either.declare("install", replicas={"all": True, "absent_after": "5m"})
    await either.worker("a").heartbeat()
    runs = [await either.enqueue("install") for _ in range(3)]
    await either.conductor.step()
    either.clock.advance(6 * MINUTE)
    ended = []
    for _ in range(4):
        await either.store.conducts.step(absent=True)
        states_now = [state for run in runs for state in await states(either, run)]
        ended.append(states_now.count("expired"))
    assert ended == [1, 2, 3, 3]


async def test_needs_hold_for_replicas(either: Harness) -> None:
    await begun(either, replicas=2, only_workers=["a", "b"])
    assert (await claimed(either, "c")).claims == {}
    assert len((await claimed(either, "a")).claims) == 1


async def test_one_that_must_not_begin_again_has_failed_with_its_worker(either: Harness) -> None:
    run = await begun(either, replicas={"count": 1, "allowed_failures": 1}, on_lost="fail")
    await claimed(either, "a")
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    await conduct(either)
    assert await states(either, run) == ["expired", "queued"]
    assert (await claimed(either, "a")).claims == {}
    assert len((await claimed(either, "b")).claims) == 1


async def test_by_priority_replicas_and_runs_with_needs_stand_in_one_line(either: Harness) -> None:
    await either.declare("install", replicas=1)
    low = await either.enqueue("other", {"labels": ["gpu"]})
    parent = await either.enqueue("install", {"priority": 5})
    await conduct(either)
    worker = either.worker("a", labels=["gpu"])
    await worker.claim(1)
    assert [(await either.run(id)).parent_id for id in worker.claims] == [parent.id]
    await worker.claim(1)
    assert list(worker.claims)[-1] == low.id


# Cancel


async def test_cancelled_it_ends_with_the_last_of_its_replicas(either: Harness) -> None:
    run = await begun(either, replicas=2)
    worker = await claimed(either, "a")
    assert (await either.client.cancel(run.id, actor="ops")).state is S.CANCELLING
    assert (await claimed(either, "b")).claims == {}  # none begins any more
    await conduct(either)
    assert await states(either, run) == ["cancelled", "cancelling"]
    assert await either.state(run) is S.CANCELLING
    await worker.cancelled()
    await conduct(either)
    ended = await either.run(run)
    assert (ended.state, ended.cancelled_by) == (S.CANCELLED, "ops")


async def test_cancelled_twice_it_is_cancelled_once(either: Harness) -> None:
    run = await begun(either, replicas=1)
    for actor in ("ann", "bob"):
        assert (await either.client.cancel(run.id, actor=actor)).state is S.CANCELLING
    await conduct(either)
    assert (await either.run(run)).cancelled_by == "ann"
    told = [event.type for event in await either.client.events(run.id)]
    assert told == ["created", "conducts", "cancel_asked", "cancelled"]
    assert (await either.client.cancel(run.id)).state is S.CANCELLED


async def test_what_cannot_be_cancelled_runs_to_its_end(either: Harness) -> None:
    run = await begun(either, replicas=2, cancellable=False, max_attempts=1)
    failing, running = await claimed(either, "a"), await claimed(either, "b")
    await failing.fail()
    await conduct(either)
    assert await states(either, run) == ["failed", "running"]
    await running.finish()
    await conduct(either)
    assert await either.state(run) is S.FAILED


async def test_cancelled_when_all_have_succeeded_it_has_succeeded(either: Harness) -> None:
    run = await begun(either, replicas=1)
    await (await claimed(either, "a")).finish()
    await either.cancel(run)
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED


async def test_cancelled_before_it_is_due_it_has_no_replicas(either: Harness) -> None:
    await either.declare("install", replicas=2)
    run = await either.enqueue("install", {"delay": "1m"})
    assert (await either.cancel(run)).state is S.CANCELLED
    assert await replicas(either, run) == []


async def test_bulk_cancels_and_cancels_of_jobs_know_it(either: Harness) -> None:
    run = await begun(either, replicas=2)
    await either.client.cancel_many(RunFilter(states=(S.WAITING,)))
    assert await either.state(run) is S.CANCELLING
    other = await either.enqueue("install")
    await conduct(either)
    await either.client.cancel_job("install")
    await conduct(either)
    assert [await either.state(one) for one in (run, other)] == [S.CANCELLED, S.CANCELLED]


# Published again


async def test_published_again_it_may_clear_what_failed(either: Harness) -> None:
    options = {"key": "v7", "unique": {"clear": ["failed"]}}
    await either.declare("install", replicas={"count": 2, "allowed_failures": 2})
    run = await either.enqueue("install", options)
    await conduct(either)
    await (await claimed(either, "a")).fail(error=Fail("no"))
    await (await claimed(either, "b")).finish()
    await conduct(either)
    assert (await claimed(either, "a")).claims == {}
    again = await either.enqueue("install", options)
    assert (again.id, again.created) == (run.id, False)
    await conduct(either)
    assert await states(either, run) == ["queued", "succeeded"]
    await (await claimed(either, "a")).finish()
    await conduct(either)
    assert (await either.run(run)).result == {"replicas": {"a": None, "b": None}}


async def test_published_again_it_may_clear_everything_that_is_over(either: Harness) -> None:
    options = {"key": "v7", "unique": {"clear": ["failed", "succeeded"]}}
    await either.declare("install", replicas=2)
    run = await either.enqueue("install", options)
    await conduct(either)
    await (await claimed(either, "a")).finish()
    await conduct(either)
    prepared = await either.client.prepare(Order("install", {}, options))
    await either.store.enqueue([prepared])
    await conduct(either)
    assert await states(either, run) == ["queued", "queued"]
    await (await claimed(either, "a")).finish()
    await either.store.enqueue([prepared])  # the same, after an unknown outcome
    await conduct(either)
    assert await states(either, run) == ["queued", "succeeded"]


async def test_published_again_without_that_nothing_is_cleared(either: Harness) -> None:
    await either.declare("install", replicas=2)
    run = await either.enqueue("install", {"key": "v7"})
    await conduct(either)
    await (await claimed(either, "a")).finish()
    assert not (await either.enqueue("install", {"key": "v7"})).created
    await conduct(either)
    assert await states(either, run) == ["queued", "succeeded"]


async def test_all_published_again_are_the_same_workers(either: Harness) -> None:
    options = {"key": "v7", "unique": {"clear": ["succeeded"]}}
    await either.declare("install", replicas="all")
    for name in ("a", "b"):
        await either.worker(name).heartbeat()
    run = await either.enqueue("install", options)
    await conduct(either)
    await (await claimed(either, "a")).finish()
    await either.enqueue("install", options)
    await conduct(either)
    assert [one.worker for one in await replicas(either, run) if one.counts] == ["b", "a"]
    for name in ("a", "b"):
        await (await claimed(either, name)).finish()
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED


# Restricted


async def test_restricted_while_it_runs_replicas_go_to_others(either: Harness) -> None:
    run = await begun(either, replicas=2)
    stays, goes = await claimed(either, "a"), await claimed(either, "b")
    await either.client.restrict(run.id, ["a", "c"])
    assert (await goes.heartbeat()).lost == set(goes.claims)
    assert (await stays.heartbeat()).lost == set()
    assert (await claimed(either, "b")).claims == {}
    assert (await claimed(either, "c")).claims.keys() == goes.claims.keys()


async def test_restricted_while_it_rests_a_replica_goes_to_another(either: Harness) -> None:
    run = await begun(either, replicas=1)
    await (await claimed(either, "a")).fail(error=Retry(after=SECOND))
    await either.client.restrict(run.id, ["b"])
    either.clock.advance(2 * SECOND)
    await either.promoter.step()
    assert (await claimed(either, "a")).claims == {}
    assert len((await claimed(either, "b")).claims) == 1


async def test_restricted_before_anybody_has_them_replicas_are_for_these_workers(either: Harness) -> None:
    run = await begun(either, replicas=2)
    await either.client.restrict(run.id, ["b", "c"])
    assert (await claimed(either, "a")).claims == {}
    assert len((await claimed(either, "b")).claims) == 1
    await either.client.restrict(run.id, None)
    assert len((await claimed(either, "a")).claims) == 1


async def test_a_job_declared_anew_takes_the_replicas_of_its_runs_along(either: Harness) -> None:
    await begun(either, replicas=2, only_workers=["a", "b"])
    goes = await claimed(either, "b")
    await either.declare("install", version=2, replicas=2, only_workers=["a", "c"])
    assert (await goes.heartbeat()).lost == set(goes.claims)
    assert (await claimed(either, "c")).claims.keys() == goes.claims.keys()


async def test_one_of_all_that_may_not_do_it_any_more_is_not_wanted(either: Harness) -> None:
    await either.declare("install", replicas="all")
    for name in ("a", "b"):
        await either.worker(name).heartbeat()
    run = await either.enqueue("install")
    await conduct(either)
    await either.client.restrict(run.id, ["a"])
    await conduct(either)
    await (await claimed(either, "a")).finish()
    await conduct(either)
    assert (await either.run(run)).result == {"replicas": {"a": None}}


async def test_a_replica_is_neither_restricted_nor_retried_by_itself(either: Harness) -> None:
    run = await begun(either, replicas=1)
    (one,) = await replicas(either, run)
    with pytest.raises(Conflict):
        await either.client.restrict(one.run_id, ["a"])
    await (await claimed(either, "a")).fail(error=Fail("no"))
    await conduct(either)
    with pytest.raises(Conflict):
        await either.client.retry(one.run_id)
    again = await either.client.retry(run.id)
    await conduct(either)
    assert len(await either.client.replicas(again.id)) == 1


# Everything else that knows runs


async def test_the_trail_tells_every_change(either: Harness) -> None:
    run = await begun(either, replicas=1)
    worker = await claimed(either, "a")
    await either.client.cancel(run.id)
    await conduct(either)
    await worker.cancelled()
    await conduct(either)
    told = [(event.type, event.from_state, event.to_state) for event in await either.client.events(run.id)]
    assert told == [
        ("created", None, S.SCHEDULED),
        ("conducts", S.SCHEDULED, S.WAITING),
        ("cancel_asked", S.WAITING, S.CANCELLING),
        ("cancelled", S.CANCELLING, S.CANCELLED),
    ]
    (child,) = await replicas(either, run)
    first = (await either.client.events(child.run_id))[0]
    assert (first.actor, first.details["replica_of"]) == ("conductor", run.id)


async def test_an_explanation_tells_of_each_replica(either: Harness) -> None:
    run = await begun(either, replicas=2)
    worker = await claimed(either, "a")
    words = (await either.client.explain(run.id)).words
    assert f"Replica {await only(worker)} for worker a is running." in words
    assert len(words) == 4
    assert words[-1].endswith("no live worker can take one: 1 more is needed.")


async def test_an_explanation_says_whose_a_replica_is(either: Harness) -> None:
    await either.declare("install", replicas="all")
    await either.worker("a").heartbeat()
    run = await either.enqueue("install")
    await conduct(either)
    either.clock.advance(either.lease + SECOND)
    (one,) = await replicas(either, run)
    told = await either.client.explain(one.run_id)
    assert told.words == ("It is the replica of worker 'a', which is not alive.",)


async def test_a_schedule_with_a_limit_makes_no_runs_of_it(either: Harness) -> None:
    await either.declare("install", replicas=1)
    await either.client.schedules.create("hourly", "install", cron("0 * * * *"), max_concurrency=1)
    either.clock.advance(61 * MINUTE)
    await either.planner.step()
    (run,) = await either.client.list(RunFilter(schedule="hourly"))
    assert (run.state, run.reason) == (S.SKIPPED, "job 'install' has replicas, which take no limit")


async def test_a_schedule_waits_for_its_end(either: Harness) -> None:
    await either.declare("install", replicas=1)
    await either.client.schedules.create("hourly", "install", cron("0 * * * *"), overlap="skip")
    either.clock.advance(61 * MINUTE)
    await either.planner.step()
    await conduct(either)
    (run,) = await either.client.list(RunFilter(schedule="hourly"))
    assert run.state is S.WAITING
    either.clock.advance(60 * MINUTE)
    await either.planner.step()
    skipped, _ = await either.client.list(RunFilter(schedule="hourly"))
    assert skipped.state is S.SKIPPED
    await (await claimed(either, "a")).finish()
    await conduct(either)
    either.clock.advance(60 * MINUTE)
    await either.planner.step()
    assert (await either.client.list(RunFilter(schedule="hourly")))[0].state is S.SCHEDULED


@pytest.mark.parametrize("held", [False, True])
async def test_the_places_of_its_replicas_pass_on_with_its_own(either: Harness, held: bool) -> None:
    """The quota of its scope is full because of replicas that make way with it, whether somebody has one or not."""
    await either.client.quotas.update("tenant", "a", max_concurrency=2, max_queued=0)
    await either.declare("install", replicas=2)
    await either.client.schedules.create(
        "hourly", "install", cron("0 * * * *"), overlap="cancel_previous", scopes=[("tenant", "a")]
    )
    either.clock.advance(60 * MINUTE)
    await either.planner.step()
    await conduct(either)
    worker = await claimed(either, "a") if held else None
    for _ in range(2):  # the one that waits behind it makes way for the next one, too
        either.clock.advance(60 * MINUTE)
        await either.planner.step()
    third, second, first = await either.client.list(RunFilter(schedule="hourly"))
    assert (first.state, second.state, third.state) == (S.CANCELLING, S.SKIPPED, S.SCHEDULED)
    await conduct(either)
    if worker is not None:
        await worker.cancelled()
        await conduct(either)
    assert (await either.run(first.id)).state is S.CANCELLED
    assert (await either.run(third.id)).state is S.WAITING


async def test_in_the_queue_of_a_schedule_it_has_begun_when_its_replicas_have(either: Harness) -> None:
    await either.declare("install", replicas=1)
    await either.client.schedules.create("hourly", "install", cron("0 * * * *"), overlap="queue_one")
    for _ in range(3):
        either.clock.advance(60 * MINUTE)
        await either.planner.step()
        await conduct(either)
    third, second, first = await either.client.list(RunFilter(schedule="hourly"))
    assert [run.state for run in (first, second, third)] == [S.WAITING, S.SCHEDULED, S.SKIPPED]
    await (await claimed(either, "a")).finish()
    await conduct(either)
    assert [await either.state(run) for run in (first, second)] == [S.SUCCEEDED, S.WAITING]


async def test_replicas_are_pruned_with_their_parent_and_not_before(either: Harness) -> None:
    await either.declare("install", replicas=2, keep=0, keep_for="1d")
    run = await either.enqueue("install")
    await conduct(either)
    await (await claimed(either, "a")).finish()
    newer = await either.enqueue("install", {"delay": "90d"})
    either.clock.advance(48 * 60 * MINUTE)
    await either.client.prune()
    assert [(await either.run(one.run_id)).parent_id for one in await replicas(either, run)] == [run.id, run.id]
    await (await claimed(either, "b")).finish()
    await conduct(either)
    await either.client.prune()
    assert len(await replicas(either, run)) == 2
    either.clock.advance(48 * 60 * MINUTE)
    await either.client.prune()
    assert [one.id for one in await either.client.list()] == [newer.id]

    async def left(tx: Tx) -> int:
        return int((await tx.fetch_sql("select count(*) from rota_replica"))[0][0])

    assert await either.store.database.read(left) == 0


async def test_a_replica_that_somebody_follows_is_pruned_after_its_follower(either: Harness) -> None:
    await either.declare("install", replicas=2, keep=0, keep_for="1d")
    await either.declare("check", keep=0, keep_for="1d")
    run = await either.enqueue("install")
    await conduct(either)
    followed, other = sorted(one.run_id for one in await replicas(either, run))
    follower = await either.enqueue("check", {"after": [followed], "delay": "5d"})
    for name in ("a", "b"):
        await (await claimed(either, name)).finish()
        await conduct(either)
    either.clock.advance(48 * 60 * MINUTE)
    await either.client.prune()
    assert {one.id for one in await either.client.list()} == {follower.id, followed}
    with pytest.raises(UnknownRun):
        await either.client.get(other)
    either.clock.advance(72 * 60 * MINUTE)
    await either.promoter.step()
    await (await claimed(either, "a")).finish()
    newer = await either.enqueue("install")
    either.clock.advance(48 * 60 * MINUTE)
    await either.client.prune()
    assert [one.id for one in await either.client.list()] == [newer.id]


async def test_statistics_count_the_run_and_its_replicas(either: Harness) -> None:
    run = await begun(either, replicas=2)
    for name in ("a", "b"):
        await (await claimed(either, name)).finish()
    await conduct(either)
    assert (await either.client.job_stats("install")).succeeded == 3
    newest = await either.store.facts_of_newest("install")
    assert isinstance(newest, RetryFacts)
    assert (newest.run.id, newest.run.state) == (run.id, S.SUCCEEDED)


async def test_they_are_listed_by_the_run_that_they_are_of(either: Harness) -> None:
    run, _ = await begun(either, replicas=2), await either.enqueue("install")
    await conduct(either)
    found = await either.client.list(RunFilter(parent=run.id[-12:]))
    assert {one.id for one in found} == {one.run_id for one in await replicas(either, run)}
    assert (await either.client.count(RunFilter(parent=run.id))).count == 2
    with pytest.raises(UnknownRun):
        await either.client.list(RunFilter(parent="0198c5b0"))


async def test_replicas_take_no_limits(either: Harness) -> None:
    with pytest.raises(Invalid):
        await either.declare("install", replicas=2, max_concurrency=1)


async def test_with_drain_one_worker_does_its_part(harness: Harness) -> None:
    run = await begun(harness, replicas="all")
    await harness.drain()
    assert await harness.state(run) is S.SUCCEEDED


async def test_a_real_worker_does_its_part(either: Harness, working: Start) -> None:
    done: list[int] = []

    @either.app.job(name="install", replicas=1)
    async def install() -> int:
        done.append(1)
        return 7

    await either.store.save_jobs(either.app.registry.definitions())
    run = await either.enqueue("install")
    await conduct(either)
    worker = await working(either)
    await worker.has_state((await replicas(either, run))[0].run_id, S.SUCCEEDED)
    await conduct(either)
    assert (await either.run(run)).result == {"replicas": {"real": 7}}


async def test_two_processes_do_it_together(database_url: str) -> None:
    """Everything as it is in production: loops, hints, two workers of different names."""
    apps = [Rota(database_url, poll="200ms") for _ in range(2)]
    done: list[str] = []

    def declare(app: Rota, name: str) -> None:
        @app.job(name="install", replicas=2)
        async def install() -> str:
            done.append(name)
            return name

    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    for place, app in enumerate(apps):
        declare(app, f"web-{place}")
    async with apps[0].running(name="web-0") as client, apps[1].running(name="web-1"):
        run = await client.enqueue(Order("install", {}))
        ended = await client.wait(run.id, "60s")
    assert ended.result == {"replicas": {"web-0": "web-0", "web-1": "web-1"}}
    assert sorted(done) == ["web-0", "web-1"]


async def test_ends_are_counted(either: Harness) -> None:
    run = await begun(either, replicas=2)
    await either.cancel(run)
    await conduct(either)
    counted = either.app.meters.total(S.CANCELLED)
    assert counted == 3


# Many at once


async def test_while_somebody_else_gives_one_away_a_worker_comes_again(postgres_url: str) -> None:
    """The order is forced: the lock of the parent is held, then the replica is given to the same name, then seen."""
    async with Harness(url=postgres_url) as harness:
        run = await begun(harness, replicas=2)
        info = harness.worker("a").info
        met = met_by(info, await harness.store.known_requirements())
        request = RestrictedRequest(info.id, "a", ("default",), {"install": 1}, 30_000_000, 1, SUSPECTS, met)
        first = (await replicas(harness, run))[0].run_id
        other = await asyncpg.connect(postgres_url)
        async with other.transaction():
            await other.execute("select 1 from rota_conduct where run_id = $1 for update", run.id)
            await other.execute("update rota_replica set worker = 'a' where run_id = $1", first)
            found = await harness.store.claim_restricted(request)
            assert (found.claims, found.missed) == ([], True)
        found = await harness.store.claim_restricted(request)
        assert (found.claims, found.missed) == ([], False)  # it has one
        with pytest.raises(asyncpg.UniqueViolationError):
            await other.execute("update rota_replica set worker = 'a' where parent_id = $1", run.id)
        await other.close()


async def test_what_was_given_away_since_the_look_counts(postgres_url: str) -> None:
    async with Harness(url=postgres_url) as harness:
        run = await begun(harness, replicas=2)
        info = harness.worker("a").info
        met = met_by(info, await harness.store.known_requirements())
        request = RestrictedRequest(info.id, "a", ("default",), {"install": 1}, 30_000_000, 1, SUSPECTS, met)
        last = (await replicas(harness, run))[1].run_id

        async def body(tx: Tx) -> None:
            (found,) = await tx.hot.open_replicas(request, 1)
            assert found.run_id != last
            other = await asyncpg.connect(postgres_url)
            await other.execute("update rota_replica set worker = 'a' where run_id = $1", last)
            await other.close()
            assert await reserve(tx, [found], "a") == []

        await harness.store.database.transact(body)


async def test_a_replica_that_ends_while_it_is_looked_at_is_looked_at_again(postgres_url: str) -> None:
    async with Harness(url=postgres_url) as harness:
        run = await begun(harness, replicas=1)
        worker = await claimed(harness, "a")
        other = await asyncpg.connect(postgres_url)
        transaction = other.transaction()
        await transaction.start()
        await other.execute("select 1 from rota_conduct where run_id = $1 for update", run.id)
        ending = asyncio.create_task(worker.finish())
        await until_blocked(harness.store.database)
        assert not ending.done()
        await conduct(harness)  # passes it over
        await transaction.rollback()
        await ending
        await conduct(harness)
        assert await harness.state(run) is S.SUCCEEDED
        await other.close()


async def test_conductors_that_step_at_once_make_each_replica_once(either: Harness) -> None:
    await either.declare("install", replicas=3)
    runs = [await either.enqueue("install") for _ in range(5)]
    conductors = [ReplicaConductor(either.store, SECOND) for _ in range(6)]
    await asyncio.gather(*(conductor.step() for conductor in conductors))
    await conduct(either)
    assert [len(await replicas(either, run)) for run in runs] == [3] * 5


async def test_of_many_that_claim_at_once_no_name_gets_two_replicas_of_a_run(postgres_url: str) -> None:
    """Twenty workers of five names, on connections of their own."""
    async with Harness(url=postgres_url) as harness:
        await harness.declare("install", replicas=4)
        runs = [await harness.enqueue("install") for _ in range(6)]
        await conduct(harness)
        stores = [Store(open_database(postgres_url, harness.clock)) for _ in range(20)]
        known = await harness.store.known_requirements()
        got: Counter[tuple[str, str]] = Counter()

        async def claim(store: Store, name: str) -> None:
            info = harness.worker(name).info
            met = met_by(info, known)
            for _ in range(40):
                request = RestrictedRequest(info.id, name, ("default",), {"install": 1}, 30_000_000, 2, SUSPECTS, met)
                for found in (await store.claim_restricted(request)).claims:
                    parent = (await harness.run(found.run_id)).parent_id
                    assert parent is not None
                    got[parent, name] += 1

        await asyncio.gather(*(claim(store, f"w{place % 5}") for place, store in enumerate(stores)))
        for store in stores:
            await store.close()
        assert set(got.values()) == {1}
        assert Counter(parent for parent, _ in got) == {run.id: 4 for run in runs}


async def test_replicas_that_end_at_once_end_their_run_once(postgres_url: str) -> None:
    async with Harness(url=postgres_url) as harness:
        await harness.declare("install", replicas=8)
        runs = [await harness.enqueue("install") for _ in range(3)]
        await conduct(harness)
        workers = [await claimed(harness, f"w{place}") for place in range(8)]
        ends = [worker.finish(run_id) for worker in workers for run_id in worker.claims]
        await asyncio.gather(*ends, *(harness.conductor.step() for _ in range(8)))
        await conduct(harness)
        assert [await harness.state(run) for run in runs] == [S.SUCCEEDED] * 3


async def test_failures_and_cancels_at_once_leave_nothing_behind(postgres_url: str) -> None:
    async with Harness(url=postgres_url) as harness:
        await harness.declare("install", replicas=6, max_attempts=1)
        runs = [await harness.enqueue("install") for _ in range(4)]
        await conduct(harness)
        workers = [await claimed(harness, f"w{place}") for place in range(5)]
        acts = [worker.fail(run_id) for worker in workers for run_id in worker.claims]
        await asyncio.gather(*acts, *(harness.conductor.step() for _ in range(6)), harness.client.cancel(runs[0].id))
        for _ in range(3):
            await conduct(harness)
        assert {await harness.state(run) for run in runs} <= {S.FAILED, S.CANCELLED}
        assert await harness.client.list(RunFilter(states=(S.QUEUED, S.RUNNING, S.WAITING))) == []


async def test_more_replicas_than_named_workers_are_refused(either: Harness) -> None:
    with pytest.raises(Invalid, match=r"replicas=3 need as many workers, and only_workers names 2: a, b"):
        await begun(either, replicas=3, only_workers=["a", "b"])
    either.app.job(name="pair", replicas=2)(lambda: None)
    with pytest.raises(Invalid, match=r"replicas=2 need as many workers, and only_workers names 1: a"):
        await either.client.enqueue(Order("pair", {}, {"only_workers": ["a"]}))


async def test_replicas_are_purged_with_their_run_only(either: Harness) -> None:
    """Whether they are in the filter or not; those of a run that has not ended stay, also ended ones."""
    first, second = await begun(either, replicas=2, max_attempts=1), await either.enqueue("install")
    await conduct(either)
    for name in ("a", "b"):
        worker = await claimed(either, name)
        of_first = [id for id in worker.claims if (await either.run(id)).parent_id == first.id]
        for id in of_first:
            await worker.fail(id)
    await conduct(either)
    assert await either.state(first) is S.FAILED
    either.clock.advance(MINUTE)
    ended = RunFilter(states=(S.FAILED,))
    result = await either.client.purge(RunFilter(job="install", states=(S.FAILED, S.CANCELLED)))
    assert (result.matched, result.done) == (3, 3)
    assert await either.client.list(ended) == []
    assert len(await replicas(either, second)) == 2
