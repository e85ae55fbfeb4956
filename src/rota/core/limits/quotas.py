"""Quotas: how many runs of a scope may run, wait and begin within a period, over all jobs."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from rota.core.limits.limits import UNLIMITED, Gate, Limit, gate_under, rate_of
from rota.errors import Invalid
from rota.values.durations import Duration, format_duration
from rota.values.instants import maybe_instant
from rota.values.names import checked_name
from rota.values.scope import GLOBAL, Scope, kind_text, scope_text

RateOption = str | tuple[int, Duration] | Limit | None


class Quota(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Quota of a scope. `max_queued`: how many runs may wait besides those that could begin; more are refused.

    `paused`: nothing of the scope begins, or is planned. `bare`: it is nothing but a pause, and `max_concurrency`
    stands there for older programs, which refuse a quota without a number.

    A live limit of a job or a queue is one, too, of a place that is no scope (`core.limits.live`). `since`, `by` and
    `reason` are those of the pause or the live limit, which ends at `until` by itself; times in microseconds.
    """

    max_concurrency: int | None = None
    max_queued: int | None = None
    rate: Limit | None = None
    paused: bool = False
    reason: str | None = None
    bare: bool = False
    since: int | None = None
    by: str | None = None
    until: int | None = None

    def __post_init__(self) -> None:
        if self.max_concurrency is not None and not 1 <= self.max_concurrency < UNLIMITED:
            raise Invalid(f"max_concurrency must be a whole number from 1 up, not {self.max_concurrency}")
        if self.max_queued is not None and not 0 <= self.max_queued < UNLIMITED:
            raise Invalid(f"max_queued must be a whole number from 0 up, not {self.max_queued}")
        if self.max_concurrency is None and self.max_queued is None and self.rate is None:
            raise Invalid("a quota without a number limits nothing", hint="max_concurrency, max_queued or rate")

    def gates(self, scope: Scope) -> tuple[Gate, ...]:
        """Return the gates for each run of that scope; they are wider than all other limits."""
        key = _key(scope)
        if self.paused:
            return (Gate(key, 0, max_queued=self.max_queued),)
        gates = []
        alone = self.max_concurrency is None
        if self.rate is not None:
            gates.append(gate_under(f"rate:{key}", _waiting(self.rate, self.max_queued if alone else None)))
        if not alone or self.rate is None:
            gates.append(gate_under(key, _waiting(Limit(max=self.max_concurrency or UNLIMITED), self.max_queued)))
        return tuple(gates)


def _key(scope: Scope) -> str:
    return f"quota:{scope_text(scope)}" if scope.kind else f"live:{scope.id}"


def _waiting(limit: Limit, max_queued: int | None) -> Limit:
    return msgspec.structs.replace(limit, max_queued=max_queued)


def pause_of(quota: Quota | None, reason: str | None = None, since: int | None = None, by: str | None = None) -> Quota:
    """Return a quota as it is during a pause; None: the scope has no quota of its own."""
    bare = Quota(max_concurrency=1, bare=True) if quota is None else quota
    return msgspec.structs.replace(bare, paused=True, reason=reason, since=since, by=by)


def resumed(quota: Quota) -> Quota | None:
    """Return what is left of a quota after its pause; None: nothing."""
    return None if quota.bare else msgspec.structs.replace(quota, paused=False, reason=None, since=None, by=None)


def within_kind(own: Quota | None, general: Quota | None) -> Quota | None:
    """Return what is in force for a scope: its own quota, else that of its kind. A mere pause leaves the bounds of the
    latter for those that wait.
    """
    if own is None or not own.bare or general is None:
        return own or general
    return pause_of(general, own.reason, own.since, own.by)


class QuotaOf(msgspec.Struct, frozen=True, kw_only=True):
    """Stored quota; without an id, the default of all scopes of its kind that have no quota of their own."""

    kind: str
    """Kind of the scope."""
    id: str | None
    """Id of the scope; null for each scope of the kind that has no quota of its own."""
    max_concurrency: int | None
    max_queued: int | None
    rate: str | None
    owner: str
    paused: bool = False
    """Whether nothing of the scope begins, or is planned."""
    reason: str | None = None
    """Reason of the pause."""
    paused_at: datetime | None = None
    """Since when the scope is paused."""
    paused_by: str | None = None
    """Who paused the scope."""


def quota_of(max_concurrency: object = None, max_queued: object = None, rate: RateOption = None) -> Quota:
    """Build a quota from options. `max_concurrency` 0 is a pause."""
    numbers = {"max_concurrency": max_concurrency, "max_queued": max_queued}
    for name, value in numbers.items():
        if value is not None and type(value) is not int:
            raise Invalid(f"{name} must be a whole number, not {value!r:.80}")
    if max_concurrency == 0:
        if max_queued is None and rate is None:
            return pause_of(None)
        return pause_of(Quota(max_queued=max_queued, rate=rate_of(rate)))  # type: ignore[arg-type]
    return Quota(max_concurrency=max_concurrency, max_queued=max_queued, rate=rate_of(rate))  # type: ignore[arg-type]


def rate_text(rate: RateOption) -> str | None:
    """Return a rate as text, `"1000/1h"`, checked."""
    limit = rate_of(rate)
    return None if limit is None else f"{limit.max}/{format_duration(limit.per or timedelta(0))}"


def described(kind: str, id: str, quota: Quota, owner: str) -> QuotaOf:
    return QuotaOf(
        kind=kind,
        id=id or None,
        max_concurrency=None if quota.bare else quota.max_concurrency,
        max_queued=quota.max_queued,
        rate=rate_text(quota.rate),
        owner=owner,
        paused=quota.paused,
        reason=quota.reason,
        paused_at=maybe_instant(quota.since) if quota.paused else None,
        paused_by=quota.by,
    )


def checked_place(kind: str, id: str | None) -> tuple[str, str]:
    """Validate the kind and id under which a quota is stored."""
    if kind == GLOBAL.kind:
        raise Invalid(
            "runs without a scope cannot have a quota", hint="use a limit of their job: limit, max_concurrency"
        )
    return checked_name(kind, "scope kind"), "" if id is None else checked_name(id, "scope id")


def checked_scope(kind: str, id: str | None) -> tuple[str, str]:
    """Validate the kind and id of one scope. Without an id it would be every scope of the kind."""
    if id is None:
        raise Invalid(
            f"{kind!r} is a kind of scopes; name one scope: kind and id",
            hint="to pause all of a kind, set max_concurrency 0 as its quota",
        )
    return checked_place(kind, id)


def scope_of_key(key: str, kind: str) -> Scope | None:
    """Return the scope of a limit's key that comes from a quota of that kind; None for others."""
    for start in prefixes(kind, ""):
        if key.startswith(start):
            return Scope(kind, key[len(start) :])
    return None


def prefixes(kind: str, id: str) -> list[str]:
    """Return the prefixes of the keys of a quota's limits; the whole keys if it is one scope's."""
    start = f"quota:{kind_text(kind)}/" if kind else "live:"
    return [f"rate:{start}{id}", f"{start}{id}"]
