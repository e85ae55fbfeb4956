"""Close before a fork, and open after it, whatever a process has open."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

lock = threading.Lock()
"""Held over a fork: what is guarded by it is whole in the child."""


class Forkable(Protocol):
    def before_fork(self) -> None:
        """Close what a child must not inherit, and let nobody open it."""

    def after_fork(self, *, in_child: bool) -> None: ...


_all_open: weakref.WeakSet[Forkable] = weakref.WeakSet()
_closed_for_fork: list[Forkable] = []


def close_at_forks(resource: Forkable) -> None:
    """Close it before forks. The caller holds the lock."""
    _all_open.add(resource)


def _before_fork() -> None:
    """Close every file. SQLite's knowledge of its locks is per process and copied by a fork, the locks are not: a child
    that opens a file which was open at the fork holds no lock, and loses what it writes once the parent closes its own.
    """
    # Lock order: this lock, then each resource's own. Both are kept over the fork and released by parent and child: a
    # lock that another thread holds at that moment would stay locked in the child for ever.
    lock.acquire()
    # A list with strong references: what is closed here must still exist to release its lock.
    _closed_for_fork.extend(_all_open)
    for resource in _closed_for_fork:
        resource.before_fork()


def _after_fork(*, in_child: bool) -> None:
    for resource in _closed_for_fork:
        resource.after_fork(in_child=in_child)
    _closed_for_fork.clear()
    lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )
