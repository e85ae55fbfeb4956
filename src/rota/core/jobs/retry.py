"""Retry policies: whether and when a failed attempt is retried."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from rota.errors import Invalid, UnknownOption
from rota.values.durations import Duration, format_duration, parse_duration

DEFAULT_MAX_ATTEMPTS = 4
_MOST_ATTEMPTS = 10_000


class Exponential(msgspec.Struct, frozen=True, tag="exponential"):
    """Delay of `base × factor^(attempt-1)`, plus up to `jitter` of it at random, never more than `cap`."""

    base: timedelta = timedelta(seconds=60)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)
    jitter: float = 0.1

    if TYPE_CHECKING:  # as people call it; stored and read as above

        def __init__(
            self, base: Duration = ..., factor: float = ..., cap: Duration = ..., jitter: float = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("base", "cap"):
            if type(span := getattr(self, name)) is not timedelta:
                force_setattr(self, name, parse_duration(span, f"Exponential({name}=…)"))

    def delay(self, attempt: int, jitter: float) -> timedelta:
        try:
            grown = min(self.cap.total_seconds(), self.base.total_seconds() * self.factor ** (attempt - 1))
        except OverflowError:
            grown = self.cap.total_seconds()
        spread = timedelta(seconds=grown * (1 + self.jitter * jitter))
        # What would exceed the cap is reflected at it: runs that all wait for the cap must not come back at once.
        return min(spread, 2 * self.cap - spread)


class Delays(msgspec.Struct, frozen=True, tag="delays"):
    """Fixed delay for each retry; the last one repeats."""

    delays: tuple[timedelta, ...]
    """Delays before the second attempt, the third, …; the last one also before all others."""

    def delay(self, attempt: int, jitter: float) -> timedelta:
        return self.delays[min(attempt, len(self.delays)) - 1]


Backoff = Exponential | Delays


class RetryPolicy(msgspec.Struct, frozen=True):
    """Number of attempts of a run, and the delays between them."""

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    backoff: Backoff = Exponential()
    backoff_given: bool | UnsetType = UNSET
    """True if somebody gave a backoff that is the same as the default: it stands. Otherwise not written."""

    @property
    def has_default_backoff(self) -> bool:
        """Return whether nobody gave a backoff: then it adapts to the plan times of a schedule."""
        return self.backoff == Exponential() and self.backoff_given is UNSET


_DEFAULT = RetryPolicy()


class TryAgain(msgspec.Struct, frozen=True):
    after: timedelta


class GiveUp(msgspec.Struct, frozen=True):
    reason: str


def after_failure(policy: RetryPolicy, attempt: int, jitter: float) -> TryAgain | GiveUp:
    """Decide after a failure; `attempt` counts from 1, `jitter` is 0..1 and drawn by the caller."""
    if attempt >= policy.max_attempts:
        return GiveUp(f"attempt {attempt} of {policy.max_attempts}")
    if isinstance(policy.backoff, Delays) and not policy.backoff.delays:
        return GiveUp("an empty backoff means no retry")
    return TryAgain(policy.backoff.delay(attempt, jitter))


def rest_before_retry(
    policy: RetryPolicy, max_attempts: int, attempt: int, jitter: float, after: timedelta | None = None
) -> timedelta | None:
    """Return the delay before the next attempt; None: no retry.

    The run pins `max_attempts`; `after` is what the handler asked for instead of the backoff.
    """
    decision = after_failure(RetryPolicy(max_attempts, policy.backoff), attempt, jitter)
    if isinstance(decision, GiveUp):
        return None
    return decision.after if after is None else after


def jitter_of(run_id: str, fence: int) -> float:
    """Return a jitter derived from run and fence, for a caller that may have to decide the same thing twice."""
    return zlib.crc32(f"{run_id}:{fence}".encode()) / 2**32


def backoff_of(
    value: Backoff | Duration | list[Duration] | tuple[Duration, ...] | Mapping[str, Any], what: str = "backoff"
) -> Backoff:
    """Parse a backoff: `"30s"` (fixed), `["30s", "2m"]` (a list), `Exponential(...)`, or a dict of its fields."""
    if isinstance(value, Exponential):
        return _checked(value, what)
    if isinstance(value, Delays):
        value = value.delays
    if isinstance(value, Mapping):
        return _exponential(value, what)
    if isinstance(value, str) and value == "exponential":
        return Exponential()
    spans = value if isinstance(value, list | tuple) else [value]
    return Delays(tuple(parse_duration(span, what) for span in spans))


def retry_policy(max_attempts: int, backoff: Backoff | Duration | list[Duration] | tuple[Duration, ...]) -> RetryPolicy:
    if not isinstance(max_attempts, int) or isinstance(max_attempts, bool) or not 1 <= max_attempts <= _MOST_ATTEMPTS:
        raise Invalid(f"max_attempts must be 1 to {_MOST_ATTEMPTS}, not {max_attempts!r}", hint="1 means no retry")
    parsed = backoff_of(backoff)
    return RetryPolicy(max_attempts, parsed, True if parsed == Exponential() else UNSET)


def retry_policy_in(options: Mapping[str, Any], otherwise: RetryPolicy = _DEFAULT) -> RetryPolicy:
    """Return the policy of a job's, a schedule's or a run's options; what they do not give is as in `otherwise`."""
    policy = retry_policy(
        options.get("max_attempts", otherwise.max_attempts), options.get("backoff", otherwise.backoff)
    )
    if "backoff" in options:
        return policy
    return msgspec.structs.replace(policy, backoff_given=otherwise.backoff_given)


def written_backoff(backoff: Backoff) -> list[str] | dict[str, Any]:
    """Write a backoff as JSON values that `backoff_of` reads back."""
    if isinstance(backoff, Delays):
        return [format_duration(span) for span in backoff.delays]
    fields = msgspec.structs.asdict(backoff)
    return {**fields, "base": format_duration(backoff.base), "cap": format_duration(backoff.cap)}


def _exponential(fields: Mapping[str, Any], what: str) -> Exponential:
    for name in fields:
        if name not in Exponential.__struct_fields__:
            raise UnknownOption(str(name), Exponential.__struct_fields__, where=what)
    spans = {name: parse_duration(fields[name], f"{what}.{name}") for name in ("base", "cap") if name in fields}
    try:
        return _checked(msgspec.convert({**fields, **spans, "type": "exponential"}, Exponential), what)
    except msgspec.ValidationError as error:
        raise Invalid(f"{what}: {error}") from None


def _checked(backoff: Exponential, what: str) -> Exponential:
    sane = backoff.factor >= 1 and 0 <= backoff.jitter <= 1  # false for NaN
    if not sane or min(backoff.base, backoff.cap) < timedelta(0):
        raise Invalid(f"{what}, if exponential, needs factor ≥ 1, jitter 0..1, and no negative durations")
    return backoff
