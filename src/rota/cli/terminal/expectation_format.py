"""Formats of expectations and their breaches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rota.cli.terminal.format import Cell
from rota.core.alerts.expectations import Expected
from rota.values.durations import age


def expectations_text(expected: Expected) -> str:
    return ", ".join(f"{name} {value}" for name, value in expected.expect.items())


def breaches_text(expected: Expected, now: datetime) -> str:
    return "; ".join(f"{breach.message} (breached {age(breach.since, now)})" for breach in expected.breaches)


def expected_facts(expected: Expected | None, now: datetime) -> Sequence[tuple[str, Cell]]:
    """Return an expectation and its breaches as facts of a job or a schedule."""
    if expected is None:
        return []
    resting = " (resting)" if expected.resting else ""
    by = Cell(expectations_text(expected), f"{expectations_text(expected)}, expected by {expected.owner}{resting}")
    return [("expect", by), ("breaches", Cell(breaches_text(expected, now), style="red"))]
