"""Log lines of handlers on their way to their runs: whatever they say through `logging`, by whichever logger."""

from __future__ import annotations

import logging
import os
from contextvars import ContextVar
from typing import Any, Protocol


class Listener(Protocol):
    def say(self, attempt: Any, level: int, logger: str, text: str, /) -> None: ...


speaker: ContextVar[tuple[Listener, Any] | None] = ContextVar("rota_speaker", default=None)
"""Who listens, and to whom: set in the context that a handler runs in."""


class Capture(logging.Handler):
    """Stands at the root, beside the program's own handlers, and passes on what is said inside a handler."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(message)s"))
        self._users = 0
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        speaking = None if _is_our_own(record.name) else speaker.get()
        if speaking is not None and os.getpid() == self._process:  # not in what a handler forked
            try:
                listener, attempt = speaking
                listener.say(attempt, record.levelno, record.name, self.format(record))
            except Exception:
                self.handleError(record)
        if logging.root.handlers == [self] and logging.lastResort and record.levelno >= logging.lastResort.level:
            logging.lastResort.handle(record)  # which Python leaves alone now that there is a handler

    def install(self) -> None:
        """Once for all workers of the process."""
        self._users += 1
        self._process = os.getpid()
        self.put_back()

    def put_back(self) -> None:
        """A program that configures its logging anew takes all handlers away."""
        if self._users and self not in logging.root.handlers:
            logging.root.addHandler(self)

    def remove(self) -> None:
        self._users -= 1
        if not self._users:
            logging.root.removeHandler(self)


def _is_our_own(logger: str) -> bool:
    """What the worker says of a run is not what the run says."""
    return logger.startswith("rota.") and not logger.startswith("rota.job.")


capture = Capture()
