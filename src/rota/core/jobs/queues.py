"""Queues as values: their counts and pauses."""

from __future__ import annotations

from datetime import datetime

import msgspec

from rota.core.limits.live import LiveLimit


class Pause(msgspec.Struct, frozen=True):
    """Pause of a job or queue by an operator: since when, by whom and why."""

    name: str
    """Name of the job or queue."""
    paused_at: datetime
    paused_by: str | None
    reason: str | None


class Queue(msgspec.Struct, frozen=True):
    """Queue with its runs; cancelling ones count as running. `oldest_at` is since when the longest-waiting run has been
    claimable; null if there is none."""

    queue: str
    running: int = 0
    queued: int = 0
    scheduled: int = 0
    paused: Pause | None = None
    oldest_at: datetime | None = None
    live_limit: LiveLimit | None = None
    """Limit that an operator set on the queue."""


class ResumedQueue(Queue, frozen=True, kw_only=True):
    """A queue that was resumed; `was_paused` says whether it was paused before."""

    was_paused: bool
