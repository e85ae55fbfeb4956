"""Suspects: runs with two lost attempts, claimed only by whoever asks for them, one at a time under limits."""

from __future__ import annotations

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.runs.claim import AT_ONCE, PLAIN, SUSPECTS
from rota.core.states import Outcome
from rota.store import Store
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.runs import LEASE, claim, claim_limited, finish, ids, put, tell

LIMITED = JobDefinition(name="work", limits=(Limit(max=1, by=("customer",)),))


async def lose(store: Store, clock: ManualClock) -> None:
    """Whatever is held, by its worker and by the next."""
    clock.advance(LEASE + SECOND)
    await store.reap(100)
    await claim(store)
    await claim_limited(store)
    clock.advance(LEASE + SECOND)
    await store.reap(100)


async def test_one_lost_attempt_makes_no_suspect(store: Store, clock: ManualClock) -> None:
    lost = await put(store)
    await claim(store)
    clock.advance(LEASE + SECOND)
    await store.reap(100)
    (again,) = await claim(store, solo=PLAIN)
    assert (again.run_id, again.suspect) == (lost, False)


async def test_a_run_whose_attempts_were_lost_is_for_those_who_ask_for_suspects(
    store: Store, clock: ManualClock
) -> None:
    lost = await put(store)
    (first,) = await claim(store)
    assert not first.suspect
    await lose(store, clock)
    fresh = await put(store)
    assert ids(await claim(store, solo=AT_ONCE)) == [fresh]
    assert ids(await claim(store, solo=PLAIN)) == []
    (again,) = await claim(store, solo=SUSPECTS)
    assert (again.run_id, again.suspect, again.attempt) == (lost, True, 3)


async def test_a_suspect_keeps_its_place(store: Store, clock: ManualClock) -> None:
    lost = await put(store)
    await claim(store)
    await lose(store, clock)
    later = await put(store)
    assert ids(await claim(store, 1)) == [lost]
    assert ids(await claim(store, 1)) == [later]


@pytest.mark.parametrize(
    ("outcome", "facts"),
    [
        (Outcome.FAILED, {"retry_in": 0}),
        (Outcome.SNOOZED, {"retry_in": 0}),
        (Outcome.HANDED_BACK, {}),
        (Outcome.HANDED_BACK, {"began": False}),
    ],
)
async def test_what_ends_otherwise_makes_no_suspect_and_clears_none(
    store: Store, clock: ManualClock, outcome: Outcome, facts: dict[str, int]
) -> None:
    await put(store)
    (held,) = await claim(store)
    assert await tell(store, held, outcome, **facts)
    (held,) = await claim(store)
    assert not held.suspect
    await lose(store, clock)
    (held,) = await claim(store)
    assert held.suspect
    assert await tell(store, held, outcome, **facts)
    (held,) = await claim(store)
    assert held.suspect


async def test_a_suspect_is_not_replaced_and_stays_one(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work")
    lost = await put(store, job, key="one", unique={"on_conflict": "replace"})
    await claim(store)
    await lose(store, clock)
    assert await put(store, job, key="one", unique={"on_conflict": "replace"}, payload={"n": 2}) == lost
    assert await claim(store, solo=AT_ONCE) == []
    (again,) = await claim(store)
    assert (again.payload, again.suspect) == ("{}", True)


async def test_under_limits_one_suspect_is_claimed_at_a_time(store: Store, clock: ManualClock) -> None:
    lost = [await put(store, LIMITED, payload={"customer": name}) for name in "abc"]
    assert sorted(ids(await claim_limited(store))) == sorted(lost)
    await lose(store, clock)
    fresh = await put(store, LIMITED, payload={"customer": "d"})
    found = await claim_limited(store)
    (suspect,) = [one for one in found if one.suspect]
    assert sorted(ids(found)) == sorted([suspect.run_id, fresh])
    assert await claim_limited(store, solo=AT_ONCE) == []
    left = set(lost) - {suspect.run_id}
    for _ in range(2):
        await finish(store, suspect)
        (suspect,) = await claim_limited(store)
        assert suspect.suspect
        left.remove(suspect.run_id)
    assert not left


async def test_a_suspect_does_not_shut_the_limit_for_others(store: Store, clock: ManualClock) -> None:
    lost = await put(store, LIMITED, payload={"customer": "a"})
    await claim_limited(store)
    await lose(store, clock)
    other = await put(store, LIMITED, payload={"customer": "a"})
    (found,) = await claim_limited(store, solo=AT_ONCE)
    assert found.run_id == other
    await finish(store, found)
    clock.advance(MINUTE)
    assert await claim_limited(store, solo=AT_ONCE) == []
    assert ids(await claim_limited(store)) == [lost]
