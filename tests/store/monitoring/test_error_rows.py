"""`rota_fault` has a row for each ended run that did not succeed, and for no other, whatever ends or prunes it."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.states import Outcome, RunState
from rota.store import Store, open_database
from rota.store.databases.database import Row, Tx
from rota.store.databases.statements import Dialect, Migration, migrations
from rota.store.schema import migrate
from rota.values.clock import new_id
from tests.support.clock import ManualClock
from tests.support.runs.runs import put, put_and_claim, tell

BRIEF = JobDefinition(name="work", retention=Retention(keep=0, keep_for=timedelta(seconds=1)))


async def rows(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return [tuple(row) for row in await tx.fetch_sql(sql)]

    return await store.database.read(body)


async def faults(store: Store) -> dict[str, tuple[str, str | None]]:
    found = await rows(store, "select run_id, state, fingerprint from rota_fault")
    return {str(id): (state, mark) for id, state, mark in found}


async def unhappy(store: Store) -> set[str]:
    """End runs in several ways. Return the ids of those that did not succeed."""
    failed, timed_out, well = [await put_and_claim(store, BRIEF) for _ in range(3)]
    await tell(store, failed, Outcome.FAILED)
    await tell(store, timed_out, Outcome.TIMED_OUT)
    await tell(store, well, Outcome.SUCCEEDED)
    cancelled = await put(store, BRIEF)
    await store.cancel(cancelled, None, None)
    return {failed.run_id, timed_out.run_id, cancelled}


async def test_each_unhappy_end_has_one_and_pruning_takes_it_away(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([BRIEF])
    wrong = await unhappy(store)
    live = await put_and_claim(store, BRIEF)
    assert set(await faults(store)) == wrong
    again = await put_and_claim(store, BRIEF)
    await tell(store, again, Outcome.FAILED, retry_in=60_000_000)
    assert set(await faults(store)) == wrong, "it is tried again"
    clock.advance(timedelta(days=3_000))  # ids tell the time of the host
    await store.prune(lambda _: BRIEF.retention)
    assert await faults(store) == {}
    assert len(await rows(store, "select id from rota_run")) == 2, live


@pytest.fixture
async def older(new_database_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    """A database of the schema before `rota_fault`, with runs in it."""

    def before(dialect: Dialect) -> list[Migration]:
        return [one for one in migrations(dialect) if one.version <= 5]

    monkeypatch.setattr(migrate, "migrations", before)
    store = Store(open_database(new_database_url, clock))
    await store.migrate()
    monkeypatch.setattr(migrate, "migrations", migrations)
    yield store
    await store.close()


async def ended_before(store: Store) -> set[str]:
    """Insert a run of each state. Return the ids of those that ended, and did not succeed.

    By hand, in columns of the older schema: this program does not serve it, its claims ask for later tables.
    """
    ids = {state: new_id() for state in RunState if state.is_final}
    ended = [(id, f"'{state.value}'") for state, id in ids.items()]
    values = [
        f"('{id}', 'work', 1, 'default', 0, 'global', 'global', '{{}}', 1, 'retry', 1, 1, {state})"
        for id, state in [*ended, (new_id(), "null")]
    ]
    sql = f"""insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, max_attempts,
        on_lost, created_at, run_at, state) values {", ".join(values)}"""
    await store.database.transact(lambda tx: tx.script(sql))
    return {id for state, id in ids.items() if state is not RunState.SUCCEEDED}


async def test_runs_that_ended_before_have_one_after_the_migration(older: Store) -> None:
    wrong = await ended_before(older)
    assert await older.migrate() == [one.name for one in migrations(older.database.dialect) if one.version > 5]
    await older.save_jobs([BRIEF])
    found = await faults(older)
    assert set(found) == wrong
    assert [found[id][0] for id in found] == [(await older.get_run(id)).state for id in found]
    later = await put_and_claim(older, BRIEF)
    await tell(older, later, Outcome.FAILED)
    assert set(await faults(older)) == {*wrong, later.run_id}
    assert (await faults(older))[later.run_id][1] is not None
