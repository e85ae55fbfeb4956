"""Scripts in which the database loses its last commits, once or more often, while everything goes on."""

from __future__ import annotations

import random

import msgspec

from tests.simulation.script.coordination_themes import EXTERNAL, PIPELINES, REPLICAS
from tests.simulation.script.entries import Happening, Jump, Lose, Mark, Script
from tests.simulation.script.generator import draw
from tests.simulation.script.themes import ATTEMPTS, LIMITS, ZOMBIES

_THEMES = (ATTEMPTS, ZOMBIES, LIMITS, EXTERNAL, REPLICAS, PIPELINES)
_BEGUN = 1.0  # seconds: by then engines have declared their jobs


def losing(seed: int) -> Script:
    """Draw what the seed would have drawn of a theme; and losses, some of them twice to the same mark."""
    script = draw(seed, _THEMES[seed % len(_THEMES)])
    chance = random.Random(f"{seed}/losses")
    at = _BEGUN
    entries: list[Happening] = []
    while at < script.span - 2.0:
        entries.append(Mark(at))
        for _ in range(chance.choice((1, 1, 2))):
            at += chance.uniform(0.6, 5.0)  # a restore takes longer than the half second of a fence
            if at < script.span:
                entries.append(Lose(at))
        at += chance.uniform(0.0, 6.0)
    # A clock that goes back from one epoch to the next is what the promise does not cover (docs/howto/failover.md).
    kept = [one for one in script.entries if not isinstance(one, Jump)]
    return msgspec.structs.replace(script, entries=sorted([*kept, *entries], key=lambda one: one.at))
