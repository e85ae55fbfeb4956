"""Detection of writes to an SQLite file by somebody who does not know of its log, as by copying a backup over it.

Only a checkpoint writes to the file; it says so in the index of the log, before and after. When the file has changed
and no checkpoint was made, its header tells whether it was only touched.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from typing import NamedTuple

from rota.store.databases.sqlite.file_locks import Identity, descriptors_at, is_at

_HEADER = 100
_INDEX = 136
_SALTS = slice(32, 40)  # of the log: others each time it is begun from its start
_CARRIED = slice(96, 100)  # up to which frame it was carried over into the file
_ATTEMPTED = slice(128, 132)  # … and up to which one that was begun


class Checkpoint(NamedTuple):
    salts: bytes
    carried: bytes
    attempted: bytes

    @property
    def is_done(self) -> bool:
        """Return whether it is complete: not while one is made, nor after whoever made it was killed."""
        return self.carried == self.attempted


class Contents:
    """Knowledge of the file since the last look, by any connection of this process.

    On Linux only, where the index can be read through SQLite's own descriptor: to close one of ours would drop SQLite's
    locks.
    """

    def __init__(self, file: int, file_id: Identity, index: Identity) -> None:
        self.about = file_id, index
        self._index = index
        self._lock = threading.Lock()
        self._readable: int | None = None
        self._look(file)

    def look_again(self, file: int) -> None:
        """Look again after a checkpoint of our own: a change before the next look must not pass for part of it."""
        with suppress(OSError), self._lock:  # closed by now
            self._look(file)

    def is_overwritten(self, file: int, status: os.stat_result) -> bool:
        """`file`: a descriptor of it; `status`: of its path, which leads to it."""
        try:
            # Several threads ask, each after its own commit: what one has seen must not be half of what another
            # compares with.
            with self._lock:
                return self._is_overwritten(file, status)
        except OSError:  # closed by now
            return False

    def _is_overwritten(self, file: int, status: os.stat_result) -> bool:
        checkpoint = self._checkpoint()
        if checkpoint == self._last_checkpoint:
            if (status.st_mtime_ns, status.st_size) == self._stamp:
                return False
            if self._is_foreign(checkpoint, file, status):
                return True
        self._look(file)
        return False

    def _is_foreign(self, checkpoint: Checkpoint | None, file: int, status: os.stat_result) -> bool:
        """Return whether a change since the last look is foreign: no checkpoint made it, and it is more than another
        time.
        """
        if checkpoint is None or not checkpoint.is_done or not is_at(self._readable, self._index):
            return False
        if status.st_size != self._stamp[1]:
            return True
        return is_at(file, self.about[0]) and os.pread(file, _HEADER, 0) != self._header

    def _look(self, file: int) -> None:
        if not is_at(self._readable, self._index):  # it may have been another copy of SQLite's, and closed since
            self._readable = next(iter(descriptors_at(self._index)), None)
        # In this order: whatever a checkpoint writes after the first line, the next look finds the index changed by it.
        checkpoint = self._checkpoint()
        header = os.pread(file, _HEADER, 0)
        status = os.fstat(file)
        if (status.st_dev, status.st_ino) != self.about[0]:
            raise OSError(errno.EBADF, "closed by its owner, and its number is another file's")
        # All of it or nothing: a checkpoint noted beside an older header would be taken for an overwritten file.
        self._last_checkpoint, self._header, self._stamp = checkpoint, header, (status.st_mtime_ns, status.st_size)

    def _checkpoint(self) -> Checkpoint | None:
        if self._readable is None:
            return None
        try:
            index = os.pread(self._readable, _INDEX, 0)
        except OSError:  # another copy of SQLite's, and closed: the next look finds ours
            return None
        return Checkpoint(index[_SALTS], index[_CARRIED], index[_ATTEMPTED]) if len(index) == _INDEX else None
