"""How full an installation is now: what waits and runs in each queue, who is there to work, which schedules plan."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class QueueGauge(msgspec.Struct, frozen=True):
    """`oldest`: microseconds since the oldest was due, or claimed; None where nothing waits to begin."""

    name: str
    state: str
    runs: int
    oldest: int | None = None


class Gauges(msgspec.Struct, frozen=True, kw_only=True):
    """`schedules` by state: active, paused, disabled. `overdue` ones are due for a while and were not planned.

    `breached`: (kind, subject, what) of expectations that are not met.
    """

    queues: Sequence[QueueGauge] = ()
    workers_alive: int = 0
    workers_silent: int = 0
    slots: int = 0
    schedules: dict[str, int] = {}
    overdue: int = 0
    breached: Sequence[tuple[str, str, str]] = ()
