"""Locks on an SQLite file that no other code of this process can drop: those of an open file description, on Linux.

SQLite's own locks are the process's. Whoever closes the file anywhere in the process drops them all; so does Python's
`sqlite3`, which is another copy of SQLite. Not meeting our locks, it also believes to be the last that has the file
open, and deletes the log beneath us. A lock of an open file description is met by everybody else, in the same process,
too, and ends with its own descriptor only. It is put on SQLite's own descriptors: closing one more of ours would drop
SQLite's locks just the same.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import apsw

Identity = tuple[int, int]
"""Device and inode."""

_DESCRIPTORS = "/proc/self/fd"
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_DESCRIPTOR_AT = 3 * _POINTER  # in SQLite's `struct unixFile`, after its methods, its VFS and its inode
_PENDING = 0x4000_0000  # the first of the bytes that SQLite locks; they are never written
_SHARED = _PENDING + 2, 510  # whoever has a file open holds them for reading, until it closes it
_IN_USE = 128, 1  # of the index: likewise; who finds it free truncates the index
_WRITING = _PENDING + 512, 1  # ours, as are the next: beyond what SQLite uses
_CHECKPOINTING = _PENDING + 513, 1
_CLOSED = _PENDING + 514, 1  # SQLite keeps a closed descriptor as long as others of the process have locks
_MARK = re.compile(rf"OFDLCK .*READ .* ({_SHARED[0]} {sum(_SHARED) - 1}|{_CLOSED[0]} {_CLOSED[0]})$", re.MULTILINE)


def locked_by_rota(told: str) -> bool:
    """Return whether a descriptor has a lock of rota's connections, by what the system tells of it.

    `told`: its file in `/proc/…/fdinfo`.
    """
    return _MARK.search(told) is not None


class _Indexes:
    """Count of how many connections of this process hold which index: its descriptor is one for all of them."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin anew, also in a forked child, whose descriptors are not these; another thread may have had the lock."""
        self.lock = threading.Lock()
        self.holders: Counter[Identity] = Counter()


_indexes = _Indexes()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_indexes.begin)


def identity(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def descriptor(connection: apsw.Connection, which: int) -> int | None:
    """Return the descriptor of SQLite's own file; its caller compares it with what it should be. None beneath another
    VFS, as of a test.
    """
    if connection.vfsname("main") != "unix":
        return None
    pointer = ctypes.c_void_p()
    if not connection.file_control("main", which, ctypes.addressof(pointer)) or not pointer.value:
        return None
    return ctypes.c_int.from_address(pointer.value + _DESCRIPTOR_AT).value


def is_at(fd: int | None, expected: Identity | None) -> bool:
    if fd is None or fd < 0 or expected is None:
        return False
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == expected


def descriptors_at(target: Identity) -> list[int]:
    """All of this process; none where the system does not list them."""
    return [fd for fd in _descriptors() or [] if is_at(fd, target)]


def has_open(target: Identity) -> bool:
    """True where the system does not list what a process has open, as in some sandboxes."""
    numbers = _descriptors()
    return numbers is None or any(is_at(fd, target) for fd in numbers)


def _descriptors() -> list[int] | None:
    try:
        return [int(name) for name in os.listdir(_DESCRIPTORS)]
    except OSError:
        return None


class Locks:
    """Locks of one connection. `file` is SQLite's descriptor, if it is known; `index` says which is the log's index."""

    def __init__(self, file: int | None, index: Identity | None, patience: Callable[[int], bool]) -> None:
        self._file = file if file is not None and _IS_SUPPORTED else None
        self._index = index
        self._patience = patience
        self._holds = False

    def hold(self) -> None:
        """Against whoever closes the file in this process, and whoever opens it anew after that."""
        if self._file is None or self._index is None or not _set(self._file, _READ, _SHARED):
            return
        with _indexes.lock:
            # Also descriptors of another copy of SQLite: the lock ends with each of them, and ours is among them.
            for fd in descriptors_at(self._index):
                _set(fd, _READ, _IN_USE)
            _indexes.holders[self._index] += 1
        self._holds = True

    def release(self) -> None:
        """Let go before SQLite closes the file: else it would take us for somebody else, and leave the log behind."""
        if not self._holds:
            return
        self._holds = False
        assert self._file is not None
        assert self._index is not None
        _set(self._file, _READ, _CLOSED)
        _set(self._file, _NONE, _SHARED)
        # The index has one descriptor for all connections of a process: only the last one lets it go.
        with _indexes.lock:
            _indexes.holders[self._index] -= 1
            if not _indexes.holders[self._index]:
                del _indexes.holders[self._index]
                for fd in descriptors_at(self._index):
                    _set(fd, _NONE, _IN_USE)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Alone among all connections of rota's. SQLite has a lock for it, but that can be dropped meanwhile."""
        self.begin_writing()
        try:
            yield
        finally:
            self.end_writing()

    def begin_writing(self) -> None:
        if self._file is None:
            return
        tries = 0
        # Polled: a lock that waits in the kernel could not be given up after the usual patience.
        while not _set(self._file, _WRITE, _WRITING):
            if not self._patience(tries):
                raise apsw.BusyError("another process writes")
            tries += 1

    def end_writing(self) -> None:
        if self._file is not None:
            _set(self._file, _NONE, _WRITING)

    @contextmanager
    def checkpointing(self) -> Iterator[bool]:
        """Checkpoint alone, if possible; yield whether nobody else is at it: of two at once, one could bring back what
        the other has replaced.
        """
        if self._file is None:
            yield True
            return
        is_alone = _set(self._file, _WRITE, _CHECKPOINTING)
        try:
            yield is_alone
        finally:
            # Also if another has it: this releases only what the same open file description holds.
            _set(self._file, _NONE, _CHECKPOINTING)


if sys.platform == "linux" and _POINTER == 8:
    import fcntl

    _IS_SUPPORTED = hasattr(fcntl, "F_OFD_SETLK")  # not with every C library
    _TAKEN = errno.EAGAIN, errno.EACCES
    _READ, _WRITE, _NONE = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK

    @cache
    def _flock(kind: int, where: tuple[int, int]) -> bytes:
        # `struct flock` of 64-bit Linux; such locks require that its process id is zero.
        return struct.pack("hhqqi4x", kind, os.SEEK_SET, *where, 0)

    def _set(fd: int, kind: int, where: tuple[int, int]) -> bool:
        """Take the lock, unless somebody else has it. Where a file system has no such locks, SQLite's own must do."""
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(kind, where))
        except OSError as error:
            return error.errno not in _TAKEN
        return True

else:
    _IS_SUPPORTED = False
    _READ = _WRITE = _NONE = 0

    def _set(fd: int, kind: int, where: tuple[int, int]) -> bool:
        return True
