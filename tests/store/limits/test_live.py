"""Live limits of jobs and queues: on runs that wait and runs that come, beside what code declares, until they end."""

import asyncio
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition, JobKind
from rota.core.limits.limits import Limit
from rota.core.limits.live import LimitedThing, LiveLimit, live_quota
from rota.core.limits.quotas import quota_of
from rota.core.monitoring.doctor import check_symptoms
from rota.core.runs.claim import SUSPECTS, Claim, OrderedRequest, QueueRequest
from rota.core.states import Outcome
from rota.errors import Invalid
from rota.store import Store
from rota.store.databases.database import Row, Tx
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, claim_limited, finish_all, ids, make, put, tell
from tests.support.schedules.schedules import make_schedule

JOB, QUEUE = LimitedThing.JOB, LimitedThing.QUEUE
HOUR = 60 * MINUTE
KNOWN = {"work": 1, "other": 1, "third": 1}


async def limit(
    store: Store, thing: LimitedThing = JOB, name: str = "work", lasts: timedelta | None = None, **numbers: Any
) -> LiveLimit:
    facts = {"by": "ana", "reason": numbers.pop("reason", None)}
    quota = msgspec.structs.replace(live_quota(numbers.get("max_concurrency"), numbers.get("rate")), **facts)
    micros = None if lasts is None else lasts // timedelta(microseconds=1)
    answer, _ = await store.live_limits.update(thing, name, quota, micros)
    return answer


async def clear(store: Store, thing: LimitedThing = JOB, name: str = "work") -> bool:
    return await store.live_limits.clear(thing, name, "ana")


async def rows(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql(sql))

    return await store.database.transact(body)


async def begin(store: Store, slots: int = 100, queue: str = "default") -> list[Claim]:
    """Claim in one order, until nothing more may begin."""
    claims: list[Claim] = []
    while slots > len(claims):
        request = OrderedRequest(
            worker_id=WORKER.id,
            name="worker",
            asks=(QueueRequest(queue, slots - len(claims)),),
            known=KNOWN,
            lease=LEASE_MICROS,
            slots=slots - len(claims),
            solo=SUSPECTS,
        )
        answer = await store.claim_in_order(request)
        claims += [*answer.others, *answer.plain]
        if not answer.others and not answer.plain:
            break
    return claims


@pytest.mark.parametrize("thing", [JOB, QUEUE])
async def test_a_backlog_comes_back_gently_and_in_order(store: Store, clock: ManualClock, thing: LimitedThing) -> None:
    """No second has more begins than the rate, wherever it starts, and the order of priority and age is kept."""
    draw = random.Random(5)
    jobs = ["work"] if thing is JOB else ["work", "other", "third"]
    priorities: dict[str, int] = {}
    for _ in range(10):
        new = [make(draw.choice(jobs), priority=draw.choice([0, 0, 5])) for _ in range(100)]
        priorities |= {run.id: run.priority for run in new}
        await store.enqueue(new)
        clock.advance(SECOND)
    expected = sorted(priorities, key=lambda id: (-priorities[id], id))
    await limit(store, thing, "work" if thing is JOB else "default", rate="5/s")
    begun: list[str] = []
    times: list[int] = []
    while len(begun) < 1_000:
        await store.promote(500)
        now = await begin(store, draw.choice([1, 3, 100]))
        begun += ids(now)
        times += [store.clock.micros()] * len(now)
        await finish_all(store, now)
        clock.advance(timedelta(milliseconds=draw.choice([100, 130, 250, 900])))
    assert begun == expected
    assert all(later - first >= 1_000_000 for first, later in zip(times, times[5:], strict=False))
    assert times[-1] - times[0] < 320_000_000  # and it is no slower than it must be, given these pauses between looks


async def test_what_waits_and_what_comes_from_anywhere_is_limited(store: Store, second: Store) -> None:
    waiting = [await put(second), await put(second)]
    await limit(store, max_concurrency=1)
    assert await claim(second) == []
    late = await put(second)  # it knew of no limit
    many = [answer.id for answer in await second.enqueue([make(), make("other")])]
    assert ids(await claim(second, known=KNOWN)) == many[1:]
    for expected in (*waiting, late, many[0]):
        held = await claim_limited(second)
        assert ids(held) == [expected]
        assert await claim_limited(store) == []
        await finish_all(second, held)


async def test_other_jobs_are_not_concerned(store: Store) -> None:
    await limit(store, max_concurrency=1)
    await limit(store, QUEUE, "mail", max_concurrency=1)
    runs = [await put(store, "other"), await put(store, "other", queue="rest")]
    assert ids(await claim(store, queues=("default", "rest"), known=KNOWN)) == runs
    assert await rows(store, "select key from rota_gate") == []


async def test_what_runs_counts_and_nothing_is_stopped(store: Store) -> None:
    await put(store)
    await put(store)
    held = await claim(store, 1)
    await limit(store, max_concurrency=1)
    assert await begin(store) == []
    await finish_all(store, held)
    await store.tidy()  # whoever claimed it knew of no limit, and told none of its end
    assert len(await begin(store)) == 1


@pytest.mark.parametrize("live", [1, 3])
async def test_the_stricter_of_two_limits_decides(store: Store, live: int) -> None:
    job = JobDefinition(name="work", limits=(Limit(max=2),))
    await put(store, job)
    await limit(store, max_concurrency=live)
    for _ in range(4):
        await put(store, job)
    held = await begin(store)
    assert len(held) == min(2, live)
    await clear(store)
    held += await begin(store)
    assert len(held) == 2


async def test_a_declared_rate_and_a_live_one(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", limits=(Limit(max=3, per=MINUTE),))
    await limit(store, rate="2/s")
    for _ in range(6):
        await put(store, job)
    counts = []
    for _ in range(4):
        await store.promote(100)
        held = await begin(store)
        await finish_all(store, held)
        counts.append(len(held))
        clock.advance(SECOND)
    assert counts == [2, 1, 0, 0]


async def test_the_limits_of_a_job_and_its_queue_and_a_quota_all_hold(store: Store) -> None:
    await limit(store, JOB, "work", max_concurrency=3)
    await limit(store, QUEUE, "default", max_concurrency=4)
    await store.quotas.update("tenant", "a", quota_of(max_concurrency=1), "ann")
    for job in ("work", "other"):
        for scope in (("tenant", "a"), ("tenant", "a"), None, None, None):
            await put(store, job, **({} if scope is None else {"scope": scope}))
    held = await begin(store)
    counted = Counter((claim.job, claim.scope_kind) for claim in held)
    assert len(held) == 4
    assert counted["work", "tenant"] + counted["other", "tenant"] <= 1
    assert counted["work", "tenant"] + counted["work", "global"] <= 3
    await clear(store, QUEUE, "default")
    held += await begin(store)
    counted = Counter((claim.job, claim.scope_kind) for claim in held)
    assert counted["work", "tenant"] + counted["other", "tenant"] == 1
    assert counted["other", "global"] == 3
    await finish_all(store, held)


async def test_a_deploy_changes_nothing(store: Store) -> None:
    await limit(store, max_concurrency=1)
    await store.save_jobs([JobDefinition(name="work", limits=(Limit(max=9),))])
    for _ in range(3):
        await put(store, JobDefinition(name="work", limits=(Limit(max=9),)))
    assert len(await begin(store)) == 1


async def test_another_limit_replaces_the_first_one(store: Store, clock: ManualClock) -> None:
    for _ in range(9):
        await put(store)
    await limit(store, rate="1/1h")
    assert len(await begin(store)) == 1
    await limit(store, max_concurrency=3)
    held = await begin(store)
    assert len(held) == 2
    clock.advance(SECOND)
    await limit(store, max_concurrency=5, rate="1/s")
    assert len(await begin(store)) == 1
    assert await begin(store) == []


async def test_it_ends_when_it_is_cleared(store: Store) -> None:
    runs = [await put(store) for _ in range(5)]
    await limit(store, max_concurrency=1)
    assert await clear(store) is True
    assert ids(await claim(store)) == runs
    assert await clear(store) is False
    types = [event.type for event in await store.events.audit({"kind": "job", "subject": "work"}, 10, None)]
    assert types == ["unlimited", "limited"]


async def test_it_ends_when_its_time_is_over(store: Store, second: Store, clock: ManualClock) -> None:
    runs = [await put(store) for _ in range(3)]
    answer = await limit(store, max_concurrency=1, lasts=2 * HOUR, reason="after the outage")
    assert answer.until is not None
    assert answer.since is not None
    assert answer.until - answer.since == 2 * HOUR
    held = await begin(store)
    clock.advance(2 * HOUR - SECOND)
    await second.tidy()
    assert await begin(store) == []
    clock.advance(SECOND)
    runs.append(await put(store))  # before anybody has noticed
    await second.tidy()
    assert ids([*held, *await claim(store)]) == runs
    clock.advance(MINUTE)
    await second.tidy()
    assert await rows(store, "select 1 from rota_quota where definition is not null") == []
    (last, *_) = await store.events.audit({"kind": "job", "subject": "work"}, 10, None)
    assert (last.type, last.actor) == ("unlimited", "expiry")


async def test_one_with_an_end_is_settled_whoever_looks_at_it(store: Store, second: Store, clock: ManualClock) -> None:
    await limit(store, max_concurrency=2, lasts=timedelta(hours=1))
    for one in (store, second) * 3:
        clock.advance(timedelta(seconds=2.5))
        await one.tidy()
    ((settled,),) = await rows(store, "select settled from rota_quota")
    assert settled == 1


async def test_it_ends_with_its_job(store: Store) -> None:
    await store.data_jobs.create(JobDefinition(name="ping", kind=JobKind.EXTERNAL.value), "api", None)
    await limit(store, name="ping", max_concurrency=2)
    await store.data_jobs.delete("ping", "ana", force=True)
    assert await rows(store, "select 1 from rota_quota where definition is not null") == []


async def test_one_that_was_set_anew_does_not_end_with_the_first(store: Store, clock: ManualClock) -> None:
    await limit(store, max_concurrency=1, lasts=HOUR)
    clock.advance(HOUR - SECOND)
    await limit(store, max_concurrency=1, lasts=HOUR)
    clock.advance(MINUTE)
    await store.tidy()
    await put(store)
    await put(store)
    assert len(await begin(store)) == 1


async def test_runs_of_schedules_come_under_it(store: Store, clock: ManualClock) -> None:
    for number in range(4):
        await make_schedule(store, f"schedule {number}", every("1m"))
    await limit(store, max_concurrency=1)
    clock.advance(MINUTE)
    await store.planning.plan(100, {})
    assert await claim(store) == []
    held = await begin(store)
    assert len(held) == 1
    await store.schedules.trigger("schedule 3", None, force=True)
    await finish_all(store, held)
    assert len(await begin(store)) == 1
    assert len(await rows(store, "select 1 from rota_gate where key = 'live:job:work'")) == 4


async def test_a_retry_and_a_lost_lease_wait_under_it(store: Store, clock: ManualClock) -> None:
    await put(store)
    await put(store)
    held = await claim(store)
    await limit(store, max_concurrency=1)
    await tell(store, held[0], Outcome.FAILED, retry_in=0)
    clock.advance(HOUR)
    await store.reap(100)
    await store.promote(100)
    assert len(await begin(store)) == 1


async def test_a_run_that_replaces_another_stays_under_it(store: Store, second: Store) -> None:
    job = JobDefinition(name="work")
    unique = {"key": "k", "unique": {"on_conflict": "replace"}}
    await put(second, job, **unique)
    await limit(store, rate="1/1h")
    await put(second, job)
    assert len(await begin(second)) == 1
    await put(second, job, **unique)
    assert await claim(second) == []
    assert await begin(second) == []


async def test_setting_it_twice_is_one_change(store: Store, clock: ManualClock) -> None:
    first = await limit(store, max_concurrency=1)
    clock.advance(MINUTE)
    assert await limit(store, max_concurrency=1) == first
    assert len(await store.events.audit({"kind": "job", "subject": "work"}, 10, None)) == 1


async def test_whoever_limits_nothing_asks_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    exist = store.quotas.exist

    async def noted() -> bool:
        asked.append("exist")
        return await exist()

    monkeypatch.setattr(store.quotas, "exist", noted)
    await put(store)
    assert asked == []
    await limit(store, JOB, "other", max_concurrency=1)
    await put(store)
    await clear(store, JOB, "other")
    monkeypatch.setattr(store.quotas, "live", False)  # as a process is told once they are gone
    asked.clear()
    await put(store)
    assert len(await rows(store, "select 1 from rota_ready where hold = 0")) == 3


def test_zero_is_a_pause_and_nothing_is_no_limit() -> None:
    with pytest.raises(Invalid, match="pause"):
        live_quota(0, None)
    with pytest.raises(Invalid, match="limits nothing"):
        live_quota(None, None)


@pytest.mark.parametrize("seed", range(3))
async def test_never_more_at_once_than_it_allows_whoever_races(store: Store, second: Store, seed: int) -> None:
    """Two processes enqueue, claim and finish while limits of the job and the queue are set, changed and cleared."""
    draw = random.Random(seed)
    held: list[Claim] = []

    async def produce(where: Store) -> None:
        for _ in range(15):
            await where.enqueue([make(draw.choice(["work", "other"])) for _ in range(draw.choice([1, 4]))])

    async def consume(where: Store) -> None:
        for _ in range(40):
            if draw.random() < 0.5 and held:
                await finish_all(where, [held.pop(draw.randrange(len(held)))])
            else:
                held.extend(await begin(where, draw.choice([1, 5])))
            assert len(held) <= 3, [claim.job for claim in held]

    async def change(where: Store) -> None:
        for number in (3, 2, 3):
            await limit(where, QUEUE, "default", max_concurrency=number)
            await limit(where, JOB, "work", max_concurrency=draw.choice([1, 2]))
            await clear(where, JOB, "work")

    await limit(store, QUEUE, "default", max_concurrency=3)
    await asyncio.gather(
        produce(store), produce(second), consume(store), consume(second), change(store), change(second)
    )
    await finish_all(store, held)
    held.clear()
    await clear(store, QUEUE, "default")
    while await rows(store, "select 1 from rota_ready limit 1"):
        left = await begin(store)
        assert left, "a run was forgotten"
        await finish_all(store, left)


async def test_a_run_and_the_doctor_say_who_limits_since_when_and_why(store: Store, clock: ManualClock) -> None:
    run = [await put(store) for _ in range(4)][-1]
    await limit(store, rate="2/s", lasts=2 * HOUR, reason="after the outage")
    await limit(store, QUEUE, "default", max_concurrency=1)
    held = await begin(store)
    assert len(held) == 1
    words = " ".join((await store.ledger.explain_run(run, LEASE_MICROS)).words)
    assert "Its queue 'default' is limited to 1 at once by ana since 2025-06-15T15:06:40Z. The limit is full" in words
    await clear(store, QUEUE, "default")
    assert len(await begin(store)) == 1
    words = " ".join((await store.ledger.explain_run(run, LEASE_MICROS)).words)
    expected = "Its job 'work' is limited to 2/1s by ana since 2025-06-15T15:06:40Z until 2025-06-15T17:06:40Z"
    assert f"{expected}: after the outage. The limit is reached: 2 per 1s, next at 2025-06-15T15:06:41Z." in words
    clock.advance(MINUTE)
    checks = {check.name: check for check in check_symptoms(await store.ledger.symptoms(LEASE_MICROS, LEASE_MICROS))}
    said = "job work is limited to 2/1s by ana for 1m (after the outage), and 2 runs wait"
    assert (checks["live_limits"].level, checks["live_limits"].words) == ("warning", said)
    assert checks["live_limits"].hint == "rota job limit work --clear"


async def test_a_pause_of_the_queue_or_the_scope_comes_first(store: Store) -> None:
    await limit(store, max_concurrency=2)
    await put(store)
    await put(store, scope=("tenant", "a"))
    await store.quotas.pause("tenant", "a", None, "ann")
    await store.pause_queue("default", None, None)
    assert await begin(store) == []
    await store.resume_queue("default")
    assert [claim.scope_kind for claim in await begin(store)] == ["global"]
    await store.quotas.resume("tenant", "a", "ann")
    assert [claim.scope_kind for claim in await begin(store)] == ["tenant"]
