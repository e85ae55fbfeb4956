"""Test what is said of processes that have the SQLite file open."""

from __future__ import annotations

import pytest

from rota.core.monitoring.file_users import FileUser, FileUsers, check_users

OURS = FileUser(7, "rota", 3, 0)
IMPORTED = FileUser(8, "rota", 2, 0, ("libsqlite3.so.0",))
OWN_APSW = FileUser(9, "shop", 2, 1)
MIXED = FileUser(10, "shop", 2, 1, ("libsqlite3.so.0",))
READER = FileUser(11, "sqlite3", 0, 1, ("libsqlite3.so.0",))


@pytest.mark.parametrize(
    ("users", "hidden", "level", "words"),
    [
        ((OURS,), 0, "ok", "1 process has the file open"),
        ((OURS, IMPORTED, OWN_APSW), 0, "ok", "3 processes of rota have the file open"),
        ((OURS, READER), 0, "ok", "1 process has the file open, and so does sqlite3 (pid 11)"),
        ((OURS,), 2, "ok", "2 processes of other users cannot be looked at"),
        ((OURS, MIXED, READER), 0, "warning", "in a process of rota's: shop (pid 10) by libsqlite3.so.0"),
    ],
)
def test_what_is_said(users: tuple[FileUser, ...], hidden: int, level: str, words: str) -> None:
    check = check_users(FileUsers(users, hidden))
    assert check.level == level
    assert words in check.words
    assert (check.hint is None) == (level == "ok")
