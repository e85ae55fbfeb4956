"""What a simulation is asked, and what it tells: for people, in instants and words."""

from __future__ import annotations

from datetime import datetime

import msgspec

from rota.durations import Duration


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation takes for granted: how long runs last, which fail, and when no planner is there."""

    duration: Duration = "1s"
    fail_every: int | None = None
    outages: tuple[tuple[datetime, datetime], ...] = ()
    workers: int | None = None


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a plan time got; `missed` and `covered` stand for `count` of them, up to `to_at`."""

    kind: str
    plan_time: datetime
    scope: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempt: int = 0
    reason: str | None = None
    count: int = 1
    to_at: datetime | None = None


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """`counts` are of everything until `until_at`, which is earlier than asked for if there was too much to decide."""

    from_at: datetime
    until_at: datetime
    counts: dict[str, int]
    events: tuple[SimulatedRun, ...]
