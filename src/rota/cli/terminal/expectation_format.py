"""Formats of expectations and their breaches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rota.cli.terminal.format import Cell
from rota.core.alerts.expectations import Expected
from rota.values.durations import age


def told_expectations(found: Expected) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.expect.items())


def told_breaches(found: Expected, now: datetime) -> str:
    return "; ".join(f"{breach.message} (breached {age(breach.since, now)})" for breach in found.breaches)


def expected_facts(found: Expected | None, now: datetime) -> Sequence[tuple[str, Cell]]:
    """Return an expectation and its breaches as facts of a job or a schedule."""
    if found is None:
        return []
    resting = " (resting)" if found.resting else ""
    by = Cell(told_expectations(found), f"{told_expectations(found)}, expected by {found.owner}{resting}")
    return [("expect", by), ("breaches", Cell(told_breaches(found, now), style="red"))]
