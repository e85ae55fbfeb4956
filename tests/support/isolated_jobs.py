"""Handlers that a worker's child processes find by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rota import Context


def leave_pid_and_hang(place: str) -> None:
    _leave_pid(place)
    time.sleep(1_000)


def leave_pid_and_hang_with_context(ctx: Context, place: str) -> None:
    leave_pid_and_hang(place)


def stop_at_checkpoint(ctx: Context, place: str) -> None:
    _leave_pid(place)
    while True:
        ctx.checkpoint()
        time.sleep(0.005)


def count(ctx: Context, n: int) -> int:
    for _ in range(n):
        ctx.count("steps")
    return os.getpid()


def unstorable() -> object:
    return {1, 2, object()}


def vanish() -> None:
    os._exit(3)


def _leave_pid(place: str) -> None:
    Path(place).with_suffix(".part").write_text(str(os.getpid()))
    Path(place).with_suffix(".part").rename(place)
