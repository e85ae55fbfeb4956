"""What only SQLite has: one writer with group commit, and files that several processes write."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from rota.errors import DuplicateRun
from rota.store import Store, open_store
from rota.store.databases.database import Tx
from rota.store.databases.sqlite import sqlite
from rota.store.databases.sqlite.connection_thread import Job, write_group
from rota.store.databases.sqlite.sqlite import SqliteDatabase, SqliteTx
from rota.values.clock import HostClock
from tests.support.processes.python_program import run_python
from tests.support.runs.runs import claim, finish, make, put

# Enqueues and claims in turns until nothing is left; prints what it enqueued and what it finished.
BUSY = """
import asyncio, sys
from rota.core.states import Outcome
from rota.store import open_store
from tests.support.runs.runs import claim, make, put, tell

async def main():
    store = await open_store(sys.argv[1])
    for n in range(15):
        for answer in await store.enqueue([make(), make()]):
            print("put", answer.id)
        print("key", await put(store, key=f"shared-{n}", unique={"period": "1h"}))
        for held in await claim(store, 5, worker=sys.argv[2]):
            assert await tell(store, held, Outcome.SUCCEEDED)
            print("did", held.run_id)
    await store.close()

asyncio.run(main())
"""


async def test_an_operation_that_fails_in_a_group_fails_alone(sqlite_store: Store) -> None:
    await put(sqlite_store, key="taken")
    calls: list[Awaitable[object]] = []
    for n in range(20):
        calls.append(sqlite_store.enqueue([make(), make(key=f"free-{n}")]))
        calls.append(sqlite_store.enqueue([make(), make(key="taken", unique={"on_conflict": "reject"})]))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(answer, DuplicateRun) for answer in answers[1::2])
    assert not any(isinstance(answer, BaseException) for answer in answers[::2])
    assert await sqlite_store.queue_counts() == [("default", 0, 1 + 20 * 2, 0)]


@pytest.mark.parametrize("failing", [(0,), (1,), (0, 1), (0, 2), (0, 1, 2)])
async def test_whichever_of_a_group_fails_the_others_are_written(sqlite_store: Store, failing: tuple[int, ...]) -> None:
    def work(place: int) -> Any:
        async def body(tx: Tx) -> int:
            await tx.hot.enqueue([make()])
            return place // (place not in failing)

        return body

    jobs = [Job(work(place), Future()) for place in range(3)]
    with contextlib.closing(sqlite_store.database._connected().open_another()) as tx:  # type: ignore[attr-defined]
        write_group(tx, jobs)
        assert not tx.in_transaction
    assert [place for place, job in enumerate(jobs) if job.future.exception()] == list(failing)
    written = 3 - len(failing)
    assert await sqlite_store.queue_counts() == ([("default", 0, written, 0)] if written else [])


async def test_a_bug_in_an_operation_fails_alone_and_changes_nothing(sqlite_store: Store) -> None:
    async def buggy(tx: Tx) -> None:
        await tx.hot.enqueue([make()])
        raise ZeroDivisionError

    async def waits(tx: Tx) -> None:
        await tx.hot.enqueue([make()])
        await asyncio.sleep(0)

    answers = await asyncio.gather(
        put(sqlite_store),
        sqlite_store.database.transact(buggy),
        sqlite_store.database.transact(waits),
        put(sqlite_store),
        return_exceptions=True,
    )
    assert isinstance(answers[1], ZeroDivisionError)
    assert isinstance(answers[2], RuntimeError)
    assert await sqlite_store.queue_counts() == [("default", 0, 2, 0)]


async def test_a_question_that_fails_does_not_disturb_the_next(sqlite_store: Store) -> None:
    async def wrong(tx: Tx) -> None:
        await tx.fetch_sql("select * from nowhere")

    answers = await asyncio.gather(
        sqlite_store.database.read(wrong), sqlite_store.queue_counts(), return_exceptions=True
    )
    assert isinstance(answers[0], Exception)
    assert answers[1] == []


async def test_questions_cannot_write(sqlite_store: Store) -> None:
    async def sneaky(tx: Tx) -> None:
        await tx.hot.enqueue([make()])

    with pytest.raises(Exception, match="read-only"):
        await sqlite_store.database.read(sneaky)
    assert await sqlite_store.queue_counts() == []


async def test_only_its_owner_may_read_a_new_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = await open_store(f"sqlite:///{tmp_path}/rota.db")
        await put(store)
        names = [name for name in os.listdir(tmp_path) if name.startswith("rota.db")]
        modes = {name: os.stat(tmp_path / name).st_mode & 0o777 for name in names}
        await store.close()
    finally:
        os.umask(before)
    assert modes.keys() >= {"rota.db", "rota.db-wal", "rota.db-shm"}
    assert set(modes.values()) == {0o600}


async def test_commits_are_durable(sqlite_database: SqliteDatabase) -> None:
    async def settings(tx: Tx) -> tuple[object, object]:
        journal = (await tx.fetch_sql("pragma journal_mode"))[0][0]
        return journal, (await tx.fetch_sql("pragma synchronous"))[0][0]

    assert await sqlite_database.transact(settings) == ("wal", 2)


async def test_plans_do_not_depend_on_bound_values(sqlite_database: SqliteDatabase) -> None:
    """Else a statement that is run for each row of a batch is planned again for each."""

    async def stable(tx: Any) -> int:
        return int(tx.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1))

    assert await sqlite_database.transact(stable) == await sqlite_database.read(stable) == 1


async def test_twins_share_the_writer_until_the_last_is_closed(sqlite_store: Store) -> None:
    twin = sqlite_store.twin()
    assert twin.database is sqlite_store.database
    await put(twin)
    await twin.close()
    (held,) = await claim(sqlite_store)
    await finish(sqlite_store, held)


def writers() -> int:
    return [thread.name for thread in threading.enumerate()].count("rota-sqlite-writer")


async def test_stores_of_one_file_share_the_writer_until_the_last_is_closed(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "rota.db")
    stores = [await open_store(f"sqlite:///{tmp_path}/{name}") for name in ("rota.db", "rota.db", "link.db")]
    forgotten = await open_store(f"sqlite:///{tmp_path}/rota.db")
    assert writers() == 1
    del forgotten
    for store in stores:
        await put(store)
        await store.close()
    assert writers() == 0
    again = await open_store(f"sqlite:///{tmp_path}/rota.db")
    assert len(await claim(again)) == 3
    await again.close()


async def test_stores_in_many_event_loops_share_the_writer(sqlite_url: str) -> None:
    most = 0

    async def work() -> None:
        nonlocal most
        store = await open_store(sqlite_url)
        for _ in range(20):
            await put(store)
            most = max(most, writers())
        await store.close()

    await asyncio.gather(*[asyncio.to_thread(asyncio.run, work()) for _ in range(5)])
    store = await open_store(sqlite_url)
    assert len(await claim(store, 1_000)) == 100
    await store.close()
    assert most == 1


async def test_a_store_of_a_file_that_was_replaced_does_not_share_the_old_ones_writer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'rota.db'}"
    old = await open_store(url)
    await put(old)
    for name in os.listdir(tmp_path):
        os.unlink(tmp_path / name)
    new = await open_store(url)
    assert await claim(new) == []
    await put(new)
    await old.close()
    await new.close()
    again = await open_store(url)
    assert len(await claim(again)) == 1
    await again.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
async def test_a_relative_path_stays_the_same_file_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    store = await open_store("sqlite:///rota.db")
    monkeypatch.chdir(there)
    assert await store.jobs() == []  # the first question opens the file for reading
    pid = os.fork()
    if pid == 0:
        asyncio._set_running_loop(None)
        try:
            asyncio.new_event_loop().run_until_complete(put(store))  # opens it anew
        finally:
            os._exit(0)
    await asyncio.to_thread(os.waitpid, pid, 0)
    assert len(await claim(store)) == 1
    await store.close()
    assert os.listdir(there) == []


async def test_a_closed_store_leaves_no_thread_and_no_open_file(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path / 'rota.db'}")
    await put(store)
    await store.close()
    assert open_files(tmp_path) == []
    assert os.listdir(tmp_path) == ["rota.db"]  # whoever closes last removes the other two
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rota-sqlite")]


def open_files(folder: Path) -> list[str]:
    """Where the system has /proc; elsewhere none."""
    links = Path("/proc/self/fd").glob("*")
    return [target for link in links if link.is_symlink() and str(folder) in (target := str(link.readlink()))]


async def test_many_that_make_a_file_at_once_all_get_it(tmp_path: Path) -> None:
    for turn in range(10):
        # With clocks of their own, as if in processes of their own: else they would share one connection.
        stores = await asyncio.gather(*[open_store(f"sqlite:///{tmp_path}/{turn}.db", HostClock()) for _ in range(6)])
        for store in stores:
            await store.close()


async def test_processes_writing_one_file_lose_and_double_nothing(sqlite_url: str) -> None:
    """Enqueues, claims, reports and shared keys from four processes at once."""
    store = await open_store(sqlite_url)
    printed = await asyncio.gather(*[run_python(BUSY, sqlite_url, f"worker-{n}") for n in range(4)])
    said = [line.split() for text in printed for line in text.splitlines()]
    mine, keyed, done = ({id for verb, id in said if verb == wanted} for wanted in ("put", "key", "did"))
    finished = [id for verb, id in said if verb == "did"]
    assert len(mine) == 4 * 15 * 2
    assert len(keyed) == 15
    assert len(finished) == len(done)
    rest = {held.run_id for held in await claim(store, 1_000)}
    assert done | rest == mine | keyed
    assert not done & rest
    await store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
async def test_a_forked_child_and_its_parent_both_keep_what_they_write(sqlite_url: str) -> None:
    """SQLite forgets its locks in a fork: the child must not lose its writes when the parent closes the file."""
    store = await open_store(sqlite_url)
    stop = store.listen(lambda _: None)
    await put(store)
    child_wrote, parent_closed = os.pipe(), os.pipe()

    def child() -> None:
        async def write(before: Callable[[], object]) -> None:
            own = await open_store(sqlite_url)
            await put(own)
            before()
            await put(own)
            await own.close()

        def wait_for_parent() -> None:
            os.write(child_wrote[1], b".")
            os.read(parent_closed[0], 1)

        asyncio.new_event_loop().run_until_complete(write(wait_for_parent))

    pid = os.fork()
    if pid == 0:
        asyncio._set_running_loop(None)
        try:
            child()
        finally:
            os._exit(0)
    await asyncio.to_thread(os.read, child_wrote[0], 1)
    await put(store)
    stop()
    await store.close()
    os.write(parent_closed[1], b".")
    _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    for fd in (*child_wrote, *parent_closed):
        os.close(fd)
    assert status == 0
    again = await open_store(sqlite_url)
    assert await again.queue_counts() == [("default", 0, 4, 0)]
    await again.close()


async def test_what_was_written_is_carried_over_when_nobody_asks_for_anything(
    sqlite_store: Store, sqlite_database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that whoever commits need not wait for it."""
    rested, rest = threading.Event(), SqliteTx.rest

    def told(tx: SqliteTx) -> None:
        rest(tx)
        rested.set()

    monkeypatch.setattr(SqliteTx, "rest", told)
    before = await asyncio.to_thread(os.path.getsize, sqlite_database.path)
    await sqlite_store.enqueue([make() for _ in range(600)])
    assert await asyncio.to_thread(rested.wait, 10)
    assert await asyncio.to_thread(os.path.getsize, sqlite_database.path) > before


async def test_a_log_that_grew_long_is_carried_over_although_somebody_writes(
    sqlite_store: Store, sqlite_database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_LONG_LOG", 20)
    rests: list[bool] = []
    monkeypatch.setattr(SqliteTx, "rest", lambda tx: rests.append(tx.needs_rest))
    while not rests:
        await put(sqlite_store)
    monkeypatch.undo()
    assert all(rests)  # it asks again, for this one did nothing


def test_it_wants_to_rest_when_that_is_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_WORTH_A_CHECKPOINT", 3)
    connection = apsw.Connection(str(tmp_path / "a.db"))
    tx = SqliteTx(connection, HostClock())
    tx.control("pragma journal_mode = wal; create table t (x)")
    wanted = []
    for _ in range(5):
        tx.control("insert into t values (1)")
        wanted.append(tx.wants_rest)
        if tx.wants_rest:
            tx.rest()
    assert wanted == [False, False, True, False, False]
    with connection:
        tx.control("insert into t values (2)")
        tx.rest()  # it cannot be done within a transaction, and is no error
    assert connection.execute("select count(*) from t").fetchall() == [(6,)]


def test_who_finds_the_file_locked_looks_often_and_gives_up_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(sqlite, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    patience = sqlite.BusyWait()
    for _ in range(2):
        began, tries = now, 0
        while patience(tries):
            tries += 1
        assert tries > 1_000, "the gaps that others leave are short"
        assert now - began == pytest.approx(10, abs=0.1)


async def test_a_slow_question_does_not_hold_up_others(sqlite_store: Store) -> None:
    """Also if whoever asked it gave up: its thread is still at it."""
    begun, go = threading.Semaphore(0), threading.Event()

    async def slow(tx: Tx) -> None:
        await tx.fetch_sql("select 1")
        begun.release()
        assert go.wait(60)

    await put(sqlite_store)
    questions = [asyncio.create_task(sqlite_store.database.read(slow)) for _ in range(sqlite._READERS - 1)]
    for _ in questions:
        assert await asyncio.to_thread(begun.acquire, timeout=60)
    questions[0].cancel()
    for _ in range(10):
        assert await sqlite_store.queue_counts() == [("default", 0, 1, 0)]
        await put(sqlite_store)
        (one,) = await claim(sqlite_store, 1)
        await finish(sqlite_store, one)
    go.set()
    await asyncio.gather(*questions, return_exceptions=True)


async def test_one_reader_serves_as_long_as_it_is_enough(sqlite_store: Store) -> None:
    database = sqlite_store.database
    assert isinstance(database, SqliteDatabase)
    for _ in range(10):
        await sqlite_store.queue_counts()
    assert [reader._thread is not None for reader in database._connected().readers] == [True, False, False, False]
