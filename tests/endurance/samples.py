"""Samples of what may grow, and the verdict about a series of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

LEAST = 12
"""Samples of which a series can be judged: three in each quarter."""


class Bound(msgspec.Struct, frozen=True):
    """Growth that is let pass: a part of the earlier value, and as much as a few pages or buffers make."""

    part: float
    slack: float


BOUNDS = {
    "rss": Bound(0.10, 8.0),  # MB
    "descriptors": Bound(0.0, 6.0),
    "threads": Bound(0.0, 6.0),
    "log": Bound(0.25, 20.0),  # KB a minute
    "waiting": Bound(0.50, 50.0),  # runs
    "wal": Bound(0.25, 34.0),  # MB: a server recycles segments of 16
    "size": Bound(0.15, 2.0),  # MB of a table with its indexes
}


class Series(msgspec.Struct):
    """Values of one thing over time. `kind` names its bound."""

    name: str
    kind: str
    values: list[float] = []

    def growth(self) -> tuple[float, float]:
        """Return the medians of the second and of the last quarter: the first one warms up."""
        quarter = len(self.values) // 4
        return median(self.values[quarter : 2 * quarter]), median(self.values[-quarter:])

    def grows(self) -> bool:
        """Return whether the last quarter is beyond what the second one lets expect."""
        if len(self.values) < LEAST:
            return False
        bound, (before, after) = BOUNDS[self.kind], self.growth()
        return after > before * (1 + bound.part) + bound.slack


def of_process(pid: int) -> Mapping[str, float]:
    """Return resident memory in MB, open descriptors and threads of a process."""
    facts = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return {
        "rss": int(facts["VmRSS"].split()[0]) / 1024,
        "descriptors": float(len(list(Path(f"/proc/{pid}/fd").iterdir()))),
        "threads": float(facts["Threads"]),
    }


def record(series: dict[str, Series], kind: str, values: Mapping[str, float]) -> None:
    """Append a value to each of the series; one that begins late is padded, so that all have the same moments."""
    moments = max((len(each.values) for each in series.values()), default=0)
    for name, value in values.items():
        each = series.get(name)
        if each is None:
            each = series[name] = Series(name, kind, [0.0] * max(0, moments - 1))
        each.values.append(value)


def growing(series: Sequence[Series]) -> list[str]:
    """Say what grows."""
    words = []
    for each in series:
        if each.grows():
            before, after = each.growth()
            words.append(f"{each.name} grew from {before:.1f} to {after:.1f}")
    return words
