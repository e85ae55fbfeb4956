"""Acts of operators on queues, jobs and schedules are noted: who, why, and once."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.core.calendar.triggers import every
from rota.core.ledger.audit import Event
from rota.core.ledger.backfill import BackfillOrder
from rota.core.schedules.revisions import Change
from rota.core.states import Outcome
from rota.errors import Conflict, UnknownSchedule
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import MINUTE, ManualClock
from tests.support.runs.audit_trails import repeat_everything, trail
from tests.support.runs.runs import WORK, claim, put, put_and_claim, tell
from tests.support.schedules.schedules import definition_of, edit, make_schedule, plan, runs_of


@pytest.fixture(params=[False, True], ids=["once", "repeated"])
def store(store: Store, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that repeats every repeatable transaction: all tests here must hold for it, too."""
    if request.param:
        repeat_everything(store, monkeypatch)
    return store


async def audit(store: Store, **wanted: str) -> list[tuple[str, str, str | None, str | None]]:
    """Return subject, type, actor and reason of each event, oldest first."""
    found = reversed(await store.events.audit(wanted, 100, None))
    return [(event.subject, event.type, event.actor, event.details.get("reason")) for event in found]


def told(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(event.type, event.actor) for event in events]


async def test_queues(store: Store) -> None:
    await store.pause_queue("mail", "relay is down", "ann")
    await store.pause_queue("mail", "again", "bob")
    assert await audit(store) == [("mail", "paused", "ann", "relay is down")]
    await store.resume_queue("mail", "bob")
    await store.resume_queue("mail", "ann")
    assert await audit(store, kind="queue", subject="mail") == [
        ("mail", "paused", "ann", "relay is down"),
        ("mail", "resumed", "bob", None),
    ]


async def test_jobs_and_what_that_does_to_their_schedules_and_runs(store: Store) -> None:
    await make_schedule(store)
    held, waiting = await put_and_claim(store), await put(store)
    await store.pause_job("work", "broken", "ann")
    await store.pause_job("work", "still", "bob")
    await store.resume_job("work", "skip", "bob")
    await store.resume_job("work", "skip", "ann")
    await store.cancel_job("work", "enough", "ann")
    with pytest.raises(Conflict, match="is cancelled"):
        await store.cancel_job("work", "enough", "ann")
    with pytest.raises(Conflict, match="is cancelled"):
        await store.pause_job("work", "enough", "ann")
    assert await audit(store, kind="job") == [
        ("work", "paused", "ann", "broken"),
        ("work", "resumed", "bob", None),
        ("work", "cancelled", "ann", "enough"),
    ]
    assert sorted(await audit(store, kind="run")) == sorted(
        [(held.run_id, "cancel_asked", "ann", "enough"), (waiting, "cancelled", "ann", "enough")]
    )
    assert told(await store.events.of_schedule("s")) == [
        ("created", None), ("job_paused", "ann"), ("resumed", "bob"), ("job_cancelled", "ann"),
    ]  # fmt: skip
    assert await audit(store, kind="schedule") == [("s", "created", None, None)]


async def test_a_schedule_from_its_creation_to_its_deletion(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([WORK])
    until = clock.micros() + 3_600_000_000
    await store.schedules.create("s", await definition_of(store), "code", declared="f", actor="code")
    await edit(store, "s", every("2m"))
    await edit(store, "s", every("2m"))
    await store.schedules.pause("s", "why", "ann", until)
    await store.schedules.pause("s", "why", "ann", until)
    await store.schedules.resume("s", "skip", "bob")
    await store.schedules.resume("s", "skip", "ann")
    await edit(store, "s", every("2m"), enabled=False)
    await edit(store, "s", every("2m"))
    applied = Change(note="applied by file:x", actor="ann", details={"owner": "file:x"})
    await store.schedules.update("s", await definition_of(store, every("3m")), applied)
    await store.schedules.delete("s", "bob")
    events = await store.events.of_schedule("s")
    assert told(events) == [
        ("created", "code"), ("updated", None), ("paused", "ann"), ("resumed", "bob"), ("disabled", None),
        ("enabled", None), ("applied", "ann"), ("deleted", "bob"),
    ]  # fmt: skip
    assert events[1].details == {"revision": 2, "changed": ["rule"]}
    assert events[6].details == {"revision": 7, "owner": "file:x", "changed": ["rule"]}
    assert events[2].details == {"revision": 3, "reason": "why", "resume_at": instant(until)}
    assert [line[1] for line in await audit(store, kind="schedule", subject="s")] == [event.type for event in events]
    await store.schedules.create("s", await definition_of(store), "code", actor="carl")
    assert told(await store.events.of_schedule("s")) == [("created", "carl")]
    with pytest.raises(UnknownSchedule):
        await store.events.of_schedule("nobody")


async def test_triggered_by_hand(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    (run,) = await store.schedules.trigger("s", None, force=False, actor="ann")
    assert told(await store.events.of_schedule("s")) == [("created", None), ("triggered", "ann")]
    (event,) = await store.events.audit({"actor": "ann"}, 10, None)
    assert event.details == {"runs": [run.id]}
    assert (await trail(store, run.id))[0].actor == "ann"


@pytest.mark.parametrize("paused", [False, True])
async def test_backfilled(store: Store, clock: ManualClock, paused: bool) -> None:
    await make_schedule(store, catch_up="none")
    if paused:
        await store.schedules.pause("s", None, "ann", None)
    clock.advance(10 * MINUTE)
    await plan(store)
    at = clock.micros()
    order = BackfillOrder(at - 300_000_000, at - 120_000_000, actor="bob")
    await store.ledger.backfill("s", order)
    await store.ledger.backfill("s", BackfillOrder(at - 300_000_000, at - 120_000_000, dry_run=True, actor="bob"))
    events = await store.events.of_schedule("s")
    assert told(events) == [("created", None), *([("paused", "ann")] if paused else []), ("backfilled", "bob")]
    made = [run for run in await runs_of(store) if "backfill" in run.tags]
    assert events[-1].details["count"] == len(made) > 2
    assert events[-1].details["from_at"] == instant(order.from_at)
    assert (await trail(store, made[0].id))[0].actor == "bob"


async def test_a_policy_that_pauses_is_among_its_revisions(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, failure="pause")
    clock.advance(MINUTE)
    await plan(store)
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.FAILED)
    clock.advance(MINUTE)
    await plan(store)
    assert told(await store.events.of_schedule("s")) == [("created", None), ("paused", "planner")]


async def test_pages_and_filters(store: Store, clock: ManualClock) -> None:
    for number in range(5):
        clock.advance(timedelta(seconds=1))
        await store.pause_queue(f"q{number}", None, "ann" if number % 2 else "bob")
    first = await store.events.audit({}, 2, None)
    assert [event.subject for event in first] == ["q4", "q3"]
    assert [event.subject for event in await store.events.audit({}, 2, first[-1].seq)] == ["q2", "q1"]
    assert [line[0] for line in await audit(store, actor="ann")] == ["q1", "q3"]
    assert await audit(store, kind="job") == []
    assert first[0].at == datetime.fromtimestamp(clock.micros() / 1e6, UTC)
