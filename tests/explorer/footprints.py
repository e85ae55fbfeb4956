"""Footprint of a step: which tables a statement reads and locks, and what a commit publishes and releases.

Two steps whose footprints do not touch may be swapped, so one order of the two is enough. By table, which is coarse:
fixtures have few rows, and a pair too many is only played once more.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Self

import msgspec

_TABLE = re.compile(r"\brota_\w+")
_WRITTEN = re.compile(r"\b(?:(?<!for )(?<!no key )update|insert into|delete from) (rota_\w+)")
_LOCKED = re.compile(r"\bfor (?:no key )?(?:update|share)\b")
_COMMENT = re.compile(r"--[^\n]*")
_BEHIND = {
    "rota_run_now": frozenset({"rota_run", "rota_ready", "rota_lease", "rota_outside", "rota_conduct", "rota_attempt"}),
    "rota_schedule_now": frozenset({"rota_schedule", "rota_cursor"}),
}
"""Tables behind views."""
_ALSO = {"rota_run": frozenset({"rota_fault"}), "rota_schedule": frozenset({"rota_cursor"})}
"""Tables that triggers write."""
Tables = frozenset[str]
_NONE: Tables = frozenset()


class Footprint(msgspec.Struct, frozen=True):
    """Tables of one step. A statement reads and locks; its end publishes what was written and releases the locks."""

    reads: Tables = _NONE
    locks: Tables = _NONE
    writes: Tables = _NONE
    publishes: Tables = _NONE
    releases: Tables = _NONE

    def touches(self, other: Footprint) -> bool:
        """Return whether the order of the two can matter."""
        return bool(
            self.locks & (other.locks | other.releases)
            or self.releases & other.locks
            or self.publishes & (other.reads | other.locks)
            or other.publishes & (self.reads | self.locks)
        )

    def ended(self) -> Self:
        """Return what the commit of a transaction does that consists of this."""
        return type(self)(publishes=self.writes, releases=self.locks)

    def __or__(self, other: Footprint) -> Footprint:
        return Footprint(
            self.reads | other.reads,
            self.locks | other.locks,
            self.writes | other.writes,
            self.publishes | other.publishes,
            self.releases | other.releases,
        )


@cache
def footprint_of(sql: str) -> Footprint:
    text = _COMMENT.sub("", sql.lower())
    named = set(_TABLE.findall(text))
    reads = frozenset().union(*(_BEHIND.get(name, {name}) for name in named))
    written = set(_WRITTEN.findall(text))
    writes = frozenset().union(written, *(_ALSO.get(name, _NONE) for name in written))
    return Footprint(reads, reads | writes if _LOCKED.search(text) else writes, writes)
