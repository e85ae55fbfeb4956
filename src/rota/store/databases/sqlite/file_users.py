"""Look who has an SQLite file open on this machine, by what Linux tells of processes.

rota's own connections carry a lock of their open file description (`file_locks`), which no other code takes: a
descriptor without it belongs to somebody else. Within a process of rota's, that is dangerous if it has another copy of
SQLite loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rota.core.monitoring.doctor_host import FileUser, FileUsers
from rota.store.databases.sqlite.file_locks import Identity, identity, locked_by_rota

_PROCESSES = Path("/proc")
# Not apsw's: that is rota's own copy. One that is linked into a library of another name is not recognized.
_COPY = re.compile(r"/([^/\n]*sqlite[^/\n]*\.so[^/\n]*)$", re.MULTILINE)
_LINKED = re.compile(r"^_sqlite3\.")
"""Python's module is a copy itself only if no library is mapped that it would be linked with."""


def users_of(path: str) -> FileUsers | None:
    """Return the processes that have the file open, as far as this user may look; None where nothing is told."""
    target = identity(path)
    if target is None or not _is_told(target):
        return None
    users, hidden = [], 0
    for folder in _PROCESSES.iterdir():
        if folder.name.isdecimal():
            try:
                user = _user(folder, target)
            except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                continue
            except PermissionError:
                hidden += 1
                continue
            users += [user] if user else []
    return FileUsers(tuple(sorted(users, key=lambda user: user.pid)), hidden)


def _is_told(target: Identity) -> bool:
    """Return whether the system tells of locks here: it shows that of this process's own connections."""
    with suppress(OSError):
        own = _PROCESSES / "self"
        return any(locked_by_rota(text) for text in _descriptors(own, target))
    return False


def _user(folder: Path, target: Identity) -> FileUser | None:
    marks = [locked_by_rota(text) for text in _descriptors(folder, target)]
    if not marks:
        return None
    found = set(_COPY.findall((folder / "maps").read_text()))
    copies = {name for name in found if not _LINKED.match(name)} or found
    program = (folder / "comm").read_text().strip()
    return FileUser(int(folder.name), program, marks.count(True), marks.count(False), tuple(sorted(copies)))


def _descriptors(folder: Path, target: Identity) -> Iterator[str]:
    """Yield what the system tells of each descriptor at the file, its locks among it."""
    for entry in (folder / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile, or nothing that has a status
            status = os.stat(entry)
            if (status.st_dev, status.st_ino) == target:
                yield (folder / "fdinfo" / entry.name).read_text()
