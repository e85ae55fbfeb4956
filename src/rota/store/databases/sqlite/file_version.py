"""Version of an SQLite file, asked on the caller's own thread: no hop to another, and no waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from rota.errors import FileReplaced
from rota.store.databases import fork
from rota.store.databases.sqlite.file_identity import OpenFile, openings_of


class FileVersion:
    """A connection that is asked nothing else, by any thread. Opened at the first question, and again after a fork."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: OpenFile | None = None
        self._opened = 0
        self._lock = threading.Lock()
        fork.close_at_forks(self)

    def now(self) -> tuple[int, int] | None:
        """Differs after every commit by any other connection; None if it cannot be told at once."""
        try:
            return self._asked()
        finally:
            # After the lock is free: whoever found it taken meanwhile relies on this look.
            if (file := self._file) and file.is_stale:
                self.close()

    def _asked(self) -> tuple[int, int] | None:
        with self._lock:
            try:
                return self._now()
            except apsw.Error:
                return None
            except FileReplaced as error:
                lost, problem = self._file, error
        if lost:  # without the lock: who is told of it may have such a connection, too, and tell us
            openings_of(self._path).lose(problem, lost)
        return None

    def _drop(self) -> None:
        """Never wait: a fork has the lock while it waits for the thread that calls this. Who has it closes the file."""
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def _now(self) -> tuple[int, int]:
        if self._file is None:
            self._file = open_for_looking(self._path, self._drop)
            self._opened += 1  # each connection has its own numbers
        self._file.require_same()  # else it would tell of a file that nobody writes to any more
        ((version,),) = self._file.connection.execute("pragma data_version")
        return self._opened, version

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file:
            openings_of(self._path).close(file)

    def before_fork(self) -> None:
        # Kept until after the fork, so that no thread opens the file anew in between.
        self._lock.acquire()
        self._close()

    def after_fork(self, *, in_child: bool) -> None:
        self._lock.release()


def open_for_looking(path: str, drop: Callable[[], None]) -> OpenFile:
    """Open without waiting for anybody: not while others have something else open, nor while the file is locked."""
    openings = openings_of(path)
    openings.wait_for_others(0)
    return openings.open(lambda: apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE), lambda _: False, drop)
