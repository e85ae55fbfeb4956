"""Give a process and its children a wrong clock, from their first line on.

SHIFTED_CLOCK holds seconds to be off by; more than one number, and the clock jumps to the next every half second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_shifts = [float(shift) for shift in os.environ.get("SHIFTED_CLOCK", "0").split()]
_true_time: Callable[[], float] = time.time
_true_time_ns: Callable[[], int] = time.time_ns


def _shift() -> float:
    return _shifts[int(time.monotonic() / 0.5) % len(_shifts)]


time.time = lambda: _true_time() + _shift()
time.time_ns = lambda: _true_time_ns() + int(_shift() * 1_000_000_000)
