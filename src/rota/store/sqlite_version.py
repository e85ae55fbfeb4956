"""Whether an SQLite file was written to, asked on the caller's own thread: no hop to another, and no waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from rota.store import forking


class FileVersion:
    """A connection that is asked nothing else, by any thread. Opened at the first question, and again after a fork."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._connection: apsw.Connection | None = None
        self._opened = 0
        self._lock = threading.Lock()
        forking.close_at_forks(self)

    def now(self) -> tuple[int, int] | None:
        """Differs after every commit by any other connection; None if it cannot be told at once."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                    self._opened += 1  # each connection has its own numbers
                ((version,),) = self._connection.execute("pragma data_version")
            except apsw.Error:
                return None
            return self._opened, version

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def before_fork(self) -> None:
        self._lock.acquire()
        self._close()

    def after_fork(self, *, in_child: bool) -> None:
        self._lock.release()
