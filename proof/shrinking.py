"""Makes a failing script shorter: what can be left out without the promise being kept after all is left out."""

from __future__ import annotations

from collections.abc import Sequence

from proof.backends import Backend
from proof.script import Script
from proof.world import Outcome, World

_MOST_RUNS = 300


def shrink(script: Script, backend: Backend, promise: str) -> tuple[list[int], Outcome]:
    """The places of the entries that are left, and what came of them. `promise` is broken still, by fewer of them."""
    left = list(range(len(script.entries)))
    outcome = World(script, backend).run()
    runs, size = 0, max(1, len(left) // 2)
    while runs < _MOST_RUNS:
        shorter, tried = _without_one_bite(script, backend, promise, left, size)
        runs += tried
        if shorter is not None:
            left, outcome = shorter
        elif size == 1:
            break
        else:
            size //= 2
    return left, outcome


def _without_one_bite(
    script: Script, backend: Backend, promise: str, left: Sequence[int], size: int
) -> tuple[tuple[list[int], Outcome] | None, int]:
    tried = 0
    for start in range(0, len(left), size):
        kept = [*left[:start], *left[start + size :]]
        outcome = World(script.kept(kept), backend).run()
        tried += 1
        if outcome.violation and outcome.violation.promise == promise:
            return (kept, outcome), tried
    return None, tried


def reproducer(seed: int, kept: Sequence[int] | None = None, *, postgres: bool = False) -> str:
    """The one line that shows it again."""
    parts = ["python3 dev.py prove seed", str(seed)]
    if kept is not None:
        parts += ["--keep", ",".join(map(str, kept)) or "none"]
    return " ".join([*parts, "--postgres"] if postgres else parts)
