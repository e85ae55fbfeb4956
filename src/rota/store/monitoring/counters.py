"""Counters of processes and lengths of queues, per minute, per five minutes and per hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from rota.core.monitoring.charts import MINUTES_KEPT
from rota.core.monitoring.counters import SPANS, Counted, QueueGauge, Rows, levels_of
from rota.store.databases.database import Row, Tx, Work
from rota.values.durations import in_micros

NOBODY = ""
"""The source of queue lengths, which no process counts as its own."""
_HOURS_KEPT = in_micros(timedelta(days=60))
_BITE = 1_000
_MOST_READ = 300_000
"""Enough for two days of five hundred processes, in spans of five minutes. Of more, the oldest are left out."""


async def record(tx: Tx, source: str, rows: Rows) -> None:
    """Write counters. Idempotent: each row holds the total of its span."""
    written = [(span, at, msgspec.json.encode(counted).decode()) for (span, at), counted in sorted(rows.items())]
    await tx.fetch("save_counts", written, source=source)


class Measuring(msgspec.Struct, frozen=True):
    """The database's time, and whether a process has measured the current minute."""

    now: int
    is_done: bool


async def measuring(tx: Tx) -> Measuring:
    ((now, is_done),) = await tx.fetch("measured", length=SPANS[60])
    return Measuring(int(now), bool(is_done))


async def begin_measuring(tx: Tx, now: int) -> list[tuple[int, int]]:
    """Return the spans that this process has to measure: those that no other has begun, unless there is nothing."""
    current = [(span, now // length * length) for span, length in SPANS.items()]
    # The primary key lets only one of several processes insert a span's row.
    spans = [(span, at) for span, at in await tx.fetch("begin_measuring", current)]
    return spans if spans and await tx.fetch("anything_live") else []


async def measured(tx: Tx) -> Counted:
    rows = await tx.fetch("measure_queues")
    return levels_of(QueueGauge(queue, state, int(runs)) for queue, state, runs in rows)


async def between(tx: Tx, span: int, first: int, last: int) -> list[tuple[int, str]]:
    """Return when each row's span began, and its counters as JSON."""
    rows = await tx.fetch("counted_between", span=span, first=first, last=last, most=_MOST_READ)
    return [(at, text) for at, text in rows]


async def old_counts(tx: Tx) -> Sequence[Row]:
    """Return one batch of counters that are kept no longer."""
    return await tx.fetch("old_counts", minutes=MINUTES_KEPT, hours=_HOURS_KEPT, limit=_BITE)


def drop_counts(rows: Sequence[Row]) -> Work[int]:
    async def body(tx: Tx) -> int:
        await tx.fetch("drop_counts", rows)
        return len(rows)

    return body
