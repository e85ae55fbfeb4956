"""Lines: a run that waits for one of its limits holds back nobody who does not need that limit."""

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.limits.live import LimitedThing, live_quota
from rota.core.limits.quotas import quota_of
from rota.core.runs.claim import Claim
from rota.core.states import Outcome
from rota.store import Store
from rota.store.databases.database import Row, Tx
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import claim, claim_limited, finish, finish_all, make, put, tell

A, B = ("tenant", "a"), ("tenant", "b")
LIMITED = JobDefinition(name="work", limits=(Limit(max=5),))
RATED = JobDefinition(name="work", limits=(Limit(max=100, per=SECOND * 3600),))
KEYED = JobDefinition(name="work", limits=(Limit(max=5, by=("customer",)),))


async def held(store: Store, slots: int = 3) -> list[Claim]:
    return await claim_limited(store, slots) + await claim(store, slots)


async def scopes(store: Store, claims: list[Claim]) -> list[str]:
    runs = [await store.get_run(one.run_id) for one in claims]
    return [run.scope.id for run in runs if run.scope]


async def rows(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql(sql))

    return await store.database.transact(body)


@pytest.mark.parametrize("job", [LIMITED, RATED, KEYED], ids=["limit", "rate", "key"])
@pytest.mark.parametrize("first", ["quota", "runs"])
@pytest.mark.parametrize("paused", [False, True], ids=["full", "paused"])
async def test_a_scope_whose_quota_is_full_holds_nobody_else_back(
    store: Store, job: JobDefinition, first: str, paused: bool
) -> None:
    async def stop() -> None:
        if paused:
            await store.quotas.pause(*A, None, "ann")
        else:
            await store.quotas.update(*A, quota_of(max_concurrency=1), "ann")

    if first == "quota":
        await stop()
    for _ in range(20):
        await put(store, job, scope=A, payload={"customer": 1})
    if first == "runs":
        await stop()
    for _ in range(3):
        await put(store, job, scope=B, payload={"customer": 1})
    begun: list[Claim] = []
    for _ in range(5):
        begun += await held(store)
    assert sorted(await scopes(store, begun)) == ["a"] * (not paused) + ["b"] * 3
    await finish_all(store, begun)
    await store.quotas.resume(*A, "ann")
    await store.quotas.delete(*A, "ann")
    rest = 0
    while more := await held(store, 20):
        rest += len(more)
        await finish_all(store, more)
    assert rest == 20 - (not paused)


async def test_a_live_limit_of_a_queue_holds_back_only_what_is_in_it(store: Store) -> None:
    await store.live_limits.update(LimitedThing.QUEUE, "narrow", live_quota(1, None), None)
    for _ in range(9):
        await put(store, LIMITED, queue="narrow")
    other = await put(store, LIMITED)
    queues = ("narrow", "default")
    begun: list[Claim] = []
    for _ in range(3):
        begun += await claim_limited(store, 3, queues=queues)
    assert len(begun) == 2
    assert other in {one.run_id for one in begun}


async def test_what_waits_for_a_shared_limit_comes_by_priority_then_age(store: Store, clock: ManualClock) -> None:
    """Of many lines that one limit blocks, the one with the first run is next: whoever was served last, or never."""
    one = JobDefinition(name="work", limits=(Limit(max=1),))
    await store.quotas.update("tenant", "", quota_of(max_concurrency=9), "ann")
    expected: list[tuple[int, int, str]] = []
    for number in range(12):
        clock.advance(SECOND)
        priority = 10 if number in (7, 11) else 0
        run_id = await put(store, one, scope=("tenant", str(number % 4)), priority=priority)
        expected.append((-priority, number, run_id))
    begun = []
    while claims := await held(store):
        (run,) = claims
        begun.append(run.run_id)
        assert await held(store) == []
        await finish(store, run)
    assert begun == [run_id for *_, run_id in sorted(expected)]


@pytest.mark.parametrize("wide", [Limit(max=1), Limit(max=1, per=SECOND)], ids=["limit", "rate"])
async def test_of_keys_that_a_wider_limit_blocks_priority_comes_before_turns(
    store: Store, clock: ManualClock, wide: Limit
) -> None:
    both = JobDefinition(name="work", limits=(Limit(max=1, by=("customer",)), wide))
    await put(store, both, payload={"customer": 9})
    (first,) = await held(store)
    for number in range(4):
        clock.advance(SECOND / 100)
        await put(store, both, payload={"customer": number})
    assert await held(store) == [], "all of them are blocked"
    urgent = await put(store, both, payload={"customer": 3}, priority=10)
    await finish(store, first)
    clock.advance(SECOND)
    await store.promote(100)
    (second,) = await held(store)
    assert second.run_id == urgent
    await finish(store, second)


async def test_a_run_leaves_its_line_with_the_quota(store: Store) -> None:
    """It waits under its job's limit again, which nobody had waited under meanwhile."""
    await store.quotas.update(*A, quota_of(max_concurrency=1), "ann")
    for _ in range(3):
        await put(store, LIMITED, scope=A)
    begun = await held(store)
    assert len(begun) == 1
    assert await held(store) == []
    await store.quotas.delete(*A, "ann")
    assert {key for (key,) in await rows(store, "select limit_key from rota_ready")} == {"job:work"}
    assert len(await held(store)) == 2


async def test_a_retry_waits_in_its_line(store: Store) -> None:
    await store.quotas.update(*A, quota_of(max_concurrency=1), "ann")
    await put(store, LIMITED, scope=A)
    (run,) = await held(store)
    assert await tell(store, run, Outcome.HANDED_BACK)
    ((key,),) = await rows(store, "select limit_key from rota_ready")
    assert key.startswith("line:")
    assert len(await held(store)) == 1


async def test_many_lines_under_one_limit(store: Store, clock: ManualClock) -> None:
    """More lines than a claim locks: every slot that comes free goes to somebody."""
    await store.quotas.update("tenant", "", quota_of(max_concurrency=1), "ann")
    two = JobDefinition(name="work", limits=(Limit(max=2),))
    await store.enqueue([make(two, scope=("tenant", str(number % 60))) for number in range(120)])
    done = 0
    while claims := await held(store, 5):
        assert len(claims) <= 2
        done += len(claims)
        await finish_all(store, claims)
    assert done == 120
