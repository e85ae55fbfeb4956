"""Expectations of jobs: each breaks and heals, is signalled once however many watchmen look, and rests with its job."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.alerts.expectations import Breach, expectations_of
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.states import Outcome
from rota.store import Store, open_database
from rota.store.alerts import expectation_facts, expectation_operations
from rota.store.alerts import expectations as stored_expectations
from rota.store.databases.database import Tx
from rota.store.databases.statements import SQLITE, compile_statement
from rota.values.clock import HostClock
from tests.store.runs.test_waits import put_after
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.audit_trails import repeat_everything
from tests.support.runs.expectations import listen, look, noted, open_now, signals
from tests.support.runs.runs import WORK, claim, finish, make, put, put_and_claim, tell
from tests.support.wait import until_blocked

TICK = timedelta(microseconds=1)


def work(**expect: Any) -> JobDefinition:
    return msgspec.structs.replace(WORK, expect=expectations_of(expect) if expect else None)


async def expect(store: Store, **expected: Any) -> None:
    await store.save_jobs([work(**expected)])


async def end(store: Store, outcome: Outcome) -> None:
    assert await tell(store, await put_and_claim(store), outcome)


async def test_nothing_expected_nothing_done(store: Store) -> None:
    await put(store)
    assert await look(store) == []


async def test_a_run_that_does_not_begin(store: Store, clock: ManualClock) -> None:
    await expect(store, start_within="5m")
    run_id = await put(store)
    clock.advance(5 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+start_within"]
    assert await look(store) == []
    (one,) = await store.expectations.list()
    assert [breach.details["run_id"] for breach in one.breaches] == [run_id]
    held = await claim(store)
    assert await look(store) == ["-start_within"]
    assert await look(store) == []
    await finish(store, held[0])
    assert await noted(store, "work") == [("breached", "start_within"), ("met", "start_within")]


async def test_a_run_is_late_from_when_it_is_due(store: Store, clock: ManualClock) -> None:
    await expect(store, start_within="5m", finish_within="10m")
    await put(store, delay="1h")
    clock.advance(timedelta(hours=1, minutes=5))
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+start_within"]
    clock.advance(5 * MINUTE)
    assert await look(store) == ["+finish_within"]


async def test_a_run_that_waits_for_another_is_not_due(store: Store, clock: ManualClock) -> None:
    await expect(store, start_within="5m", finish_within="10m")
    first = await put_and_claim(store)
    await put_after(store, first.run_id, job=WORK)
    clock.advance(9 * MINUTE)
    assert await look(store) == []
    await finish(store, first)
    assert await look(store) == []
    clock.advance(5 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+start_within"]


async def test_a_run_that_does_not_end(store: Store, clock: ManualClock) -> None:
    await expect(store, finish_within="10m")
    held = await put_and_claim(store)
    clock.advance(10 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+finish_within"]
    assert await tell(store, held, Outcome.FAILED, retry_in=3_600_000_000)
    assert await look(store) == []  # to be tried again, it has not ended
    clock.advance(timedelta(hours=1))
    await store.promote(10)
    (again,) = await claim(store)
    await finish(store, again)
    assert await look(store) == ["-finish_within"]


async def test_a_run_that_takes_too_long(store: Store, clock: ManualClock) -> None:
    await expect(store, max_duration="10m")
    await put(store)
    clock.advance(20 * MINUTE)
    (held,) = await claim(store)
    clock.advance(10 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+max_duration"]
    await finish(store, held)
    assert await look(store) == ["-max_duration"]


async def test_no_success_for_too_long(store: Store, clock: ManualClock) -> None:
    await expect(store, success_every="1h")
    clock.advance(60 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+success_every"]
    await end(store, Outcome.FAILED)
    assert await look(store) == []
    await end(store, Outcome.SUCCEEDED)
    await end(store, Outcome.FAILED)
    assert await look(store) == ["-success_every"]
    clock.advance(60 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+success_every"]


async def test_a_success_that_is_pruned_was_one(store: Store, clock: ManualClock) -> None:
    clock.advance(timedelta(microseconds=HostClock().micros() - clock.micros()))  # which is in the ids
    await expect(store, success_every="2h")
    clock.advance(60 * MINUTE)
    await end(store, Outcome.SUCCEEDED)
    clock.advance(60 * MINUTE)
    assert await store.prune(lambda _: Retention(keep=0, keep_for=timedelta(0))) == 1
    clock.advance(30 * MINUTE)
    assert await look(store) == []


async def test_a_success_behind_many_runs_that_wait(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.store.alerts.expectation_facts._WALK", 3)
    await expect(store, success_every="1h", max_consecutive_failures=1)
    clock.advance(59 * MINUTE)
    await end(store, Outcome.FAILED)
    await end(store, Outcome.FAILED)
    await end(store, Outcome.SUCCEEDED)
    await store.enqueue([make() for _ in range(10)])
    clock.advance(30 * MINUTE)
    assert await look(store) == []


async def test_failures_in_a_row(store: Store) -> None:
    await expect(store, max_consecutive_failures=2)
    for _ in range(2):
        await end(store, Outcome.FAILED)
    assert await look(store) == []
    await end(store, Outcome.TIMED_OUT)
    assert await look(store) == ["+max_consecutive_failures"]
    await end(store, Outcome.FAILED)
    assert await look(store) == []
    await end(store, Outcome.SUCCEEDED)
    assert await look(store) == ["-max_consecutive_failures"]


async def test_what_was_cancelled_is_neither_a_failure_nor_a_success(store: Store) -> None:
    await expect(store, max_consecutive_failures=0, success_every="1h")
    await store.cancel(await put(store), None, "anna")
    assert await look(store) == []


async def test_the_order_of_ends_counts_and_not_that_of_beginnings(store: Store, clock: ManualClock) -> None:
    await expect(store, max_consecutive_failures=0)
    await store.enqueue([make(), make()])
    first, second = await claim(store)
    assert await tell(store, second, Outcome.FAILED)
    clock.advance(SECOND)
    assert await tell(store, first, Outcome.SUCCEEDED)
    assert await look(store) == []


async def test_the_rate_of_success(store: Store) -> None:
    await expect(store, min_success_rate="50%", over=4, at_least=2)
    await end(store, Outcome.FAILED)
    assert await look(store) == []
    await end(store, Outcome.FAILED)
    assert await look(store) == ["+min_success_rate"]
    for seen in ([], [], ["-min_success_rate"]):  # with half of what it allows, so that it does not waver
        await end(store, Outcome.SUCCEEDED)
        assert await look(store) == seen


async def test_other_jobs_are_not_looked_at(store: Store, clock: ManualClock) -> None:
    await expect(store, start_within="1m", finish_within="1m", max_duration="1m", max_consecutive_failures=0)
    held = await put_and_claim(store, "other")
    await put(store, "other")
    clock.advance(60 * MINUTE)
    assert await look(store) == []
    assert await tell(store, held, Outcome.FAILED)
    assert await look(store) == []


async def test_three_at_once_begin_and_end_it_once(store: Store, database_url: str, clock: ManualClock) -> None:
    watchmen = [store, *(Store(open_database(database_url, clock)) for _ in range(2))]
    await listen(store, "*")
    await expect(store, start_within="1m", success_every="1m")
    for _ in range(3):
        await put(store)
        clock.advance(2 * MINUTE)
        told = await asyncio.gather(*(look(one) for one in watchmen))
        assert sorted(what for some in told for what in some) == ["+start_within", "+success_every"]
        (held,) = await claim(store)
        await finish(store, held)
        told = await asyncio.gather(*(look(one) for one in watchmen))
        assert sorted(what for some in told for what in some) == ["-start_within", "-success_every"]
    for one in watchmen[1:]:
        await one.close()
    assert len(await noted(store, "work")) == 12
    assert len([1 for what, *_ in await signals(store) if what in ("breached", "met")]) == 12


async def test_what_is_signalled_to_whoever_listens(store: Store, clock: ManualClock) -> None:
    await expect(store, start_within="5m")
    await listen(store, "work")
    run_id = await put(store)
    clock.advance(6 * MINUTE)
    await look(store)
    breached, late = await signals(store)
    assert breached[:5] == ("breached", "job", "work", "work", None)
    assert late[:5] == ("late", "run", run_id, "work", None)
    told = {"what": "start_within", "value": "6m", "limit": "5m", "run_id": run_id}
    assert {**told, "since": "2025-06-15T15:11:40Z"}.items() <= breached[5].items()
    assert breached[5]["message"] == f"run {run_id} was due 6m ago, and has not begun; start_within is 5m"
    await claim(store)
    await look(store)
    assert [signal[:3] for signal in (await signals(store))[2:]] == [("met", "job", "work")]


async def test_nobody_listens_nothing_is_signalled(store: Store, clock: ManualClock) -> None:
    await listen(store, "other")
    await expect(store, success_every="1m")
    clock.advance(2 * MINUTE)
    assert await look(store) == ["+success_every"]
    assert await signals(store) == []


async def test_a_paused_job_is_not_late(store: Store, clock: ManualClock) -> None:
    await expect(store, start_within="5m", success_every="1h")
    await put(store)
    clock.advance(6 * MINUTE)
    assert await look(store) == ["+start_within"]
    await store.pause_job("work", None, None)
    assert await look(store) == ["-start_within"]
    clock.advance(timedelta(days=1))
    assert await look(store) == []
    assert [one.resting for one in await store.expectations.list()] == [True]
    await store.resume_job("work", "skip", None)
    assert [one.resting for one in await store.expectations.list()] == [False]
    clock.advance(5 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+start_within"]
    clock.advance(55 * MINUTE)
    assert await look(store) == ["+success_every"]


async def test_a_disabled_job_is_not_late(store: Store, clock: ManualClock) -> None:
    await expect(store, success_every="1h")
    disabled = msgspec.structs.replace(work(success_every="1h"), enabled=False)
    await store.save_jobs([disabled])
    clock.advance(timedelta(days=1))
    assert await look(store) == []
    await expect(store, success_every="1h")
    clock.advance(60 * MINUTE)
    assert await look(store) == []
    clock.advance(TICK)
    assert await look(store) == ["+success_every"]


async def test_what_code_declares_is_replaced_by_code(store: Store, clock: ManualClock) -> None:
    await expect(store, start_within="5m", success_every="1h")
    clock.advance(2 * 60 * MINUTE)
    assert await look(store) == ["+success_every"]
    await expect(store, start_within="5m")
    assert await look(store) == ["-success_every"]
    await expect(store)
    assert await store.expectations.list() == []


async def test_what_code_no_longer_declares_is_met(store: Store, clock: ManualClock) -> None:
    await listen(store, "*")
    await expect(store, success_every="1h")
    clock.advance(2 * 60 * MINUTE)
    await look(store)
    await expect(store)
    assert await open_now(store) == []
    assert await noted(store, "work") == [("breached", "success_every"), ("met", "success_every")]
    assert [signal[0] for signal in await signals(store)] == ["breached", "met"]


async def test_a_deploy_does_not_change_what_a_person_set(store: Store) -> None:
    await expect(store, start_within="5m")
    await store.expectations.update("job", "work", {"start_within": "1m"}, "anna")
    await expect(store, start_within="10m")
    (one,) = await store.expectations.list()
    assert (one.owner, one.expect) == ("anna", {"start_within": "1m"})
    await expect(store)
    assert [one.owner for one in await store.expectations.list()] == ["anna"]


async def test_only_what_is_given_changes(store: Store, clock: ManualClock) -> None:
    await expect(store, start_within="5m", success_every="1h")
    since = (await store.expectations.list())[0].since
    clock.advance(MINUTE)
    await store.expectations.update("job", "work", {"success_every": None, "max_duration": "1h"}, "anna")
    (one,) = await store.expectations.list()
    assert (one.expect, one.since) == ({"start_within": "5m", "max_duration": "1h"}, since)


async def test_dropped_its_breaches_end(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([JobDefinition(name="work")])
    await store.expectations.update("job", "work", {"success_every": "1h"}, "anna")
    clock.advance(2 * 60 * MINUTE)
    assert await look(store) == ["+success_every"]
    assert await store.expectations.delete("job", "work", "anna")
    assert not await store.expectations.delete("job", "work", "anna")
    assert await open_now(store) == []
    assert await noted(store, "work") == [("breached", "success_every"), ("met", "success_every")]
    assert await look(store) == []


async def test_a_stale_look_writes_nothing(store: Store, second: Store, clock: ManualClock) -> None:
    """A run that was late when it was read began before the breach was written: it is checked again."""
    await expect(store, start_within="1m")
    await put(store)
    clock.advance(2 * MINUTE)
    assert await store.expectations._astray() == [("job", "work")]
    await claim(second)
    assert await store.expectations._settle("job", "work") is None
    assert await noted(store, "work") == []


async def test_after_an_outage_what_did_not_happen_is_breached(store: Store, clock: ManualClock) -> None:
    await expect(store, success_every="1h")
    clock.advance(timedelta(days=3))  # nobody looked
    assert await look(store) == ["+success_every"]
    (one,) = await store.expectations.list()
    assert one.breaches[0].since - one.since == timedelta(hours=1)


async def test_a_breach_that_another_is_just_writing(postgres_store: Store, clock: ManualClock) -> None:
    """The second watchman waits for the first, finds its breach, and writes nothing."""
    store = postgres_store
    await expect(store, success_every="1h")
    clock.advance(2 * 60 * MINUTE)
    written, go_on = asyncio.Event(), asyncio.Event()

    async def slow(tx: Tx) -> object:
        change = await expectation_operations._settled(tx, "job", "work")
        written.set()
        await go_on.wait()
        return change

    first = asyncio.create_task(store.database.transact(slow))
    await written.wait()
    second = asyncio.create_task(store.expectations._settle("job", "work"))
    await until_blocked(store.database)
    go_on.set()
    assert await first is not None
    assert await second is None
    assert await noted(store, "work") == [("breached", "success_every")]


async def test_what_is_repeated_after_an_unknown_outcome(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await listen(store, "*")
    await expect(store, success_every="1h")
    repeat_everything(store, monkeypatch)
    await store.expectations.update("job", "work", {"success_every": "2h"}, "anna")
    clock.advance(3 * 60 * MINUTE)
    await store.expectations.watch()
    await store.expectations.delete("job", "work", "anna")
    told = [event.type for event in await store.events.audit({"subject": "work"}, 10, None)]
    assert told == ["expected", "met", "breached", "expected"]
    assert [signal[0] for signal in await signals(store)] == ["breached", "met"]


@pytest.mark.parametrize("statement", ["late_to_begin", "late_to_end", "held_of_jobs"])
async def test_live_runs_are_not_looked_for_in_the_history_of_their_job(sqlite_store: Store, statement: str) -> None:
    sql = compile_statement(statement, SQLITE, manual_clock=False).sql.replace(":rows", "'[[\"work\", 1, 1]]'")

    async def body(tx: Tx) -> list[str]:
        return [plan for *_, plan in await tx.fetch_sql(f"explain query plan {sql.replace(':most', '20')}")]

    plan = await sqlite_store.database.read(body)
    assert not [line for line in plan if "rota_run_job" in line or line == "SCAN r"]


async def test_only_who_writes_a_breach_notes_it(store: Store) -> None:
    """The insert decides, not what a watchman believes."""
    await expect(store, success_every="1h")
    breach = Breach("success_every", 1, "no run has succeeded")
    subject = stored_expectations.Subject("job", "work", "work")
    assert await store.database.transact(lambda tx: stored_expectations.open_(tx, subject, [breach])) == (
        [breach],
        False,
    )
    assert await store.database.transact(lambda tx: stored_expectations.open_(tx, subject, [breach])) == ([], False)
    close = stored_expectations.close
    assert await store.database.transact(lambda tx: close(tx, subject, ["success_every"], None)) == (
        ["success_every"],
        False,
    )
    assert await store.database.transact(lambda tx: close(tx, subject, ["success_every"], None)) == ([], False)
    assert await noted(store, "work") == [("breached", "success_every"), ("met", "success_every")]


async def test_a_run_on_its_way_from_one_table_to_another(
    postgres_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is sent back for a retry during the check does not look ended."""
    store = postgres_store
    await expect(store, finish_within="10m")
    held = await put_and_claim(store)
    clock.advance(11 * MINUTE)
    assert await look(store) == ["+finish_within"]
    look_at_held = expectation_facts._held

    async def meanwhile(*facts: Any) -> Any:
        assert await tell(store, held, Outcome.FAILED, retry_in=1)
        return await look_at_held(*facts)

    monkeypatch.setattr(expectation_facts, "_held", meanwhile)
    assert await store.expectations._settle("job", "work") is None
    monkeypatch.undo()
    assert await look(store) == []
