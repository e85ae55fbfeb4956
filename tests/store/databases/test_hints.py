"""Hints: told soon that a queue may have work, by this process, another process, or another connection."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import asyncpg
import pytest

from rota.core.runs.dependencies import Follows
from rota.core.states import Outcome
from rota.errors import Conflict
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.databases.postgres.notify import Listener
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.store.databases.sqlite.sqlite import SqliteDatabase
from tests.support.clock import SECOND, ManualClock
from tests.support.processes.python_program import run_python
from tests.support.runs.runs import LEASE, make, put, put_and_claim, tell
from tests.support.wait import PATIENCE, forever

ENQUEUE = """
import asyncio, sys
from rota.store import open_store
from tests.support.runs.runs import make

async def main():
    store = await open_store(sys.argv[1])
    await store.enqueue([make(queue="from-afar")])
    await store.close()

asyncio.run(main())
"""


class Ear:
    """Remembers what it was told."""

    def __init__(self, store: Store) -> None:
        self._told: asyncio.Queue[str | None] = asyncio.Queue()
        self.stop: Callable[[], None] = store.listen(self._told.put_nowait)

    async def hears(self, *wanted: str | None) -> None:
        """Until one of `wanted` is told."""
        async with asyncio.timeout(PATIENCE):
            while await self._told.get() not in wanted:
                pass

    def heard_nothing(self) -> bool:
        return self._told.empty()


async def test_an_enqueue_is_told(store: Store) -> None:
    ear = Ear(store)
    if isinstance(store.database, PostgresDatabase):
        await ear.hears(None)  # it listens now
    await put(store, queue="mail")
    await ear.hears("mail")
    ear.stop()


async def test_every_listener_is_told(store: Store) -> None:
    ears = [Ear(store), Ear(store)]
    if isinstance(store.database, PostgresDatabase):
        await ears[0].hears(None)  # it listens now
    await put(store)
    for ear in ears:
        await ear.hears("default")
        ear.stop()


async def test_a_run_that_may_be_claimed_again_is_told(store: Store, clock: ManualClock) -> None:
    handed_back = await put_and_claim(store, queue="default")
    ear = Ear(store)
    await ear.hears(None) if isinstance(store.database, PostgresDatabase) else None
    await tell(store, handed_back, Outcome.HANDED_BACK)
    await ear.hears("default")
    await store.cancel(handed_back.run_id, None, None)
    lost = await put_and_claim(store)
    await ear.hears("default")
    clock.advance(LEASE + SECOND)
    await store.reap(10)
    await ear.hears("default")
    await store.cancel(lost.run_id, None, None)
    await put(store, delay="1s")
    await ear.hears("default")
    clock.advance(SECOND)
    await store.promote(10)
    await ear.hears("default")
    ear.stop()


async def test_who_is_woken_is_told_once_and_after_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[set[str | None]] = []
    monkeypatch.setattr(store.database, "notify", lambda queues: told.append(set(queues)))

    async def wake(tx: Tx) -> None:
        tx.wake("mail", None)
        await tx.fetch("now")
        tx.wake("mail", "web")
        assert told == []

    await store.database.transact(wake)
    assert told == [{"mail", "web", None}]
    await store.database.transact(lambda tx: tx.fetch("now"))
    assert len(told) == 1, "nobody was woken"


async def test_nobody_is_told_of_what_is_rolled_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[set[str | None]] = []
    monkeypatch.setattr(store.database, "notify", lambda queues: told.append(set(queues)))

    async def wake(tx: Tx, queue: str, *, fails: bool) -> None:
        tx.wake(queue)
        await tx.fetch("now")
        if fails:
            raise Conflict("rolled back")

    done = [store.database.transact(partial(wake, queue=str(no), fails=no % 2 == 1)) for no in range(6)]
    await asyncio.gather(*done, return_exceptions=True)  # on SQLite in one group
    assert sorted(told, key=str) == [{"0"}, {"2"}, {"4"}]


async def test_a_transaction_that_is_tried_again_wakes_only_whom_its_last_try_woke(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[set[str | None]] = []
    monkeypatch.setattr(postgres_store.database, "notify", lambda queues: told.append(set(queues)))
    tries = iter(["first", "second"])

    async def wake(tx: Tx) -> None:
        queue = next(tries)
        tx.wake(queue)
        if queue == "first":
            raise asyncpg.DeadlockDetectedError

    await postgres_store.database.transact(wake)
    assert told == [{"second"}]


async def test_a_session_tells_when_it_is_committed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[set[str | None]] = []
    monkeypatch.setattr(store.database, "notify", lambda queues: told.append(set(queues)))

    async def wake(tx: Tx) -> None:
        tx.wake("mail")

    async with store.database.session() as session:
        await session.within(wake)
        assert told == []
    assert told == [{"mail"}]
    with contextlib.suppress(ZeroDivisionError):
        async with store.database.session() as session:
            await session.within(wake)
            raise ZeroDivisionError
    assert len(told) == 1, "it was rolled back"


async def test_other_connections_are_told(store: Store, second: Store) -> None:
    ear = Ear(second)
    await put(store, queue="mail")
    await ear.hears("mail", None)
    ear.stop()


async def test_whoever_stopped_listening_is_left_alone(sqlite_store: Store) -> None:
    quiet, ear = Ear(sqlite_store), Ear(sqlite_store)
    quiet.stop()
    await put(sqlite_store)
    await ear.hears("default")
    assert quiet.heard_nothing()
    ear.stop()


async def test_another_process_is_heard(store: Store, database_url: str) -> None:
    """On SQLite by the file's change alone, so without the name of the queue."""
    ear = Ear(store)
    if isinstance(store.database, PostgresDatabase):
        await ear.hears(None)  # it is listening now
    await run_python(ENQUEUE, database_url)
    await ear.hears(None if not isinstance(store.database, PostgresDatabase) else "from-afar")
    ear.stop()


async def test_a_listener_whose_connection_was_cut_listens_again(
    postgres_store: Store, postgres_database: PostgresDatabase
) -> None:
    ear = Ear(postgres_store)
    await ear.hears(None)
    connection = await postgres_database.connect()
    cut = await connection.fetchval(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    await connection.close()
    assert cut
    await ear.hears(None)  # told at once, so that nobody relies on hints
    listening = [postgres_database.hears]
    await ear.hears(None)  # told when it is back, for something may have come meanwhile
    assert [*listening, postgres_database.hears] == [False, True]
    await postgres_store.enqueue([make(queue="mail")])
    await ear.hears("mail")
    ear.stop()


class ClosingLoop:
    """Looks open, and is closed when it is called."""

    def is_closed(self) -> bool:
        return False

    def call_soon_threadsafe(self, *_: object) -> None:
        raise RuntimeError("Event loop is closed")


async def test_a_listener_whose_loop_closes_at_this_moment_is_passed_over(
    sqlite_store: Store, sqlite_database: SqliteDatabase, sqlite_url: str
) -> None:
    stop = sqlite_database._hints.add(lambda _: None, cast("asyncio.AbstractEventLoop", ClosingLoop()))
    ear = Ear(sqlite_store)
    await put(sqlite_store)
    await ear.hears("default")
    await run_python(ENQUEUE, sqlite_url)
    await ear.hears(None)  # the watcher lives on
    ear.stop()
    stop()


async def test_a_listener_stops_although_its_connection_is_cut_at_the_same_moment() -> None:
    class Connection:
        """Says what asyncpg's would: nothing, for as long as it is asked."""

        def __init__(self) -> None:
            self.cut: Callable[[object], None] | None = None

        def add_termination_listener(self, cut: Callable[[object], None]) -> None:
            self.cut = cut

        async def add_listener(self, *_: object) -> None: ...

        async def execute(self, *_: object, timeout: float) -> None:
            await forever()

        def terminate(self) -> None: ...

    connection = Connection()

    async def connect() -> Connection:
        return connection

    told = asyncio.Event()
    listener = Listener(connect)
    listener.add(lambda _: told.set())
    await told.wait()
    await asyncio.sleep(0)  # it waits now
    assert connection.cut
    connection.cut(connection)
    await asyncio.sleep(0)  # its wait is over, and it does not know yet
    async with asyncio.timeout(PATIENCE):
        await listener.close()


async def test_whom_a_commit_without_an_answer_woke_is_told_with_the_repetition(
    postgres_store: Store, postgres_database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repetition finds the run cancelled, and so wakes nobody itself."""
    first = make(queue="first")
    follower = make(queue="second", after=[Follows(first.id, on="end")])
    await postgres_store.enqueue([first, follower])
    woken: list[str | None] = []
    monkeypatch.setattr(postgres_database, "notify", woken.extend)
    committed = PostgresDatabase._committed

    async def lost(self: PostgresDatabase, *transaction: Any) -> Any:
        await committed(self, *transaction)
        monkeypatch.setattr(PostgresDatabase, "_committed", committed)
        raise asyncpg.ConnectionDoesNotExistError("the answer is lost")

    monkeypatch.setattr(PostgresDatabase, "_committed", lost)
    await postgres_store.cancel(first.id, None, None)
    assert "second" in woken
