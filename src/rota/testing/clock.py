"""Manual clock: time moves only when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.errors import Invalid
from rota.testing.assertions.times import Moment, moment, shown
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.instants import instant

_START = datetime(2030, 1, 1, 12, tzinfo=UTC)


class ManualClock:
    """Clock for a `Harness`, or for `open_store(url, manual_clock=clock)`: the database's statements use it, too.

    `ManualClock("2030-03-31 01:59", zone="Europe/Berlin")` starts a minute before the clocks are put forward there.
    """

    def __init__(self, start: Moment = _START, *, zone: str = "UTC") -> None:
        self._micros = moment(start, zone)
        self._steady = 0

    def __repr__(self) -> str:
        return f"<clock at {shown(self._micros, 'UTC')}>"

    def micros(self) -> int:
        return self._micros

    def monotonic(self) -> float:
        return self._steady / 1_000_000

    def now(self) -> datetime:
        return instant(self._micros)

    def advance(self, by: Duration) -> None:
        """Let time pass: `clock.advance("1d")`. A day is 24 hours, whatever the clocks of any zone do."""
        passed = in_micros(parse_duration(by))
        self._micros += passed
        self._steady += passed

    def advance_to(self, at: Moment, *, zone: str = "UTC") -> None:
        """Let time pass until a wall clock shows `at`: `clock.advance_to("2030-03-31 03:00", zone="Europe/Berlin")`."""
        target = moment(at, zone)
        if target < self._micros:
            raise Invalid(
                f"{shown(target, zone)} is in the past: it is {shown(self._micros, zone)}",
                hint="`jump` sets a clock back",
            )
        self.advance(timedelta(microseconds=target - self._micros))

    def jump(self, by: timedelta) -> None:
        """Set the clock forwards or backwards without letting time pass: the monotonic clock stays."""
        self._micros += in_micros(by)
