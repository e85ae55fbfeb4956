"""Policies of a schedule for lateness, overlap and failure: values, and how people write them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar, assert_never

import msgspec

from rota.core.jobs.retry import Backoff, Exponential, backoff_of
from rota.core.jobs.status import ResumeMode
from rota.errors import Invalid, UnknownOption, did_you_mean
from rota.values.durations import parse_duration


class CatchUpMode(StrEnum):
    """Choice of the plan times that get a run, when several are due."""

    NONE = "none"
    LATEST = "latest"
    ALL = "all"


class OverlapMode(StrEnum):
    """Treatment of a plan time while an earlier run is not final."""

    SKIP = "skip"
    ALLOW = "allow"
    CANCEL_PREVIOUS = "cancel_previous"
    PARALLEL = "parallel"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"


class FailureMode(StrEnum):
    """Treatment of a plan time after a run that failed."""

    RUN_NEW = "run_new"
    SKIP = "skip"
    RETRY = "retry"
    BACKOFF = "backoff"
    HALF_OPEN = "half_open"
    PAUSE = "pause"


CATCH_UP = tuple(mode.value for mode in CatchUpMode)
OVERLAP = tuple(mode.value for mode in OverlapMode)
FAILURE = tuple(mode.value for mode in FailureMode)

_MOST_KEPT = 100_000


def _runs_only_newest(mode: CatchUpMode) -> bool:
    match mode:
        case CatchUpMode.LATEST:
            return True
        case CatchUpMode.NONE | CatchUpMode.ALL:
            return False
        case _:
            assert_never(mode)


def _decides_without_failure(mode: FailureMode) -> bool:
    match mode:
        case FailureMode.RETRY | FailureMode.HALF_OPEN:
            return True
        case FailureMode.RUN_NEW | FailureMode.SKIP | FailureMode.BACKOFF | FailureMode.PAUSE:
            return False
        case _:
            assert_never(mode)


# Planning asks for these once per schedule and tick, and matching enums takes several times as long as a dictionary.
_RUNS_ONLY_NEWEST = {mode: _runs_only_newest(mode) for mode in CatchUpMode}
_DECIDES_WITHOUT_FAILURE = {mode: _decides_without_failure(mode) for mode in FailureMode}


class CatchUp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Policy for plan times that are due together, or late.

    `none`: the newest, if it is not later than `grace`. `latest`: the newest, which covers the older ones inside
    `window`. `all`: each, oldest first, the newest `keep` of them, `per_tick` at a time. The rest is missed.
    """

    mode: CatchUpMode = CatchUpMode.LATEST
    window: timedelta = timedelta(hours=24)
    keep: int = 1_000
    per_tick: int = 100
    grace: timedelta = timedelta(seconds=60)

    @property
    def runs_each(self) -> bool:
        """Return whether several plan times that are due each get a run, and so may be too many for one transaction."""
        match self.mode:
            case CatchUpMode.ALL:
                return True
            case CatchUpMode.NONE | CatchUpMode.LATEST:
                return False
            case _:
                assert_never(self.mode)

    @property
    def runs_only_newest(self) -> bool:
        """Return whether the newest plan time inside the window gets the only run, however late it is."""
        return _RUNS_ONLY_NEWEST[self.mode]

    @property
    def runs_late(self) -> bool:
        """Return whether a plan time may get a run long after its time, inside the window."""
        match self.mode:
            case CatchUpMode.LATEST | CatchUpMode.ALL:
                return True
            case CatchUpMode.NONE:
                return False
            case _:
                assert_never(self.mode)


class Overlap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Policy for a plan time while an earlier run of its schedule and scope is not final."""

    mode: OverlapMode = OverlapMode.SKIP
    max_overlap: int | None = None

    @property
    def cancels(self) -> bool:
        """Return whether a plan time cancels runs that have begun, so that the job has to support it."""
        match self.mode:
            case OverlapMode.CANCEL_PREVIOUS:
                return True
            case (
                OverlapMode.SKIP
                | OverlapMode.ALLOW
                | OverlapMode.PARALLEL
                | OverlapMode.QUEUE_ONE
                | OverlapMode.QUEUE_ALL
            ):
                return False
            case _:
                assert_never(self.mode)

    @property
    def drops_all_but_one(self) -> bool:
        """Return whether of plan times decided together only the first gets a run: the others would overlap it."""
        match self.mode:
            case OverlapMode.SKIP:
                return True
            case (
                OverlapMode.ALLOW
                | OverlapMode.CANCEL_PREVIOUS
                | OverlapMode.PARALLEL
                | OverlapMode.QUEUE_ONE
                | OverlapMode.QUEUE_ALL
            ):
                return False
            case _:
                assert_never(self.mode)


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Policy for a plan time after a run that failed.

    `max_attempts` bounds `retry` (None: as the job says); `backoff` is how long to skip after the first, second, …
    failure in a row; `half_open` skips after `threshold` of them, and lets one probe through per `cooldown`.
    """

    mode: FailureMode = FailureMode.RUN_NEW
    max_attempts: int | None = None
    backoff: Backoff = Exponential(jitter=0.0)
    threshold: int = 5
    cooldown: timedelta = timedelta(minutes=5)

    @property
    def retries(self) -> bool:
        """Return whether the next plan time is the next attempt, so that a run has no retries of its own."""
        match self.mode:
            case FailureMode.RETRY:
                return True
            case (
                FailureMode.RUN_NEW | FailureMode.SKIP | FailureMode.BACKOFF | FailureMode.HALF_OPEN | FailureMode.PAUSE
            ):
                return False
            case _:
                assert_never(self.mode)

    @property
    def decides_without_failure(self) -> bool:
        """Return whether it has a say although the last run did not fail, so that no fast path may bypass it."""
        return _DECIDES_WITHOUT_FAILURE[self.mode]


P = TypeVar("P", CatchUp, Overlap, Failure)

_BELONGS: dict[str, tuple[str, ...]] = {
    "window": (CatchUpMode.LATEST, CatchUpMode.ALL),
    "keep": (CatchUpMode.ALL,),
    "per_tick": (CatchUpMode.ALL,),
    "grace": (CatchUpMode.NONE,),
    "max_overlap": (OverlapMode.PARALLEL,),
    "max_attempts": (FailureMode.RETRY,),
    "backoff": (FailureMode.BACKOFF,),
    "threshold": (FailureMode.HALF_OPEN,),
    "cooldown": (FailureMode.HALF_OPEN,),
}


def catch_up_of(value: CatchUp | str | Mapping[str, Any] | None) -> CatchUp:
    """Parse a mode, or a table with `mode` and more."""
    policy = _policy(CatchUp, value, CATCH_UP, "catch_up")
    if policy.window <= timedelta(0):
        raise Invalid("catch_up.window must be longer than nothing", hint='"24h"; without catch-up: catch_up="none"')
    if not 1 <= policy.keep <= _MOST_KEPT:
        raise Invalid(f"catch_up.keep must be 1 to {_MOST_KEPT}, not {policy.keep}", hint='none: catch_up="none"')
    if not 1 <= policy.per_tick <= _MOST_KEPT:
        raise Invalid(f"catch_up.per_tick must be 1 to {_MOST_KEPT}, not {policy.per_tick}")
    return policy


def overlap_of(value: Overlap | str | Mapping[str, Any] | None, catch_up: CatchUp) -> Overlap:
    """Parse a mode or a table. The default is to queue if all plan times are caught up, which would skip each other."""
    policy = _policy(Overlap, value, OVERLAP, "overlap")
    if value is None and catch_up.runs_each:
        return Overlap(mode=OverlapMode.QUEUE_ALL)
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


def catch_up_after_pause(mode: ResumeMode) -> CatchUpMode | None:
    """Return how a schedule that is resumed catches up with the plan times since its pause; None: not at all."""
    match mode:
        case ResumeMode.SKIP:
            return None
        case ResumeMode.LATEST:
            return CatchUpMode.LATEST
        case ResumeMode.ALL:
            return CatchUpMode.ALL
        case _:
            assert_never(mode)


def _policy(kind: type[P], value: P | str | Mapping[str, Any] | None, modes: tuple[str, ...], option: str) -> P:
    if value is None:
        return kind()
    if isinstance(value, kind):
        fields = {field: getattr(value, field) for field in kind.__struct_fields__ if field != "mode"}
        defaults = kind()
        fields = {field: chosen for field, chosen in fields.items() if chosen != getattr(defaults, field)}
        fields["mode"] = str(value.mode)
    elif isinstance(value, str):
        fields = {"mode": value}
    elif isinstance(value, Mapping):
        fields = dict(value)
    else:
        raise Invalid(f"{option} cannot be {value!r:.80}", hint=f"one of {', '.join(modes)}, or a table with `mode`")
    return _checked(kind, fields, modes, option)


def _checked(kind: type[P], fields: dict[str, Any], modes: tuple[str, ...], option: str) -> P:
    for name in fields.keys() - set(kind.__struct_fields__):
        raise UnknownOption(str(name), kind.__struct_fields__, where=option)
    mode = fields.setdefault("mode", str(kind().mode))
    if mode not in modes:
        raise Invalid(f"{option} cannot be {mode!r}", hint=did_you_mean(str(mode), modes))
    for name in fields:
        if mode not in _BELONGS.get(name, modes):
            belongs = " and ".join(_BELONGS[name])
            raise Invalid(f"{option}.{name} means nothing with {mode!r}", hint=f"it belongs to {belongs}")
    for name in fields.keys() & {"window", "grace", "cooldown"}:
        fields[name] = parse_duration(fields[name], f"{option}.{name}")
    if "backoff" in fields:
        fields["backoff"] = backoff_of(fields["backoff"], "failure.backoff")
        if fields["backoff"] == backoff_of([]):
            raise Invalid("failure.backoff needs at least one delay")
    try:
        return msgspec.convert(fields, kind, strict=True)
    except msgspec.ValidationError as error:
        raise Invalid(f"{option}: {error}") from None
