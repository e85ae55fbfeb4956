"""Options and report of a simulation, for people: in instants and words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rota.core.calendar.notation import instant_of
from rota.errors import Invalid
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.instants import micros_at

_HINT = 'two times, each with a zone, or from the beginning on: ("+1h", "+3h")'


Moment = datetime | str
"""An instant; as text also an offset from the beginning: `+1h`."""


class SimulationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Assumptions of a simulation: how long runs last, which fail, and when no planner works."""

    duration: Duration = "1s"
    fail_every: int | None = None
    outages: Sequence[tuple[Moment, Moment]] = ()
    workers: int | None = None


def outage_of(outage: object, start: int) -> tuple[int, int]:
    """Parse an outage: from when until when no planner works."""
    if not isinstance(outage, list | tuple) or len(outage) != 2:
        raise Invalid(f"an outage is a pair, not {outage!r:.80}", hint=_HINT)
    begin, end = (_moment(moment, start) for moment in outage)
    if end < begin:
        raise Invalid("an outage cannot end before it begins")
    return begin, end


def _moment(moment: object, start: int) -> int:
    if isinstance(moment, str) and moment.startswith("+"):
        return start + in_micros(parse_duration(moment[1:]))
    if not isinstance(moment, str | datetime):
        raise Invalid(f"{moment!r:.80} is no time of an outage", hint=_HINT)
    return micros_at(instant_of(moment))


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fate of a plan time; `missed` and `covered` stand for `count` of them, up to `to_at`."""

    kind: str
    """What becomes of it, in one word."""
    plan_time: datetime
    scope: str | None = None
    """Scope, as `kind/id`."""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempt: int = 0
    reason: str | None = None
    """Why it got no run."""
    count: int = 1
    """Number of plan times that this line stands for."""
    to_at: datetime | None = None


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Report of a simulation."""

    rule: str
    from_at: datetime
    until_at: datetime
    counts: dict[str, int]
    """How many plan times had each fate."""
    events: tuple[SimulatedRun, ...]
    truncated: bool = False
    """True if there was too much to decide, and it ends earlier than asked for."""
    events_truncated: bool = False
    """True if there are more events than are listed."""
