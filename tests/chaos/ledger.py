"""What handlers say that they began, did and ended, in files that rota knows nothing of."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from rota import Context, SyncContext
from tests.chaos import append_log

FOLDER = "CHAOS_LEDGER"

What = Literal["begin", "did", "end", "stop"]
"""`did`: what it is there for, or a step, which is named. `stop`: it ended by an exception."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """`at` is the machine's monotonic clock, which all its processes share; `wall` its other one."""

    what: What
    run_id: str
    job: str
    fence: int
    attempt: int
    worker: str
    pid: int
    at: float
    wall: float
    note: str = ""

    def __str__(self) -> str:
        told = f"{self.what} {self.note}".strip()
        return f"{told} of {self.run_id[-6:]} {self.job} (fence {self.fence}) by {self.worker}, pid {self.pid}"


def write(what: What, ctx: Context | SyncContext, note: str = "") -> None:
    pid = os.getpid()
    entry = Entry(
        what, ctx.run_id, ctx.job, ctx.fence, ctx.attempt, ctx.worker_id, pid, time.monotonic(), time.time(), note
    )
    append_log.append(Path(os.environ[FOLDER]) / f"{pid}.lines", entry)


@contextmanager
def entered(ctx: Context | SyncContext) -> Iterator[None]:
    write("begin", ctx)
    try:
        yield
    except BaseException as error:
        write("stop", ctx, type(error).__name__)
        raise
    write("end", ctx)


def entries(folder: Path) -> list[Entry]:
    """In the order of time."""
    return sorted(append_log.read_all(folder, Entry), key=lambda entry: entry.at)
