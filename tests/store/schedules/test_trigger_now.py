"""Trigger now: a run that a limit or a key does not allow is refused, and leaves nothing behind."""

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.errors import Conflict, NotTriggered
from rota.store import Store
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim_limited, finish_all
from tests.support.schedules.schedules import make_schedule, noon, runs_of, told


@pytest.fixture
def clock() -> ManualClock:
    return noon()


def limited(policy: str) -> JobDefinition:
    return JobDefinition(name="work", limits=(Limit(max=1, when_full=policy),))


@pytest.mark.parametrize("policy", ["reject", "skip"])
async def test_a_full_limit_refuses(store: Store, policy: str) -> None:
    await make_schedule(store, job=limited(policy), overlap="allow")
    await store.schedules.trigger("s", None, force=False)
    with pytest.raises(NotTriggered, match="limit of job 'work' is full") as caught:
        await store.schedules.trigger("s", None, force=True)
    assert isinstance(caught.value, Conflict)
    assert told(await runs_of(store)) == [("-", "queued")]
    await finish_all(store, await claim_limited(store))
    await store.schedules.trigger("s", None, force=False)
    assert told(await runs_of(store)) == [("-", "succeeded"), ("-", "queued")]


async def test_all_scopes_or_none(store: Store) -> None:
    await make_schedule(store, job=limited("reject"), scopes=[("a", "1"), ("a", "2")])
    with pytest.raises(NotTriggered):
        await store.schedules.trigger("s", None, force=False)
    assert await runs_of(store) == []


async def test_a_key_that_is_held_refuses(store: Store) -> None:
    await make_schedule(store, job=JobDefinition(name="work", unique=Unique(fields=())), overlap="allow")
    (first,) = await store.schedules.trigger("s", None, force=False)
    with pytest.raises(NotTriggered, match=first.id):
        await store.schedules.trigger("s", None, force=False)
    assert told(await runs_of(store)) == [("-", "queued")]


async def test_where_the_newest_stay_the_others_give_way(store: Store) -> None:
    await make_schedule(store, job=limited("cancel_oldest"), scopes=[("a", "1"), ("a", "2")])
    assert len(await store.schedules.trigger("s", None, force=False)) == 2
    assert sorted(state for _, state in told(await runs_of(store))) == ["queued", "skipped"]
