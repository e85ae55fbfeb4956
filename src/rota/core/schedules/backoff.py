"""Backoff of scheduled runs: a retry must not block the plan times after it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from rota.core.calendar.rules import Times
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import RetryPolicy, TryAgain, after_failure, retry_policy_in
from rota.core.schedules.schedule import ScheduleDefinition
from rota.values.durations import span

_SHARE = 4
_LOOKED_AT = 20


def adapted_backoff(rest: int, times: Times, now: int) -> int:
    """Return the default backoff (µs) of a scheduled run: at most a quarter of the time to its next plan time.

    The first backoff of 60 seconds would block a cadence of 10. One that somebody chose stands.
    """
    following = times.next(now)
    return rest if following is None else min(rest, (following - now) // _SHARE)


def retry_policy_of(definition: ScheduleDefinition, job: JobDefinition) -> RetryPolicy:
    """Return the retry policy of a schedule's runs: its own options, else those of its job."""
    return retry_policy_in(definition.options, job.retry)


def cadence_warnings(definition: ScheduleDefinition, job: JobDefinition, name: str, now: int) -> Iterator[str]:
    """Warn if plan times come faster than a cancelled run may take to stop, or a failed one waits for its retry."""
    cadence = _cadence(definition.times(name), now)
    if cadence is None:
        return
    apart = f"plan times are {span(cadence)} apart"
    grace = job.cancel.grace
    if definition.overlap.cancels and cadence < grace:
        yield f"{apart}, and a run that is cancelled may take its cancel_grace of {span(grace)} to stop"
    policy = retry_policy_of(definition, job)
    again = after_failure(policy, 1, 0.0)
    # The default backoff adapts, and with failure=retry the next plan time is the retry.
    adapts = policy.has_default_backoff or definition.failure.retries
    if isinstance(again, TryAgain) and not adapts and cadence < again.after:
        yield f"{apart}, and a failed run waits {span(again.after)} for its retry: meanwhile it overlaps with them"


def _cadence(times: Times, now: int) -> timedelta | None:
    """Return the shortest time between the next plan times."""
    shortest, at = None, times.next(now)
    for _ in range(_LOOKED_AT):
        following = None if at is None else times.next(at)
        if at is None or following is None:
            break
        shortest = min(shortest or following - at, following - at)
        at = following
    return None if shortest is None else timedelta(microseconds=shortest)
