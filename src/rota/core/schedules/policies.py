"""What a schedule does about lateness, overlap and failure: values, and how people write them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from rota.core.jobs.retry import Backoff, Exponential, backoff_of
from rota.errors import Invalid, UnknownOption, did_you_mean
from rota.values.durations import parse_duration

CATCH_UP = ("none", "latest", "all")
OVERLAP = ("skip", "allow", "cancel_previous", "parallel", "queue_one", "queue_all")
FAILURE = ("run_new", "skip", "retry", "backoff", "half_open", "pause")

_MOST_KEPT = 100_000


class CatchUp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Which of the plan times that are due get a run, when more than one is.

    `none`: the newest, if it is not later than `grace`. `latest`: the newest, which covers the older ones inside
    `window`. `all`: each, oldest first, the newest `keep` of them, `per_tick` at a time. The rest is missed.
    """

    mode: str = "latest"
    window: timedelta = timedelta(hours=24)
    keep: int = 1_000
    per_tick: int = 100
    grace: timedelta = timedelta(seconds=60)


class Overlap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a plan time gets while an earlier run of its schedule and scope is not final."""

    mode: str = "skip"
    max_overlap: int | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a plan time gets after a run that failed.

    `max_attempts` bounds `retry` (None: as the job says); `backoff` is how long to skip after the first, second, …
    failure in a row; `half_open` skips after `threshold` of them, and lets one probe through per `cooldown`.
    """

    mode: str = "run_new"
    max_attempts: int | None = None
    backoff: Backoff = Exponential(jitter=0.0)
    threshold: int = 5
    cooldown: timedelta = timedelta(minutes=5)


P = TypeVar("P", CatchUp, Overlap, Failure)

_BELONGS = {
    "window": ("latest", "all"),
    "keep": ("all",),
    "per_tick": ("all",),
    "grace": ("none",),
    "max_overlap": ("parallel",),
    "max_attempts": ("retry",),
    "backoff": ("backoff",),
    "threshold": ("half_open",),
    "cooldown": ("half_open",),
}


def catch_up_of(value: CatchUp | str | Mapping[str, Any] | None) -> CatchUp:
    """What people write: a mode, or a table with more."""
    policy = _policy(CatchUp, value, CATCH_UP, "catch_up")
    if policy.window <= timedelta(0):
        raise Invalid("catch_up.window must be longer than nothing", hint='"24h"; without catch-up: catch_up="none"')
    if not 1 <= policy.keep <= _MOST_KEPT:
        raise Invalid(f"catch_up.keep must be 1 to {_MOST_KEPT}, not {policy.keep}", hint='none: catch_up="none"')
    if not 1 <= policy.per_tick <= _MOST_KEPT:
        raise Invalid(f"catch_up.per_tick must be 1 to {_MOST_KEPT}, not {policy.per_tick}")
    return policy


def overlap_of(value: Overlap | str | Mapping[str, Any] | None, catch_up: CatchUp) -> Overlap:
    """A catch-up of every plan time would be pointless if they skipped each other: then they queue by default."""
    policy = _policy(Overlap, value, OVERLAP, "overlap")
    if value is None and catch_up.mode == "all":
        return Overlap(mode="queue_all")
    if policy.max_overlap is not None and policy.max_overlap < 1:
        raise Invalid(f"overlap.max_overlap must be 1 or more, not {policy.max_overlap}")
    return policy


def failure_of(value: Failure | str | Mapping[str, Any] | None) -> Failure:
    policy = _policy(Failure, value, FAILURE, "failure")
    if policy.max_attempts is not None and policy.max_attempts < 1:
        raise Invalid(f"failure.max_attempts must be 1 or more, not {policy.max_attempts}")
    if policy.threshold < 1:
        raise Invalid(f"failure.threshold must be 1 or more, not {policy.threshold}")
    if policy.cooldown <= timedelta(0):
        raise Invalid("failure.cooldown must be longer than nothing", hint='"5m"')
    return policy


def _policy(kind: type[P], value: P | str | Mapping[str, Any] | None, modes: tuple[str, ...], what: str) -> P:
    if value is None:
        return kind()
    if isinstance(value, kind):
        given = {field: getattr(value, field) for field in kind.__struct_fields__ if field != "mode"}
        defaults = kind()
        given = {field: chosen for field, chosen in given.items() if chosen != getattr(defaults, field)}
        given["mode"] = value.mode
    elif isinstance(value, str):
        given = {"mode": value}
    elif isinstance(value, Mapping):
        given = dict(value)
    else:
        raise Invalid(f"{what} cannot be {value!r:.80}", hint=f"one of {', '.join(modes)}, or a table with `mode`")
    return _checked(kind, given, modes, what)


def _checked(kind: type[P], given: dict[str, Any], modes: tuple[str, ...], what: str) -> P:
    for name in given.keys() - set(kind.__struct_fields__):
        raise UnknownOption(str(name), kind.__struct_fields__, where=what)
    mode = given.setdefault("mode", kind().mode)
    if mode not in modes:
        raise Invalid(f"{what} cannot be {mode!r}", hint=did_you_mean(str(mode), modes))
    for name in given:
        if mode not in _BELONGS.get(name, modes):
            belongs = " and ".join(_BELONGS[name])
            raise Invalid(f"{what}.{name} means nothing with {mode!r}", hint=f"it belongs to {belongs}")
    for name in given.keys() & {"window", "grace", "cooldown"}:
        given[name] = parse_duration(given[name], f"{what}.{name}")
    if "backoff" in given:
        given["backoff"] = backoff_of(given["backoff"], "failure.backoff")
        if given["backoff"] == backoff_of([]):
            raise Invalid("failure.backoff needs at least one delay")
    try:
        return msgspec.convert(given, kind, strict=True)
    except msgspec.ValidationError as error:
        raise Invalid(f"{what}: {error}") from None
