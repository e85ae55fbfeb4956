"""Makes a failing script shorter: what can be left out without the promise being kept after all is left out."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.simulation.script.entries import Script
from tests.simulation.world.backends import Backend
from tests.simulation.world.world import Outcome, World

PATIENCE = 45.0
"""Seconds: a failure that is told late is not told at all."""


def shrink(script: Script, backend: Backend, promise: str, patience: float = PATIENCE) -> tuple[list[int], Outcome]:
    """The places of the entries that are left, and what came of them. `promise` is broken still, by fewer of them."""
    left = list(range(len(script.entries)))
    outcome = World(script, backend).run()
    until, size = time.monotonic() + patience, max(1, len(left) // 2)
    while time.monotonic() < until:
        shorter = _without_one_bite(script, backend, promise, left, size, until)
        if shorter is not None:
            left, outcome = shorter
        elif size == 1:
            break
        else:
            size //= 2
    return left, outcome


def _without_one_bite(
    script: Script, backend: Backend, promise: str, left: Sequence[int], size: int, until: float
) -> tuple[list[int], Outcome] | None:
    for start in range(0, len(left), size):
        if time.monotonic() > until:
            return None
        kept = [*left[:start], *left[start + size :]]
        outcome = World(script.kept(kept), backend).run()
        if outcome.violation and outcome.violation.promise == promise:
            return kept, outcome
    return None


def reproducer(seed: int, kept: Sequence[int] | None = None, *, postgres: bool = False) -> str:
    """The one line that shows it again."""
    parts = ["python3 dev.py simulate seed", str(seed)]
    if kept is not None:
        parts += ["--keep", ",".join(map(str, kept)) or "none"]
    return " ".join([*parts, "--postgres"] if postgres else parts)
