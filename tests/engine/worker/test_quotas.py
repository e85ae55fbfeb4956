"""Test quotas of scopes for replicas, restricted runs and external runs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rota.core.states import RunState
from rota.errors import QuotaExceeded
from rota.testing import Harness
from rota.testing.harness.manual_worker import HandWorker
from tests.support.clock import MINUTE, SECOND

S = RunState
SCOPE = ("tenant", "x")


async def conduct(harness: Harness) -> None:
    while await harness.conductor.step() == timedelta(0):
        pass


async def quota(harness: Harness, **what: object) -> None:
    await harness.client.quotas.update(*SCOPE, **what)  # type: ignore[arg-type]


async def claimed(harness: Harness, name: str, wanted: int = 10, **info: object) -> HandWorker:
    worker = harness.worker(name, **info)  # type: ignore[arg-type]
    await worker.heartbeat()
    return await worker.claim(wanted)


async def installed(harness: Harness, **options: object) -> str:
    """The id of a run of that scope which several workers do."""
    await harness.declare("install", **options)
    return (await harness.enqueue("install", {"scope": SCOPE})).id


async def states(harness: Harness, run: str) -> list[str]:
    return sorted(one.state.value for one in await harness.client.replicas(run) if one.counts)


async def told(harness: Harness, run: str) -> str:
    return " ".join((await harness.client.explain(run)).words)


async def gates(harness: Harness) -> list[object]:
    return list(await harness.store.database.read(lambda tx: tx.fetch_sql("select run_id from rota_gate")))


@pytest.mark.parametrize("set_when", ["before", "after its enqueue", "after its beginning"])
async def test_replicas_run_one_after_the_other_under_a_quota_of_one(either: Harness, set_when: str) -> None:
    if set_when == "before":
        await quota(either, max_concurrency=1)
    run = await installed(either, replicas=3)
    if set_when == "after its enqueue":
        await quota(either, max_concurrency=1)
    await conduct(either)
    if set_when == "after its beginning":
        await quota(either, max_concurrency=1)
    assert await either.state(run) is S.WAITING
    for done, name in enumerate("abc"):
        worker = await claimed(either, name)
        assert len(worker.claims) == 1
        assert (await claimed(either, "z")).claims == {}
        left = ["queued"] * (2 - done) + ["running"] + ["succeeded"] * done
        assert await states(either, run) == left
        assert ("Quota of tenant/x is full: 1 of 1 slots are in use." in await told(either, run)) is (done < 2)
        await worker.finish()
        assert (await claimed(either, name)).claims == {}, "each worker does it once"
        await conduct(either)
    assert await either.state(run) is S.SUCCEEDED
    assert await gates(either) == []


async def test_a_replica_says_what_it_waits_for(either: Harness) -> None:
    await quota(either, max_concurrency=1)
    run = await installed(either, replicas=2)
    await conduct(either)
    await claimed(either, "a")
    (waiting,) = [one.run_id for one in await either.client.replicas(run) if one.state is S.QUEUED]
    assert "Quota of tenant/x is full: 1 of 1 slots are in use." in await told(either, waiting)


async def test_replicas_and_other_runs_of_the_scope_share_its_quota(either: Harness) -> None:
    await quota(either, max_concurrency=2)
    await either.declare("plain")
    plain = [(await either.enqueue("plain", {"scope": SCOPE})).id for _ in range(3)]
    run = await installed(either, replicas=2)
    await conduct(either)
    first = await claimed(either, "a", wanted=1)
    second = await claimed(either, "b", wanted=1)
    assert (await claimed(either, "c")).claims == {}
    assert {*first.claims, *second.claims} <= {*plain, *(one.run_id for one in await either.client.replicas(run))}


async def test_a_replica_that_a_worker_may_not_have_keeps_it_from_nothing_else(either: Harness) -> None:
    """The worker has done its own already: what comes behind the others is not held back by them."""
    await quota(either, max_concurrency=1)
    run = await installed(either, replicas=3)
    await conduct(either)
    await (await claimed(either, "a")).finish()
    await either.declare("plain")
    behind = await either.enqueue("plain", {"scope": SCOPE})
    worker = await claimed(either, "a")
    assert list(worker.claims) == [behind.id]
    await worker.finish()
    assert len((await claimed(either, "b")).claims) == 1
    assert await states(either, run) == ["queued", "running", "succeeded"]


async def test_all_workers_under_a_quota(either: Harness) -> None:
    await quota(either, max_concurrency=1)
    await either.declare("install", replicas="all")
    for name in "ab":
        await either.worker(name).heartbeat()
    run = (await either.enqueue("install", {"scope": SCOPE})).id
    await conduct(either)
    assert await states(either, run) == ["queued", "queued"]
    first = await claimed(either, "a")
    assert len(first.claims) == 1
    assert (await claimed(either, "b")).claims == {}
    await first.finish()
    await (await claimed(either, "b")).finish()
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED


async def test_a_quota_that_goes_lets_all_replicas_begin(either: Harness) -> None:
    await quota(either, max_concurrency=1)
    run = await installed(either, replicas=3)
    await conduct(either)
    await claimed(either, "a")
    await either.client.quotas.delete(*SCOPE)
    for name in "bc":
        assert len((await claimed(either, name)).claims) == 1
        assert (await claimed(either, name)).claims == {}
    assert await states(either, run) == ["running"] * 3


async def test_replicas_begin_as_often_as_a_rate_of_their_scope_says(either: Harness) -> None:
    await quota(either, rate=(1, "1m"))
    run = await installed(either, replicas=2)
    await conduct(either)
    await (await claimed(either, "a")).finish()
    assert (await claimed(either, "b")).claims == {}
    assert "Rate in the quota of tenant/x is reached" in await told(either, run)
    either.clock.advance(MINUTE + SECOND)
    await either.promoter.step()
    await (await claimed(either, "b")).finish()
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED


async def test_it_waits_as_one_run_until_it_is_begun_and_its_replicas_are_never_refused(either: Harness) -> None:
    await quota(either, max_concurrency=1, max_queued=1)
    run = await installed(either, replicas=3)
    await either.enqueue("install", {"scope": SCOPE})
    with pytest.raises(QuotaExceeded):
        await either.enqueue("install", {"scope": SCOPE})
    await conduct(either)
    assert await states(either, run) == ["queued"] * 3
    with pytest.raises(QuotaExceeded):
        await either.enqueue("install", {"scope": SCOPE})


async def test_a_replica_that_is_tried_again_is_under_the_quota_still(either: Harness) -> None:
    await quota(either, max_concurrency=1)
    run = await installed(either, replicas=2)
    await conduct(either)
    lost = await claimed(either, "a")
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    again = await claimed(either, "b")
    assert len(again.claims) == 1
    assert (await claimed(either, "a")).claims == {}
    await again.finish()
    second = await claimed(either, "c")
    assert len(second.claims) == 1
    await second.finish()
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED
    assert lost.claims


async def test_it_follows_another_run_and_conducts_after_that_under_a_quota(either: Harness) -> None:
    await quota(either, max_concurrency=1)
    await either.declare("plain")
    first = await either.enqueue("plain", {"scope": SCOPE})
    await either.declare("install", replicas=1)
    run = await either.enqueue("install", {"scope": SCOPE, "after": [first.id]})
    await conduct(either)
    assert await either.state(run) is S.SCHEDULED
    await (await claimed(either, "a")).finish()
    await conduct(either)
    assert await either.state(run) is S.WAITING
    await (await claimed(either, "a")).finish()
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED


async def test_a_delayed_one_conducts_when_it_is_due_under_a_quota(either: Harness) -> None:
    await either.declare("install", replicas=1)
    run = await either.enqueue("install", {"scope": SCOPE, "delay": "1m"})
    await quota(either, max_concurrency=1)
    either.clock.advance(MINUTE)
    await either.promoter.step()
    await conduct(either)
    assert await either.state(run) is S.WAITING


@pytest.mark.parametrize("hold", [2, 4])
@pytest.mark.parametrize("drops", [True, False])
async def test_one_that_an_older_program_let_wait_for_its_quota_conducts_when_that_changes(
    either: Harness, hold: int, *, drops: bool
) -> None:
    await quota(either, max_concurrency=1)
    run = await installed(either, replicas=1)
    sql = "update rota_ready set hold = :hold, limit_key = 'quota:tenant/x' where run_id = :id"
    await either.store.database.transact(lambda tx: tx.fetch_sql(sql, id=run, hold=hold))
    await (either.client.quotas.delete(*SCOPE) if drops else quota(either, max_concurrency=2))
    await conduct(either)
    assert await either.state(run) is S.WAITING
    await (await claimed(either, "a")).finish()
    await conduct(either)
    assert await either.state(run) is S.SUCCEEDED


async def test_it_is_cancelled_with_replicas_that_wait_under_a_quota(either: Harness) -> None:
    await quota(either, max_concurrency=1)
    run = await installed(either, replicas=3)
    await conduct(either)
    worker = await claimed(either, "a")
    await either.client.cancel(run)
    await conduct(either)
    await worker.cancelled()
    await conduct(either)
    assert await either.state(run) is S.CANCELLED
    assert await gates(either) == []


async def test_runs_for_some_workers_come_under_a_quota_and_out_of_it_again(either: Harness) -> None:
    """Whoever does not meet their needs gets them neither under the quota nor when it is gone."""
    await either.declare("work", only_workers=["a"])
    for _ in range(3):
        await either.enqueue("work", {"scope": SCOPE})
    await quota(either, max_concurrency=1)
    assert (await claimed(either, "b")).claims == {}
    assert len((await claimed(either, "a")).claims) == 1
    assert (await claimed(either, "a")).claims == {}
    await either.client.quotas.delete(*SCOPE)
    assert (await claimed(either, "b")).claims == {}
    assert len((await claimed(either, "a")).claims) == 2


async def test_delayed_runs_for_some_workers_come_under_a_quota_and_out_of_it_again(either: Harness) -> None:
    await either.declare("work", only_workers=["a"])
    for _ in range(2):
        await either.enqueue("work", {"scope": SCOPE, "delay": "1m"})
    await quota(either, max_concurrency=1)
    await either.client.quotas.delete(*SCOPE)
    either.clock.advance(MINUTE)
    await either.promoter.step()
    assert (await claimed(either, "b")).claims == {}
    assert len((await claimed(either, "a")).claims) == 2


async def test_what_somebody_outside_has_counts_for_a_quota_that_is_set_meanwhile(either: Harness) -> None:
    await either.declare("work", max_concurrency=1)
    await either.enqueue("work", {"scope": SCOPE})
    worker = await claimed(either, "a")
    await worker.wait_for_external()
    await quota(either, max_concurrency=1)
    await either.enqueue("work", {"scope": SCOPE})
    await either.declare("other")
    await either.enqueue("other", {"scope": SCOPE})
    assert (await claimed(either, "b")).claims == {}, "its job and its scope have no room"
    await either.client.external.complete(next(iter(worker.claims)), worker.fence())
    assert len((await claimed(either, "b")).claims) == 1
