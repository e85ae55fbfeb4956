"""Quotas: what a scope may have over all jobs, for runs that come and those that are there, whoever makes them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.limits.quotas import quota_of
from rota.core.monitoring.doctor import check_symptoms
from rota.core.runs.claim import Claim
from rota.core.states import Outcome, RunState
from rota.errors import KindPaused, QuotaExceeded
from rota.store import Store, open_database
from rota.store.databases.database import Row, Tx
from rota.store.runs import enqueue
from rota.values.instants import instant
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.runs import claim, claim_limited, finish, finish_all, ids, make, put, state_of, tell

KNOWN = {"work": 1, "other": 1}
A, B = ("tenant", "a"), ("tenant", "b")


@pytest.fixture(autouse=True)
async def nothing_left(store: Store) -> AsyncIterator[None]:
    """Whatever a test claimed under a quota, it gave back."""
    yield
    assert await rows(store, "select key from rota_gate where key like '%quota%' and fence is not null") == []


async def rows(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql(sql))

    return await store.database.transact(body)


async def quota(store: Store, id: str = "", **what: Any) -> None:
    await store.quotas.update("tenant", id, quota_of(**what), "ann")


async def held(store: Store, slots: int = 100) -> list[Claim]:
    return await claim_limited(store, slots, known=KNOWN)


async def test_over_two_jobs_and_each_scope_for_itself(store: Store) -> None:
    await quota(store, max_concurrency=2)
    for job in ("work", "other"):
        for scope in (A, A, B):
            await put(store, job, scope=scope)
    await put(store)
    assert len(await claim(store, known=KNOWN)) == 1
    first = await held(store)
    assert len(first) == 4
    assert await held(store) == []
    await finish_all(store, first)
    last = await held(store)
    assert len(last) == 2
    await finish_all(store, last)


async def test_runs_without_a_scope_ask_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, exist = list[bool](), store.quotas.exist

    async def noted() -> bool:
        answers.append(await exist())
        return answers[-1]

    monkeypatch.setattr(store.quotas, "exist", noted)
    await put(store)
    assert answers == []
    await put(store, scope=A)
    assert answers == [False]
    await quota(store, max_concurrency=1)
    await put(store)
    assert answers == [False]
    await put(store, scope=A)
    assert answers == [False, True]


async def test_that_there_is_none_is_not_believed_for_long(store: Store, second: Store, clock: ManualClock) -> None:
    early = await put(store, scope=A)
    await quota(second, max_concurrency=1)
    late = await put(store, scope=A)
    (one,) = await held(store)
    assert one.run_id == early
    clock.advance(SECOND)
    await put(store, scope=A)
    assert await held(store) == []
    clock.advance(6 * SECOND)
    await second.tidy()  # those that came meanwhile
    assert await claim(store) == []
    await finish(store, one)
    (next_one,) = await held(store)
    assert next_one.run_id == late
    await finish(store, next_one)


@pytest.mark.parametrize("by", ["pause", "zero"])
async def test_nothing_begins_once_a_first_pause_has_answered(
    store: Store, second: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    await put(second, scope=B)
    await finish_all(second, await claim(second))  # knows now that there is no quota
    unnoticed = list[str]()

    async def meanwhile(seconds: float) -> None:
        unnoticed.append(await put(second, scope=A))
        clock.advance(timedelta(seconds=seconds))

    monkeypatch.setattr(store.quotas, "_rest", meanwhile)
    await (store.quotas.pause("tenant", "a", None, "ann") if by == "pause" else quota(store, "a", max_concurrency=0))
    late = await put(second, scope=A)
    assert await claim(second) == []
    assert await held(second) == []
    await store.quotas.resume("tenant", "a", "ann")
    begun = await claim(second)
    assert ids(begun) == [*unnoticed, late]
    assert len(unnoticed) == 1
    await finish_all(second, begun)


async def test_a_first_pause_and_first_numbers_at_once_are_both_kept(
    store: Store, second: Store, clock: ManualClock
) -> None:
    await store.quotas.update("tenant", "known", quota_of(max_concurrency=1), "me")
    clock.advance(MINUTE)  # so that everybody knows that there are quotas
    for n in range(20):
        await asyncio.gather(
            store.quotas.pause("tenant", str(n), "a move", "me"),
            second.quotas.update("tenant", str(n), quota_of(max_concurrency=5), "me"),
        )
    found = [await store.quotas.get("tenant", str(n)) for n in range(20)]
    assert [(quota.paused, quota.max_concurrency) for quota in found if quota] == [(True, 5)] * 20


async def test_a_pause_waits_only_if_somebody_may_not_know_of_quotas(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests = list[float]()

    async def noted(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(store.quotas, "_rest", noted)
    await quota(store, "b", max_concurrency=1)
    assert rests == []  # a number is not a pause
    await store.quotas.pause("tenant", "a", None, "ann")
    assert len(rests) == 1  # that one is too new to be known to all
    clock.advance(2 * SECOND)
    await store.quotas.pause("tenant", "c", None, "ann")
    assert len(rests) == 1


async def test_one_scope_has_its_own(store: Store) -> None:
    await quota(store, max_concurrency=1)
    await quota(store, "b", max_concurrency=3)
    for scope in (A, B) * 4:
        await put(store, scope=scope)
    first = await held(store)
    assert sorted(one.scope_id for one in first) == ["a", "b", "b", "b"]
    assert await store.quotas.delete("tenant", "b")
    await finish_all(store, first)
    second = await held(store)
    assert sorted(one.scope_id for one in second) == ["a", "b"]
    await finish_all(store, second)


async def test_too_many_that_wait_are_refused(store: Store) -> None:
    await quota(store, max_concurrency=1, max_queued=2)
    for job in ("work", "other", "work"):
        await put(store, job, scope=A)
    with pytest.raises(QuotaExceeded, match=r"quota of tenant/a is full: 1 at once and 2 waiting"):
        await put(store, scope=A)
    await put(store, scope=B)
    await finish_all(store, await held(store))
    await put(store, scope=A)


async def test_only_how_many_wait(store: Store) -> None:
    await quota(store, max_queued=2)
    for _ in range(2):
        await put(store, scope=A)
    with pytest.raises(QuotaExceeded, match="2 waiting"):
        await put(store, scope=A)
    first = await held(store)
    assert len(first) == 2
    await put(store, scope=A)
    await finish_all(store, [*first, *await held(store)])


async def test_a_rate(store: Store, clock: ManualClock) -> None:
    await quota(store, rate=(2, "1m"), max_queued=5)
    for _ in range(3):
        await put(store, scope=A)
        await put(store, "other", scope=A)
    await put(store, scope=A)
    with pytest.raises(QuotaExceeded, match="2 per 1m and 5 waiting"):
        await put(store, scope=A)
    first = await held(store)
    assert len(first) == 2
    await finish_all(store, first)
    assert await held(store) == []
    clock.advance(MINUTE)
    await store.promote(10)
    again = await held(store)
    assert len(again) == 2
    await finish_all(store, again)


async def test_one_is_set_while_runs_wait_and_run(store: Store, clock: ManualClock) -> None:
    runs = [await put(store, scope=A) for _ in range(5)]
    later = await put(store, scope=A, delay="10s")
    elsewhere = await put(store, scope=B)
    running = await claim(store, 2)
    await quota(store, "a", max_concurrency=2)
    assert ids(await claim(store)) == [elsewhere]
    assert await held(store) == []
    assert await state_of(store, later) is RunState.SCHEDULED
    await finish(store, running[0])
    await store.tidy()  # whoever claimed it did not know of the quota
    (next_one,) = await held(store)
    assert next_one.run_id == runs[2]
    assert await tell(store, running[1], Outcome.FAILED, retry_in=1_000_000)
    (another,) = await held(store)
    assert await held(store) == []
    clock.advance(11 * SECOND)
    await store.promote(10)
    assert await claim(store) == await held(store) == []
    await finish_all(store, [next_one, another])
    last = await held(store)
    assert len(last) == 2
    await finish_all(store, last)
    last = await held(store)
    assert len(last) == 1
    await finish_all(store, last)


async def test_dropped_it_frees_its_runs(store: Store, clock: ManualClock) -> None:
    await quota(store, max_concurrency=1)
    limited = JobDefinition(name="other", limits=(Limit(max=5),))
    for _ in range(3):
        await put(store, scope=A)
    (one,) = await held(store)
    kept = [await put(store, limited, scope=A) for _ in range(2)]
    later = await put(store, scope=A, delay="10s")
    assert await store.quotas.delete("tenant", "")
    assert not await store.quotas.delete("tenant", "")
    assert len(await claim(store, known=KNOWN)) == 2
    assert ids(await held(store)) == kept
    clock.advance(10 * SECOND)
    await store.tidy()
    await store.promote(10)
    assert ids(await claim(store)) == [later]
    await finish(store, one)
    assert await rows(store, "select scope_kind from rota_quota") == []


async def test_changed_it_holds_for_runs_that_wait(store: Store, clock: ManualClock) -> None:
    await quota(store, max_concurrency=1)
    for _ in range(10):
        await put(store, scope=A)
    first = await held(store)
    assert await held(store) == []
    await quota(store, max_concurrency=3)
    first += await held(store)
    assert len(first) == 3
    await quota(store, rate=(1, "1m"))
    (one,) = await held(store)
    assert await held(store) == []
    await finish_all(store, [*first, one])
    await quota(store, "a", rate=(3, "1m"))
    more = await held(store)
    assert len(more) == 2
    await finish_all(store, more)


async def test_under_narrower_limits(store: Store) -> None:
    each = JobDefinition(name="work", limits=(Limit(max=1, by=("a",)),))
    await quota(store, max_concurrency=2)
    await store.enqueue([make(each, payload={"a": number}, scope=A) for number in range(5)])
    done = 0
    while first := await held(store):
        assert len(first) <= 2
        await finish_all(store, first)
        done += len(first)
    assert done == 5


async def test_what_a_person_set_a_deploy_does_not_change(store: Store) -> None:
    await store.quotas.update("tenant", "", quota_of(max_concurrency=1), "code")
    await store.quotas.update("tenant", "", quota_of(max_concurrency=2), "code")
    assert [one.max_concurrency for one in await store.quotas.list()] == [2]
    await quota(store, max_concurrency=7)
    await store.quotas.update("tenant", "", quota_of(max_concurrency=2), "code")
    (one,) = await store.quotas.list()
    assert (one.max_concurrency, one.owner, one.id) == (7, "ann", None)


async def test_many_at_once_share_a_model(store: Store) -> None:
    await quota(store, max_concurrency=2)
    model = make(scope=A)
    await store.enqueue([model, *(msgspec.structs.replace(make(scope=A), like=model) for _ in range(4))])
    first = await held(store)
    assert len(first) == 2
    await finish_all(store, first)


async def test_settled_in_bites_after_whoever_set_it_died(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.store.limits.quotas._BATCH", 2)
    for _ in range(5):
        await put(store, scope=A)

    async def nothing(*_: Any) -> None: ...

    with monkeypatch.context() as dying:
        dying.setattr(type(store.quotas), "_settle", nothing)
        await quota(store, max_concurrency=1)
    await store.tidy()
    assert len(await rows(store, "select run_id from rota_gate")) == 2  # the batch that is settled with the change
    clock.advance(timedelta(seconds=6))
    await store.tidy()
    assert len(await rows(store, "select run_id from rota_gate")) == 5
    assert await claim(store) == []
    one = await held(store)
    assert len(one) == 1
    assert await rows(store, "select settled from rota_quota") == [(1,)]
    await finish_all(store, one)


async def test_whoever_asks_again_does_what_the_first_did_not_come_to(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await put(store, scope=A)

    async def nothing(*_: Any) -> None: ...

    with monkeypatch.context() as dying:
        dying.setattr(type(store.quotas), "_settle", nothing)
        await quota(store, max_concurrency=1)
    await quota(store, max_concurrency=1)
    assert await claim(store) == []
    one = await held(store)
    assert len(one) == 1
    with monkeypatch.context() as dying:
        dying.setattr(type(store.quotas), "_settle", nothing)
        assert await store.quotas.delete("tenant", "")
    assert not await store.quotas.delete("tenant", "")
    assert len(await claim(store)) == 2
    await finish_all(store, one)


async def test_those_that_run_count_when_how_many_may_is_said_later(store: Store) -> None:
    for _ in range(3):
        await put(store, scope=A)
    running = await claim(store, 3)
    await quota(store, max_queued=1)
    await quota(store, max_concurrency=1, max_queued=1)
    with pytest.raises(QuotaExceeded):
        await put(store, scope=A)
    await finish_all(store, running)
    await store.tidy()  # whoever claimed them did not know of the quota


async def test_an_enqueue_under_way_when_it_is_set_comes_under_it_soon(postgres_url: str, clock: ManualClock) -> None:
    first, other = (Store(open_database(postgres_url, clock)) for _ in range(2))
    read, may_commit = asyncio.Event(), asyncio.Event()
    runs = [make(scope=A) for _ in range(3)]

    async def slowly(tx: Tx) -> None:
        await enqueue.enqueue(tx, runs)
        read.set()
        await may_commit.wait()

    slow = asyncio.create_task(first.database.transact(slowly))
    await read.wait()
    await quota(other, max_concurrency=1)
    may_commit.set()
    await slow
    clock.advance(6 * SECOND)
    await other.tidy()
    assert await claim(other) == []
    one = await held(other)
    assert ids(one) == [runs[0].id]
    await finish_all(other, one)
    for store in (first, other):
        await store.close()


async def test_a_question_that_was_under_way_does_not_hide_the_first_quota(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another task asks whether there are quotas between the change and its commit."""
    database, transact = store.database, store.database.transact

    async def asked_meanwhile(work: Any, **facts: Any) -> Any:
        await store.quotas.exist()
        return await transact(work, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(database, "transact", asked_meanwhile)
        await quota(store, max_concurrency=1)
    assert await store.quotas.exist()


async def test_a_scope_that_its_kind_pauses_cannot_be_resumed_alone(store: Store) -> None:
    await quota(store, max_concurrency=0)
    with pytest.raises(KindPaused, match="paused with all scopes of kind 'tenant'"):
        await store.quotas.resume("tenant", "a", "ann")
    await store.quotas.pause("tenant", "a", None, "ann")
    with pytest.raises(KindPaused):
        await store.quotas.resume("tenant", "a", "ann")
    await store.quotas.update("tenant", "b", quota_of(max_concurrency=2), "ann")
    await store.quotas.pause("tenant", "b", None, "ann")
    assert await store.quotas.resume("tenant", "b", "ann")  # it has a quota of its own
    await store.quotas.delete("tenant", "")
    assert await store.quotas.resume("tenant", "a", "ann")
    assert not await store.quotas.resume("tenant", "a", "ann")


async def test_a_run_and_the_doctor_name_the_pause_of_a_scope(store: Store, clock: ManualClock) -> None:
    runs = [await put(store, scope=scope) for scope in (A, A, B)]
    await store.quotas.pause(*A, "they move", "ann")
    explained = " ".join((await store.ledger.explain_run(runs[0], 1_000_000)).words)
    since = instant(clock.micros()).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert f"Its scope 'tenant/a' is paused by ann since {since}: they move." in explained
    assert "slots" not in explained
    checks = {check.name: check for check in check_symptoms(await store.ledger.symptoms(1, 1))}
    assert checks["paused"].words == "scope tenant/a is paused by ann (they move), and 2 runs wait"
    assert checks["paused"].hint == "rota scope resume tenant/a"
    await store.quotas.resume(*A, "ann")
    await quota(store, max_concurrency=0)
    assert "Its scope 'tenant/b' is paused by ann" in " ".join((await store.ledger.explain_run(runs[2], 1)).words)
    checks = {check.name: check for check in check_symptoms(await store.ledger.symptoms(1, 1))}
    assert checks["paused"].words == "each scope of kind tenant is paused by ann, and 3 runs wait"
    assert checks["paused"].hint == "rota quota delete tenant"
