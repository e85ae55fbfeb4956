"""Charts: counters of a time range, in equal steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from rota.core.monitoring.counters import HOUR, MINUTE, SPANS, Counted, merged
from rota.core.monitoring.statistics import percentile
from rota.errors import Invalid
from rota.values.durations import Duration, format_duration, in_micros, parse_duration
from rota.values.instants import instant, micros_at, zoned

MOST_BUCKETS = 1_000
_USUAL = 96
_DAY = 24 * HOUR
MINUTES_KEPT = 2 * _DAY
"""Retention of counters per minute and per five minutes."""
_NICE = [
    *(count * MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 5, 10, 30, 100, 1_000)),
]


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """Step of a chart. `queued` and `running` are the highest sample within it; None: there is no sample."""

    at: datetime
    """Start of the step."""
    runs: dict[str, int]
    """Runs that ended within it, by state."""
    duration_p50_ms: int | None
    """Median duration."""
    duration_p95_ms: int | None
    """Duration that 95 % do not exceed."""
    lag_p50_ms: int | None
    """Median time between due and begun."""
    lag_p95_ms: int | None
    """Time between due and begun that 95 % do not exceed."""
    queued: int | None
    """Most runs that could be claimed at a time."""
    running: int | None
    """Most runs that were executed at a time."""


class Series(msgspec.Struct, frozen=True, kw_only=True, rename={"from_at": "from", "to_at": "to"}):
    """Chart, from the start of its first step to the end of the last one, or to now."""

    from_at: datetime
    to_at: datetime
    step: timedelta
    """Length of a step."""
    buckets: Sequence[Bucket] = ()


class Stretch(msgspec.Struct, frozen=True):
    """Requested range in microseconds; `first` is the start of the first step."""

    first: int
    to: int
    step: int

    @property
    def span(self) -> int:
        """Span of the counter rows to read, in seconds: the longest that divides a step."""
        return max(span for span, length in SPANS.items() if self.step % length == 0)

    @property
    def begins(self) -> range:
        return range(self.first, self.to, self.step)


def stretch_of(from_at: datetime | None, to_at: datetime | None, step: Duration | None, now: int) -> Stretch:
    """Validate the range; by default the last day in steps of 15 minutes. The future is left out."""
    to = now if to_at is None else min(max(micros_at(zoned(to_at, "to")), 0), now)
    since = to - _DAY if from_at is None else min(max(micros_at(zoned(from_at, "from")), 0), now)
    if since > to:
        raise Invalid("from is after to")
    if step is None:
        length = _usual(to - since)
        length = max(length, HOUR) if since < now - MINUTES_KEPT else length
    else:
        length = _checked(step, old=since < now - MINUTES_KEPT)
    first = since // length * length
    if (to - first) / length > MOST_BUCKETS:
        most = format_duration(timedelta(microseconds=_usual(to - since)))
        raise Invalid(f"that is more than {MOST_BUCKETS} steps", hint=f"step={most} makes about a hundred of them")
    return Stretch(first, to, length)


def _usual(length: int) -> int:
    return next((nice for nice in _NICE if nice * _USUAL >= length), _NICE[-1])


def _checked(step: Duration, *, old: bool) -> int:
    length = in_micros(parse_duration(step, "step"))
    if length < MINUTE or length % MINUTE:
        raise Invalid(f"step must be whole minutes, not {step}")
    if old and length % HOUR:
        raise Invalid(f"step must be whole hours, not {step}", hint="minutes are kept for two days")
    return length


def series_of(stretch: Stretch, rows: Iterable[tuple[int, str]]) -> Series:
    """Build the chart from `rows`: the start of each counter row, and its JSON."""
    parts: dict[int, list[Counted]] = {}
    for at, text in rows:
        parts.setdefault((at - stretch.first) // stretch.step, []).append(msgspec.json.decode(text, type=Counted))
    return Series(
        from_at=instant(stretch.first),
        to_at=instant(stretch.to),
        step=timedelta(microseconds=stretch.step),
        buckets=[_bucket(at, parts.get(place, ())) for place, at in enumerate(stretch.begins)],
    )


def _bucket(at: int, parts: Sequence[Counted]) -> Bucket:
    whole = merged(parts)
    looked = any(part.levels or not part for part in parts)
    levels = list(whole.levels.values())
    return Bucket(
        at=instant(at),
        runs=dict(sorted(whole.runs.items())),
        duration_p50_ms=_ms(whole.durations, 0.5),
        duration_p95_ms=_ms(whole.durations, 0.95),
        lag_p50_ms=_ms(whole.lag, 0.5),
        lag_p95_ms=_ms(whole.lag, 0.95),
        queued=sum(queued for queued, _, _ in levels) if looked else None,
        running=sum(running for _, running, _ in levels) if looked else None,
    )


def _ms(counts: dict[int, int], share: float) -> int | None:
    micros = percentile(counts, share)
    return None if micros is None else round(micros / 1_000)
