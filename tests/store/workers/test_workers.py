"""Workers in the database: what they say of themselves, what is asked of them, and that they hear of it."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from rota.core.workers.worker import OperatorRequest, Pace, WorkerInfo, WorkerSettings, WorkerState, read_asked
from rota.errors import AmbiguousWorker, Conflict, Invalid, UnknownWorker
from rota.store import Store
from rota.store.runs.prune import drop_silent_workers
from tests.support.clock import ManualClock
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, put

PACE = Pace(heartbeat=timedelta(seconds=1), poll=timedelta(seconds=2), lease=timedelta(seconds=3))


def worker(id: str = "web@1", **facts: object) -> WorkerInfo:
    named: dict[str, object] = {"id": id, "name": id.partition("@")[0], "pace": PACE}
    return msgspec.structs.replace(WORKER, **{**named, **facts})


async def beat(store: Store, one: WorkerInfo) -> OperatorRequest | None:
    """What it hears."""
    asked = (await store.extend(one, [], LEASE_MICROS)).asked
    return None if asked is None else read_asked(asked)


async def test_a_worker_tells_who_it_is(store: Store, clock: ManualClock) -> None:
    info = worker(queues=("a", "b"), weights={"a": 3, "b": 1})
    assert await beat(store, info) is None
    clock.advance(timedelta(seconds=2))
    await beat(store, info)
    (found,) = await store.workers.list()
    assert (found.id, found.name, found.host, found.pid, found.version) == ("web@1", "web", "here", 1, "1")
    assert (found.queues, found.jobs, found.slots) == ({"a": 3, "b": 1}, ("work",), 10)
    assert (found.heartbeat, found.poll, found.state) == (PACE.heartbeat, PACE.poll, WorkerState.WORKING)
    assert found.seen_at - found.started_at == timedelta(seconds=2)
    assert (found.held, found.runs, found.asked, found.asked_by) == (0, (), None, None)


async def test_what_changes_is_told_with_the_next_heartbeat(store: Store) -> None:
    await beat(store, worker(queues=("a", "b"), weights={"a": 3, "b": 1}))
    slower = msgspec.structs.replace(PACE, poll=timedelta(seconds=9))
    await beat(store, worker(queues=("c",), slots=3, state=WorkerState.DRAINING, pace=slower))
    (found,) = await store.workers.list()
    assert (found.queues, found.slots, found.state) == ({"c": 1}, 3, WorkerState.DRAINING)
    assert found.poll == timedelta(seconds=9)


async def test_its_runs_are_listed_and_only_so_many(store: Store) -> None:
    ids = [await put(store) for _ in range(25)]
    await claim(store, 25, worker="web@1")
    await beat(store, worker())
    await beat(store, worker("other@1"))
    other, web = await store.workers.list()
    assert (other.held, other.runs) == (0, ())
    assert web.held == 25
    assert [run.id for run in web.runs] == ids[:20]
    assert (web.runs[0].job, web.runs[0].attempt) == ("work", 1)


async def test_one_that_is_silent_for_longer_than_its_lease_is_gone(store: Store, clock: ManualClock) -> None:
    await beat(store, worker())
    clock.advance(PACE.lease)
    assert (await store.workers.list())[0].state is WorkerState.WORKING
    clock.advance(timedelta(microseconds=1))
    assert (await store.workers.list())[0].state is WorkerState.GONE
    await beat(store, worker())
    assert (await store.workers.list())[0].state is WorkerState.WORKING


async def test_it_hears_what_is_asked_with_every_heartbeat(store: Store, second: Store) -> None:
    await beat(store, worker())
    (asked,) = await second.workers.ask("web", "cli:ada", state=WorkerState.DRAINING)
    assert (asked.asked, asked.asked_by) == (OperatorRequest(WorkerState.DRAINING), "cli:ada")
    for _ in range(2):  # an answer may get lost
        assert await beat(store, worker()) == OperatorRequest(WorkerState.DRAINING)


async def test_it_hears_it_together_with_what_became_of_its_leases(store: Store) -> None:
    await put(store)
    (held,) = await claim(store, worker="web@1")
    await beat(store, worker())
    await store.workers.ask("web", None, state=WorkerState.STOPPING)
    extended = await store.extend(worker(), [(held.run_id, held.fence)], LEASE_MICROS)
    assert read_asked(extended.asked) == OperatorRequest(WorkerState.STOPPING)
    assert extended.lost == set()


async def test_what_is_asked_adds_up(store: Store) -> None:
    await beat(store, worker())
    await store.workers.ask("web", "ada", settings=WorkerSettings(slots=3))
    await store.workers.ask("web", "bob", settings=WorkerSettings(queues={"a": 2, "b": 1}))
    await store.workers.ask("web", "bob", state=WorkerState.DRAINING)
    await store.workers.ask("web", "eve", state=WorkerState.DRAINING)  # nothing new: not hers
    expected = OperatorRequest(WorkerState.DRAINING, WorkerSettings(slots=3, queues={"a": 2, "b": 1}))
    assert await beat(store, worker()) == expected
    assert (await store.workers.list("web@1"))[0].asked_by == "bob"
    await store.workers.ask("web", None, state=WorkerState.WORKING)
    assert await beat(store, worker()) == OperatorRequest(settings=expected.settings)


async def test_a_name_means_all_of_that_name_and_nobody_else(store: Store) -> None:
    for id in ("web@1", "web@2", "mail@1"):
        await beat(store, worker(id))
    asked = await store.workers.ask("web", None, state=WorkerState.DRAINING)
    assert [one.id for one in asked] == ["web@1", "web@2"]
    assert await beat(store, worker("mail@1")) is None
    await store.workers.ask("web@2", None, state=WorkerState.WORKING)
    assert await beat(store, worker("web@1")) == OperatorRequest(WorkerState.DRAINING)
    assert await beat(store, worker("web@2")) == OperatorRequest()


async def test_the_next_process_of_the_name_is_asked_nothing(store: Store) -> None:
    await beat(store, worker("web@1"))
    await store.workers.ask("web", None, state=WorkerState.STOPPING)
    await store.worker_gone("web@1")
    assert await beat(store, worker("web@2")) is None


async def test_who_is_not_there_or_not_the_only_one(store: Store) -> None:
    for id in ("web-1@1", "web-2@1"):
        await beat(store, worker(id))
    with pytest.raises(AmbiguousWorker):
        await store.workers.ask("web", None, state=WorkerState.STOPPING)
    with pytest.raises(UnknownWorker, match="did you mean 'web-1'"):
        await store.workers.ask("wbe-1", None, state=WorkerState.STOPPING)
    assert await beat(store, worker("web-1@1")) is None


async def test_a_heartbeat_too_slow_for_one_of_them_is_set_for_none(store: Store) -> None:
    patient = msgspec.structs.replace(PACE, lease=timedelta(minutes=1))
    await beat(store, worker("web@1", pace=patient))
    await beat(store, worker("web@2"))
    with pytest.raises(Invalid, match="3 × heartbeat"):
        await store.workers.ask("web", None, settings=WorkerSettings(heartbeat=timedelta(seconds=2)))
    assert await beat(store, worker("web@1", pace=patient)) is None
    await store.workers.ask("web@1", None, settings=WorkerSettings(heartbeat=timedelta(seconds=20)))


async def test_a_stop_is_not_taken_back(store: Store) -> None:
    for id in ("web@1", "web@2"):
        await beat(store, worker(id))
    await store.workers.ask("web@1", None, state=WorkerState.STOPPING)
    await store.workers.ask("web", None, state=WorkerState.WORKING)
    assert await beat(store, worker("web@1")) == OperatorRequest(WorkerState.STOPPING)
    with pytest.raises(Conflict, match="was asked to stop"):
        await store.workers.ask("web@1", None, state=WorkerState.WORKING)


async def test_one_that_was_forgotten_returns_with_what_it_was_asked(store: Store, clock: ManualClock) -> None:
    await beat(store, worker())
    await store.workers.ask("web", None, state=WorkerState.DRAINING)
    heard = (await store.extend(worker(), [], LEASE_MICROS)).asked
    clock.advance(timedelta(days=2))
    await store.database.transact(drop_silent_workers)
    assert await store.workers.list() == []
    drained = worker(asked=heard, state=WorkerState.DRAINING)
    assert await beat(store, drained) == OperatorRequest(WorkerState.DRAINING)
    await store.workers.ask("web", None, state=WorkerState.WORKING)
    assert await beat(store, drained) == OperatorRequest()


async def test_a_row_of_an_older_program_is_shown(store: Store) -> None:
    await beat(store, worker(pace=None))
    (found,) = await store.workers.list()
    assert (found.heartbeat, found.poll, found.state) == (None, None, WorkerState.WORKING)


async def test_who_asked_for_what_is_in_the_audit_log_once(store: Store) -> None:
    for id in ("web@1", "web@2"):
        await beat(store, worker(id))
    await store.workers.ask("web", "ann", state=WorkerState.DRAINING)
    await store.workers.ask("web", "bob", state=WorkerState.DRAINING)  # which changes nothing
    await store.workers.ask("web@2", "bob", settings=WorkerSettings(slots=3))
    noted = await store.events.audit({"kind": "worker"}, 10, None)
    assert [(event.subject, event.actor) for event in noted] == [("web@2", "bob"), ("web@2", "ann"), ("web@1", "ann")]
    assert noted[0].details == {"state": "draining", "settings": {"slots": 3}}
    assert noted[1].details == {"state": "draining"}
