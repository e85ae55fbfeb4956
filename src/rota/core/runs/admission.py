"""Admission: what keeps a run that nobody has from being claimed, and the number under which it is stored.

`rota_ready.hold` is one number for two things, so that one index finds the runs of a kind in their order: the admission
of a run, and whether its time has come. Nobody but this module knows the numbers. In the `.sql` files they are written
by name, as `{limited_later}`.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Admission(StrEnum):
    """OPEN: any worker may claim it. LIMITED: its limits must have room (`rota_gate`). RESTRICTED: only a worker that
    meets its requirements may (`rota_need`). BLOCKED: other runs must end first (`rota_wait`). PARENT: nobody claims
    it; when it is due, its replicas are made.
    """

    OPEN = "open"
    LIMITED = "limited"
    RESTRICTED = "restricted"
    BLOCKED = "blocked"
    PARENT = "parent"


class Hold(IntEnum):
    """Number stored in `rota_ready.hold`. Older programs read it, too: a number never gets another meaning."""

    OPEN = 0
    OPEN_LATER = 1
    LIMITED = 2
    BLOCKED = 3
    LIMITED_LATER = 4
    PARENT = 5
    RESTRICTED = 6
    RESTRICTED_LATER = 7


_HOLDS = {
    Admission.OPEN: (Hold.OPEN, Hold.OPEN_LATER),
    Admission.LIMITED: (Hold.LIMITED, Hold.LIMITED_LATER),
    Admission.RESTRICTED: (Hold.RESTRICTED, Hold.RESTRICTED_LATER),
    # Of these two the time is looked at when they are admitted: it is in `run_at`.
    Admission.BLOCKED: (Hold.BLOCKED, Hold.BLOCKED),
    Admission.PARENT: (Hold.PARENT, Hold.PARENT),
}
QUEUED = (Hold.OPEN, Hold.LIMITED, Hold.RESTRICTED)
"""Those that a worker may claim, or would if their limits had room; the others are scheduled."""


def hold_of(admission: Admission, *, due: bool) -> int:
    """Return the number that is stored for an admission, before or after the run's time has come."""
    now, later = _HOLDS[admission]
    return now.value if due else later.value


def is_queued(hold: int) -> bool:
    return hold in QUEUED


HOLD_TOKENS = {hold.name.lower(): str(hold.value) for hold in Hold}
HOLD_TOKENS["later"] = ", ".join(str(hold.value) for hold in Hold if hold.name.endswith("_LATER"))
"""The names as the `.sql` files write them."""
