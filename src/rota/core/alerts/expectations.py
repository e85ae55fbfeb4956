"""Expectations: conditions on the runs of a job or a schedule, and which of them are breached."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta

from rota.errors import Invalid, UnknownOption, did_you_mean
from rota.values.durations import Duration, format_duration, in_micros, parse_duration, span

KINDS = ("job", "schedule")
DECLARED = "code"
"""Owner of expectations that are declared with their job or schedule."""

_DURATIONS = ("start_within", "finish_within", "success_every", "max_duration")
_NUMBERS = ("max_consecutive_failures", "min_success_rate")
_MOST = 1_000
_EXAMPLE = 'for example {"start_within": "5m", "success_every": "25h"}'


class Expectations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Expectations, all optional.

    The success rate is that of the last `over` runs that succeeded or failed, once there are `at_least` that many.
    """

    start_within: timedelta | None = None
    """Time within which a due run must start."""
    finish_within: timedelta | None = None
    """Time within which a due run must end."""
    success_every: timedelta | None = None
    """Longest time without a success."""
    max_duration: timedelta | None = None
    """Longest time that a run may take."""
    max_consecutive_failures: int | None = None
    """Most failures in a row."""
    min_success_rate: float | None = None
    """Lowest share of runs that succeed, from 0 to 1."""
    over: int = 20
    """Number of the last runs of which the share is computed."""
    at_least: int = 5
    """Runs that must have ended before the share counts."""

    @property
    def looks_back(self) -> int:
        """Number of the last ends to read."""
        failures = 0 if self.max_consecutive_failures is None else self.max_consecutive_failures + 1
        return max(failures, 0 if self.min_success_rate is None else self.over)


OPTIONS = Expectations.__struct_fields__
EXPECTED = (*_DURATIONS, *_NUMBERS)
"""Options that can be breached."""


class ExpectationOptions(TypedDict, total=False):
    """Expectations as callers give them; None removes one."""

    start_within: Annotated[Duration | None, Meta(description="A run starts at most this long after it is due")]
    finish_within: Annotated[Duration | None, Meta(description="A run ends at most this long after it is due")]
    success_every: Annotated[Duration | None, Meta(description="A run succeeds at least this often")]
    max_duration: Annotated[Duration | None, Meta(description="An attempt takes at most this long")]
    max_consecutive_failures: Annotated[int | None, Meta(description="At most this many runs fail in a row")]
    min_success_rate: Annotated[
        float | str | None, Meta(description='At least this share of the last runs succeeds: `0.95` or `"95%"`')
    ]
    over: Annotated[int | None, Meta(description="Number of last runs for the rate, by default 20")]
    at_least: Annotated[int | None, Meta(description="Ended runs before the rate counts, by default 5")]


class Since(msgspec.Struct, frozen=True):
    """Run, and since when; without an id, one that should exist and does not."""

    at: int
    run_id: str | None = None


class End(msgspec.Struct, frozen=True):
    at: int
    well: bool


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Stored facts; instants in microseconds.

    `since`: start of the expectations. `waiting`: the run that is due longest and has not begun; `live`: the one that
    is due longest and has not ended; `running`: the running one that began first. `ends`: the newest first. `over`: the
    schedule will make no more runs.
    """

    since: int
    waiting: Since | None = None
    live: Since | None = None
    running: Since | None = None
    last_success: int | None = None
    ends: Sequence[End] = ()
    over: bool = False


class Breach(msgspec.Struct, frozen=True):
    """Breach of an expectation; `since`: when it began, in microseconds."""

    what: str
    since: int
    message: str
    details: dict[str, Any] = {}


class Breached(msgspec.Struct, frozen=True):
    """Breach as it is shown."""

    what: str
    """Name of the expectation."""
    since: datetime
    """When the breach began."""
    message: str
    details: dict[str, Any] = {}


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """Expectations of a job or a schedule, their owner, and current breaches."""

    kind: str
    """`job` or `schedule`."""
    subject: str
    """Name of the job or schedule."""
    expect: dict[str, Any]
    """The expectations."""
    owner: str
    since: datetime
    """When they were set."""
    resting: bool
    """True while the job or schedule is paused or disabled."""
    breaches: tuple[Breached, ...] = ()


def expectations_of(value: object) -> Expectations:
    """Parse expectations: durations as text, a rate as 0.95 or "95%"."""
    if isinstance(value, Expectations):
        value = written(value)
    if not isinstance(value, Mapping):
        raise Invalid(f"expect must be a table, not {value!r:.80}", hint=_EXAMPLE)
    settings = {str(name): setting for name, setting in value.items() if setting is not None}
    for name in settings:
        if name not in OPTIONS:
            raise UnknownOption(name, OPTIONS, where="expect")
    if not any(name in settings for name in EXPECTED):
        raise Invalid("expect is empty", hint=_EXAMPLE)
    expect = Expectations(**{name: _READ[name](name, setting) for name, setting in settings.items()})
    for name in ("over", "at_least"):
        if name in settings and expect.min_success_rate is None:
            raise Invalid(f"expect.{name} means nothing without min_success_rate")
    _refuse_contradictions(expect)
    return expect


def _duration(name: str, value: Any) -> timedelta:
    length = parse_duration(value, f"expect.{name}")
    if length <= timedelta(0):
        raise Invalid(f"expect.{name} must be longer than zero", hint="leave it out to expect nothing")
    return length


def _whole(name: str, value: Any) -> int:
    least = 0 if name == "max_consecutive_failures" else 1
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
        raise Invalid(f"expect.{name} must be a whole number, {least} to {_MOST}, not {value!r:.80}")
    return value


def _rate(name: str, value: object) -> float:
    hint = 'write 0.95 or "95%"'
    rate = value
    if isinstance(value, str):
        try:
            text = value.strip()
            rate = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            raise Invalid(f"expect.{name} cannot be {value!r:.80}", hint=hint) from None
    if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 < rate <= 1:
        raise Invalid(f"expect.{name} must be more than 0 and at most 1, not {value!r:.80}", hint=hint)
    return float(rate)


_READ: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(_DURATIONS, _duration),
    "max_consecutive_failures": _whole,
    "min_success_rate": _rate,
    "over": _whole,
    "at_least": _whole,
}


def _refuse_contradictions(expect: Expectations) -> None:
    start, finish, longest = expect.start_within, expect.finish_within, expect.max_duration
    if start is not None and finish is not None and finish < start:
        problem = f"finish_within ({format_duration(finish)}) is shorter than start_within ({format_duration(start)})"
        raise Invalid(f"expect.{problem}", hint="both count from when a run is due: finish_within is the longer one")
    if longest is not None and finish is not None and longest > finish:
        problem = f"max_duration ({format_duration(longest)}) is longer than finish_within ({format_duration(finish)})"
        raise Invalid(f"expect.{problem}", hint="finish_within would always be breached first: leave one of them out")
    if expect.at_least > expect.over:
        raise Invalid(
            f"expect.at_least ({expect.at_least}) is more than over ({expect.over})",
            hint="at_least of the last `over` runs must have ended before the rate counts",
        )


def written(expect: Expectations) -> dict[str, Any]:
    """Write expectations as values that `expectations_of` reads back."""
    settings = {name: getattr(expect, name) for name in EXPECTED if getattr(expect, name) is not None}
    if expect.min_success_rate is not None:
        defaults = Expectations()
        settings |= {n: getattr(expect, n) for n in ("over", "at_least") if getattr(expect, n) != getattr(defaults, n)}
    return {name: format_duration(value) if isinstance(value, timedelta) else value for name, value in settings.items()}


def changed(expect: Expectations | None, changes: Mapping[str, Any]) -> Expectations:
    """Apply `changes`; None removes an expectation, and what is not given stays."""
    settings = {**({} if expect is None else written(expect)), **changes}
    if settings.get("min_success_rate") is None:
        settings = {
            name: value for name, value in settings.items() if name not in ("over", "at_least") or name in changes
        }
    return expectations_of(settings)


def checked_kind(kind: str) -> str:
    if kind not in KINDS:
        raise Invalid(f"expectations are of a job or a schedule, not of {kind!r:.80}", hint=did_you_mean(kind, KINDS))
    return kind


def breaches(expect: Expectations, facts: Facts, now: int, recorded: Collection[str] = ()) -> list[Breach]:
    """Return the expectations that are breached now. A value equal to its limit is no breach.

    `recorded` are those that are breached already. A share of successes is met again only with room to spare.
    """
    found = (*_times(expect, facts, now), *_counts(expect, facts, recorded))
    return [breach for breach in found if breach is not None]


def _times(expect: Expectations, facts: Facts, now: int) -> Iterator[Breach | None]:
    waiting, live, running = facts.waiting, facts.live, facts.running
    if expect.start_within is not None and waiting is not None:
        yield _longer(
            "start_within", expect.start_within, waiting, facts.since, now, "was due {} ago, and has not begun"
        )
    if expect.finish_within is not None and live is not None:
        yield _longer(
            "finish_within", expect.finish_within, live, facts.since, now, "was due {} ago, and has not ended"
        )
    if expect.max_duration is not None and running is not None:
        yield _longer("max_duration", expect.max_duration, running, 0, now, "has been running for {}")
    if expect.success_every is not None and not facts.over:
        yield _no_success(expect.success_every, facts, now)


def _longer(name: str, limit: timedelta, run: Since, earliest: int, now: int, template: str) -> Breach | None:
    """Return a breach if more than `limit` has passed; time before `earliest`, not expected yet, does not count."""
    at = max(run.at, earliest)
    passed = now - at
    if passed <= in_micros(limit):
        return None
    took, allowed = span(timedelta(microseconds=passed)), format_duration(limit)
    whose = "a plan time" if run.run_id is None else f"run {run.run_id}"
    message = f"{whose} {template.format(took)}; {name} is {allowed}"
    details = {"run_id": run.run_id, "value": took, "limit": allowed}
    return Breach(name, at + in_micros(limit), message, {k: v for k, v in details.items() if v is not None})


def _no_success(every: timedelta, facts: Facts, now: int) -> Breach | None:
    at = max(facts.since, facts.last_success or 0)
    if now - at <= in_micros(every):
        return None
    took, allowed = span(timedelta(microseconds=now - at)), format_duration(every)
    message = f"no run has succeeded for {took}; success_every is {allowed}"
    return Breach("success_every", at + in_micros(every), message, {"value": took, "limit": allowed})


def _counts(expect: Expectations, facts: Facts, recorded: Collection[str]) -> Iterator[Breach | None]:
    if expect.max_consecutive_failures is not None:
        yield _failures_in_a_row(expect.max_consecutive_failures, facts.ends)
    if expect.min_success_rate is not None:
        is_breached = "min_success_rate" in recorded
        yield _rate_of_success(expect, expect.min_success_rate, facts.ends[: expect.over], is_breached=is_breached)


def _failures_in_a_row(most: int, ends: Sequence[End]) -> Breach | None:
    """Return a breach if more than `most` failed in a row; it began with the first run beyond that."""
    in_a_row = next((place for place, end in enumerate(ends) if end.well), len(ends))
    if in_a_row <= most:
        return None
    message = f"the last {in_a_row} runs failed" if in_a_row > 1 else "the last run failed"
    message += f"; max_consecutive_failures is {most}"
    since = ends[in_a_row - most - 1].at
    return Breach("max_consecutive_failures", since, message, {"value": in_a_row, "limit": most})


def _rate_of_success(expect: Expectations, least: float, ends: Sequence[End], *, is_breached: bool) -> Breach | None:
    """Return a breach if too few succeeded. One that is recorded ends when at most half of the allowed failures are
    left: a share that wavers around its limit would begin and end with every run."""
    if not ends or len(ends) < expect.at_least:
        return None
    well = sum(end.well for end in ends)
    allowed = int((1 - least) * len(ends) + 1e-9)  # tolerance for floating point: of 20 runs, 0.95 allows one failure
    if len(ends) - well <= (allowed // 2 if is_breached else allowed):
        return None
    message = f"{well} of the last {len(ends)} runs succeeded; min_success_rate is {least:.4g}"
    return Breach("min_success_rate", ends[0].at, message, {"value": round(well / len(ends), 4), "limit": least})
