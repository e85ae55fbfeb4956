"""Backoff of scheduled runs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.core.calendar.rules import Rule, compiled
from rota.core.calendar.triggers import Trigger, after, cron, every, once
from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.jobs.retry import Delays, RetryPolicy
from rota.core.schedules.backoff import adapted_backoff, cadence_warnings
from rota.core.schedules.schedule import define
from rota.registry.data_jobs import define_data_job
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


@pytest.mark.parametrize(
    ("options", "job", "warnings"),
    [
        ({}, JobDefinition(name="j"), []),
        ({"overlap": "cancel_previous"}, JobDefinition(name="j"), ["cancel_grace of 30s"]),
        ({"overlap": "cancel_previous"}, JobDefinition(name="j", cancel=CancelPolicy(grace=timedelta(seconds=5))), []),
        ({"backoff": "30s"}, JobDefinition(name="j"), ["waits 30s for its retry"]),
        ({"backoff": "30s", "max_attempts": 1}, JobDefinition(name="j"), []),
        ({"backoff": "5s"}, JobDefinition(name="j"), []),
        ({"backoff": {"base": "60s"}}, JobDefinition(name="j"), ["waits 1m for its retry"]),
        ({}, define_data_job("j", "external", {"backoff": {"base": "60s"}}), ["waits 1m for its retry"]),
        ({"max_attempts": 3}, define_data_job("j", "external", {"backoff": "exponential"}), ["waits 1m for its retry"]),
        ({"max_attempts": 3}, define_data_job("j", "external", {"max_attempts": 2}), []),
        ({"failure": "retry"}, JobDefinition(name="j", retry=RetryPolicy(3, Delays((timedelta(minutes=1),)))), []),
    ],
)
def test_a_cadence_that_is_faster_than_cancels_or_retries_is_warned_of(
    options: dict[str, Any], job: JobDefinition, warnings: list[str]
) -> None:
    now = micros_at(NOON)
    definition = define(job, cron("*/10 * * * * *"), options, name="s", now=now)
    said = list(cadence_warnings(definition, job, "s", now))
    assert len(said) == len(warnings)
    assert all(words in warning and "10s apart" in warning for words, warning in zip(warnings, said, strict=True))
