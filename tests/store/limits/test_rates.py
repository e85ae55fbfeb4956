"""Rates are exact at claim: no span has more begins than its maximum, whoever races, dies or deploys."""

import asyncio
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.runs.claim import SUSPECTS, LimitedRequest
from rota.core.states import Outcome, RunState
from rota.errors import LimitReached
from rota.store import Store, open_database
from rota.store.databases.database import Row, Tx
from rota.store.limits import slots
from rota.store.limits.slots import LimitedClaims
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import (
    LEASE,
    LEASE_MICROS,
    claim,
    claim_limited,
    finish,
    finish_all,
    ids,
    make,
    put,
    state_of,
    tell,
)
from tests.support.wait import PATIENCE

MINUTE = timedelta(minutes=1)


def rate(most: int, per: timedelta = MINUTE, *by: str, **more: Any) -> Limit:
    return Limit(max=most, per=per, by=by, **more)


def job(*limits: Limit, name: str = "work", version: int = 1) -> JobDefinition:
    return JobDefinition(name=name, version=version, limits=limits)


THREE = job(rate(3))
LET_GO = "select w.run_id from rota_ready w join rota_limit l on l.key = w.limit_key where l.shut = 0"


async def rows(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql(sql))

    return await store.database.transact(body)


async def finish_now(store: Store, slots: int = 100, **how: Any) -> int:
    """Claim and finish at once; how many."""
    held = await claim_limited(store, slots, **how)
    await finish_all(store, held) if held else None
    return len(held)


async def test_no_more_begin_than_the_rate_allows_though_they_end_at_once(store: Store, clock: ManualClock) -> None:
    await store.enqueue([make(THREE) for _ in range(8)])
    assert await finish_now(store, 2) == 2
    clock.advance(20 * SECOND)
    assert await finish_now(store) == 1
    assert await finish_now(store) == 0
    clock.advance(39 * SECOND)
    assert (await store.promote(10)).next_in == 1_000_000
    assert await finish_now(store) == 0
    clock.advance(SECOND)
    assert (await store.promote(10)).opened
    assert await finish_now(store) == 2
    assert await finish_now(store) == 0
    assert (await store.promote(10)).next_in == 20_000_000
    clock.advance(20 * SECOND)
    await store.promote(10)
    assert await finish_now(store) == 1


async def test_a_run_under_a_full_rate_is_queued_and_says_why(store: Store, clock: ManualClock) -> None:
    *_, last = [await put(store, THREE) for _ in range(4)]
    await claim_limited(store)
    assert await claim_limited(store) == []
    assert await state_of(store, last) is RunState.QUEUED
    told = " ".join((await store.ledger.explain_run(last, 30_000_000)).words)
    assert "Rate of job 'work' is reached: 3 per 1m, next at " in told


async def test_the_end_of_a_run_opens_nothing(store: Store) -> None:
    await store.enqueue([make(THREE) for _ in range(5)])
    held = await claim_limited(store)
    assert await claim_limited(store) == []
    await finish(store, held[0])
    assert await rows(store, "select shut from rota_limit") == [(3,)]


async def test_keys_have_rates_of_their_own(store: Store, clock: ManualClock) -> None:
    each = job(rate(1, MINUTE, "a"))
    await store.enqueue([make(each, payload={"a": key}) for key in "xxyyz"])
    assert await finish_now(store) == 3
    assert await finish_now(store) == 0
    clock.advance(MINUTE)
    await store.promote(10)
    assert await finish_now(store) == 2


async def test_attempts_that_are_lost_handed_back_or_tried_again_have_begun(store: Store, clock: ManualClock) -> None:
    await store.enqueue([make(THREE) for _ in range(3)])
    lost, back, failed = await claim_limited(store)
    assert await tell(store, back, Outcome.HANDED_BACK)
    assert await tell(store, failed, Outcome.FAILED, retry_in=1_000_000)
    clock.advance(LEASE + SECOND)
    await store.reap(10)
    await store.promote(10)
    assert await claim_limited(store) == await claim(store) == []
    clock.advance(MINUTE - LEASE - SECOND)
    await store.promote(10)
    assert {one.run_id for one in await claim_limited(store)} == {lost.run_id, back.run_id, failed.run_id}


async def test_a_run_that_waits_again_alone_is_found(store: Store, clock: ManualClock) -> None:
    await put(store, THREE)
    (held,) = await claim_limited(store)
    clock.advance(SECOND)
    assert await claim_limited(store) == []
    assert await rows(store, "select shut from rota_limit") == [(1,)]
    assert await tell(store, held, Outcome.HANDED_BACK)
    assert ids(await claim_limited(store)) == [held.run_id]


async def test_a_rate_and_so_many_at_once(store: Store, clock: ManualClock) -> None:
    both = job(rate(3), Limit(max=2))
    await store.enqueue([make(both) for _ in range(10)])
    held = await claim_limited(store)
    assert len(held) == 2
    assert await claim_limited(store) == []
    await finish(store, held[0])
    assert await finish_now(store) == 1
    assert await finish_now(store) == 0
    clock.advance(MINUTE)
    await store.promote(10)
    assert len(await claim_limited(store)) == 1  # one is running still
    assert await claim_limited(store) == []


async def test_two_rates_of_the_same_runs(store: Store, clock: ManualClock) -> None:
    both = job(rate(2, SECOND), rate(5, MINUTE))
    await store.enqueue([make(both) for _ in range(12)])
    begun = []
    for _ in range(120):
        begun.append(await finish_now(store))
        clock.advance(SECOND / 2)
        await store.promote(10)
    assert begun[:5] == [2, 0, 2, 0, 1]
    assert sum(begun[5:119]) == 0
    assert await finish_now(store) == 2


async def test_a_wider_rate_holds_narrow_limits_back_and_lets_them_go_on(store: Store, clock: ManualClock) -> None:
    both = job(rate(3), Limit(max=1, by=("a",)))
    await store.enqueue([make(both, payload={"a": number}) for number in range(8)])
    done = await finish_now(store)
    assert done == 3
    assert await finish_now(store) == 0
    for _ in range(3):
        clock.advance(MINUTE)
        await store.promote(10)
        begun = await finish_now(store)
        assert begun == min(3, 8 - done)
        done += begun
    assert done == 8


async def let_go_after_two_of_five(store: Store, clock: ManualClock) -> list[Row]:
    """Five keys under a rate of two: what it lets go a period after the first two."""
    both = job(rate(2), Limit(max=1, by=("a",)))
    await store.enqueue([make(both, payload={"a": number}) for number in range(5)])
    assert await finish_now(store) == 2
    assert await finish_now(store) == 0
    clock.advance(MINUTE)
    await store.promote(10)
    return await rows(store, LET_GO)


async def test_places_that_nobody_used_are_given_to_others_a_period_later(store: Store, clock: ManualClock) -> None:
    for (run_id,) in await let_go_after_two_of_five(store, clock):
        await store.cancel(str(run_id), None, None)
    assert await finish_now(store) == 0
    clock.advance(MINUTE)
    await store.promote(10)
    assert await finish_now(store) == 1


async def test_no_more_are_let_go_than_there_are_places_whatever_the_database_thinks(
    store: Store, clock: ManualClock
) -> None:
    """It takes the table for one of a single row: who is blocked could then be looked for again with each row."""
    await put(store, job(rate(2)))
    assert await finish_now(store) == 1
    await store.database.transact(lambda tx: tx.script("analyze"))
    clock.advance(MINUTE)
    assert len(await let_go_after_two_of_five(store, clock)) == 2


async def test_one_that_is_wider_for_some_runs_and_the_only_one_of_others(store: Store, clock: ManualClock) -> None:
    """Whoever is served in between does not make it forget those that it blocks."""
    mixed, plain = job(rate(2), Limit(max=1, by=("a",))), job(rate(2))
    await store.enqueue([make(mixed, payload={"a": number}) for number in range(4)])
    assert await finish_now(store) == 2
    assert await finish_now(store) == 0
    clock.advance(MINUTE)
    await put(store, plain)
    assert await finish_now(store, 1) == 1  # before it was seen to that there is room again
    await store.promote(10)
    assert await finish_now(store) == 1
    clock.advance(MINUTE)
    await store.promote(10)
    assert await finish_now(store) == 1


async def test_narrow_rates_under_a_wider_limit(store: Store, clock: ManualClock) -> None:
    both = job(rate(2, MINUTE, "a"), Limit(max=3))
    await store.enqueue([make(both, payload={"a": key}) for key in "xxxyyyzzz"])
    held = await claim_limited(store)
    assert len(held) == 3
    assert max(Counter(one.payload for one in held).values()) <= 2
    await finish_all(store, held)
    more = 0
    for _ in range(6):
        more += await finish_now(store)
    assert more == 3


async def test_max_queued_of_a_rate(store: Store, clock: ManualClock) -> None:
    short = job(rate(2, max_queued=1))
    for _ in range(3):
        await put(store, short)
    with pytest.raises(LimitReached, match="2 per 1m and 1 waiting"):
        await put(store, short)
    assert await finish_now(store) == 2
    with pytest.raises(LimitReached):
        await put(store, short)
    clock.advance(MINUTE)
    await store.promote(10)
    await put(store, short)


async def test_a_deploy_changes_maximum_and_period(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([THREE])
    await store.enqueue([make(THREE) for _ in range(20)])
    assert await finish_now(store) == 3
    assert await finish_now(store) == 0
    await store.save_jobs([job(rate(5))])
    assert await finish_now(store) == 2
    assert await finish_now(store) == 0
    await store.save_jobs([job(rate(5, 10 * SECOND))])
    clock.advance(10 * SECOND)
    await store.promote(10)
    assert await finish_now(store) == 5
    await store.save_jobs([job(rate(1, 20 * SECOND))])
    for _ in range(4):
        assert await finish_now(store) == 0
        clock.advance(5 * SECOND)
        await store.promote(10)
    assert await finish_now(store) == 1


async def test_a_clock_set_back_lets_no_span_have_more_and_does_not_wedge(store: Store, clock: ManualClock) -> None:
    await store.enqueue([make(THREE) for _ in range(20)])
    assert await finish_now(store) == 3
    clock.advance(-30 * SECOND)
    await store.tidy()
    await store.promote(10)
    assert await finish_now(store) == 0
    clock.advance(89 * SECOND)
    await store.promote(10)
    assert await finish_now(store) == 0  # by the clock, the three began less than a minute ago
    clock.advance(SECOND)
    await store.promote(10)
    assert await finish_now(store) == 3
    clock.advance(-timedelta(days=1))
    await store.tidy()
    assert await finish_now(store) == 0  # just now, whatever the clock says
    clock.advance(MINUTE)
    await store.promote(10)
    assert await finish_now(store) == 3


async def test_what_counts_no_more_goes(store: Store, clock: ManualClock) -> None:
    often = job(rate(1, SECOND))
    await store.enqueue([make(often) for _ in range(20)])
    for _ in range(20):
        assert await finish_now(store) == 1
        clock.advance(SECOND)
        await store.promote(10)
    assert await rows(store, "select count(*) <= 3 from rota_begun") in ([(1,)], [(True,)])
    assert await finish_now(store) == 0
    clock.advance(timedelta(minutes=2))
    await store.tidy()
    assert await rows(store, "select key from rota_limit") == await rows(store, "select key from rota_begun") == []


async def test_a_rate_that_counts_still_is_not_dropped(store: Store, clock: ManualClock) -> None:
    hourly = job(rate(1, timedelta(hours=1)))
    await put(store, hourly)
    assert await finish_now(store) == 1
    clock.advance(timedelta(hours=1) - SECOND)
    await finish_now(store)
    await store.promote(10)
    await store.tidy()
    late = await put(store, hourly)
    assert await finish_now(store) == 0
    clock.advance(SECOND)
    await store.promote(10)
    assert ids(await claim_limited(store)) == [late]


async def test_a_shut_rate_whose_time_was_forgotten_is_found(store: Store, clock: ManualClock) -> None:
    await store.enqueue([make(THREE) for _ in range(4)])
    await finish_now(store)
    await rows(store, "update rota_limit set opens_at = null")
    clock.advance(MINUTE)
    await store.promote(10)
    assert await finish_now(store) == 0
    await store.tidy()
    assert await finish_now(store) == 1


@pytest.mark.parametrize("seed", range(6))
async def test_no_span_ever_has_more_at_random(store: Store, clock: ManualClock, seed: int) -> None:
    """Claims, ends, deaths and jumps ahead at random; then every span is looked at."""
    chance = random.Random(seed)
    limits = (rate(3, 2 * SECOND, "a"), rate(5, 3 * SECOND), Limit(max=4))
    definition = job(*limits)
    begun: list[tuple[int, str]] = []
    held = []
    left = 60
    await store.enqueue([make(definition, payload={"a": chance.choice("xyz")}, max_attempts=50) for _ in range(left)])
    for _ in range(400):
        for one in await claim_limited(store, chance.randint(1, 4)):
            begun.append((clock.micros(), one.payload))
            held.append(one)
        while held and chance.random() < 0.7:
            one = held.pop(chance.randrange(len(held)))
            outcome = chance.choice([Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.HANDED_BACK])
            left -= await tell(store, one, outcome) and outcome is Outcome.SUCCEEDED
        clock.advance(timedelta(milliseconds=chance.choice([1, 50, 333, 1_000])))
        await store.promote(10)
        if chance.random() < 0.05:
            await store.tidy()
        if not left:
            break
    assert left == 0
    for most, period, group in [(5, 3_000_000, [at for at, _ in begun])] + [
        (3, 2_000_000, [at for at, payload in begun if payload == key]) for key in {payload for _, payload in begun}
    ]:
        assert all(later - first >= period for first, later in zip(group, group[most:], strict=False))


async def test_a_claim_does_not_count_before_another_has_committed(postgres_url: str) -> None:
    stores = [Store(open_database(postgres_url, ManualClock())) for _ in range(2)]
    await stores[0].enqueue([make(THREE) for _ in range(5)])
    taken, may_commit = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Tx) -> LimitedClaims:
        found = await slots.claim(
            tx, LimitedRequest("slow", "slow", ("default",), {"work": 1}, LEASE_MICROS, 2, SUSPECTS)
        )
        taken.set()
        await may_commit.wait()
        return found

    slow = asyncio.create_task(stores[0].database.transact(slowly))
    await taken.wait()
    assert await claim_limited(stores[1]) == []
    may_commit.set()
    assert len((await slow).claims) == 2
    assert len(await claim_limited(stores[1])) == 1
    assert await claim_limited(stores[1]) == []
    for store in stores:
        await store.close()


async def test_eight_claimers_race_one_rate_by_the_real_clock(postgres_url: str) -> None:
    """P6 for rates: by what the database says of when they were claimed."""
    stores = [Store(open_database(postgres_url)) for _ in range(8)]
    fast = job(rate(10, timedelta(milliseconds=200)))
    total = 60
    await stores[0].enqueue([make(fast) for _ in range(total)])
    done = 0

    async def work(number: int) -> None:
        nonlocal done
        while done < total:
            await stores[number].promote(10)
            for one in await claim_limited(stores[number], 3, worker=f"w{number}"):
                await finish(stores[number], one)
                done += 1
            await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*[work(number) for number in range(8)])
    times = [row[0] for row in await rows(stores[0], "select claimed_at from rota_run order by claimed_at")]
    assert len(times) == total
    assert all(later - first >= 200_000 for first, later in zip(times, times[10:], strict=False))
    for store in stores:
        await store.close()
