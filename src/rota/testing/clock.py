"""Time that moves only when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.durations import Duration, in_micros, parse_duration
from rota.instants import instant, micros_at

_START = datetime(2030, 1, 1, 12, tzinfo=UTC)


class ManualClock:
    """Give it to a `Harness`, or to `open_store(url, manual_clock=clock)`: the database's statements use it too."""

    def __init__(self, start: datetime = _START) -> None:
        self._micros = micros_at(start)
        self._steady = 0

    def micros(self) -> int:
        return self._micros

    def monotonic(self) -> float:
        return self._steady / 1_000_000

    def now(self) -> datetime:
        return instant(self._micros)

    def advance(self, by: Duration) -> None:
        """Let time pass: `clock.advance("1d")`."""
        passed = in_micros(parse_duration(by))
        self._micros += passed
        self._steady += passed

    def jump(self, by: timedelta) -> None:
        """Set the clock, forwards or backwards, without any time passing: the monotonic clock stays."""
        self._micros += in_micros(by)
