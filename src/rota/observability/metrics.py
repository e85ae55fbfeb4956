"""Metrics: counters, gauges and histograms with few labels, and their text for Prometheus (format 0.0.4).

Instruments belong to a registry, so that several engines in one process count separately. Adding is one statement on
one attribute: under the global interpreter lock no other thread can interrupt it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_SERIES = 200
"""Maximum label combinations of one instrument. Further ones are counted together, with `OTHER` as every label."""
OTHER = "other"

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_ESCAPED_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]
"""Suffix of the instrument's name, labels, value."""


class Counter:
    """Number that only grows."""

    kind = "counter"
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, amount: float = 1) -> None:
        self.value += amount

    def samples(self) -> Iterator[Sample]:
        yield "", (), self.value


class Gauge:
    """Current value."""

    kind = "gauge"
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def set(self, value: float) -> None:
        self.value = value

    def samples(self) -> Iterator[Sample]:
        yield "", (), self.value


class Histogram:
    """Counts of observations up to each bound. Observations are in `unit`s; bounds and sum are in the base unit.

    `finer` adds bounds, in `unit`s, for `counted` only; the Prometheus text does not have them.
    """

    kind = "histogram"
    __slots__ = ("_bounds", "_counts", "_ends", "_published", "_sum", "_unit")

    def __init__(self, bounds: Sequence[float], unit: float = 1.0, finer: Sequence[int] = ()) -> None:
        self._published = (*bounds, math.inf)
        self._bounds, self._ends = _laid_out(tuple(bounds), unit, tuple(finer))
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum: float = 0
        self._unit = unit

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def observe_all(self, values: Sequence[float]) -> None:
        """Observe a batch.

        Usually all values fall into the same bucket, which costs little more than one observation.
        """
        if not values:
            return
        bounds, counts = self._bounds, self._counts
        first, last = bisect_left(bounds, min(values)), bisect_left(bounds, max(values))
        if first == last:
            counts[first] += len(values)
        else:
            for value in values:
                counts[bisect_left(bounds, value)] += 1
        self._sum += sum(values)

    def observe_since(self, times: Sequence[float], now: float) -> None:
        """Observe how long ago each of `times` was; a time in the future counts as now."""
        first, last = bisect_left(self._bounds, now - max(times)), bisect_left(self._bounds, now - min(times))
        if first == last and max(times) <= now:
            self._counts[first] += len(times)
            self._sum += now * len(times) - sum(times)
        else:
            self.observe_all([max(0, now - time) for time in times])

    @property
    def count(self) -> int:
        return sum(self._counts)

    def counted(self) -> dict[int, int]:
        """Return counts by the lower bound of their bucket, in `unit`s."""
        return {int(low): count for low, count in zip((0, *self._bounds), list(self._counts), strict=True) if count}

    def samples(self) -> Iterator[Sample]:
        total = begin = 0
        counts = list(self._counts)
        for bound, end in zip(self._published, self._ends, strict=True):
            total += sum(counts[begin:end])
            begin = end
            yield "_bucket", (("le", number(bound)),), total
        yield "_sum", (), self._sum * self._unit
        yield "_count", (), total


@cache
def _laid_out(bounds: tuple[float, ...], unit: float, finer: tuple[int, ...]) -> tuple[tuple[float, ...], list[int]]:
    """Return all bounds in `unit`s, and after which of them each published bucket ends.

    Cached: many histograms share them.
    """
    published = [round(bound / unit, 6) for bound in bounds]
    every = tuple(sorted({*published, *finer}))
    return every, [*(every.index(bound) + 1 for bound in published), len(every) + 1]


Instrument = TypeVar("Instrument", bound=Counter | Gauge | Histogram)


class Family(Generic[Instrument]):
    """Instruments of one name, one for each combination of labels."""

    def __init__(
        self,
        name: str,
        about: str,
        labels: tuple[str, ...],
        make: Callable[[], Instrument],
        most: int | None = MOST_SERIES,
    ) -> None:
        """`most`: the maximum of label combinations; None if whoever makes them limits their number."""
        for word in (name, *labels):
            if not _NAME.fullmatch(word):
                raise ValueError(f"{word!r} cannot be the name of a metric or a label")
        self.name = name
        self.about = about
        self.labels = labels
        self._make = make
        self._most = math.inf if most is None else most
        self._children: dict[tuple[str, ...], Instrument] = {}
        self.kind = make().kind

    def __call__(self, *values: str) -> Instrument:
        """Return the instrument with these labels; beyond the maximum, the one that stands for all others."""
        instrument = self._children.get(values)
        if instrument is not None:
            return instrument
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {values}")
        if len(self._children) >= self._most:
            values = (OTHER,) * len(values)
        return self._children.setdefault(values, self._make())

    def clear(self) -> None:
        self._children = {}

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.about.translate(_ESCAPED_HELP)}"
        yield f"# TYPE {self.name} {self.kind}"
        for values, child in sorted(self._children.items()):
            own = tuple(zip(self.labels, values, strict=True))
            for suffix, more, value in child.samples():
                yield f"{self.name}{suffix}{_labelled((*own, *more))} {number(value)}"


class Metrics:
    """Registry of instruments, in the order of their creation."""

    def __init__(self) -> None:
        self.families: dict[str, Family[Any]] = {}

    def counter(self, name: str, about: str, *labels: str, most: int | None = MOST_SERIES) -> Family[Counter]:
        return self._added(Family(name, about, labels, Counter, most))

    def gauge(self, name: str, about: str, *labels: str) -> Family[Gauge]:
        return self._added(Family(name, about, labels, Gauge))

    def histogram(
        self,
        name: str,
        about: str,
        *labels: str,
        bounds: Sequence[float],
        unit: float = 1.0,
        finer: Sequence[int] = (),
    ) -> Family[Histogram]:
        return self._added(Family(name, about, labels, lambda: Histogram(bounds, unit, finer)))

    def _added(self, family: Family[Instrument]) -> Family[Instrument]:
        if family.name in self.families:
            raise ValueError(f"there is a metric {family.name} already")
        self.families[family.name] = family
        return family

    def text(self) -> str:
        return "".join(f"{line}\n" for family in self.families.values() for line in family.lines())


def number(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if value == int(value) else repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _labelled(labels: Iterable[tuple[str, str]]) -> str:
    text = ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels)
    return f"{{{text}}}" if text else ""
