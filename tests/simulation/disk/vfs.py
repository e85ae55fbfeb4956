"""A disk under SQLite that can be full, and whose power can be cut: it logs every act, and tells what a cut leaves.

SQLite works on real files, through the machine's own VFS, so that shared memory and locks are the real ones; only the
syncs are left out. What a power cut leaves behind is computed from the log afterwards: one recorded execution gives the
image of every moment in it, without running it again.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import apsw
import msgspec

SECTOR = 512
"""What a disk writes whole or not at all."""

_JOURNALS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
_names = (f"disk-{number}" for number in itertools.count(1))


class Create(msgspec.Struct, frozen=True):
    name: str


class Delete(msgspec.Struct, frozen=True):
    name: str
    syncs_folder: bool


class Write(msgspec.Struct, frozen=True):
    name: str
    offset: int
    data: bytes


class Truncate(msgspec.Struct, frozen=True):
    name: str
    size: int


class Sync(msgspec.Struct, frozen=True):
    name: str
    syncs_folder: bool


Act = Create | Delete | Write | Truncate | Sync
Change = Write | Truncate
Image = dict[str, bytes]
"""The files of a folder, by name."""


class Disk:
    """Logs what SQLite does to files in any folder while it is mounted. `len(disk.log)` is a moment."""

    def __init__(self) -> None:
        self.log: list[Act] = []
        self.is_full = False
        self.fills_up: Callable[[str, int], bool] = lambda _name, _offset: False
        """Asked of each write that lets a file grow, while there is room: whether there is none any more."""
        self.refusals = 0

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Every connection that is opened in the block goes through this disk; close them in the block, too."""
        vfs = _Vfs(self)
        try:
            yield
        finally:
            vfs.unregister()

    @property
    def syncs(self) -> int:
        return sum(isinstance(act, Sync) for act in self.log)

    def has_room(self, name: str, offset: int) -> bool:
        """For a write that lets a file grow. Once the disk is full it stays so, until somebody makes room."""
        self.is_full = self.is_full or self.fills_up(name, offset)
        self.refusals += self.is_full
        return not self.is_full


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._below = apsw.vfs_names()[0]  # the default one; after the next line it is ourselves
        super().__init__(next(_names), base=self._below, makedefault=True)
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if name is None:
            return apsw.VFSFile(self._below, name, flags)  # a temporary file: nobody expects it to survive
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        is_new = not os.path.exists(path)
        file = _File(self._below, name, flags, self._disk, path)
        if is_new:
            self._disk.log.append(Create(file.name))
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, False)
        self._disk.log.append(Delete(os.path.basename(filename), syncdir))


class _File(apsw.VFSFile):
    def __init__(self, below: str, name: str | apsw.URIFilename, flags: list[int], disk: Disk, path: str) -> None:
        super().__init__(below, name, flags)
        self.name = os.path.basename(path)
        self._path = path
        self._disk = disk
        self._is_journal = bool(flags[0] & _JOURNALS)
        # As SQLite's own VFS: the first sync of a journal also syncs the folder in which it was made.
        self._syncs_folder = self._is_journal and bool(flags[0] & apsw.SQLITE_OPEN_CREATE)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        grows = offset + len(data) > self.xFileSize() and not self._is_checkpointed
        if grows and not self._disk.has_room(self.name, offset):
            self._write(data[: len(data) // 2], offset)  # as on a real disk: what still fits, arrives
            raise apsw.FullError
        self._write(data, offset)

    @property
    def _is_checkpointed(self) -> bool:
        """Then it always has room. That a checkpoint finds the disk full, SQLite keeps to itself, for the commit before
        it has succeeded; but what Python raises, it cannot keep.
        """
        return not self._is_journal and os.path.exists(f"{self._path}-wal")

    def _write(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.log.append(Write(self.name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._disk.log.append(Truncate(self.name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Not passed on: the test's own machine keeps its power."""
        self._disk.log.append(Sync(self.name, self._syncs_folder))
        self._syncs_folder = False


Fate = Literal["nothing", "everything"] | int
"""What had reached the disk of all that was not synced; a number is the seed of chance."""


class Platters:
    """What is on the disk for certain after the acts so far, and what may be."""

    def __init__(self) -> None:
        # Each name's files since the folder was last synced, oldest first; None: there is none of that name.
        self._folder: dict[str, list[_Content | None]] = {}

    def apply(self, acts: Iterable[Act]) -> None:
        for act in acts:
            match act:
                case Create(name):
                    self._folder.setdefault(name, [None]).append(_Content())
                case Delete(name, syncs_folder):
                    self._folder[name].append(None)
                    self._sync_folder(syncs_folder)
                case Write(name) | Truncate(name):
                    self._file(name).unsynced.append(act)
                case Sync(name, syncs_folder):
                    self._file(name).sync()
                    self._sync_folder(syncs_folder)

    def _file(self, name: str) -> _Content:
        file = self._folder[name][-1]
        assert file is not None
        return file

    def _sync_folder(self, asked: bool) -> None:
        if asked:
            self._folder = {name: files[-1:] for name, files in self._folder.items()}

    def after_power_cut(self, fate: Fate) -> Image:
        """The files that somebody finds who starts the machine again."""
        chance = random.Random(fate)
        image: Image = {}
        for name, files in sorted(self._folder.items()):
            found = files[0] if fate == "nothing" else files[-1] if fate == "everything" else chance.choice(files)
            if found is not None:
                image[name] = found.after_power_cut(fate, chance)
        return image


class _Content:
    """A file's synced content, and what was done to it since, in order."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.unsynced: list[Change] = []

    def sync(self) -> None:
        _change(self.synced, self.unsynced)
        self.unsynced.clear()

    def after_power_cut(self, fate: Fate, chance: random.Random) -> bytes:
        content = self.synced.copy()
        if fate == "everything":
            _change(content, self.unsynced)
        elif fate != "nothing":
            _change(content, _arrived(self.unsynced, chance))
        return bytes(content)


def _change(content: bytearray, changes: Iterable[Change]) -> None:
    for change in changes:
        if isinstance(change, Truncate):
            del content[change.size :]
            content.extend(bytes(change.size - len(content)))
        else:
            content.extend(bytes(max(0, change.offset - len(content))))  # a hole reads as zeros
            content[change.offset : change.offset + len(change.data)] = change.data


def _arrived(changes: Sequence[Change], chance: random.Random) -> list[Change]:
    """Some changes, some of them torn; in half of all cases in any order."""
    arrived: list[Change] = []
    for change in changes:
        fate = chance.choice(("whole", "lost", "torn"))
        if fate == "whole":
            arrived.append(change)
        elif fate == "torn" and isinstance(change, Write):
            arrived += [sector for sector in sectors_of(change) if chance.random() < 0.5]
    if chance.random() < 0.5:
        chance.shuffle(arrived)
    return arrived


def sectors_of(write: Write) -> list[Write]:
    """A write as the disk sees it."""
    end = write.offset + len(write.data)
    bounds = [write.offset, *range((write.offset // SECTOR + 1) * SECTOR, end, SECTOR), end]
    return [
        Write(write.name, start, write.data[start - write.offset : stop - write.offset])
        for start, stop in itertools.pairwise(bounds)
    ]


def around_syncs(log: Sequence[Act]) -> list[int]:
    """The moments just before and just after each sync.

    No other needs to be tried: what a cut between two syncs may leave, one just before the second may leave, too.
    """
    return [moment for at, act in enumerate(log) if isinstance(act, Sync) for moment in (at, at + 1)]


def put_back(image: Image, folder: Path) -> None:
    """Without shared memory, which no power cut survives."""
    folder.mkdir()
    for name, content in image.items():
        (folder / name).write_bytes(content)
