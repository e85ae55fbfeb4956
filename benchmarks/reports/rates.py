"""What a row of instants says about a fault: the rate before it, the rate after it, and when it was back."""

import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

GOAL = 0.95
WITHIN = 10.0
"""Seconds after healing, within which the rate is to be back."""
WINDOW = 4.0
"""Seconds: long enough that a busy machine changes little."""
GLANCE = 2.0
"""Shorter, to say when; looked at again every `STEP`."""
STEP = 0.1


@dataclass(frozen=True)
class Recovery:
    """Shares are of the baseline: `during` the fault, and in the window that ends ten seconds after healing.

    `after`: seconds from healing until the rate is back, None for never.
    """

    baseline: float
    during: float
    share: float
    after: float | None

    @property
    def is_met(self) -> bool:
        return self.share >= GOAL and self.after is not None and self.after <= WITHIN


def recovery(instants: Sequence[float], struck: float, healed: float, seconds: float, *, part: float = 1.0) -> Recovery:
    """`instants` in order; the baseline is of so many `seconds` before the fault, and `part` of it can return."""
    baseline = part * steady_rate(instants, struck - seconds, struck)
    return Recovery(
        baseline=baseline,
        during=rate(instants, struck, healed) / baseline,
        share=rate(instants, healed + WITHIN - WINDOW, healed + WITHIN) / baseline,
        after=back_after(instants, healed, GOAL * baseline),
    )


def rate(instants: Sequence[float], since: float, until: float) -> float:
    """A second, from `since` on, before `until`."""
    return (bisect_left(instants, until) - bisect_left(instants, since)) / (until - since)


def steady_rate(instants: Sequence[float], since: float, until: float) -> float:
    """The median second, so that a bad one on a busy machine does not make the goal easier."""
    return statistics.median(rate(instants, since + second, since + second + 1) for second in range(int(until - since)))


def back_after(instants: Sequence[float], healed: float, wanted: float) -> float | None:
    """How long after healing the first glance begins that sees the rate that is wanted."""
    last = instants[-1] if instants else healed
    for step in range(int((last - GLANCE - healed) / STEP) + 1):
        since = healed + step * STEP
        if rate(instants, since, since + GLANCE) >= wanted:
            return step * STEP
    return None
