"""Queues as values: pauses and counts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from rota.core.jobs.job import JobDefinition


class Pause(msgspec.Struct, frozen=True):
    """Pause of a job or queue by an operator: since when, by whom and why."""

    name: str
    """Name of the job or queue."""
    paused_at: datetime
    paused_by: str | None
    reason: str | None


QueueCount = tuple[str, int, int, int]
"""(queue, running, queued, scheduled)"""


def with_empty_queues(counts: Iterable[QueueCount], jobs: Iterable[JobDefinition]) -> list[QueueCount]:
    """Add the empty queues that jobs name: people look for them, too."""
    filled = {count[0]: count for count in counts}
    names = {"default", *filled, *(job.queue for job in jobs)}
    return [filled.get(name, (name, 0, 0, 0)) for name in sorted(names)]
