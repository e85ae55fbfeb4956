"""Hints of an SQLite file: told at once by this process, and within 50 ms of another process's commit."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable

import apsw

from rota.errors import FileReplaced
from rota.store.databases import fork
from rota.store.databases.database import Hint
from rota.store.databases.sqlite.file_identity import OpenFile, openings_of
from rota.store.databases.sqlite.file_version import open_for_looking

_WATCH_SECONDS = 0.05


class Hints:
    """The listeners of one file, and the thread that watches it for them."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._listeners: dict[object, tuple[Hint, asyncio.AbstractEventLoop]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._watcher: threading.Thread | None = None
        fork.close_at_forks(self)

    def tell(self, queues: Iterable[str | None]) -> None:
        names = list(queues)
        # Without the lock, on a copy: a fork holds it while it waits for the watcher, which calls this, too. Each hint
        # is handed over to its listener's own event loop.
        for hint, loop in list(self._listeners.values()):
            for name in names:
                with contextlib.suppress(RuntimeError):  # the listener's loop is closed
                    loop.call_soon_threadsafe(hint, name)

    def add(self, hint: Hint, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        token = object()
        with self._lock:
            self._listeners[token] = (hint, loop)
            self._begin()

        def stop() -> None:
            with self._lock:
                self._listeners.pop(token, None)
                if not self._listeners:
                    self._wake.set()
                    self._watcher = None

        return stop

    def _begin(self) -> None:
        if self._listeners and self._watcher is None:
            # A new event: a former watcher may not have seen yet that it is to end.
            self._wake = threading.Event()
            self._watcher = threading.Thread(
                target=self._watch, args=[self._wake], name="rota-sqlite-watch", daemon=True
            )
            self._watcher.start()

    def before_fork(self) -> None:
        self._lock.acquire()
        if self._watcher:
            self._wake.set()
            # Waited for under the lock, which the watcher never takes: its connection must be closed at the fork.
            self._watcher.join()
            self._watcher = None

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self._listeners.clear()  # their event loops are the parent's
        self._begin()
        self._lock.release()

    def _watch(self, wake: threading.Event) -> None:
        file: OpenFile | None = None
        last_version = None
        while not wake.wait(_WATCH_SECONDS):
            try:
                if file is not None and file.is_stale:
                    openings_of(self._path).close(file)
                    file = None
                if file is None:
                    file, last_version = open_for_looking(self._path, _at_the_next_look), None
                file.require_same()
                ((version,),) = file.connection.execute("pragma data_version").fetchall()
            except FileReplaced as error:
                if file:
                    openings_of(self._path).lose(error, file)
                continue
            except apsw.Error:
                continue  # hints only: polling finds everything without them
            if last_version is not None and version != last_version:
                self.tell([None])
            last_version = version
        if file:
            openings_of(self._path).close(file)


def _at_the_next_look() -> None:
    """Do nothing: what is stale is closed soon without being told."""


_all_hints: dict[str, Hints] = {}


def hints_of(path: str) -> Hints:
    """`path` is absolute."""
    # Looked up and made under one lock: two watchers of a file would tell everything twice.
    with fork.lock:
        hints = _all_hints.get(path)
        if hints is None:
            hints = _all_hints[path] = Hints(path)
        return hints
