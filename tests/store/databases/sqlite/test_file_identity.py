"""Nothing is acknowledged into a file that nobody will find: deleted, replaced, overwritten, or without its log."""

import asyncio
import errno
import fcntl
import filecmp
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import Mock

import apsw
import pytest

from rota.errors import DeadlineExceeded, FileReplaced, Unavailable
from rota.store import Store, open_database, open_store
from rota.store.databases import held_transaction
from rota.store.databases.database import Tx
from rota.store.databases.sqlite import file_identity, file_locks
from rota.store.databases.sqlite.connection_thread import Job, write_group
from rota.store.databases.sqlite.sqlite import SqliteDatabase, SqliteTx
from tests.support.processes.python_program import run_python
from tests.support.runs.runs import make, put
from tests.support.wait import until

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="no locks of open file descriptions here")


@pytest.fixture
def path(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system that has no locks of open file descriptions."""
    monkeypatch.setattr(file_locks, "_IS_SUPPORTED", False)


async def opened_and_closed(path: Path) -> None:
    """By another copy of SQLite in this process."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("select count(*) from rota_run").fetchall()


def copied(source: Path, target: Path, *, also: tuple[str, ...] = ()) -> None:
    """By another process: to close a file in this one would drop SQLite's locks."""
    for ending in ("", *also):
        subprocess.run(["cp", f"{source}{ending}", f"{target}{ending}"], check=True)


def exists(path: Path, ending: str = "") -> bool:
    return Path(f"{path}{ending}").exists()


async def found_after_a_crash(path: Path) -> int:
    """How many runs there are for whoever opens what is on the disk."""
    there = path.parent / "after-a-crash.db"
    copied(path, there, also=("-wal",) if exists(path, "-wal") else ())
    store = await open_store(f"sqlite:///{there}")
    try:
        return await queued(store)
    finally:
        await store.close()


async def queued(store: Store) -> int:
    return sum(count for _, _, count, _ in await store.queue_counts())


async def put_again(store: Store) -> None:
    """As a client does that was told to ask again."""

    async def accepted() -> bool:
        try:
            await put(store)
        except FileReplaced:
            return False
        return True

    await until(accepted)


async def older(store: Store, path: Path) -> Path:
    """A backup without runs, of a file that has one since, and in its log another."""
    copy = path.with_name("backup.db")
    copied(path, copy)
    await store.enqueue([make(payload={"long": "x" * 10_000})])
    await elsewhere(path, "pragma wal_checkpoint(full)")
    await put(store)
    return copy


async def elsewhere(path: Path, sql: str) -> None:
    """In another process."""
    program = (
        "import apsw, sys; apsw.Connection(sys.argv[1]).execute('select 1 from rota_run; ' + sys.argv[2]).fetchall()"
    )
    await run_python(program, str(path), sql)


@contextmanager
def held_elsewhere(path: Path) -> Iterator[None]:
    """Open, with a log, in another process."""
    program = (
        "import apsw, sys; connection = apsw.Connection(sys.argv[1]);"
        "connection.execute('select 1 from rota_run').fetchall(); print(flush=True); sys.stdin.read()"
    )
    command, pipe = [sys.executable, "-c", program, str(path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        assert other.stdout
        other.stdout.readline()
        yield
        other.communicate()


# What somebody does to a file that is open.


def replace(path: Path, copy: Path) -> None:
    os.replace(copy, path)


def overwrite(path: Path, copy: Path) -> None:
    copied(copy, path)
    os.utime(path, (1, 1))  # long ago: who opens it anew need not wait until it is at rest


def delete(path: Path, copy: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink()


def delete_log(path: Path, copy: Path) -> None:
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink()


def delete_index(path: Path, copy: Path) -> None:
    Path(f"{path}-shm").unlink()


def move_away(path: Path, copy: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


Act = Callable[[Path, Path], None]
everything = pytest.mark.parametrize(
    "act",
    [
        replace,
        pytest.param(overwrite, marks=on_linux),
        delete,
        delete_log,
        delete_index,
        move_away,
    ],
)


@on_linux
async def test_another_copy_of_sqlite_that_closes_the_file_does_no_harm(sqlite_store: Store, path: Path) -> None:
    await put(sqlite_store)
    for _ in range(3):
        await opened_and_closed(path)
        await put(sqlite_store)
    assert await found_after_a_crash(path) == await queued(sqlite_store) == 4


@on_linux
async def test_nor_does_one_that_had_it_open_before(sqlite_store: Store, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("select count(*) from rota_run").fetchall()
        await put(sqlite_store)
        assert connection.execute("select count(*) from rota_run").fetchall() == [(1,)]
    await put(sqlite_store)
    assert await found_after_a_crash(path) == await queued(sqlite_store) == 2


@on_linux
async def test_whoever_opens_the_file_after_that_finds_it_in_use(sqlite_store: Store, path: Path) -> None:
    """SQLite's sign that an index is in use is dropped, too; who finds it free truncates what we have mapped."""
    await put(sqlite_store)
    await opened_and_closed(path)
    index = (path.parent / "rota.db-shm").stat()
    await elsewhere(path, "select 2")
    await put(sqlite_store)
    after = (path.parent / "rota.db-shm").stat()
    assert (after.st_ino, after.st_size) == (index.st_ino, index.st_size)
    assert await found_after_a_crash(path) == 2


@on_linux
async def test_nobody_writes_beside_us_although_our_lock_was_dropped(
    sqlite_store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_transaction, "_LONGEST", 60.0)  # another process starts meanwhile, on a busy machine
    writes = f"""
import asyncio
from rota.errors import Unavailable
from rota.store import open_store
from rota.store.databases.sqlite import sqlite
from tests.support.runs.runs import put
from tests.support.runs.runs import put

sqlite._BUSY_MS = 300

async def main():
    try:
        store = await open_store("sqlite:///{path}")
        print(await put(store))
    except Unavailable as error:
        print(error)

asyncio.run(main())
"""
    async with sqlite_store.database.session() as session:
        await session.within(lambda tx: tx.hot.enqueue([make()]))
        await opened_and_closed(path)
        assert "locked by another process" in await run_python(writes)
    assert await queued(sqlite_store) == 1


async def test_a_closed_file_is_left_without_a_log_and_a_second_process_does_not_hinder_that(
    sqlite_store: Store, path: Path
) -> None:
    await put(sqlite_store)
    await elsewhere(path, "select 2")
    await sqlite_store.close()
    assert [name for name in os.listdir(path.parent) if name.startswith("rota.db")] == ["rota.db"]


@pytest.mark.usefixtures("without_locks")
async def test_without_such_locks_the_commit_after_a_foreign_close_is_refused(
    sqlite_store: Store, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await put(sqlite_store)
    await opened_and_closed(path)
    assert not exists(path, "-wal"), "this is what it does"
    with pytest.raises(FileReplaced, match="its log was deleted while it was in use"), caplog.at_level(logging.ERROR):
        await put(sqlite_store)
    assert [record.name for record in caplog.records] == ["rota.store"]
    await put_again(sqlite_store)
    assert await found_after_a_crash(path) == await queued(sqlite_store) >= 2


@everything
async def test_nothing_is_acknowledged_into_what_is_no_longer_there(
    sqlite_store: Store, path: Path, act: Act, caplog: pytest.LogCaptureFixture
) -> None:
    copy = await older(sqlite_store, path)
    act(path, copy)
    with caplog.at_level(logging.ERROR):
        answers = await asyncio.gather(*[put(sqlite_store) for _ in range(5)], return_exceptions=True)
    assert isinstance(answers[0], FileReplaced)
    acknowledged = sum(isinstance(answer, str) for answer in answers)
    # Those that came later may already have been told of what is there now.
    assert all(isinstance(answer, str | Unavailable) for answer in answers)
    assert [record for record in caplog.records if record.name == "rota.store"]
    if exists(path):
        assert await found_after_a_crash(path) >= acknowledged


@everything
async def test_all_that_share_a_commit_are_refused(sqlite_store: Store, path: Path, act: Act) -> None:
    copy = await older(sqlite_store, path)
    acts, refused = [lambda: act(path, copy)], 0

    async def body(tx: Tx) -> None:
        await tx.hot.enqueue([make()])
        if acts:
            acts.pop()()

    jobs = [Job(body, Future()) for _ in range(4)]
    with closing(sqlite_store.database._connected().open_another()) as tx:  # type: ignore[attr-defined]
        with pytest.raises(FileReplaced):
            write_group(tx, jobs)
        refused = sum(not job.future.done() for job in jobs)
    assert refused == len(jobs), "who called it tells them all"


@pytest.mark.parametrize("act", [replace, pytest.param(overwrite, marks=on_linux)])
async def test_what_was_put_in_its_place_is_worked_on(sqlite_store: Store, path: Path, act: Act) -> None:
    copy = await older(sqlite_store, path)
    assert await queued(sqlite_store) == 2
    act(path, copy)
    await put_again(sqlite_store)
    assert await queued(sqlite_store) == await found_after_a_crash(path) == 1, "the new one"
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("integrity_check") == "ok"


@on_linux
async def test_the_log_of_a_file_that_was_overwritten_is_kept_aside(
    sqlite_store: Store, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be laid over what was put there, and of both nothing would be left."""
    copy = await older(sqlite_store, path)
    overwrite(path, copy)
    with pytest.raises(FileReplaced, match="overwritten"), caplog.at_level(logging.ERROR):
        await put(sqlite_store)
    (aside,) = path.parent.glob("rota.db-wal-*")
    assert aside.stat().st_size > 0
    assert aside.name in caplog.text


@on_linux
async def test_the_log_is_never_carried_over_into_a_file_that_was_overwritten(sqlite_store: Store, path: Path) -> None:
    """Of both nothing would be left, and a checkpoint would explain why the file has changed."""
    with closing(sqlite_store.database._connected().open_another()) as tx:  # type: ignore[attr-defined]
        copy = await older(sqlite_store, path)
        overwrite(path, copy)
        tx.rest()
    assert filecmp.cmp(path, copy, shallow=False)
    with pytest.raises(FileReplaced, match="overwritten"):
        await put(sqlite_store)


@on_linux
async def test_a_file_that_is_being_overwritten_is_not_opened_yet(
    sqlite_store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = await older(sqlite_store, path)
    monkeypatch.setattr(file_identity, "_AT_REST", 1_000_000.0)
    copied(copy, path)
    for _ in range(2):
        with pytest.raises(FileReplaced, match="overwritten"):
            await put(sqlite_store)
    monkeypatch.undo()
    os.utime(path, (1, 1))
    await put_again(sqlite_store)


@on_linux
async def test_an_overwritten_file_is_noticed_although_another_copy_of_sqlite_has_closed_its_index(
    sqlite_url: str, path: Path
) -> None:
    """Its descriptor of the index is older than ours, and so the first that is found."""
    await (await open_store(sqlite_url)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("select count(*) from rota_run").fetchall()
        store = await open_store(sqlite_url)
        await put(store)
    copy = await older(store, path)
    overwrite(path, copy)
    with pytest.raises(FileReplaced, match="overwritten"):
        await put(store)
    await store.close()


@on_linux
async def test_a_look_through_a_connection_that_is_closed_meanwhile_is_no_look(sqlite_store: Store, path: Path) -> None:
    """Half of it, a checkpoint without what it wrote, would be taken for an overwritten file by the next look."""
    with closing(sqlite_store.database._connected().open_another()) as tx:  # type: ignore[attr-defined]
        contents = tx.file._contents
        for other in (os.open(path.parent, os.O_RDONLY), os.open(__file__, os.O_RDONLY), -1):
            await sqlite_store.enqueue([make(payload={"long": "x" * 10_000})])
            await elsewhere(path, "pragma wal_checkpoint(full)")
            assert not contents.is_overwritten(other, os.stat(path))
            if other >= 0:
                os.close(other)
            tx.require_same_file()


@on_linux
async def test_a_truncated_file_is_noticed(sqlite_store: Store, path: Path) -> None:
    await put(sqlite_store)
    await asyncio.to_thread(os.truncate, path, 0)
    with pytest.raises(FileReplaced, match="overwritten"):
        await put(sqlite_store)


async def test_a_file_that_was_deleted_is_not_made_anew_and_is_found_when_it_is_back(
    sqlite_store: Store, path: Path
) -> None:
    copy = await older(sqlite_store, path)
    delete(path, copy)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await put(sqlite_store)
        with pytest.raises(Unavailable):
            await sqlite_store.queue_counts()
    assert not exists(path)
    shutil.copy(copy, path)
    await put_again(sqlite_store)
    assert await found_after_a_crash(path) == 1


@pytest.mark.parametrize("act", [delete_log, delete_index])
async def test_a_log_that_was_deleted_beneath_us_is_saved(sqlite_store: Store, path: Path, act: Act) -> None:
    """We have it open: all that is in it goes into the file before it is closed."""
    for _ in range(3):
        await put(sqlite_store)
    await sqlite_store.queue_counts()
    act(path, path)
    await put_again(sqlite_store)
    assert await found_after_a_crash(path) == await queued(sqlite_store) >= 4


@everything
async def test_questions_are_not_answered_from_what_is_no_longer_there(
    sqlite_store: Store, path: Path, act: Act
) -> None:
    copy = await older(sqlite_store, path)
    assert await queued(sqlite_store) == 2
    act(path, copy)
    with pytest.raises(FileReplaced):
        await sqlite_store.queue_counts()


@everything
async def test_a_handlers_transaction_is_not_acknowledged_either(sqlite_store: Store, path: Path, act: Act) -> None:
    copy = await older(sqlite_store, path)

    async def handle() -> None:
        async with sqlite_store.database.session() as session:
            await session.within(lambda tx: tx.hot.enqueue([make()]))
            act(path, copy)

    with pytest.raises(FileReplaced):
        await handle()


@everything
async def test_the_version_is_not_that_of_what_is_no_longer_there(
    sqlite_store: Store, sqlite_database: SqliteDatabase, path: Path, act: Act
) -> None:
    copy = await older(sqlite_store, path)
    seen = sqlite_database.version()
    assert seen is not None
    act(path, copy)
    assert sqlite_database.version() != seen


async def test_who_only_listens_notices_it_and_hears_of_what_is_there_now(sqlite_store: Store, path: Path) -> None:
    copy = await older(sqlite_store, path)
    heard: list[str | None] = []
    stop = sqlite_store.listen(heard.append)
    replace(path, copy)
    other = await open_store(f"sqlite:///{path}")

    async def told() -> bool:
        await put(other)
        return None in heard

    await until(told)
    stop()
    await other.close()


async def test_who_touches_the_file_or_copies_it_over_itself_does_no_harm(sqlite_store: Store, path: Path) -> None:
    await put(sqlite_store)
    for when in (1, 2_000_000_000):
        os.utime(path, (when, when))
        await put(sqlite_store)
    assert await found_after_a_crash(path) == 3


async def test_checkpoints_by_anybody_are_not_taken_for_an_overwritten_file(sqlite_store: Store, path: Path) -> None:
    await put(sqlite_store)
    for mode in ("passive", "full", "restart", "truncate"):
        await elsewhere(path, f"pragma wal_checkpoint({mode})")
        await put(sqlite_store)
        await sqlite_store.queue_counts()
    assert await found_after_a_crash(path) == 5


async def test_a_vacuum_by_another_process_is_not_taken_for_another_file(sqlite_store: Store, path: Path) -> None:
    await put(sqlite_store)
    await elsewhere(path, "vacuum")
    await put(sqlite_store)
    assert await found_after_a_crash(path) == 2


async def test_two_stores_of_a_process_both_recover(sqlite_store: Store, path: Path) -> None:
    second = Store(open_database(f"sqlite:///{path}"))
    copy = await older(sqlite_store, path)
    await put(second)
    replace(path, copy)
    with pytest.raises(FileReplaced):
        await put(sqlite_store)
    for store in (second, sqlite_store):
        await put_again(store)
    assert await found_after_a_crash(path) == 2
    await second.close()


async def test_a_transaction_that_is_cancelled_while_it_is_opened_leaves_nothing_open(
    sqlite_store: Store, path: Path
) -> None:
    """After a replaced file, nothing would be opened beside it ever again."""
    await put(sqlite_store)
    connections = sqlite_store.database._connected()  # type: ignore[attr-defined]
    connect, may_open, begun = connections.open_another, threading.Event(), threading.Event()

    def slowly() -> SqliteTx:
        begun.set()
        may_open.wait()
        opened: SqliteTx = connect()
        return opened

    connections.open_another = slowly

    async def handle() -> None:
        async with sqlite_store.database.session():
            pass

    files = file_identity.openings_of(str(path))._files
    before = len(files)
    handling = asyncio.create_task(handle())
    await asyncio.to_thread(begun.wait)
    handling.cancel()
    await asyncio.wait([handling])
    thread = next(thread for thread in threading.enumerate() if thread.name.startswith("rota-transaction"))
    may_open.set()
    await asyncio.to_thread(thread.join)
    assert len(files) == before


async def test_a_transaction_that_took_too_long_lets_others_write_also_if_a_cursor_is_open(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_transaction, "_LONGEST", 0.01)
    for _ in range(2):
        await put(sqlite_store)

    async def handle() -> None:
        async with sqlite_store.database.session() as session:
            cursor = session.connection.execute("select id from rota_run")
            next(cursor)
            await until(lambda: session._is_closed)  # type: ignore[attr-defined]
            await session.execute("select 1", ())

    with pytest.raises(DeadlineExceeded):
        await handle()
    await put(sqlite_store)


async def test_the_log_of_a_process_that_was_first_to_open_what_was_put_there_is_left_alone(
    sqlite_store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number may be that of our former log, which was deleted: many file systems give them out again at once."""
    copy = await older(sqlite_store, path)
    former = {ending: file_locks.identity(f"{path}{ending}") for ending in ("-wal", "-shm")}
    delete(path, copy)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await put(sqlite_store)
    copied(copy, path)

    def reused(which: str) -> file_locks.Identity | None:
        found = file_locks.identity(which)
        return found and former.get(which.removeprefix(str(path)), found)

    with held_elsewhere(path):
        live = {ending: file_locks.identity(f"{path}{ending}") for ending in former}
        monkeypatch.setattr(file_identity, "identity", reused)
        file_identity.openings_of(str(path)).wait_for_others()
        monkeypatch.undo()
        assert {ending: file_locks.identity(f"{path}{ending}") for ending in former} == live
        await put_again(sqlite_store)


async def test_who_finds_a_file_replaced_does_not_wait_for_a_fork_that_waits_for_him(
    sqlite_store: Store, sqlite_database: SqliteDatabase, path: Path
) -> None:
    """A fork takes the lock of who asks for versions, and then waits for the end of the threads."""
    await put(sqlite_store)
    assert sqlite_database.version() is not None
    version, openings = sqlite_database._connected().version, file_identity.openings_of(str(path))
    finder = threading.Thread(target=openings.lose, args=[FileReplaced(str(path), "found")], daemon=True)
    with version._lock:
        finder.start()
        await asyncio.to_thread(finder.join, 5)
        assert not finder.is_alive()
    sqlite_database.version()
    assert version._file is None, "it was stale, and nobody else would have closed it"


async def test_a_process_that_may_not_list_what_it_has_open_works(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a sandbox, where the folder is there and its names are refused."""
    listdir = os.listdir

    def refused(path: str) -> list[str]:
        if path == file_locks._DESCRIPTORS:
            raise PermissionError(path)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refused)
    store = await open_store(sqlite_url)
    await put(store)
    await store.close()


@on_linux
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOLCK, errno.EPERM, errno.ENOSYS])
async def test_locks_that_a_system_does_not_have_or_does_not_allow_are_done_without(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A lock that was never given must not look like one that somebody else has."""
    monkeypatch.setattr(fcntl, "fcntl", Mock(side_effect=OSError(number, os.strerror(number))))
    store = await open_store(sqlite_url)
    await put(store)
    await store.close()


@pytest.mark.parametrize("before", [0, 1])
async def test_an_error_for_which_sqlite_undoes_everything_is_told_as_it_is(sqlite_store: Store, before: int) -> None:
    """Not as the one of a rollback of what is undone already."""

    async def good(tx: Tx) -> None:
        await tx.hot.enqueue([make()])

    async def bad(tx: Tx) -> None:
        await tx.script("rollback")
        raise apsw.IOError("the disk fails")

    jobs = [Job(body, Future()) for body in [good] * before + [bad]]
    connection = closing(sqlite_store.database._connected().open_another())  # type: ignore[attr-defined]
    with connection as tx, pytest.raises(apsw.IOError):
        write_group(tx, jobs)
    assert await queued(sqlite_store) == 0
