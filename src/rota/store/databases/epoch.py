"""The database's epoch. It grows when the server, its history or the file is another: no fence is given twice.

An asynchronous failover or a restored backup may have lost the last commits, claims among them. A lost claim's fence
would be given again, to another worker, and both could write. Every connection compares the place where it is with the
one recorded before it is used: whatever is claimed through it has a fence of the right epoch.

A database on another server, or with other tables, may be a copy whose original is still at work. Until somebody
accepts it as the original, it is *held*: what rota does by itself is refused (`Database.transact`, `acts`).
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import NamedTuple

from rota.core.states import FENCES
from rota.errors import DatabaseCopied
from rota.values.instants import micros_at

log = logging.getLogger("rota.database")

_LARGEST = 2_147 * FENCES  # so that a fence fits into the 32 bits of its column
_FIRST_DAY = micros_at(datetime(2026, 1, 1, tzinfo=UTC))
_A_FENCE = 500_000  # microseconds

LAST = "select epoch, place, floor from rota_epoch order by epoch desc limit 1"


class Place(NamedTuple):
    """Place of a PostgreSQL database. Only the timeline changes by a failover; the others, by a copy."""

    server: str
    timeline: int
    database: str
    tables: str

    @classmethod
    def of(cls, text: str) -> Place | None:
        """Read a place; None if it is not one of PostgreSQL."""
        parts = text.split("/")
        if len(parts) != len(cls._fields):
            return None
        return cls(parts[0], int(parts[1], 16), *parts[2:])


class Standing:
    """Knowledge of a process of where its database is. Twins, which have connections of their own, share it."""

    def __init__(self, *, accepts_copies: bool = False) -> None:
        self.place: str | None = None
        """The place that connections compare with; None if it is not known, or cannot be."""
        self.moved = False
        """The database was seen at another place: the next transaction looks first."""
        self.held = False
        self.accepts_copies = accepts_copies

    def learn(self, *, held: bool) -> None:
        """Note whether the database is held, and log what changes, once for a process."""
        before, self.held = self.held, held
        if held and not before:
            log.warning("%s", DatabaseCopied())
        elif before and not held:
            log.warning("the database was accepted as the original: planning, claiming and sending go on")

    def compare(self, place: str) -> None:
        self.moved = self.moved or place != self.place


class Epoch(NamedTuple):
    """Epoch as it is recorded. `floor` is the least fence that is given in it."""

    number: int
    place: str
    floor: int


def following(last: Epoch | None, place: str, now: int) -> Epoch | None:
    """Return the epoch that begins at `place`; None if the last one goes on.

    Its floor is where the database's clock says, and so above that of any epoch before: a second failover, or a backup
    that is restored again, loses the epoch in between, together with the fences that were given in it. Only if the
    clock was set back does the last epoch count.
    """
    if last is None:
        return Epoch(0, place, 0)
    if last.place == place:
        return None
    floor = (now - _FIRST_DAY) // _A_FENCE
    if floor <= last.floor:
        floor = last.floor + FENCES
    return Epoch(last.number + 1, place, min(floor, _LARGEST))


def is_copy(before: str | None, place: str) -> bool:
    """Return whether `place` may be a copy of `before`: anything but the same tables on a later timeline."""
    if before is None:
        return False
    old, new = Place.of(before), Place.of(place)
    if old is None or new is None:
        return old is not new
    return new._replace(timeline=old.timeline) != old or new.timeline < old.timeline


def tell(begun: Epoch, last: Epoch | None) -> None:
    """Log a new epoch. The first one is nothing special."""
    if last is not None:
        log.warning(
            "the database is at another place than before (%s, now %s): a failover or a restore may have lost the last "
            "changes; leases continue, and fences begin at %d (epoch %d)",
            last.place,
            begun.place,
            begun.floor,
            begun.number,
        )
