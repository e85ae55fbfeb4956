"""Which runs producers ask for: of every kind, drawn by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Arguments = dict[str, Any]

_KINDS: dict[str, tuple[int, Callable[[Random], Arguments]]] = {
    "quick": (10, lambda _: {}),
    "quick_in_thread": (6, lambda _: {}),
    "slow": (4, lambda chance: {"seconds": _now_and_then_long(chance)}),
    "slow_in_thread": (3, lambda chance: {"seconds": _now_and_then_long(chance)}),
    "slow_in_process": (2, lambda chance: {"seconds": _now_and_then_long(chance)}),
    "flaky": (3, lambda chance: {"failures": chance.randint(1, 3)}),
    "hopeless": (1, lambda _: {}),
    "timed": (1, lambda chance: {"seconds": chance.choice([0.1, 5.0])}),
    "once": (4, lambda chance: {"seconds": chance.uniform(0, 1.5)}),
    "careful": (5, lambda chance: {"seconds": chance.uniform(0, 1.5)}),
    "narrow": (7, lambda chance: {"seconds": chance.uniform(0, 1.5)}),
    "keyed": (7, lambda chance: {"lane": chance.randint(1, 2), "seconds": chance.uniform(0, 1.2)}),
    "unique": (2, lambda chance: {"topic": chance.randint(1, 4), "seconds": chance.uniform(0, 1.0)}),
    "stepped": (3, lambda chance: {"seconds": chance.uniform(0, 0.4)}),
    "paying": (3, lambda chance: {"seconds": chance.choice([0.0, 0.0, 0.2])}),
    "dabbling": (2, lambda _: {}),
    "endless": (1, lambda _: {}),
}
"""Each with how often it comes, and its arguments beside `order`, which is the key of the order."""


def _now_and_then_long(chance: Random) -> float:
    """Mostly a moment, at times longer than a lease."""
    return chance.choice([chance.uniform(0.05, 0.5)] * 5 + [chance.uniform(2.0, 5.0)])


def draw(chance: Random, key: str, known: Sequence[str]) -> tuple[str, Arguments, dict[str, Any]]:
    """A job, its arguments and options; some orders follow runs that are `known`, some begin later."""
    job = chance.choices(list(_KINDS), [weight for weight, _ in _KINDS.values()])[0]
    options: dict[str, Any] = {"idempotency_key": key}
    if known and job != "endless" and chance.random() < 0.15:
        followed = chance.sample(known, min(len(known), chance.randint(1, 2)))
        options["after"] = [{"run": id, "on": chance.choice(["success", "end"])} for id in followed]
    elif chance.random() < 0.15:
        options["delay"] = f"{chance.randint(100, 3000)}ms"
    if chance.random() < 0.2:
        options["priority"] = chance.randint(1, 9)
    return job, {"order": key, **_KINDS[job][1](chance)}, options
