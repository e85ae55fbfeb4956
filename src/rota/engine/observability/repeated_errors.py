"""Log a repeated error at once, then once a minute, and when it is over."""

from __future__ import annotations

import logging
from datetime import timedelta

from rota.errors import RotaError
from rota.values.clock import Clock
from rota.values.durations import span

_QUIET = 60.0
_MOST = 20


class RepeatedErrors:
    """Errors of one operation that is repeated until it works.

    An hour without a database must not fill the disk with logs.
    """

    def __init__(self, log: logging.Logger, operation: str, clock: Clock) -> None:
        self._log = log
        self._operation = operation
        self._clock = clock
        self._began_at: float | None = None
        self._logged_at: dict[str, float] = {}

    def failed(self, error: Exception, words: str = "") -> None:
        """Log a warning, unless the same text was logged within the last minute; log a bug with its traceback."""
        words = words or str(error) or type(error).__name__
        now = self._clock.monotonic()
        if self._began_at is None:
            self._began_at = now
        if now - self._logged_at.get(words, -_QUIET) < _QUIET:
            return
        if len(self._logged_at) >= _MOST:
            self._logged_at.clear()
        self._logged_at[words] = now
        bug = not isinstance(error, RotaError | TimeoutError)
        level, trace = (logging.ERROR, error) if bug else (logging.WARNING, None)
        self._log.log(level, "%s: %s; retrying", self._operation, words, exc_info=trace)

    def recovered(self) -> None:
        """Log that the operation works again. Cheap if nothing was wrong."""
        if self._began_at is None:
            return
        lasted = timedelta(seconds=round(self._clock.monotonic() - self._began_at, 1))
        self._began_at = None
        self._logged_at.clear()
        self._log.info("%s: recovered after %s", self._operation, span(lasted))
