"""Gauges: runs in each queue, workers and their slots, schedules and breaches, at this moment."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class QueueGauge(msgspec.Struct, frozen=True):
    """Number of runs of a queue in a state; `oldest`: µs since the oldest was due, or claimed; None if none waits."""

    name: str
    state: str
    runs: int
    oldest: int | None = None


class Gauges(msgspec.Struct, frozen=True, kw_only=True):
    """Gauges of an installation.

    `schedules` by state: active, paused, disabled. `overdue` ones were due for a while, and were not planned.

    `breached`: (kind, subject, what) of expectations that are not met.
    """

    queues: Sequence[QueueGauge] = ()
    workers_alive: int = 0
    workers_silent: int = 0
    slots: int = 0
    schedules: dict[str, int] = {}
    overdue: int = 0
    breached: Sequence[tuple[str, str, str]] = ()
