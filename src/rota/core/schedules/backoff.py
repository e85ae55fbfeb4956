"""Backoff of scheduled runs: a retry must not block the plan times after it."""

from __future__ import annotations

from rota.core.calendar.rules import Times

_SHARE = 4


def adapted_backoff(rest: int, times: Times, now: int) -> int:
    """Return the default backoff (µs) of a scheduled run: at most a quarter of the time to its next plan time.

    The first backoff of 60 seconds would block a cadence of 10. One that somebody chose stands.
    """
    following = times.next(now)
    return rest if following is None else min(rest, (following - now) // _SHARE)
