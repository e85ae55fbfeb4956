"""Runs that follow others: every way to follow, every way to end, and whoever comes at the same moment."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import Client, Config, Follows
from rota.client.runs.enqueue import linked
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.limits.limits import Limit
from rota.core.runs.dependencies import MOST_FOLLOWED
from rota.core.runs.run import NewRun, RunFilter
from rota.core.states import Outcome, RunState
from rota.errors import Invalid, UnknownRun
from rota.registry.jobs import Registry
from rota.store import Store, new_id
from rota.store.databases.database import Row, Tx
from rota.store.databases.postgres.postgres import PostgresTx
from rota.store.runs import cancel
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.audit_trails import trail, words
from tests.support.runs.runs import (
    LEASE,
    claim,
    claim_limited,
    finish,
    ids,
    make,
    put,
    put_and_claim,
    state_of,
    tell,
)
from tests.support.schedules.schedules import make_schedule, minutes, plan, runs_of

OTHER = "other"
SKIP, CANCEL, ANY_END = Follows("", "success"), Follows("", "success", "cancel"), Follows("", "end")
WAYS = pytest.mark.parametrize("way", [SKIP, CANCEL, ANY_END], ids=["skip", "cancel", "any end"])


def after(run: str, way: Follows = SKIP) -> Follows:
    return msgspec.structs.replace(way, run=run)


async def put_after(store: Store, *follows: str | Follows, job: JobDefinition | str = OTHER, **options: Any) -> str:
    return await put(store, job, after=list(follows), **options)


async def enqueue(store: Store, **call: dict[str, Any]) -> dict[str, str]:
    """Runs of one call, by their refs: each with its options. Returns their ids."""
    options: list[dict[str, Any]] = [{"ref": ref, **given} for ref, given in call.items()]
    runs = [make(given.pop("job", OTHER), **given) for given in options]
    answers = await store.enqueue(await linked(store.find_runs, options, runs))
    return {ref: answer.id for ref, answer in zip(call, answers, strict=True)}


async def others(store: Store) -> list[str]:
    return ids(await claim(store, known={OTHER: 1}))


async def left_over(store: Store, table: str = "rota_wait") -> list[Row]:
    return list(await store.database.read(lambda tx: tx.fetch_sql(f"select run_id from {table}")))


async def succeeds(store: Store, _clock: ManualClock, run_id: str) -> None:
    (held,) = await claim(store)
    await finish(store, held)


async def fails(store: Store, _clock: ManualClock, run_id: str) -> None:
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.FAILED)


async def times_out(store: Store, _clock: ManualClock, run_id: str) -> None:
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.TIMED_OUT)


async def is_lost(store: Store, clock: ManualClock, run_id: str) -> None:
    await claim(store)
    clock.advance(LEASE + SECOND)
    assert (await store.reap(10)).ended == 1


async def is_cancelled_before_it_began(store: Store, _clock: ManualClock, run_id: str) -> None:
    await store.cancel(run_id, None, "ada")


async def is_cancelled_while_it_runs(store: Store, _clock: ManualClock, run_id: str) -> None:
    (held,) = await claim(store)
    assert (await store.cancel(run_id, None, "ada")).state is RunState.CANCELLING
    assert await tell(store, held, Outcome.CANCELLED)


async def is_superseded(store: Store, _clock: ManualClock, run_id: str) -> None:
    await store.database.transact(lambda tx: cancel.supersede(tx, run_id, "superseded", "policy:overlap"))


Ending = Callable[[Store, ManualClock, str], Awaitable[None]]
ENDINGS: dict[Ending, str] = {
    succeeds: "",
    fails: "failed",
    times_out: "timed out",
    is_lost: "was lost with its worker",
    is_cancelled_before_it_began: "was cancelled",
    is_cancelled_while_it_runs: "was cancelled",
    is_superseded: "was skipped",
}
ENDS = pytest.mark.parametrize("end", list(ENDINGS), ids=lambda end: end.__name__)


async def check_follower(store: Store, follower: str, first: str, way: Follows, end: Ending) -> None:
    run = await store.get_run(follower)
    if end is succeeds or way is ANY_END:
        assert run.state is RunState.QUEUED
        assert await others(store) == [follower]
        return
    assert run.state is (RunState.SKIPPED if way is SKIP else RunState.CANCELLED)
    assert (run.reason, run.cancelled_by) == (f"run {first} {ENDINGS[end]}", "policy:dependency")
    assert run.finished_at is not None
    assert run.attempt == 0
    assert await others(store) == []
    last = (await store.ledger.events_of_run(follower))[-1]
    assert (last.from_state, last.to_state, last.actor) == (RunState.SCHEDULED, run.state, "policy:dependency")
    assert last.details["reason"] == run.reason


@WAYS
@ENDS
async def test_every_way_to_end(store: Store, clock: ManualClock, way: Follows, end: Ending) -> None:
    first = await put(store, max_attempts=1)
    follower = await put_after(store, after(first, way))
    assert await state_of(store, follower) is RunState.SCHEDULED
    assert await others(store) == []
    await end(store, clock, first)
    await check_follower(store, follower, first, way, end)
    assert await left_over(store) == []


@WAYS
@ENDS
async def test_a_predecessor_that_has_ended_already(
    store: Store, clock: ManualClock, way: Follows, end: Ending
) -> None:
    first = await put(store, max_attempts=1)
    await end(store, clock, first)
    follower = await put_after(store, after(first, way))
    await check_follower(store, follower, first, way, end)
    assert await left_over(store) == []


async def test_a_predecessor_that_is_tried_again_has_not_ended(store: Store) -> None:
    held = await put_and_claim(store)
    follower = await put_after(store, held.run_id)
    assert await tell(store, held, Outcome.FAILED, retry_in=0)
    assert await state_of(store, follower) is RunState.SCHEDULED
    await finish(store, (await claim(store))[0])
    assert await others(store) == [follower]


async def test_a_run_that_nobody_knows(store: Store) -> None:
    with pytest.raises(UnknownRun):
        await put_after(store, new_id())
    assert await left_over(store, "rota_ready") == []


async def test_all_of_several(store: Store) -> None:
    first, second = await put(store), await put(store)
    follower = await put_after(store, first, second)
    one, two = await claim(store)
    await finish(store, one)
    assert await others(store) == []
    await finish(store, two)
    assert await others(store) == [follower]


async def test_the_first_that_goes_wrong_decides(store: Store) -> None:
    first, second = await put(store), await put(store)
    follower = await put_after(store, after(first, CANCEL), second)
    one, two = await claim(store)
    assert await tell(store, two, Outcome.FAILED)
    assert await state_of(store, follower) is RunState.SKIPPED
    await finish(store, one)
    assert (await store.get_run(follower)).reason == f"run {second} failed"
    assert await left_over(store) == []


async def test_one_has_ended_well_and_one_is_still_at_it(store: Store) -> None:
    done = await put_and_claim(store)
    await finish(store, done)
    held = await put_and_claim(store)
    follower = await put_after(store, done.run_id, held.run_id)
    assert await others(store) == []
    await finish(store, held)
    assert await others(store) == [follower]


async def test_a_diamond(store: Store) -> None:
    call = await enqueue(
        store,
        last={"after": ["left", "right"]},
        left={"after": ["first"]},
        right={"after": ["first"]},
        first={},
    )
    assert sorted(call.values()) == [call[ref] for ref in ("first", "left", "right", "last")]
    for expected in (["first"], ["left", "right"], ["last"]):
        claims = await claim(store, known={OTHER: 1})
        assert ids(claims) == [call[ref] for ref in expected]
        for held in claims:
            await finish(store, held)


async def test_a_diamond_in_vain(store: Store) -> None:
    call = await enqueue(
        store,
        first={},
        left={"after": ["first"]},
        right={"after": [Follows("first", otherwise="cancel")]},
        last={"after": ["left", "right"]},
        anyway={"after": [Follows("last", on="end")]},
    )
    (held,) = await claim(store, known={OTHER: 1})
    assert await tell(store, held, Outcome.FAILED)
    assert {ref: await state_of(store, id) for ref, id in call.items()} == {
        "first": RunState.FAILED,
        "left": RunState.SKIPPED,
        "right": RunState.CANCELLED,
        "last": RunState.SKIPPED,
        "anyway": RunState.QUEUED,
    }
    assert (await store.get_run(call["last"])).reason == f"run {call['left']} was skipped"
    assert await left_over(store) == []


class Counting:
    """How many statements were sent."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        kind = PostgresTx
        if store.database.dialect.name == "sqlite":
            from rota.store.databases.sqlite.sqlite import SqliteTx

            kind = SqliteTx  # type: ignore[assignment]
        fetch = kind.fetch

        async def counted(tx: Any, name: str, rows: Any = None, /, **values: object) -> Any:
            self.count += 1
            return await fetch(tx, name, rows, **values)

        monkeypatch.setattr(kind, "fetch", counted)


async def test_a_thousand_at_once_and_a_long_chain_take_few_statements(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain: dict[str, dict[str, Any]] = {"r0": {}}
    chain |= {f"r{place}": {"after": [f"r{place - 1}"]} for place in range(1, 500)}
    chain |= {f"w{place}": {"after": ["r0"]} for place in range(499)}
    chain["last"] = {"after": [f"w{place}" for place in range(499)]}
    counting = Counting(store, monkeypatch)
    call = await enqueue(store, **chain)
    assert counting.count < 10
    (held,) = await claim(store, known={OTHER: 1})
    assert held.run_id == call["r0"]
    counting.count = 0
    assert await tell(store, held, Outcome.FAILED)
    assert counting.count < 30
    monkeypatch.undo()
    assert await state_of(store, call["r499"]) is RunState.SKIPPED
    assert await state_of(store, call["last"]) is RunState.SKIPPED
    assert await left_over(store) == await left_over(store, "rota_ready") == []


async def test_ordinary_runs_pay_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cost(act: Callable[[], Awaitable[object]]) -> int:
        counting.count = 0
        await act()
        return counting.count

    counting = Counting(store, monkeypatch)
    alone = await cost(lambda: store.enqueue([make()]))
    many = await cost(lambda: store.enqueue([make(), make()]))
    assert (alone, many) == (1, 1)  # SQLite's look for live limits, whose inserts are not counted here
    one, two, three = await claim(store)
    assert await cost(lambda: finish(store, one)) == (1 if store.database.dialect.name == "postgres" else 3)
    assert await cost(lambda: tell(store, two, Outcome.FAILED)) == 7
    assert await cost(lambda: tell(store, three, Outcome.FAILED, retry_in=0)) == 5


async def test_refs_that_follow_each_other(store: Store) -> None:
    with pytest.raises(Invalid, match="a → b → a"):
        await enqueue(store, a={"after": ["b"]}, b={"after": ["a"]})
    assert await left_over(store, "rota_ready") == []


async def test_the_same_call_again_gets_the_first_answer(store: Store) -> None:
    first = await put_and_claim(store)
    options: list[dict[str, Any]] = [{"ref": "b", "after": ["a"]}, {"ref": "a", "after": [first.run_id]}]
    runs = await linked(store.find_runs, options, [make(OTHER, **given) for given in options])
    answers = await store.enqueue(runs)
    assert await store.enqueue(runs) == answers
    assert len(await left_over(store)) == 2
    assert await tell(store, first, Outcome.FAILED)
    assert await store.enqueue(runs) == answers
    assert [await state_of(store, answer.id) for answer in answers] == [RunState.SKIPPED, RunState.SKIPPED]


async def test_a_key_that_is_held_leads_to_its_holder_and_leaves_no_waits(store: Store) -> None:
    first = await put_and_claim(store)
    holder = await put(store, OTHER, key="k")
    assert await put_after(store, first.run_id, key="k") == holder
    assert await left_over(store) == await left_over(store, "rota_followed") == []
    assert await others(store) == [holder]


async def test_whoever_follows_what_a_key_led_elsewhere_follows_its_holder(store: Store) -> None:
    holder = await put_and_claim(store, key="k")
    call = await enqueue(store, keyed={"job": "work", "key": "k"}, follower={"after": ["keyed"]})
    assert call["keyed"] == holder.run_id
    assert await others(store) == []
    await finish(store, holder)
    assert await others(store) == [call["follower"]]
    assert [one.id for one in await store.dependencies.parents(call["follower"])] == [holder.run_id]


async def test_two_that_a_key_makes_one_must_not_follow_each_other(store: Store) -> None:
    with pytest.raises(Invalid, match="cannot follow itself"):
        await enqueue(store, a={"key": "k"}, b={"after": ["c"], "key": "l"}, c={"after": ["a"], "key": "l"})
    assert await left_over(store, "rota_ready") == []


async def test_a_key_that_is_kept_while_it_waits_is_free_afterwards(store: Store) -> None:
    first = await put_and_claim(store)
    follower = await put_after(store, first.run_id, key="k")
    assert await put(store, OTHER, key="k") == follower
    assert await tell(store, first, Outcome.FAILED)
    assert await put(store, OTHER, key="k") != follower


async def test_its_time_and_its_limit_count_as_well(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    limited = JobDefinition(name=OTHER, limits=(Limit(max=1),))
    late = await put_after(store, held.run_id, job=limited, delay="10s")
    due = await put_after(store, held.run_id, job=limited)
    clock.advance(5 * SECOND)
    await store.promote(10)
    assert await claim_limited(store, known={OTHER: 1}) == []
    await finish(store, held)
    assert await state_of(store, late) is RunState.SCHEDULED
    (first,) = await claim_limited(store, known={OTHER: 1})
    assert first.run_id == due
    clock.advance(6 * SECOND)
    await store.promote(10)
    assert await claim_limited(store, known={OTHER: 1}) == []
    await finish(store, first)
    assert ids(await claim_limited(store, known={OTHER: 1})) == [late]


async def test_not_before_its_predecessor_even_when_its_time_has_come(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    follower = await put_after(store, held.run_id, delay="10s")
    clock.advance(20 * SECOND)
    await store.promote(10)
    assert await others(store) == []
    await finish(store, held)
    assert await others(store) == [follower]


async def test_in_vain_it_gives_back_its_place_under_a_limit(store: Store) -> None:
    full = JobDefinition(name=OTHER, limits=(Limit(max=1, max_queued=1),))
    held = await put_and_claim(store)
    await put_after(store, held.run_id, job=full)
    assert await tell(store, held, Outcome.FAILED)
    assert await left_over(store, "rota_gate") == []
    await put(store, full)
    await put(store, full)


async def test_a_predecessor_that_a_limit_skips_at_once(store: Store) -> None:
    full = JobDefinition(name="work", limits=(Limit(max=1, when_full="skip"),))
    await put(store, full)
    call = await enqueue(store, first={"job": full}, follower={"after": ["first"]})
    assert await state_of(store, call["first"]) is RunState.SKIPPED
    assert (await store.get_run(call["follower"])).reason == f"run {call['first']} was skipped"


async def test_a_limit_that_lets_the_oldest_give_way_to_its_follower(store: Store) -> None:
    newest = JobDefinition(name="work", limits=(Limit(max=1, when_full="cancel_oldest"),))
    oldest = await put(store, newest)
    follower = await put_after(store, oldest, job=newest)
    assert await state_of(store, oldest) is RunState.SKIPPED
    assert await state_of(store, follower) is RunState.SKIPPED, "it needed the one that gave way to it"


async def test_cancelled_while_it_waits(store: Store) -> None:
    held = await put_and_claim(store)
    middle = await put_after(store, held.run_id)
    last = await put_after(store, middle)
    anyway = await put_after(store, after(middle, ANY_END))
    assert (await store.cancel(middle, None, "ada")).state is RunState.CANCELLED
    assert await state_of(store, last) is RunState.SKIPPED
    assert await others(store) == [anyway], "what it followed has ended: it does not wait for the first"
    await finish(store, held)
    assert await left_over(store) == []
    assert await state_of(store, middle) is RunState.CANCELLED


async def test_stragglers_are_found_by_the_reaper(store: Store) -> None:
    first, second = await put(store), await put(store)
    going, skipped = await put_after(store, first), await put_after(store, second)
    anyway = await put_after(store, after(second, ANY_END))

    async def end_without_telling(tx: Tx) -> None:
        sql = "update rota_run set state = :state, finished_at = 1, attempt = 1, fence = 1 where id = :id"
        await tx.fetch_sql(sql, state="succeeded", id=first)
        await tx.fetch_sql(sql, state="failed", id=second)
        await tx.fetch_sql("delete from rota_ready where job = 'work'")

    await store.database.transact(end_without_telling)
    assert await others(store) == []
    await store.tidy()
    assert await others(store) == sorted([going, anyway])
    assert await state_of(store, skipped) is RunState.SKIPPED


async def test_what_is_gone_without_a_trace_is_not_waited_for(store: Store) -> None:
    first = await put(store)
    follower = await put_after(store, first)

    async def forget(tx: Tx) -> None:
        for table, column in (("rota_ready", "run_id"), ("rota_run", "id")):
            await tx.fetch_sql(f"delete from {table} where {column} = :id", id=first)

    await store.database.transact(forget)
    await store.tidy()
    assert (await store.get_run(follower)).reason == f"run {first} is gone"


async def test_a_retry_by_hand_does_not_wait_again_and_revives_nobody(store: Store) -> None:
    held = await put_and_claim(store)
    follower = await put_after(store, held.run_id)
    assert await tell(store, held, Outcome.FAILED)
    again = await store.copy_of(held.run_id)
    await store.enqueue([msgspec.structs.replace(again, id=new_id(), retry_of=held.run_id)])
    await finish(store, (await claim(store))[0])
    assert await state_of(store, follower) is RunState.SKIPPED
    copy = msgspec.structs.replace(await store.copy_of(follower), id=new_id(), retry_of=follower)
    await store.enqueue([copy])
    assert await others(store) == [copy.id]
    assert [one.id for one in await store.dependencies.parents(copy.id)] == [held.run_id]


async def test_who_followed_whom_is_known_afterwards(store: Store) -> None:
    held = await put_and_claim(store)
    other = await put(store)
    follower = await put_after(store, after(other, ANY_END), held.run_id)
    assert await tell(store, held, Outcome.SUCCEEDED, result='{"n":1}')
    parents = await store.dependencies.parents(follower)
    assert [(one.id, one.job, one.state, one.result, one.on, one.otherwise) for one in parents] == [
        (other, "work", RunState.QUEUED, None, "end", "skip"),
        (held.run_id, "work", RunState.SUCCEEDED, {"n": 1}, "success", "skip"),
    ]
    (child,) = await store.dependencies.children(held.run_id)
    assert (child.id, child.job, child.state) == (follower, OTHER, RunState.SCHEDULED)
    assert await store.dependencies.parents(other) == []


async def test_as_many_as_may_be(store: Store) -> None:
    runs = [make() for _ in range(MOST_FOLLOWED)]
    await store.enqueue(runs)
    follower = await put_after(store, *(run.id for run in runs))
    for held in await claim(store, MOST_FOLLOWED):
        assert await state_of(store, follower) is RunState.SCHEDULED
        await finish(store, held)
        break
    assert len(await left_over(store)) == MOST_FOLLOWED - 1


def test_a_run_that_follows_is_asked_for_by_itself() -> None:
    run: NewRun = make(after=["a"])
    assert run.may_be_refused
    assert not make().may_be_refused


async def test_the_trail_of_a_run_that_follows(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    at_once, later = await put_after(store, held.run_id), await put_after(store, held.run_id, delay="10s")
    await finish(store, held)
    ended = await put_after(store, held.run_id)
    clock.advance(11 * SECOND)
    await store.promote(10)
    assert words(await trail(store, at_once)) == ["created → scheduled", "released → queued"]
    assert (await trail(store, at_once))[1].details == {"after": held.run_id}
    assert words(await trail(store, later)) == ["created → scheduled", "due → queued"]
    assert words(await trail(store, ended)) == ["created → queued"], "there was nothing to wait for"


@WAYS
async def test_the_trail_of_a_run_that_followed_in_vain(store: Store, way: Follows) -> None:
    held = await put_and_claim(store)
    waiting = await put_after(store, after(held.run_id, way))
    assert await tell(store, held, Outcome.FAILED)
    late = await put_after(store, after(held.run_id, way))
    for run_id in (waiting, late):
        state = await state_of(store, run_id)
        told = words(await trail(store, run_id))
        if way is not ANY_END:
            assert told == ["created → scheduled", f"{state} → {state}"]


async def test_whoever_listens_is_told_of_an_end_in_vain(store: Store) -> None:
    await store.database.transact(
        lambda tx: tx.fetch_sql("insert into rota_listener (job, what, subject) values ('other', 'schedule', 's')")
    )
    held = await put_and_claim(store)
    waiting = await put_after(store, held.run_id)
    last = await put_after(store, after(waiting, CANCEL))
    assert await tell(store, held, Outcome.FAILED)
    late = await put_after(store, held.run_id)
    signals = await store.database.read(lambda tx: tx.fetch_sql("select subject, type from rota_signal order by no"))
    assert sorted(map(tuple, signals)) == sorted([(waiting, "skipped"), (last, "cancelled"), (late, "skipped")])


async def test_a_run_that_a_live_one_follows_is_not_pruned(store: Store) -> None:
    first = await put_and_claim(store)
    other = await put(store)
    follower = await put_after(store, first.run_id, other)
    await finish(store, first)
    everything = Retention(keep=0, keep_for=-timedelta(days=365 * 100))
    await store.prune(lambda _: everything)
    assert [one.state for one in await store.dependencies.parents(follower)] == [RunState.SUCCEEDED, RunState.QUEUED]
    await store.cancel(other, None, None)
    assert await state_of(store, follower) is RunState.SKIPPED
    await store.prune(lambda job: everything if job == "work" else Retention())
    assert [(one.job, one.state) for one in await store.dependencies.parents(follower)] == [(None, None)] * 2
    await store.prune(lambda _: everything)
    assert await left_over(store, "rota_followed") == []


async def test_a_schedule_keeps_its_own_order_whoever_follows_its_runs(store: Store, clock: ManualClock) -> None:
    """`queue_one` lets one run wait for its turn; one that follows for other reasons is not it."""
    await make_schedule(store, overlap="queue_one")
    clock.advance(minutes(1))
    await plan(store)
    (held,) = await claim(store)
    follower = await put_after(store, held.run_id)
    clock.advance(minutes(1))
    await plan(store)
    assert [run.state for run in await runs_of(store)] == [RunState.RUNNING, RunState.SCHEDULED]
    assert await tell(store, held, Outcome.FAILED)
    assert [run.state for run in await runs_of(store)] == [RunState.FAILED, RunState.QUEUED]
    assert await state_of(store, follower) is RunState.SKIPPED


async def test_all_of_a_graph_cancelled_at_once(store: Store) -> None:
    await enqueue(store, a={}, b={"after": ["a"]}, c={"after": ["b"]}, d={})
    client = Client(store, Registry(), Config())
    done = await client.cancel_many(RunFilter(job=OTHER))
    assert (done.done, done.refused) == (4, ())
    assert await left_over(store, "rota_ready") == []
