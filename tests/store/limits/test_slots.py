"""Slots: whose turn it is, and what keeps a limit in its place in line."""

from datetime import timedelta

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.limits.turns import Shut
from rota.store import Store
from rota.store.databases.database import Tx
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import claim_limited, finish_all, ids, make, put


async def states(store: Store) -> set[int]:
    async def body(tx: Tx) -> set[int]:
        return {int(shut) for (shut,) in await tx.fetch_sql("select shut from rota_limit")}

    return await store.database.read(body)


async def test_a_key_that_ran_empty_keeps_its_turn(store: Store, clock: ManualClock) -> None:
    """Served is who got a slot: when a claim notices that nobody waits depends on who looks."""
    crowd = JobDefinition(name="work", limits=(Limit(max=1, by=("a",)),))
    keys = "uvwxyz"
    for key in keys:
        await put(store, crowd, payload={"a": key})
        await finish_all(store, await claim_limited(store))
        clock.advance(timedelta(milliseconds=100))
    clock.advance(SECOND)
    assert await claim_limited(store) == []
    assert await states(store) == {Shut.NOBODY_WAITS}
    await store.enqueue([make(crowd, payload={"a": key}) for key in reversed(keys)])
    served = []
    for _ in keys:
        clock.advance(timedelta(milliseconds=1))
        served += [held.payload[6] for held in await claim_limited(store, 1)]
    assert "".join(served) == keys


@pytest.mark.parametrize("wide", [Limit(max=1), Limit(max=1, per=timedelta(hours=1))])
async def test_a_slot_is_not_handed_to_a_limit_under_which_nobody_waits(
    store: Store, clock: ManualClock, wide: Limit
) -> None:
    """Whoever waited under it was cancelled. The slot would be lost: to the next end, or for a whole period."""
    job = JobDefinition(name="work", limits=(Limit(max=1, by=("a",)), wide))
    await put(store, job, payload={"a": "x"})
    (held,) = await claim_limited(store)
    deserted = []
    for key in range(150):
        clock.advance(timedelta(milliseconds=1))
        deserted.append(await put(store, job, payload={"a": key}))
    last = await put(store, job, payload={"a": "z"})
    while await states(store) & {Shut.OPEN}:
        clock.advance(SECOND)
        assert await claim_limited(store) == []
    for run_id in deserted:
        await store.cancel(run_id, None, None)
    clock.advance(timedelta(hours=1))
    await finish_all(store, [held])
    await store.promote(10)
    # One claim looks at the heads of a hundred limits.
    assert ids([*await claim_limited(store, 1), *await claim_limited(store, 1)]) == [last]
