"""Backoff of scheduled runs."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.core.calendar.rules import Rule, compiled
from rota.core.calendar.triggers import Trigger, after, cron, every, once
from rota.core.schedules.backoff import adapted_backoff
from rota.values.durations import in_micros
from rota.values.instants import micros_at

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("trigger", "seconds", "rest", "adapted"),
    [
        (every("2s"), 0, 60, 0.5),
        (every("2s"), 1, 60, 0.25),
        (every("1h"), 0, 60, 60),
        (every("1h"), 0, 3_600, 900),
        (cron("*/5 * * * * *"), 1, 60, 1),
        (once(NOON - timedelta(hours=1)), 0, 60, 60),  # it has no next plan time
        (once(NOON + timedelta(minutes=1)), 0, 60, 15),
        (after("10s"), 0, 60, 60),  # nor has one that waits for the end of this run
    ],
)
def test_it_takes_a_quarter_of_the_time_to_the_next_plan_time(
    trigger: Trigger, seconds: float, rest: float, adapted: float
) -> None:
    now = micros_at(NOON + timedelta(seconds=seconds))
    times = compiled(Rule(trigger), "s")
    assert adapted_backoff(in_micros(timedelta(seconds=rest)), times, now) == in_micros(timedelta(seconds=adapted))
