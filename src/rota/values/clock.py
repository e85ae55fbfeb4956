"""Injected clock, and ids of runs, which tell its time. The database's clock decides; on SQLite it is this host's."""

from __future__ import annotations

import time
from typing import Protocol

import uuid_utils

_TOLERATED = 50  # milliseconds; below that, the difference is about as long as measuring it
_TIME_BITS = 80  # a version 7 UUID begins with 48 bits of milliseconds; 80 bits follow


class Clock(Protocol):
    def micros(self) -> int:
        """Return microseconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for measuring how long something took."""


class HostClock:
    """The host's clock. `ahead_ms`: milliseconds by which it is ahead of the database's, as last measured."""

    ahead_ms = 0

    def micros(self) -> int:
        return time.time_ns() // 1_000

    monotonic = staticmethod(time.monotonic)  # not called in turn: each run asks for it twice


def new_id() -> str:
    """Make an id by the host's clock, for whoever has no database."""
    return str(uuid_utils.uuid7())


class RunIds:
    """Make ids by the database's clock: the host's, less what `clock` says that it is ahead.

    They are in the order in which one process makes them, but for the moment when it notices that its clock is wrong.
    """

    def __init__(self, clock: Clock) -> None:
        # A clock moved by hand has nothing to do with ids, which every test makes by the host's.
        self._clock = clock if isinstance(clock, HostClock) else HostClock()

    def __call__(self) -> str:
        id = uuid_utils.uuid7()
        ahead = self._clock.ahead_ms
        return str(id) if not ahead else str(uuid_utils.UUID(int=id.int - (ahead << _TIME_BITS)))


def id_clock() -> int:
    """Return the milliseconds of the clock that ids are made from."""
    return uuid_utils.uuid7().int >> _TIME_BITS


def compare(clock: Clock, before: int, now: int) -> None:
    """Note how far the host's clock is ahead. The database said `now` (microseconds) between `before` and this call.

    Only a difference that cannot come from measuring counts: else ids would go back and forth without a reason.
    """
    if isinstance(clock, HostClock):
        after = id_clock()
        if after < before:
            return  # it was set back meanwhile: the middle of both is the time of neither clock
        ahead, tolerated = (before + after) // 2 - now // 1_000, max(_TOLERATED, after - before)
        if abs(ahead - clock.ahead_ms) > tolerated:
            clock.ahead_ms = ahead if abs(ahead) > tolerated else 0
