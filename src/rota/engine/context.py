"""What a handler is given: who it is, whether it should stop, and what it may say while it works."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from rota.core.claims import Claim
from rota.core.names import checked_name
from rota.core.scope import Scope
from rota.core.signals import Cancelled
from rota.errors import Invalid, LeaseLost
from rota.instants import instant


class Standing:
    """How a run in progress stands, as its worker hears it; read by the handler, written by the worker."""

    __slots__ = ("cancelled", "counters", "lost", "shutting_down")

    def __init__(self) -> None:
        self.cancelled = False
        self.lost = False
        self.shutting_down = False
        self.counters: dict[str, float] | None = None


class Context:
    """Declare a parameter of this type (or call it `ctx`) and the worker passes it in."""

    __slots__ = ("_claim", "_renew", "_standing", "worker_id")

    def __init__(
        self, claim: Claim, worker_id: str, standing: Standing, renew: Callable[[], None] | None = None
    ) -> None:
        self.worker_id = worker_id
        self._claim = claim
        self._standing = standing
        self._renew = renew

    @property
    def run_id(self) -> str:
        return self._claim.run_id

    @property
    def job(self) -> str:
        return self._claim.job

    @property
    def attempt(self) -> int:
        """Counts from 1."""
        return self._claim.attempt

    @property
    def max_attempts(self) -> int:
        return self._claim.max_attempts

    @property
    def fence(self) -> int:
        """Grows with every claim: pass it to systems that can refuse an older one."""
        return self._claim.fence

    @property
    def scope(self) -> Scope:
        return Scope(self._claim.scope_kind, self._claim.scope_id)

    @property
    def key(self) -> str | None:
        return self._claim.key

    @property
    def payload(self) -> dict[str, Any]:
        return msgspec.json.decode(self._claim.payload)  # type: ignore[no-any-return]

    @property
    def created_at(self) -> datetime:
        return instant(self._claim.created_at)

    @property
    def plan_time(self) -> datetime | None:
        """The instant that a schedule named; None if the run was enqueued or triggered by hand."""
        return None if self._claim.plan_time is None else instant(self._claim.plan_time)

    @property
    def covers_from(self) -> datetime | None:
        """The first of the plan times that this run stands for, besides its own, after an outage."""
        return None if self._claim.covers_from is None else instant(self._claim.covers_from)

    @property
    def missed_count(self) -> int:
        """How many plan times it stands for, besides its own."""
        return self._claim.missed_count or 0

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt, and for every manual retry of the same work."""
        return self._claim.origin_id or self._claim.run_id

    @property
    def cancelled(self) -> bool:
        """Somebody asked for the run to stop."""
        return self._standing.cancelled

    @property
    def shutting_down(self) -> bool:
        """The worker is stopping: finish soon, or be handed back to another one."""
        return self._standing.shutting_down

    def checkpoint(self) -> None:
        """A good place to stop: raises if the run is cancelled, or its lease is lost."""
        if self._standing.lost:
            raise LeaseLost(self.run_id, self.fence)
        if self._standing.cancelled:
            raise Cancelled(f"run {self.run_id} was cancelled")

    def heartbeat(self) -> None:
        """Renew the lease now, without waiting for the worker's own rhythm; also a checkpoint."""
        if self._renew:
            self._renew()
        self.checkpoint()

    def count(self, name: str, n: float = 1) -> None:
        """Add to a counter that is kept with the attempt: `ctx.count("items", 25)`."""
        if not isinstance(n, int | float) or isinstance(n, bool) or not math.isfinite(n):
            raise Invalid(f"a counter grows by a number, not {n!r}")
        counters = self._standing.counters
        if counters is None:
            counters = self._standing.counters = {}
        if checked_name(name, "a counter's name") not in counters and len(counters) >= 100:
            raise Invalid("a run has at most 100 counters")
        total = counters.get(name, 0) + n
        if not math.isfinite(total):
            raise Invalid(f"counter {name!r} would grow beyond all numbers")
        counters[name] = total
