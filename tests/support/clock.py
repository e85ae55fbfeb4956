"""Manual clock for the tests of core and store, which do not use `rota.testing`."""

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
