"""Capture what handlers write through `logging`, by any logger, as the log of their runs."""

from __future__ import annotations

import logging
import os
from contextvars import ContextVar
from typing import Any, Protocol


class Listener(Protocol):
    def say(self, attempt: Any, level: int, logger: str, text: str, /) -> None: ...


speaker: ContextVar[tuple[Listener, Any] | None] = ContextVar("rota_speaker", default=None)
"""The listener and the attempt it listens to, set in the context that a handler runs in."""


class Capture(logging.Handler):
    """Handler at the root logger that forwards records written inside a handler to its run."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(message)s"))
        self._users = 0
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        listening = None if _is_our_own(record.name) else speaker.get()
        if listening is not None and os.getpid() == self._process:  # not in a process that a handler forked
            try:
                listener, attempt = listening
                listener.say(attempt, record.levelno, record.name, self.format(record))
            except Exception:
                self.handleError(record)
        if logging.root.handlers == [self] and logging.lastResort and record.levelno >= logging.lastResort.level:
            logging.lastResort.handle(record)  # Python skips it because of our handler: keep warnings visible

    def install(self) -> None:
        """Install the handler, once for all workers of the process."""
        self._users += 1
        self._process = os.getpid()
        self.reinstall()

    def reinstall(self) -> None:
        """Install the handler again: a program that reconfigures logging removes all handlers."""
        if self._users and self not in logging.root.handlers:
            logging.root.addHandler(self)

    def remove(self) -> None:
        self._users -= 1
        if not self._users:
            logging.root.removeHandler(self)


def _is_our_own(logger: str) -> bool:
    """Return whether `logger` is rota's own: the worker's lines about a run are not part of the run's log."""
    return logger.startswith("rota.") and not logger.startswith("rota.job.")


capture = Capture()
