"""Test restricting a run that no worker holds: its audit trail, and its end if no worker may take it."""

from __future__ import annotations

from datetime import timedelta

from rota.core.progress.control_flow import Retry
from rota.core.runs.run import Enqueued
from rota.core.states import RunState
from rota.testing import Harness
from tests.support.clock import SECOND

S = RunState


async def conduct(harness: Harness) -> None:
    while await harness.conductor.step() == timedelta(0):
        pass


async def told(harness: Harness, run: Enqueued) -> list[tuple[str, RunState | None]]:
    return [(event.type, event.to_state) for event in await harness.client.events(run.id)]


async def test_restricted_and_then_cancelled_a_run_with_replicas_tells_it_in_that_order(either: Harness) -> None:
    await either.declare("install", replicas=2)
    run = await either.enqueue("install")
    await conduct(either)
    either.clock.advance(SECOND)
    await either.client.restrict(run.id, ["a", "b"])
    either.clock.advance(SECOND)
    await either.client.cancel(run.id)
    await conduct(either)
    assert await told(either, run) == [
        ("created", S.SCHEDULED),
        ("conducts", S.WAITING),
        ("restricted", None),
        ("cancel_asked", S.CANCELLING),
        ("cancelled", S.CANCELLED),
    ]
    fences = [event.fence for event in await either.client.events(run.id)]
    assert fences == [0, 1, 1, 1, 2]


async def test_restricted_while_it_waits_for_another_it_was_scheduled_from_the_first(either: Harness) -> None:
    await either.declare("install")
    first = await either.enqueue("install")
    run = await either.enqueue("install", {"after": [first]})
    await either.client.restrict(run.id, ["a"])
    assert await told(either, run) == [("created", S.SCHEDULED), ("restricted", None)]


async def test_restricted_after_it_was_due_it_was_due_first(either: Harness) -> None:
    await either.declare("install", only_workers=["a"], max_attempts=3)
    run = await either.enqueue("install")
    await (await either.worker("a").claim()).fail(error=Retry(after=SECOND))
    either.clock.advance(3 * SECOND)
    await either.promoter.step()
    await either.client.restrict(run.id, ["b"])
    assert [name for name, _ in await told(either, run)] == ["created", "claimed", "failed", "due", "restricted"]


async def test_restricted_before_its_time_it_is_due_later(either: Harness) -> None:
    await either.declare("install", only_workers=["a"], max_attempts=3)
    run = await either.enqueue("install")
    await (await either.worker("a").claim()).fail(error=Retry(after=3 * SECOND))
    either.clock.advance(SECOND)
    await either.client.restrict(run.id, ["b"])
    either.clock.advance(3 * SECOND)
    await either.promoter.step()
    assert [name for name, _ in await told(either, run)] == ["created", "claimed", "failed", "restricted", "due"]


async def test_restricted_while_it_is_asked_to_stop_it_tells_so_after_that(either: Harness) -> None:
    await either.declare("install", only_workers=["a"])
    run = await either.enqueue("install")
    await either.worker("a").claim()
    await either.client.cancel(run.id)
    await either.client.restrict(run.id, ["b"])
    assert [(event.type, event.fence) for event in await either.client.events(run.id)] == [
        ("created", 0),
        ("claimed", 1),
        ("cancel_asked", 1),
        ("restricted", 1),
    ]


async def test_one_of_all_that_nobody_is_to_do_any_more_is_cancelled_after_its_last_replica(either: Harness) -> None:
    await either.declare("install", replicas="all")
    worker = either.worker("a")
    await worker.heartbeat()
    run = await either.enqueue("install")
    await conduct(either)
    await worker.claim()
    await either.client.restrict(run.id, ["b"], actor="ann")
    await conduct(either)
    assert await either.state(run) is S.WAITING  # its replica was asked to stop, and has not yet
    await worker.cancelled()
    await conduct(either)
    done = await either.run(run)
    assert done.state is S.CANCELLED
    assert done.reason == "none of the workers that it was for may do it any more"
    (replica,) = await either.client.replicas(run.id)
    assert (replica.state, replica.worker, replica.cleared) == (S.CANCELLED, None, True)
    ends = [event for event in await either.client.events(replica.run_id) if event.type == "cancel_asked"]
    assert [event.actor for event in ends] == ["policy:replicas"]


async def test_the_hands_of_others_and_needs_have_locks_of_their_own(either: Harness) -> None:
    """Two statements had the same name: whoever spoke from outside was refused, because of the other."""
    either.app.external("label", max_attempts=1)
    await either.declare("install", only_workers=["a"])
    await either.client.store.save_jobs(either.app.registry.definitions())
    run = await either.enqueue("label")
    (mine,) = await either.client.external.claim("scanner@1")
    assert await either.client.external.complete(mine.run_id, mine.fence, 1) is S.SUCCEEDED
    assert (await either.run(run)).result == 1
