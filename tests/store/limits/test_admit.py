"""Limits are exact at claim, whoever races, dies or deploys; and decide at enqueue what they are told to."""

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.runs.claim import Claim
from rota.core.runs.run import RunFilter
from rota.core.states import Outcome, RunState
from rota.errors import LimitReached
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.store.databases.statements import POSTGRES
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import (
    LEASE,
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
from tests.support.wait import PATIENCE, until

TWO = JobDefinition(name="work", limits=(Limit(max=2),))
ONE_EACH = JobDefinition(name="work", limits=(Limit(max=1, by=("a",)),))


async def rows(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql(sql))

    return await store.database.read(body)


async def test_no_more_than_the_limit_are_claimed_and_the_next_when_one_ends(store: Store) -> None:
    runs = [await put(store, TWO) for _ in range(4)]
    held = await claim_limited(store)
    assert ids(held) == runs[:2]
    assert all(one.limited and one.fence == 1 and one.attempt == 1 for one in held)
    assert await claim_limited(store) == []
    await finish(store, held[1])
    assert ids(await claim_limited(store)) == [runs[2]]


async def test_plain_claims_leave_limited_runs_alone(store: Store) -> None:
    await put(store, TWO)
    plain = await put(store)
    assert ids(await claim(store)) == [plain]
    assert len(await claim_limited(store)) == 1


async def test_a_limited_run_is_queued_while_it_waits(store: Store) -> None:
    runs = [await put(store, TWO) for _ in range(3)]
    await claim_limited(store)
    assert await state_of(store, runs[2]) is RunState.QUEUED
    assert ids(await store.list_runs(RunFilter(states=(RunState.QUEUED,)), 10)) == [runs[2]]
    assert await store.list_runs(RunFilter(states=(RunState.SCHEDULED,)), 10) == []
    assert await store.queue_counts() == [("default", 2, 1, 0)]


async def test_priority_and_age_decide_within_a_limit(store: Store, clock: ManualClock) -> None:
    low, high = await put(store, TWO, priority=-5), await put(store, TWO, priority=5)
    middle = await put(store, TWO)
    assert ids(await claim_limited(store, 1)) == [high]
    assert ids(await claim_limited(store)) == [middle]
    assert await state_of(store, low) is RunState.QUEUED


@pytest.mark.parametrize("wanted", [("mail",), ("default", "mail")])
async def test_only_the_queues_and_jobs_asked_for(store: Store, wanted: tuple[str, ...]) -> None:
    mail = await put(store, TWO, queue="mail")
    assert await claim_limited(store, queues=["other"]) == []
    assert await claim_limited(store, queues=wanted, known={"else": 1}) == []
    assert ids(await claim_limited(store, queues=wanted)) == [mail]


async def test_a_newer_version_waits_for_a_worker_that_has_it(store: Store) -> None:
    newer = await put(store, JobDefinition(name="work", version=2, limits=(Limit(max=1),)))
    assert await claim_limited(store) == []
    assert ids(await claim_limited(store, known={"work": 2})) == [newer]


async def test_delayed_runs_come_under_their_limit_when_due(store: Store, clock: ManualClock) -> None:
    later = await put(store, TWO, delay="10s")
    assert await state_of(store, later) is RunState.SCHEDULED
    clock.advance(5 * SECOND)
    assert await claim_limited(store) == []
    clock.advance(5 * SECOND)
    assert (await store.promote(10)).count == 1
    assert await state_of(store, later) is RunState.QUEUED
    assert await claim(store) == []
    assert ids(await claim_limited(store)) == [later]


async def test_keys_have_turns(store: Store, clock: ManualClock) -> None:
    crowd = JobDefinition(name="work", limits=(Limit(max=2, by=("a",)),))
    await store.enqueue([make(crowd, payload={"a": key}) for key in "xxxxyyyyz"])
    served: list[str] = []
    held: list[Claim] = []
    for _ in range(9):
        clock.advance(SECOND)
        (one,) = await claim_limited(store, 1)
        served.append(one.payload[6])
        held.append(one)
        if len(held) == 2:
            await finish(store, held.pop(0))
    assert sorted(served[:3]) == ["x", "y", "z"]
    assert Counter(served[3:]) == {"x": 3, "y": 3}
    assert all(first != second for first, second in pairwise(served[3:]))


async def test_several_slots_are_shared_between_keys(store: Store) -> None:
    crowd = JobDefinition(name="work", limits=(Limit(max=5, by=("a",)),))
    await store.enqueue([make(crowd, payload={"a": key}) for key in "xxxxxyyyyy"])
    assert Counter(one.payload for one in await claim_limited(store, 4)) == {'{"a":"x"}': 2, '{"a":"y"}': 2}


BOTH = JobDefinition(name="work", limits=(Limit(max=3), Limit(max=2, by=("a",))))


async def test_per_job_and_per_key_together(store: Store) -> None:
    await store.enqueue([make(BOTH, payload={"a": key}) for key in "xxxxyyyy"])
    held = await claim_limited(store)
    assert sorted(Counter(one.payload for one in held).values()) == [1, 2]
    assert await claim_limited(store) == []
    assert await claim_limited(store) == []
    done = 0
    while held:
        await finish(store, held.pop())
        done += 1
        held += await claim_limited(store)
        assert len(held) <= 3
        assert max(Counter(one.payload for one in held).values(), default=0) <= 2
    assert done == 8


async def test_a_key_blocked_by_a_wider_limit_goes_on_with_it(store: Store) -> None:
    await store.enqueue([make(BOTH, payload={"a": key}) for key in "vwxyz"])
    held = await claim_limited(store)
    assert len(held) == 3
    assert await claim_limited(store) == []
    blocked = await rows(store, "select key from rota_limit where blocked_by = 'job:work'")
    assert len(blocked) == 2
    await finish(store, held[0])
    assert len(await claim_limited(store)) == 1


async def test_a_slot_comes_back_however_its_attempt_ends(store: Store, clock: ManualClock) -> None:
    one = JobDefinition(name="work", limits=(Limit(max=1),))
    for outcome in Outcome:
        await put(store, one, max_attempts=1)
        (held,) = await claim_limited(store)
        assert await tell(store, held, outcome)
        if outcome in (Outcome.SNOOZED, Outcome.HANDED_BACK):
            (again,) = await claim_limited(store)
            assert again.run_id == held.run_id
            await finish(store, again)
    assert await rows(store, "select run_id from rota_gate") == []


async def test_a_retried_run_stays_under_its_limit(store: Store, clock: ManualClock) -> None:
    runs = [await put(store, ONE_EACH, payload={"a": 1}) for _ in range(2)]
    (held,) = await claim_limited(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=10_000_000)
    (other,) = await claim_limited(store)
    assert other.run_id == runs[1]
    clock.advance(11 * SECOND)
    await store.promote(10)
    assert await claim(store) == await claim_limited(store) == []
    await finish(store, other)
    (again,) = await claim_limited(store)
    assert (again.run_id, again.attempt) == (runs[0], 2)


async def test_a_dead_holder_gives_its_slot_back(store: Store, clock: ManualClock, woken: set[str | None]) -> None:
    runs = [await put(store, ONE_EACH, payload={"a": 1}, max_attempts=1) for _ in range(2)]
    (dead,) = await claim_limited(store)
    clock.advance(LEASE + SECOND)
    assert await claim_limited(store) == []  # it may still renew
    woken.clear()
    await store.reap(10)
    assert woken == {"default"}
    assert ids(await claim_limited(store)) == [runs[1]]
    assert not await tell(store, dead, Outcome.SUCCEEDED)
    assert await claim_limited(store) == []


async def test_a_slot_whose_end_did_not_say_so_is_found_by_the_reaper(store: Store) -> None:
    runs = [await put(store, ONE_EACH, payload={"a": 1}) for _ in range(2)]
    (held,) = await claim_limited(store)
    assert await claim_limited(store) == []
    assert await tell(store, msgspec.structs.replace(held, limited=False), Outcome.SUCCEEDED)
    assert await claim_limited(store) == []
    await store.tidy()
    assert ids(await claim_limited(store)) == [runs[1]]


async def test_a_shut_limit_with_a_free_slot_is_opened_by_the_reaper(store: Store) -> None:
    run_id = await put(store, ONE_EACH, payload={"a": 1})

    async def shut(tx: Tx) -> None:
        await tx.fetch_sql("update rota_limit set shut = 1")

    await store.database.transact(shut)
    assert await claim_limited(store) == []
    await store.tidy()
    assert ids(await claim_limited(store)) == [run_id]


async def test_a_wider_limit_that_is_missing_is_made(store: Store) -> None:
    both = JobDefinition(name="work", limits=(Limit(max=1), Limit(max=1, by=("a",))))
    runs = {await put(store, both, payload={"a": one}) for one in (1, 2)}

    async def drop(tx: Tx) -> None:
        await tx.fetch_sql("delete from rota_limit where key = 'job:work'")

    await store.database.transact(drop)
    (first,) = await claim_limited(store)
    assert await claim_limited(store) == []
    await finish(store, first)
    (second,) = await claim_limited(store)
    assert {first.run_id, second.run_id} == runs


async def test_limits_that_nobody_uses_go(store: Store, clock: ManualClock) -> None:
    await put(store, BOTH, payload={"a": 1})
    await finish_all(store, await claim_limited(store))
    for _ in range(2):
        clock.advance(SECOND)
        await claim_limited(store)
    await store.tidy()
    assert len(await rows(store, "select key from rota_limit")) == 2
    clock.advance(timedelta(minutes=2))
    await store.tidy()
    assert await rows(store, "select key from rota_limit") == []
    run_id = await put(store, BOTH, payload={"a": 1})
    assert ids(await claim_limited(store)) == [run_id]


async def test_limits_under_which_nobody_waits_are_shut(store: Store, clock: ManualClock) -> None:
    many = JobDefinition(name="work", limits=(Limit(max=5, by=("a",)),))
    for key in range(40):
        await put(store, many, payload={"a": key})
    held = await claim_limited(store)
    clock.advance(SECOND)
    while (len(await rows(store, "select 1 from rota_limit where shut = 0"))) > 0:
        assert await claim_limited(store, 1) == []
    late = await put(store, many, payload={"a": 7})
    assert ids(await claim_limited(store)) == [late]
    assert len(held) == 40


@pytest.mark.parametrize("killing", [False, True])
async def test_fifty_claimers_racing_one_key(store: Store, second: Store, clock: ManualClock, killing: bool) -> None:
    """P6: never more leases than the limit, whatever happens to their holders."""
    runs = [make(TWO, max_attempts=30) for _ in range(30)]
    await store.enqueue(runs)
    done: set[str] = set()
    most = 0

    async def watch() -> None:
        nonlocal most
        while len(done) < len(runs):
            ((count,),) = await rows(store, "select count(*) from rota_lease")
            most = max(most, count)
            await asyncio.sleep(0)

    async def work(number: int) -> None:
        own = [store, second][number % 2]
        turn = 0
        while len(done) < len(runs):
            for held in await claim_limited(own, 3, worker=f"w{number}"):
                turn += 1
                if killing and (number + turn) % 3 == 0:
                    clock.advance(LEASE + SECOND)  # it dies, and so may others
                elif await tell(own, held, Outcome.SUCCEEDED):
                    done.add(held.run_id)
            if killing:
                await own.reap(10)
            await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(watch(), *[work(number) for number in range(50)])
    assert most <= 2
    assert {await state_of(store, run.id) for run in runs} == {RunState.SUCCEEDED}
    assert await rows(store, "select run_id from rota_gate") == []


async def test_many_keys_under_one_wider_limit_race(store: Store, second: Store) -> None:
    runs = [make(BOTH, payload={"a": number % 7}) for number in range(60)]
    await store.enqueue(runs)
    done: set[str] = set()

    async def work(number: int) -> None:
        own = [store, second][number % 2]
        while len(done) < len(runs):
            for held in await claim_limited(own, 2, worker=f"w{number}"):
                counts = await rows(
                    own,
                    "select g.key, count(*) from rota_gate g join rota_lease l "
                    "on l.run_id = g.run_id and l.fence = g.fence group by g.key",
                )
                assert all(count <= (3 if key == "job:work" else 2) for key, count in counts)
                await finish(own, held)
                done.add(held.run_id)
            await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*[work(number) for number in range(12)])


async def test_a_deploy_changes_the_limit_of_runs_that_wait(store: Store) -> None:
    def version(most: int, each: int) -> JobDefinition:
        return JobDefinition(name="work", limits=(Limit(max=most), Limit(max=each, by=("a",))))

    await store.save_jobs([version(2, 5)])
    await store.enqueue([make(version(2, 5), payload={"a": 1}) for _ in range(10)])
    held = await claim_limited(store)
    assert len(held) == 2
    assert await claim_limited(store) == []
    await store.save_jobs([version(4, 3)])
    held += await claim_limited(store)
    assert len(held) == 3
    assert await claim_limited(store) == []
    await store.save_jobs([version(1, 3)])
    await finish(store, held.pop())
    assert await claim_limited(store) == []
    await finish(store, held.pop())
    assert await claim_limited(store) == []
    await finish(store, held.pop())
    assert len(await claim_limited(store)) == 1


async def test_an_older_declaration_changes_nothing(store: Store) -> None:
    await store.save_jobs([JobDefinition(name="work", version=2, limits=(Limit(max=2),))])
    await store.enqueue([make(TWO) for _ in range(3)])
    await store.save_jobs([JobDefinition(name="work", version=1, limits=(Limit(max=1),))])
    assert len(await claim_limited(store)) == 2


def when_full(policy: str, most: int = 1, queued: int | None = None) -> JobDefinition:
    return JobDefinition(name="work", limits=(Limit(max=most, when_full=policy, max_queued=queued),))


async def test_one_too_many_is_rejected(store: Store) -> None:
    first = make(when_full("reject"))
    await store.enqueue([first])
    with pytest.raises(LimitReached) as caught:
        await put(store, when_full("reject"))
    assert (caught.value.key, caught.value.max, caught.value.status) == ("job:work", 1, 409)
    (again,) = await store.enqueue([first])  # repeated after an unknown outcome
    assert again.id == first.id
    await finish_all(store, await claim_limited(store))
    await put(store, when_full("reject"))


def per_scope(policy: str) -> JobDefinition:
    return JobDefinition(name="work", limits=(Limit(max=1, by=("scope",), when_full=policy),))


async def test_a_refusal_names_the_scope_and_the_run_that_holds_it(store: Store) -> None:
    await put(store, per_scope("reject"), scope=("account", "7"))
    holder = await put(store, per_scope("reject"), scope=("account", "42"))
    with pytest.raises(LimitReached) as caught:
        await put(store, per_scope("reject"), scope=("account", "42"))
    assert (caught.value.scope, caught.value.holder) == ("account/42", holder)
    assert "job 'work' takes no more runs for account/42 now" in caught.value.message
    assert caught.value.hint == f"try again when run {holder} has ended"


async def test_a_refusal_does_not_name_the_run_of_another_scope(store: Store) -> None:
    """A limit of all scopes may be held by another tenant."""
    holder = await put(store, when_full("reject"), scope=("account", "7"))
    with pytest.raises(LimitReached) as caught:
        await put(store, when_full("reject"), scope=("account", "42"))
    assert (caught.value.scope, caught.value.holder) == ("account/42", None)
    assert holder not in str(caught.value)


async def test_a_refusal_names_a_run_that_began_before_one_that_waits(store: Store) -> None:
    limited = when_full("queue", 1, 1)
    waiting, begun = make(limited, priority=0), make(limited, priority=5)
    await store.enqueue([waiting, begun])
    assert ids(await claim_limited(store)) == [begun.id]
    with pytest.raises(LimitReached) as caught:
        await put(store, limited)
    assert (caught.value.scope, caught.value.holder) == (None, begun.id)


async def test_a_bulk_with_one_too_many_is_rejected_as_a_whole(store: Store) -> None:
    with pytest.raises(LimitReached):
        await store.enqueue([make(when_full("reject", 2)) for _ in range(3)])
    assert await store.queue_counts() == []


async def test_one_too_many_is_skipped(store: Store) -> None:
    first, second = await put(store, when_full("skip")), await put(store, when_full("skip"))
    run = await store.get_run(second)
    assert (run.state, run.reason, run.fence, run.attempt) == (
        RunState.SKIPPED,
        "limit of job 'work' is full: 1 at once",
        0,
        0,
    )
    assert run.finished_at is not None
    assert ids(await claim_limited(store)) == [first]
    assert await put(store, when_full("skip")) != first


async def test_only_so_many_may_wait(store: Store) -> None:
    for _ in range(3):
        await put(store, when_full("queue", 1, 2))
    with pytest.raises(LimitReached, match="1 at once and 2 waiting"):
        await put(store, when_full("queue", 1, 2))


async def test_the_oldest_gives_way(store: Store) -> None:
    newest = when_full("cancel_oldest")
    first = await put(store, newest)
    second = await put(store, newest)
    run = await store.get_run(first)
    assert (run.state, run.reason) == (RunState.SKIPPED, f"superseded by run {second}")
    (held,) = await claim_limited(store)
    assert held.run_id == second
    third = await put(store, newest)
    fourth = await put(store, newest)
    states = [await state_of(store, id) for id in (second, third, fourth)]
    assert states == [RunState.CANCELLING, RunState.SKIPPED, RunState.QUEUED]
    assert await claim_limited(store) == []
    assert await tell(store, held, Outcome.CANCELLED)
    assert ids(await claim_limited(store)) == [fourth]


async def test_within_one_call_the_newest_stay(store: Store) -> None:
    runs = [make(when_full("cancel_oldest", 2)) for _ in range(5)]
    await store.enqueue(runs)
    states = [await state_of(store, run.id) for run in runs]
    assert states == [RunState.SKIPPED] * 3 + [RunState.QUEUED] * 2


@pytest.mark.parametrize("policy", ["reject", "skip"])
async def test_racing_enqueues_never_exceed_the_limit(store: Store, second: Store, policy: str) -> None:
    async def enqueue(number: int) -> bool:
        try:
            run_id = await put([store, second][number % 2], when_full(policy, 3))
        except LimitReached:
            return False
        return await state_of(store, run_id) is RunState.QUEUED

    assert sum(await asyncio.gather(*[enqueue(number) for number in range(20)])) == 3


async def test_a_unique_run_that_is_replaced_changes_its_limit(store: Store) -> None:
    definition = JobDefinition(name="work", limits=(Limit(max=1, by=("a",)),))
    unique = {"fields": ["id"], "on_conflict": "replace"}
    first = await put(store, definition, payload={"id": 1, "a": "x"}, unique=unique)
    await put(store, definition, payload={"id": 2, "a": "y"})
    assert await put(store, definition, payload={"id": 1, "a": "y"}, unique=unique) == first
    held = await claim_limited(store)
    assert len(held) == 1
    await finish(store, held[0])
    assert len(await claim_limited(store)) == 1


async def test_a_run_that_is_cancelled_leaves_its_limit(store: Store) -> None:
    first, second = [await put(store, ONE_EACH, payload={"a": 1}) for _ in range(2)]
    assert (await store.cancel(first, None, None)).state is RunState.CANCELLED
    assert ids(await claim_limited(store)) == [second]
    assert len(await rows(store, "select run_id from rota_gate")) == 1


async def test_freed_slots_are_told(store: Store) -> None:
    for queue in ("a", "b", "b"):
        await put(store, ONE_EACH, payload={"a": 1}, queue=queue)
    (held,) = await claim_limited(store, queues=["a", "b"])
    hints: list[str | None] = []
    stop = store.listen(hints.append)
    if store.database.dialect is POSTGRES:
        await until(lambda: None in hints)  # the listener is connected now
    await finish(store, held)
    await until(lambda: "b" in hints)
    stop()
