"""Time, injected. The database's clock decides; on SQLite that is this host's."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def micros(self) -> int:
        """Microseconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Seconds that only grow, for measuring how long something took."""


class HostClock:
    def micros(self) -> int:
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        return time.monotonic()
