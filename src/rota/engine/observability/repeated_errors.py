"""What goes wrong again and again: told at once, then once a minute, and when it is over."""

from __future__ import annotations

import logging
from datetime import timedelta

from rota.errors import RotaError
from rota.values.clock import Clock
from rota.values.durations import span

_QUIET = 60.0
_MOST = 20


class RepeatedErrors:
    """Of one thing that is tried until it works. A database away for an hour must not fill the disk with logs."""

    def __init__(self, log: logging.Logger, what: str, clock: Clock) -> None:
        self._log = log
        self._what = what
        self._clock = clock
        self._began_at: float | None = None
        self._told: dict[str, float] = {}

    def tell(self, error: Exception, words: str = "") -> None:
        """A warning, unless the same was told within the last minute; an error with its traceback if it is a bug."""
        words = words or str(error) or type(error).__name__
        now = self._clock.monotonic()
        if self._began_at is None:
            self._began_at = now
        if now - self._told.get(words, -_QUIET) < _QUIET:
            return
        if len(self._told) >= _MOST:
            self._told.clear()
        self._told[words] = now
        bug = not isinstance(error, RotaError | TimeoutError)
        level, trace = (logging.ERROR, error) if bug else (logging.WARNING, None)
        self._log.log(level, "%s: %s; trying again", self._what, words, exc_info=trace)

    def over(self) -> None:
        """It worked. Cheap while nothing was wrong."""
        if self._began_at is None:
            return
        lasted = timedelta(seconds=round(self._clock.monotonic() - self._began_at, 1))
        self._began_at = None
        self._told.clear()
        self._log.info("%s: works again, after %s", self._what, span(lasted))
