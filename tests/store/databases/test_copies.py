"""Test that a copy of a database does nothing by itself until it is accepted, and that a failover goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.core.jobs.job import Retention
from rota.core.monitoring.attention import Attention
from rota.core.monitoring.attention_rules import items_of
from rota.core.runs.outcome import Report
from rota.core.states import FENCES, Outcome, RunState
from rota.errors import DatabaseCopied
from rota.store import Store, new_id, open_database
from rota.store.databases.epoch import Epoch, Standing, following, is_copy
from rota.values.clock import HostClock
from rota.values.instants import micros_at
from tests.support.clock import SECOND, ManualClock
from tests.support.databases.postgres import PostgresServer, connected
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, finish, put, state_of


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("7/00000001/5/16", "7/00000001/5/16", False),
        ("7/00000001/5/16", "7/0000000A/5/16", False),  # a failover, or a recovery
        ("7/0000000A/5/16", "7/00000009/5/16", True),  # an earlier history
        ("7/00000001/5/16", "8/00000001/5/16", True),
        ("7/00000001/5/16", "8/00000002/5/16", True),
        ("7/00000001/5/16", "7/00000001/6/16", True),
        ("7/00000001/5/16", "7/00000001/5/17", True),
        ("2049/17", "7/00000001/5/16", True),  # a file
        ("2049/17", "2049/18", False),
        (None, "7/00000001/5/16", False),
    ],
)
def test_what_is_a_copy(before: str | None, now: str, *, expected: bool) -> None:
    assert is_copy(before, now) is expected


@pytest.fixture
async def copied(postgres_cluster: PostgresServer, postgres_template: str) -> AsyncIterator[str]:
    """The url of a copy of a database with a run that is queued, and one that is leased."""
    original = postgres_cluster.create_database(postgres_template)
    store = Store(open_database(original))
    await put(store)
    await claim(store)
    await put(store)
    await store.close()
    copy = postgres_cluster.create_database(original)
    yield copy
    for url in (copy, original):
        postgres_cluster.drop_database(url)


async def _plan(store: Store) -> object:
    return await store.planning.plan(10, {})


async def _wake_followers(store: Store) -> object:
    return await store.planning.wake_followers(10)


async def _reap(store: Store) -> object:
    return await store.reap(10)


async def _deliver(store: Store) -> object:
    return await store.signals.deliver(10)


async def _attention(store: Store) -> list[Attention]:
    """Return what is said of the database itself."""
    facts = (await store.monitoring.overview(LEASE_MICROS, LEASE_MICROS)).facts
    return [it for it in items_of(facts) if it.kind in ("database_copied", "epoch_new")]


_ACTS: list[Callable[[Store], Awaitable[Any]]] = [claim, _plan, _wake_followers, _reap, _deliver]


async def test_a_copy_does_nothing_by_itself_until_it_is_accepted(
    copied: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(open_database(copied))
    for act in _ACTS:
        with pytest.raises(DatabaseCopied, match="rota database accept"):
            await act(store)
    enqueued = await put(store)
    assert await state_of(store, enqueued) is RunState.QUEUED, "callers may read and write"
    assert (await store.standing.read()).held
    assert [it.kind for it in await _attention(store)] == ["database_copied"]
    assert [record.message for record in caplog.records if "is a copy" in record.message] == [str(DatabaseCopied())]
    other = Store(open_database(copied))
    with pytest.raises(DatabaseCopied):
        await claim(other)
    accepted = await store.standing.accept("restored", "ann")
    assert (accepted.held, accepted.accepted_by) == (False, "ann")
    (note,) = await store.events.audit({"kind": "database"}, 10, None)
    assert (note.type, note.actor, note.details) == ("accepted", "ann", {"reason": "restored"})
    assert [it.kind for it in await _attention(store)] == ["epoch_new"], "what may be lost?"
    for act in _ACTS[1:]:
        await act(store)
    claims = await claim(other, 10)
    assert len({held.fence for held in claims}) == 1, "another process asks again"
    assert claims[0].fence >= FENCES
    for held in claims:
        await finish(other, held)
    await other.close()
    await store.close()


async def test_a_failover_of_a_copy_leaves_it_held(copied: str) -> None:
    first = Store(open_database(copied))
    with pytest.raises(DatabaseCopied):
        await claim(first)
    await first.close()
    earlier = "update rota_epoch set place = replace(place, '/00000001/', '/00000000/')"
    connected(copied, lambda connection: connection.execute(earlier))
    second = Store(open_database(copied))
    with pytest.raises(DatabaseCopied):
        await claim(second)
    assert (await second.standing.read()).epoch == 2
    await second.close()


async def test_a_failover_of_an_accepted_copy_goes_on(copied: str) -> None:
    first = Store(open_database(copied))
    await first.standing.accept(None, "ann")
    run_id = await put(first)
    (before,) = await claim(first, 1)
    await first.close()
    earlier = "update rota_epoch set place = replace(place, '/00000001/', '/00000000/')"
    connected(copied, lambda connection: connection.execute(earlier))
    second = Store(open_database(copied))
    held = {one.run_id: one for one in await claim(second, 10)}
    assert held[run_id].fence > before.fence
    for one in held.values():
        await finish(second, one)
    await second.close()


@pytest.mark.parametrize(
    ("last", "seconds", "expected"),
    [
        (0, 0, FENCES),
        (0, 1_000_000, 2_000_000),
        (0, 1_000_001, 2_000_002),  # the backup from before, restored again: the first restore is not in it
        (2_000_000, 1_000_001, 2_000_002),  # soon after another, with which it may be lost, too
        (5 * FENCES, 1_000_000, 6 * FENCES),  # the clock was set back
        (2_147 * FENCES, 1_000_000, 2_147 * FENCES),
    ],
)
def test_fences_of_an_epoch_begin_above_those_that_were_lost(last: int, seconds: int, expected: int) -> None:
    now = micros_at(datetime(2026, 1, 1, tzinfo=UTC)) + seconds * 1_000_000
    begun = following(Epoch(4, "7/1", last), "7/2", now)
    assert begun is not None
    assert (begun.number, begun.floor) == (5, expected)


async def test_a_setting_accepts_copies(copied: str) -> None:
    held = Store(open_database(copied))
    with pytest.raises(DatabaseCopied):
        await claim(held)
    await held.close()
    store = Store(open_database(copied, accepts_copies=True))
    (lease,) = await claim(store)
    assert (await store.standing.read()).accepted_by == "setting:accept_copies"
    await finish(store, lease)
    await store.close()


ANEW = (
    "alter table rota_epoch rename to rota_epoch_before; "
    "create table rota_epoch (like rota_epoch_before including all); "
    "insert into rota_epoch select * from rota_epoch_before; drop table rota_epoch_before"
)
"""Statements that give the table another oid, and what it had before."""


@pytest.mark.parametrize("noticed", ["by a heartbeat", "by a claim"])
async def test_tables_that_were_made_anew_are_noticed(postgres_url: str, noticed: str) -> None:
    """As by a dump that is restored while connections stay: they would claim under fences of the past."""
    store = Store(open_database(postgres_url))
    await put(store)
    assert not await store.standing.is_held()
    connected(postgres_url, lambda connection: connection.execute(ANEW))
    if noticed == "by a heartbeat":
        await store.extend(WORKER, [], LEASE_MICROS)
        assert store.database.standing.moved
    with pytest.raises(DatabaseCopied):
        await claim(store)
    await store.standing.accept(None, "ann")
    assert (await store.standing.read()).epoch == 1
    (held,) = await claim(store)
    assert held.fence >= FENCES
    await finish(store, held)
    await store.close()


async def test_a_restore_within_a_heartbeat_is_reported(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its look where the database is and its leases: the worker forgets a lost run, and would never tell."""
    store = Store(open_database(postgres_url))
    lost = await put(store)
    (held,) = await claim(store)
    compare, looks = Standing.compare, list[str]()

    def then_restore(self: Standing, place: str) -> None:
        compare(self, place)
        if not looks:
            gone = f"{ANEW}; delete from rota_lease; delete from rota_run"
            connected(postgres_url, lambda connection: connection.execute(gone))
        looks.append(place)

    monkeypatch.setattr(Standing, "compare", then_restore)
    assert (await store.extend(WORKER, [(lost, held.fence)], LEASE_MICROS)).lost == {lost}
    assert (await store.standing.read()).lost_runs == 1
    await store.close()


async def test_a_run_that_only_its_worker_remembers_is_reported(copied: str, caplog: pytest.LogCaptureFixture) -> None:
    """By a heartbeat and by a report, once each; a run of the first epoch was deleted, and is not lost."""
    store = Store(open_database(copied))
    await store.standing.accept(None, "ann")
    for lost in (new_id(), new_id()):
        for _ in range(2):
            assert (await store.extend(WORKER, [(lost, 3)], LEASE_MICROS)).lost == {lost}
            assert (await store.report([Report(lost, 3, Outcome.SUCCEEDED)])).refused
    standing = await store.standing.read()
    assert standing.lost_runs == 2
    assert len([record for record in caplog.records if "does not know run" in record.message]) == 2
    await store.close()


async def test_a_deleted_run_is_not_lost(store: Store) -> None:
    await store.report([Report(new_id(), 3, Outcome.SUCCEEDED)])
    assert (await store.standing.read()).lost_runs == 0


async def test_a_run_that_was_deleted_since_a_failover_is_not_lost(store: Store, clock: ManualClock) -> None:
    """A worker slept from before the failover until the run was done by another, and deleted."""
    clock.advance(timedelta(microseconds=HostClock().micros() - clock.micros()) + SECOND)  # what looks young is kept
    kept, slept = await put(store, max_attempts=2), await put(store)
    first, second = sorted(await claim(store, 2), key=lambda held: held.run_id)
    floor = 1_000_000
    epoch = "insert into rota_epoch (epoch, place, floor, since) select coalesce(max(epoch), 0) + 1, 'x', :floor, :at "
    await store.database.transact(
        lambda tx: tx.fetch_sql(f"{epoch} from rota_epoch", floor=floor, at=store.clock.micros() - 1)
    )
    for held in (first, second):
        await finish(store, held)
    clock.advance(SECOND)
    assert await store.prune(lambda _: Retention(keep=0, keep_for=timedelta(0))) == 2
    stale = [Report(id, held.fence, Outcome.FAILED) for id, held in ((kept, first), (slept, second))]
    assert len((await store.report(stale)).refused) == 2
    assert (await store.extend(WORKER, [(kept, first.fence)], LEASE_MICROS)).lost == {kept}
    assert (await store.standing.read()).lost_runs == 0
    await store.report([Report(new_id(), floor + 1, Outcome.SUCCEEDED)])  # of this epoch: it was there
    assert (await store.standing.read()).lost_runs == 0
    await store.report([Report(new_id(), 3, Outcome.SUCCEEDED)])
    assert (await store.standing.read()).lost_runs == 1
