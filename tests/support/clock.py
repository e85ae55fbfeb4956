"""Time that stands still until a test moves it."""

from datetime import timedelta

START = 1_750_000_000_000_000
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


class ManualClock:
    def __init__(self) -> None:
        self._elapsed = timedelta(0)

    def micros(self) -> int:
        return START + self._elapsed // timedelta(microseconds=1)

    def monotonic(self) -> float:
        return self._elapsed.total_seconds()

    def advance(self, span: timedelta) -> None:
        self._elapsed += span
