"""Cases, by topic."""

from __future__ import annotations

from tests.conformance.case import Case
from tests.conformance.cases import access, alerts, limits, monitoring, workers

CASES: list[Case] = [*limits.CASES, *access.CASES, *workers.CASES, *monitoring.CASES, *alerts.CASES]
