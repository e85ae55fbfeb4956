"""Pauses: runs of a paused queue or job are not claimed, and go on at once when it is resumed."""

from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.schedules import schedules_of_job
from rota.values.instants import instant
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import claim, claim_limited, ids, put
from tests.support.schedules.schedules import get_schedule, make_schedule

LIMITED = JobDefinition(name="work", limits=(Limit(max=5),))


async def test_a_paused_queue(store: Store, clock: ManualClock) -> None:
    plain, limited = await put(store, queue="mail"), await put(store, LIMITED, queue="mail")
    elsewhere = await put(store)
    await store.pause_queue("mail", "the relay is down", "ada")
    (pause,) = await store.paused_queues()
    assert (pause.name, pause.reason, pause.paused_by, pause.paused_at) == (
        "mail",
        "the relay is down",
        "ada",
        instant(clock.micros()),
    )
    assert ids(await claim(store, queues=["mail", "default"])) == [elsewhere]
    assert await claim_limited(store, queues=["mail", "default"]) == []
    assert await store.resume_queue("mail")
    assert ids(await claim(store, queues=["mail"])) == [plain]
    assert ids(await claim_limited(store, queues=["mail"])) == [limited]
    assert not await store.resume_queue("mail")
    assert await store.paused_queues() == []


async def test_paused_twice_it_is_paused_since_the_first_time(store: Store, clock: ManualClock) -> None:
    await store.pause_queue("mail", "one", None)
    since = instant(clock.micros())
    clock.advance(SECOND)
    await store.pause_queue("mail", "two", None)
    assert [(pause.reason, pause.paused_at) for pause in await store.paused_queues()] == [("one", since)]


async def test_a_paused_job(store: Store) -> None:
    plain, limited, other = await put(store), await put(store, LIMITED), await put(store, "other")
    await store.pause_job("work", None, None)
    assert ids(await claim(store, known={"work": 1, "other": 1})) == [other]
    assert await claim_limited(store) == []
    await store.resume_job("work", "skip", None)
    assert ids(await claim(store)) == [plain]
    assert ids(await claim_limited(store)) == [limited]


async def test_schedules_of_a_job_resumed_before_its_pause_came_to_them_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_schedule(store)
    come = schedules_of_job.pause_schedules_of

    async def too_late(tx: Tx, **about: Any) -> str | None:
        await tx.fetch("resume_job", job="work")  # as somebody else has, who found no schedule that rests
        return await come(tx, **about)

    monkeypatch.setattr(schedules_of_job, "pause_schedules_of", too_late)
    await store.pause_job("work", None, None)
    assert (await get_schedule(store)).state == "active"
