"""Test that another copy of SQLite is seen that has the file open, and by whom."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rota.core.monitoring.doctor_host import FileUser, FileUsers, check_users
from rota.store import Store, open_store
from rota.store.databases.sqlite import file_users
from rota.store.databases.sqlite.file_users import users_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no locks of open file descriptions here")
READ = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("select * from rota_run").fetchall()
print("read", flush=True)
input()
"""


def path_of(url: str) -> str:
    return os.path.realpath(url.removeprefix("sqlite:///"))


def own(found: FileUsers | None) -> FileUser:
    assert found is not None
    (user,) = [user for user in found.users if user.pid == os.getpid()]
    return user


async def test_a_second_copy_in_the_process_is_seen_while_it_is_open(sqlite_store: Store, sqlite_url: str) -> None:
    path = path_of(sqlite_url)
    await sqlite_store.now()
    before = own(users_of(path))
    assert before.marked > 0
    assert before.others == 0
    with closing(sqlite3.connect(path)) as other:
        other.execute("select count(*) from rota_run").fetchone()
        during = own(users_of(path))
        assert (during.marked, during.others, during.is_mixed) == (before.marked, 1, True)
        assert any("sqlite" in name for name in during.copies)
        assert not any("apsw" in name for name in during.copies)
    assert own(users_of(path)).others == 0


async def test_what_rota_has_closed_is_not_taken_for_another_copy(sqlite_store: Store, sqlite_url: str) -> None:
    """SQLite keeps its descriptor until the other connections of the process have no locks any more."""
    await sqlite_store.now()
    second = await open_store(sqlite_url)
    await second.now()
    await second.close()
    assert own(users_of(path_of(sqlite_url))).others == 0


@contextmanager
def another_program(path: str) -> Iterator[int]:
    """Yield the id of a process that has read the file and has it open."""
    command = [sys.executable, "-c", READ, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "read\n"
        yield program.pid
        program.communicate("\n")


async def test_another_program_is_named_and_does_no_harm(sqlite_store: Store, sqlite_url: str) -> None:
    path = path_of(sqlite_url)
    await sqlite_store.now()
    with another_program(path) as pid:
        found = users_of(path)
    assert found is not None
    (user,) = [user for user in found.users if user.pid == pid]
    assert (user.marked, user.others, user.is_mixed) == (0, 1, False)
    check = check_users(found)
    assert check.level == "ok"
    assert f"(pid {pid})" in check.words


async def test_nothing_is_said_where_the_system_tells_nothing(
    sqlite_store: Store, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite_store.now()
    monkeypatch.setattr(file_users, "_PROCESSES", tmp_path)
    found = users_of(path_of(sqlite_url))
    assert found is None
    assert "does not tell" in check_users(found).words
