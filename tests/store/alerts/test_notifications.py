"""Notifications: who listens, exactly one delivery run for each end, and never a loop."""

import asyncio
from typing import Any

import pytest

from rota.core.alerts.notifications import notification_of
from rota.core.alerts.signals import Signal
from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import RetryPolicy
from rota.core.runs.run import Run, RunFilter
from rota.core.states import Outcome
from rota.errors import Conflict, UnknownNotification
from rota.store import Store
from rota.store.databases.database import Tx
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, finish, put_and_claim, tell
from tests.support.schedules.schedules import edit, make_schedule, minutes, noon, plan

ONCE = JobDefinition(name="work", retry=RetryPolicy(1))
HOOK = "https://example.com/hook"


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def add(store: Store, name: str = "ops", owner: str = "api", *, new: bool = True, **options: Any) -> None:
    enabled = options.pop("enabled", True)
    made = notification_of({"to": HOOK, **options})
    await store.notifications.save(name, made, owner, None, enabled=enabled, new=new)


async def fail(store: Store, **options: Any) -> str:
    held = await put_and_claim(store, ONCE, **options)
    await tell(store, held, Outcome.FAILED)
    return held.run_id


async def deliver(store: Store) -> int:
    """Return how many notifications were enqueued."""
    total = 0
    while (done := await store.signals.deliver(100)).signals:
        total += done.notified
    return total


async def sent(store: Store) -> list[Run]:
    runs = await store.list_runs(RunFilter(queue="rota"), 500)
    return sorted(runs, key=lambda run: run.id)


async def listeners(store: Store) -> set[tuple[str, str]]:
    async def body(tx: Tx) -> Any:
        return await tx.fetch_sql("select job, subject from rota_listener")

    return {tuple(row) for row in await store.database.read(body)}


async def test_an_end_is_told_once(store: Store) -> None:
    await add(store)
    run_id = await fail(store, payload={"secret": "mine"})
    assert await deliver(store) == 1
    assert await deliver(store) == 0
    (run,) = await sent(store)
    event = run.payload["event"]
    assert (run.job, run.payload["notification"]) == ("rota.webhook", "ops")
    assert (event["id"], event["type"], event["job"]) == (run.id, "run.failed", "work")
    assert (event["run"]["id"], event["run"]["error"]["message"]) == (run_id, "no luck")
    assert "payload" not in event["run"]


async def test_a_payload_if_it_is_wanted(store: Store) -> None:
    await add(store, include_payload=True)
    await fail(store, payload={"n": 1})
    await deliver(store)
    (run,) = await sent(store)
    assert run.payload["event"]["run"]["payload"] == {"n": 1}


async def test_each_gets_what_it_asked_for(store: Store) -> None:
    await add(store, "all", on=["success", "failure"])
    await add(store, "other", jobs=["other"])
    await add(store, "mail", to="mailto:a@example.com", jobs=["work"])
    await add(store, "off", enabled=False)
    await fail(store)
    await finish(store, await put_and_claim(store, ONCE))
    await deliver(store)
    told = sorted((run.payload["notification"], run.job, run.payload["event"]["type"]) for run in await sent(store))
    assert told == [
        ("all", "rota.webhook", "run.failed"),
        ("all", "rota.webhook", "run.succeeded"),
        ("mail", "rota.email", "run.failed"),
    ]


async def test_our_own_ends_are_told_to_nobody(store: Store) -> None:
    await add(store, on=["success", "failure", "cancelled"])
    await fail(store)
    await deliver(store)
    (held,) = await claim(store, queues=["rota"], known={"rota.webhook": 1})
    await tell(store, held, Outcome.FAILED)
    assert await deliver(store) == 0
    assert len(await sent(store)) == 1


async def test_three_messengers_at_once(store: Store, second: Store) -> None:
    await add(store, at_most=1_000)
    wanted = {await fail(store) for _ in range(30)}
    await asyncio.gather(*[one.signals.deliver(7) for one in (store, second, store) for _ in range(6)])
    await deliver(store)
    told = [run.payload["event"]["run"]["id"] for run in await sent(store)]
    assert len(told) == 30
    assert set(told) == wanted


async def test_a_crash_before_the_commit_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await add(store)
    await fail(store)
    asked = store.database.transact

    async def crash(work: Any, **more: Any) -> Any:
        async def body(tx: Tx) -> Any:
            await work(tx)
            raise RuntimeError("the power is gone")

        return await asked(body, **more)

    with monkeypatch.context() as broken:
        broken.setattr(store.database, "transact", crash)
        with pytest.raises(RuntimeError):
            await store.signals.deliver(100)
    assert await sent(store) == []
    assert await deliver(store) == 1


async def test_whoever_comes_later_is_not_told_of_what_was(store: Store, clock: ManualClock) -> None:
    await add(store, "first")
    await fail(store)
    clock.advance(minutes(1))
    await add(store, "second")
    await fail(store)
    await store.notifications.delete("first", None)
    await deliver(store)
    assert [run.payload["notification"] for run in await sent(store)] == ["second"]
    await store.notifications.delete("second", None)
    await fail(store)
    assert not (await store.signals.look()).signals


async def test_too_many_are_held_back_and_a_digest_tells_of_them(store: Store, clock: ManualClock) -> None:
    await add(store, at_most=20)
    for _ in range(5):
        await fail(store)
    assert await deliver(store) == 2  # a tenth of the budget is what one error may take
    assert not (await store.signals.look()).digests
    clock.advance(minutes(61))
    assert (await store.signals.look()).digests
    assert await store.signals.send_digests() == 1
    assert await store.signals.send_digests() == 0
    assert not (await store.signals.look()).digests
    *_, digest = [run.payload["event"] for run in await sent(store)]
    (group,) = digest["details"].pop("groups")
    assert (digest["type"], digest["details"]["held_back"]) == ("digest", 3)
    assert (group["job"], group["on"], group["count"]) == ("work", "failure", 3)
    await fail(store)
    assert await deliver(store) == 1


async def test_a_flood_of_failures_holds_no_breach_back(store: Store) -> None:
    await add(store, on=["failure", "breached", "met"], at_most=1)
    for _ in range(3):
        await fail(store)
        for word in ("breached", "met"):
            await store.signals.add(Signal(0, 0, word, "job", "work", "work"))
    await deliver(store)
    types = [run.payload["event"]["type"] for run in await sent(store)]
    assert sorted(types) == [*["job.breached"] * 3, *["job.met"] * 3, "run.failed"]


async def test_of_a_schedule_whatever_its_job_is(store: Store, clock: ManualClock) -> None:
    await add(store, schedules=["s"])
    assert await listeners(store) == set()
    await make_schedule(store, "s", every("1m"), job=ONCE)
    await make_schedule(store, "t", every("1m"), job=ONCE)
    assert await listeners(store) == {("work", "ops")}
    clock.advance(minutes(1))
    await plan(store)
    for held in await claim(store):
        await tell(store, held, Outcome.FAILED)
    await deliver(store)
    assert [run.payload["event"]["schedule"] for run in await sent(store)] == ["s"]
    other = JobDefinition(name="other")
    await store.save_jobs([other])
    definition = (await store.schedules.get("s")).definition  # type: ignore[union-attr]
    await edit(store, "s", definition.rule.trigger)
    await add(store, "late", schedules=["s"])
    assert await listeners(store) == {("work", "ops"), ("work", "late")}


async def test_what_a_schedule_misses(store: Store, clock: ManualClock) -> None:
    await add(store, on=["missed"], schedules=["s"])
    await make_schedule(store, "s", every("1m"), catch_up="none")
    clock.advance(minutes(30))
    await plan(store)
    await deliver(store)
    events = [run.payload["event"] for run in await sent(store)]
    assert {(event["type"], event["schedule"]) for event in events} == {("schedule.missed", "s")}
    assert sorted((event["details"]["reason"], event["details"]["count"]) for event in events) == [
        ("due together with a newer one", 1),
        ("later than its grace", 28),
    ]
    assert not any("run" in event for event in events)


async def test_what_others_signal_is_delivered(store: Store) -> None:
    await add(store, on=["breached"], jobs=["work"])
    await store.signals.add(Signal(0, 0, "breached", "job", "work", "work", None, {"what": "no success for 2h"}))
    await deliver(store)
    (run,) = await sent(store)
    assert run.payload["event"]["details"] == {"what": "no success for 2h"}


async def test_the_same_name_twice(store: Store) -> None:
    await add(store)
    await add(store)  # the same again: an answer that got lost
    with pytest.raises(Conflict, match="already"):
        await add(store, on=["success"])
    with pytest.raises(UnknownNotification, match="did you mean 'ops'"):
        await add(store, "oops", new=False)


async def test_code_changes_only_what_is_codes(store: Store) -> None:
    await add(store, "mine", on=["success"])
    await add(store, "mine", "code", new=False)
    await add(store, "theirs", "code", new=False)
    await add(store, "theirs", "code", on=["skip"], new=False)
    known = {one.name: (one.on, one.owner) for one in await store.notifications.list()}
    assert known == {"mine": (("success",), "api"), "theirs": (("skip",), "code")}


async def test_secrets_do_not_come_out(store: Store) -> None:
    await add(store, secret="hunter2", to="https://example.com/?token=hunter2")
    (view,) = await store.notifications.list()
    assert (view.secret, view.to) == ("***", "https://example.com/?***")
    assert "hunter2" not in str(await store.events.audit({}, 10, None))
    await fail(store)
    await deliver(store)
    assert "hunter2" not in str(await sent(store))


async def test_one_that_cannot_be_read_is_in_nobodys_way(store: Store) -> None:
    await add(store, "broken")
    await add(store)
    sql = "update rota_notification set definition = '[]' where name = 'broken'"
    await store.database.transact(lambda tx: tx.fetch_sql(sql))
    await fail(store)
    assert await deliver(store) == 1
    assert [view.name for view in await store.notifications.list()] == ["ops"]
