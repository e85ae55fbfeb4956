"""Injected clock. The database's clock decides; on SQLite that is this host's clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def micros(self) -> int:
        """Return microseconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for measuring how long something took."""


class HostClock:
    """The host's clock. `ahead_ms`: milliseconds by which it is ahead of the database's, as last measured."""

    ahead_ms = 0

    def micros(self) -> int:
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        return time.monotonic()
