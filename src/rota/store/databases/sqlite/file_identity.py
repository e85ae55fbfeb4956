"""Check that the path of an SQLite file still leads to what is open, and act when it does not.

What is committed into a file that was deleted or replaced, or into a log that was deleted, nobody will ever find. So
every commit is followed by a look, before anybody is answered (`OpenFile.require_same`). When something else is there,
all connections of the process are closed, then opened anew: as long as one is open, SQLite gives its index to new ones.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import apsw

from rota.errors import FileReplaced
from rota.store.databases.sqlite.file_contents import Contents
from rota.store.databases.sqlite.file_locks import Identity, Locks, descriptor, has_open, identity, is_at

log = logging.getLogger("rota.store")

_OTHERS_CLOSE = 10.0
_AT_REST = 1.0


_DELETED = "it was deleted while it was in use"
_REPLACED = "it was replaced by another file while it was in use"
_OVERWRITTEN = "it was overwritten while it was in use"
_LOG_DELETED = "its log was deleted while it was in use"


class OpenFile:
    """Files that one connection has open: the file, its log, and the index of the log."""

    def __init__(self, connection: apsw.Connection, path: str, patience: Callable[[int], bool]) -> None:
        """`path` is absolute. A file system that cannot share memory has no log: then it is about the file alone."""
        self.connection = connection
        self.is_stale = False
        self.was_overwritten = False
        self.path, self._log, self._index = path, f"{path}-wal", f"{path}-shm"
        connection.execute("select 1 from sqlite_master limit 1").fetchall()  # opens all three
        self._has_log = connection.pragma("journal_mode") == "wal"
        self._opened, self._opened_log, self._opened_index = self._identities()
        file = descriptor(connection, apsw.SQLITE_FCNTL_FILE_POINTER)
        self._file = file if is_at(file, self._opened) else None
        self._require_own()
        self.locks = Locks(self._file, self._opened_index, patience)
        self.locks.hold()
        self._contents: Contents | None = None

    def share(self, contents: Contents | None) -> Contents | None:
        """Return what this process knows of the contents; `contents`, if that is about the same, else new."""
        if self._file is not None and self._opened is not None and self._opened_index is not None:
            is_same = contents is not None and contents.about == (self._opened, self._opened_index)
            self._contents = contents if is_same else Contents(self._file, self._opened, self._opened_index)
        return self._contents

    def _identities(self) -> tuple[Identity | None, Identity | None, Identity | None]:
        if not self._has_log:
            return identity(self.path), None, None
        return identity(self.path), identity(self._log), identity(self._index)

    def _require_own(self) -> None:
        """Require that the path leads to what was opened. It was looked at after it was opened: it may be another one
        already.
        """
        moved = ctypes.c_int()
        self.connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
        if self._opened is None or moved.value:
            raise FileReplaced(self.path, _REPLACED)
        if not self._has_log:
            return
        if self._opened_log is None or self._opened_index is None:
            raise FileReplaced(self.path, _LOG_DELETED)
        if self._file is not None and not (
            is_at(descriptor(self.connection, apsw.SQLITE_FCNTL_JOURNAL_POINTER), self._opened_log)
            and has_open(self._opened_index)
        ):
            raise FileReplaced(self.path, _LOG_DELETED)

    def require_same(self) -> None:
        """Raise unless the path leads to this file; called after each commit, before anybody is answered."""
        if problem := self.problem():
            raise problem

    def problem(self) -> FileReplaced | None:
        difference = self._difference()
        self.was_overwritten = difference == _OVERWRITTEN
        return FileReplaced(self.path, difference) if difference else None

    def note_checkpoint(self) -> None:
        """Remember the file as this process has just written it: what differs from it later is somebody else's."""
        if self._contents and self._file is not None:
            self._contents.look_again(self._file)

    def _difference(self) -> str | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return _DELETED
        if (status.st_dev, status.st_ino) != self._opened:
            return _REPLACED
        if self._contents and self._file is not None and self._contents.is_overwritten(self._file, status):
            return _OVERWRITTEN
        if self._has_log and (identity(self._log), identity(self._index)) != (self._opened_log, self._opened_index):
            return _LOG_DELETED
        return None

    def close(self) -> None:
        with suppress(apsw.Error):
            if not self._may_carry_over():
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.locks.release()
        self.connection.close()

    def _may_carry_over(self) -> bool:
        """Return whether the log still belongs to the file; if it was only deleted, what is in it can be saved."""
        difference = self._difference()
        return difference is None or (difference == _LOG_DELETED and identity(self._log) is None)

    def part(self) -> ReplacedFile:
        """Return what is to be known of it when the path is opened again; a log beside another file is set aside."""
        was_deleted = self._file is not None and not _has_name(self._file)
        file = None if was_deleted else self._opened  # its number may be another file's as soon as it is closed
        replaced = ReplacedFile(
            self.path, file, FormerLog(self._log, self._opened_log), self._opened_index, self.was_overwritten
        )
        # Under the lock of all that have the former file open: of two, the second would set aside what is new.
        if replaced.is_beside_another:
            with suppress(apsw.BusyError), self.locks.writing():
                replaced.set_log_aside()
        return replaced


def _has_name(fd: int) -> bool:
    try:
        return os.fstat(fd).st_nlink > 0
    except OSError:
        return False


class FormerLog:
    """Kept open: once a log is deleted and closed by all, the new one of another process may get its number."""

    def __init__(self, path: str, opened: Identity | None) -> None:
        self._path = path
        self._kept: int | None = None
        with suppress(OSError):
            self._kept = os.open(path, os.O_RDONLY)
        is_there = identity(path) == opened if self._kept is None else is_at(self._kept, opened)
        self._opened = opened if is_there else None

    def __del__(self) -> None:
        if self._kept is not None:
            os.close(self._kept)  # SQLite has no locks on a log that this could drop

    @property
    def is_there(self) -> bool:
        return self._opened is not None and identity(self._path) == self._opened


class ReplacedFile(NamedTuple):
    """Description of what was open, and is no longer what the path leads to."""

    path: str
    file: Identity | None
    log: FormerLog
    index_of_log: Identity | None
    was_overwritten: bool

    @property
    def is_beside_another(self) -> bool:
        """Return whether the log belongs to another file than the one that is there: SQLite would lay it over that."""
        current = identity(self.path)
        return current is not None and (current != self.file or self.was_overwritten)

    def set_log_aside(self) -> None:
        log_path = f"{self.path}-wal"
        with suppress(OSError):
            if self.log.is_there:
                aside = f"{log_path}-{time.time_ns() // 1_000_000}"
                os.rename(log_path, aside)
                log.error("%s: what the former file had in its log is kept in %s", self.path, aside)
            elif identity(log_path) is not None:
                return  # another process was first: this log is new, and so is the index, whatever its number
            if identity(f"{self.path}-shm") == self.index_of_log:
                os.unlink(f"{self.path}-shm")


class OpenFiles:
    """Registry of all that this process has open of one path."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: dict[OpenFile, Callable[[], None]] = {}
        self._changed = threading.Condition()
        self._replaced: ReplacedFile | None = None
        self._contents: Contents | None = None

    def open(
        self, connect: Callable[[], apsw.Connection], patience: Callable[[int], bool], drop: Callable[[], None]
    ) -> OpenFile:
        """`drop`: lets the owner close it soon, in its own thread."""
        connection = connect()
        try:
            file = OpenFile(connection, self._path, patience)
        except FileReplaced as error:
            with suppress(apsw.Error):
                # No checkpoint: the log may belong to another file than the one that is open.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close()
            self.lose(error)
            raise
        except BaseException:
            connection.close()
            raise
        with self._changed:
            self._contents = file.share(self._contents)
            self._files[file] = drop
            self._replaced = None
        return file

    def close(self, file: OpenFile) -> None:
        try:
            file.close()
        finally:
            # Forgotten only when it is closed: whoever waits would open another beside it, which gets the old index.
            with self._changed:
                self._files.pop(file, None)
                if not self._files:
                    self._contents = None
                self._changed.notify_all()

    def lose(self, error: FileReplaced, by: OpenFile | None = None, *, is_owner: bool = True) -> None:
        """Let everybody close what they have. `by`: where it was noticed; if by its owner, he need not be told."""
        # Before the lock: this waits for the file's write lock, which other processes take.
        replaced = by.part() if by else None
        with self._changed:
            is_reported = by is not None and by.is_stale
            self._replaced = replaced or self._replaced
            drops = [drop for file, drop in self._files.items() if file is not by or not is_owner]
            for file in self._files:
                file.is_stale = True
        if not is_reported:
            log.error("%s", error)
        # After the lock: an owner who closes at once comes back to this registry.
        for drop in drops:
            drop()

    def wait_for_others(self, seconds: float = _OTHERS_CLOSE) -> None:
        """Wait: nothing is opened beside what is stale, nor while the file may still be written over."""
        # A copy: other threads open and close meanwhile.
        for file in list(self._files):
            # The log of what was there before may still be beside it: nobody else has looked yet.
            if not file.is_stale and (problem := file.problem()):
                self.lose(problem, file, is_owner=False)
        with self._changed:
            if not self._changed.wait_for(lambda: not any(file.is_stale for file in self._files), seconds):
                raise FileReplaced(self._path, "this process has not closed the replaced file yet")
            if self._replaced is None:
                return
            if self._replaced.was_overwritten and self._is_fresh():
                raise FileReplaced(self._path, "it is still being overwritten")
            if self._replaced.is_beside_another:
                self._replaced.set_log_aside()

    def _is_fresh(self) -> bool:
        try:
            return 0 <= time.time() - os.stat(self._path).st_mtime < _AT_REST
        except OSError:
            return False


_all_openings: dict[str, OpenFiles] = {}


def openings_of(path: str) -> OpenFiles:
    """`path` is absolute."""
    # Atomic in one step: two threads get the same registry without a lock that a fork would have to know of.
    return _all_openings.setdefault(path, OpenFiles(path))


def _in_child() -> None:
    """Forget all openings: what was open was closed before the fork (`store/databases/fork.py`), or is the parent's."""
    _all_openings.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
