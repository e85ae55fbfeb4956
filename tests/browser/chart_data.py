"""A week of counters for charts, in place of processes that would have to run for days."""

from __future__ import annotations

import math
import random

from rota import Client
from rota.core.monitoring.counters import SPANS, Counted, Rows
from rota.core.monitoring.statistics import bucket


async def count_a_week(client: Client) -> None:
    """A day by the minute and by five, a week by the hour: waves of runs, some of which fail."""
    now = client.store.clock.micros()
    rows: Rows = {}
    for span, length in SPANS.items():
        for back in range(min(1_500, 7 * 86_400 // span)):
            phase = back * span / 14_400
            rows[span, now // length * length - back * length] = _counted(phase, span // 60)
    await client.store.monitoring.record("past", rows)


def _counted(phase: float, scale: int) -> Counted:
    dice = random.Random(phase)  # the same picture every time
    good = int((40 + 30 * math.sin(phase) + dice.random() * 12) * scale)
    bad = int(dice.random() ** 6 * 14 * scale)
    usual, slow = 180_000 + int(120_000 * abs(math.sin(phase))), 2_400_000
    return Counted(
        runs={"succeeded": good, "failed": bad, "cancelled": int(dice.random() ** 8 * 6), "skipped": 2 * scale},
        durations={bucket(usual): good, bucket(slow): max(1, good // 15)},
        lag={bucket(9_000): good, bucket(60_000 + int(90_000 * dice.random())): max(1, good // 12)},
        levels={"default": (int(good / 4), int(good / 10), 0)},
    )
