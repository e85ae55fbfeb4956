"""Rate at which tokens that may only enqueue do so: one that got into wrong hands must not fill the database."""

from __future__ import annotations

from collections.abc import Callable

from rota.api.http.rejection import EnqueuesTooFast
from rota.core.access.roles import Identity, Role
from rota.core.limits.limits import Limit, measure, rate_of

_MOST_CALLERS = 10_000
NO_RATE = "none"


class EnqueueRate:
    """A bucket of runs for each token; it is full at first, and fills within the period of the rate.

    Each server counts for itself. Roles that may do more than enqueue have no limit.
    """

    def __init__(self, rate: str, monotonic: Callable[[], float]) -> None:
        self._rate: Limit | None = None if rate == NO_RATE else rate_of(rate, "enqueue_rate")
        self._now = monotonic
        self._used: dict[str, tuple[float, float]] = {}

    def take(self, identity: Identity, runs: int) -> None:
        """Count runs that a caller is about to enqueue; raise `EnqueuesTooFast` if there are too many.

        A request that is larger than the rate itself is let through by a full bucket, and pays for it afterwards.
        """
        if self._rate is None or identity.role is not Role.ENQUEUE or self._rate.per is None:
            return
        most, period, now = self._rate.max, self._rate.per.total_seconds(), self._now()
        used, at = self._used.pop(identity.actor, (0.0, now))
        used = max(0.0, used - (now - at) * most / period)
        if used > 0 and used + runs > most:
            self._used[identity.actor] = used, now
            needed = min(used, used + runs - most)
            raise EnqueuesTooFast(measure(most, round(period * 1e6)), needed * period / most)
        self._used[identity.actor] = used + runs, now
        if len(self._used) > _MOST_CALLERS:  # bounds memory; who was silent for longest goes first
            self._used.pop(next(iter(self._used)))
