"""The database's epoch. It grows when the server, its history or the file is another: no fence is given twice.

An asynchronous failover or a restored backup may have lost the last commits, claims among them. A lost claim's fence
would be given again, to another worker, and both could write. Every connection compares the place where it is with the
one recorded before it is used: whatever is claimed through it has a fence of the right epoch.
"""

from __future__ import annotations

import logging

from rota.core.states import FENCES

log = logging.getLogger("rota.database")

_LARGEST = 2_147  # epochs, so that a fence fits into the 32 bits of its column

LAST = "select epoch, place from rota_epoch order by epoch desc limit 1"


def floor_of(epoch: int) -> int:
    return min(epoch, _LARGEST) * FENCES


def following(last: tuple[int, str] | None, place: str) -> int | None:
    """Return the epoch that begins at `place`; None if the last one goes on."""
    if last is None:
        return 0
    epoch, before = last
    return None if before == place else epoch + 1


def tell(epoch: int, last: tuple[int, str] | None, place: str) -> None:
    """Log a new epoch. The first one is nothing special."""
    if last is not None:
        log.warning(
            "the database is at another place than before (%s, now %s): a failover or a restore may have lost the last "
            "changes; leases continue, and fences begin at %d (epoch %d)",
            last[1],
            place,
            floor_of(epoch),
            epoch,
        )
