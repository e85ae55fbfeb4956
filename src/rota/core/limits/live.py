"""Live limits: how many runs of a job or a queue may run at once or begin within a period, set while they run.

A live limit is stored as a quota of a place that no scope can have, and stands beside what code declares: a run needs
room under each of its limits, so the stricter one decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from rota.core.limits.limits import Limit, rate_of
from rota.core.limits.quotas import Quota, RateOption, rate_text
from rota.errors import Invalid
from rota.values.instants import maybe_instant
from rota.values.scope import Scope

_NUMBER = re.compile(r"\s*[+-]?\d{1,12}\s*")

NO_KIND = ""
"""Kind of the places of live limits. No scope has it: a name is never empty."""


class LimitedThing(StrEnum):
    """Thing that may have a live limit."""

    JOB = "job"
    QUEUE = "queue"


class LiveLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Limit that an operator set on a job or a queue while it runs."""

    max_concurrency: int | None = None
    rate: str | None = None
    since: datetime | None = None
    """Since when the limit holds."""
    by: str | None = None
    """Who set the limit."""
    reason: str | None = None
    """Reason for the limit."""
    until: datetime | None = None
    """When the limit ends by itself; null: when it is cleared."""

    @property
    def words(self) -> str:
        """The limit in a few words: `3 at once and 5/1s`."""
        numbers = [] if self.max_concurrency is None else [f"{self.max_concurrency} at once"]
        return " and ".join([*numbers, *([] if self.rate is None else [self.rate])])


class ClearedLimit(msgspec.Struct, frozen=True):
    """Answer to clearing the live limit of a job or a queue."""

    was_limited: bool
    """Whether there was a live limit."""


def place_of(thing: LimitedThing, name: str) -> Scope:
    """Return where the live limit of a job or a queue is stored."""
    return Scope(NO_KIND, f"{thing}:{name}")


def thing_of(place: str) -> tuple[LimitedThing, str]:
    """Return the job or queue whose live limit is stored under this id."""
    kind, _, name = place.partition(":")
    return LimitedThing(kind), name


def live_quota(max_concurrency: object, rate: RateOption) -> Quota:
    """Build a live limit from options."""
    if max_concurrency is not None and type(max_concurrency) is not int:
        raise Invalid(f"max_concurrency must be a whole number, not {max_concurrency!r:.80}")
    if max_concurrency == 0:
        raise Invalid("a limit of 0 would be a pause", hint="pause it: `rota job pause`, `rota queue pause`")
    if max_concurrency is None and rate is None:
        raise Invalid("a limit without a number limits nothing", hint="max_concurrency or rate")
    return Quota(max_concurrency=max_concurrency, rate=rate_of(rate))


def limit_options(words: Sequence[str]) -> dict[str, int | str]:
    """Read limits as they are typed: `3` is how many run at once, `5/s` a rate."""
    options: dict[str, int | str] = {}
    for word in words:
        name = "max_concurrency" if _NUMBER.fullmatch(word) else "rate"
        if name in options:
            raise Invalid(
                f"{' '.join(words)!r} has two limits of one kind", hint="one number, one rate, or both: 3 5/s"
            )
        options[name] = int(word) if name == "max_concurrency" else word
    return options


def live_limit(quota: Quota) -> LiveLimit:
    """Return a stored live limit as people see it."""
    return LiveLimit(
        max_concurrency=quota.max_concurrency,
        rate=rate_text(quota.rate),
        since=maybe_instant(quota.since),
        by=quota.by,
        reason=quota.reason,
        until=maybe_instant(quota.until),
    )


def same_limit(former: Quota, new: Quota) -> bool:
    """Return whether two live limits say the same, so that setting the second changes nothing."""
    return _numbers(former) == _numbers(new)


def _numbers(quota: Quota) -> tuple[int | None, Limit | None, str | None, str | None, int | None]:
    return quota.max_concurrency, quota.rate, quota.reason, quota.by, quota.until


def words_of(quota: Quota) -> str:
    """Return a live limit in a few words, for the audit log."""
    return live_limit(quota).words
