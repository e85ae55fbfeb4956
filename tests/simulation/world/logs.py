"""What the engine logs, and did not expect."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


class _Complaints(logging.Handler):
    """What the engine logs of drawn troubles interests nobody, unless it did not expect them."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.heard.append(f"{record.name}: {record.getMessage()}: {record.exc_info[1]!r}")


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    log, complaints = logging.getLogger("rota"), _Complaints()
    before = log.propagate, log.handlers[:], logging.getLogger("asyncio").level
    log.propagate, log.handlers[:] = False, [complaints]
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    try:
        yield complaints.heard
    finally:
        log.propagate, log.handlers[:] = before[0], before[1]
        logging.getLogger("asyncio").setLevel(before[2])
