"""Cases, by topic."""

from __future__ import annotations

from tests.conformance.case import Case, is_declared
from tests.conformance.cases import (
    access,
    alerts,
    by_hand,
    external,
    jobs,
    limits,
    monitoring,
    runs,
    schedules,
    workers,
)

_TOPICS = (limits, access, workers, monitoring, alerts, runs, jobs, schedules, external)
CASES: list[Case] = [case for topic in _TOPICS for case in topic.CASES if is_declared(case.verb)] + by_hand.CASES
