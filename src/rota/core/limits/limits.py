"""Limits: how many runs of a job, a schedule or a key may run at once, or begin within a period."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, assert_never

import msgspec

from rota.errors import Invalid, UnknownOption, did_you_mean
from rota.values.durations import format_duration, in_micros, parse_duration
from rota.values.scope import Scope


class WhenFull(StrEnum):
    """Treatment of one run too many under a limit."""

    QUEUE = "queue"
    SKIP = "skip"
    REJECT = "reject"
    CANCEL_OLDEST = "cancel_oldest"


WHEN_FULL = tuple(mode.value for mode in WhenFull)
_BY_WORD = {mode.value: mode for mode in WhenFull}
UNLIMITED = 2**30
"""No limit of runs at once: only the number of waiting runs is limited."""
ANY_RANK, NO_RANK = -32_768, 32_767
"""Bounds of the ranks (minus the priority) under a limit: not known, so they may be of any; and nobody waits."""

LONGEST_PERIOD = timedelta(days=30)
MOST_IN_A_PERIOD = 100_000
BY_SCOPE = "scope"
_UNITS = ("ms", "s", "m", "h", "d")
_RATE = re.compile(r"rate\d*:")
_WIDTHS = ("key:", "schedule:", "job:", "quota:", "live:")
LINE = "line:"
"""Beginning of the keys of lines: a line is no limit, but where runs with the same limits wait (`limits.lines`)."""
_WRITTEN_RATE = re.compile(r"\s*(\d{1,9})\s*(?:/|per)\s*(\S+)\s*")


class Limit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limit of `max` runs at once that are alike in `by`: "scope" or fields of the payload; of all runs if it is empty.

    With `per` it is a rate: at most `max` attempts begin within any span of that length. `when_full="queue"` lets
    further runs wait, up to `max_queued`; the other modes act at enqueue.
    """

    max: int
    by: tuple[str, ...] = ()
    """Values that runs share under one limit: fields of the payload, or `scope`."""
    when_full: str = "queue"
    """What becomes of a run that finds no room: `queue`, `skip`, `reject` or `cancel_oldest`."""
    max_queued: int | None = None
    per: timedelta | None = None
    """Time within which `max` attempts may start; null: runs at a time."""

    def __post_init__(self) -> None:
        if self.max < 1:
            raise Invalid(f"limit.max must be a whole number from 1 up, not {self.max}")
        if self.max_queued is not None and self.max_queued < 0:
            raise Invalid(f"limit.max_queued must be a whole number from 0 up, not {self.max_queued}")
        if self.per is not None:
            self._check_rate(self.per)

    def _check_rate(self, per: timedelta) -> None:
        if not timedelta(0) < per <= LONGEST_PERIOD:
            raise Invalid(f"limit.per must be more than 0s and at most 30d, not {format_duration(per)}")
        if self.max > MOST_IN_A_PERIOD:
            hint = "use a smaller max and a shorter period"
            raise Invalid(f"limit.max of a rate is at most {MOST_IN_A_PERIOD}, not {self.max}", hint=hint)

    @property
    def decides(self) -> bool:
        """Return whether it is checked at enqueue, and not only at claim."""
        return _decides(when_full_of(self.when_full), self.max_queued)

    @property
    def period(self) -> int | None:
        """Period of a rate in microseconds."""
        return None if self.per is None else in_micros(self.per)

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of the payload in `by`."""
        return tuple(name for name in self.by if name != BY_SCOPE)


class Gate(msgspec.Struct, frozen=True, gc=False):
    """Limit as it applies to one run. The narrowest of a run's gates comes first: the run is found by it (`lines`)."""

    key: str
    max: int
    when_full: WhenFull = WhenFull.QUEUE
    max_queued: int | None = None
    period: int | None = None
    of: str | None = None
    """Name of the schedule, or the values of the key, that it limits."""

    @property
    def title(self) -> str:
        """Name of the limit for people."""
        return title(self.key, self.of)

    @property
    def measure(self) -> str:
        """Limit in words."""
        return measure(self.max, self.period)

    @property
    def decides(self) -> bool:
        """Return whether it is checked at enqueue, and not only at claim."""
        return _decides(self.when_full, self.max_queued)

    @property
    def stops_oldest(self) -> bool:
        """Return whether the oldest runs under it give way to a new one."""
        match self.when_full:
            case WhenFull.CANCEL_OLDEST:
                return True
            case WhenFull.QUEUE | WhenFull.SKIP | WhenFull.REJECT:
                return False
            case _:
                assert_never(self.when_full)


class LimitedRun(msgspec.Struct, frozen=True):
    """Run about to be put under its limits; a `pipeline` is claimed by the names of its parts' jobs.

    `rank`: minus its priority, if the caller knows it.
    """

    id: str
    job: str
    gates: tuple[Gate, ...]
    pipeline: bool = False
    rank: int = ANY_RANK

    @property
    def claimed_as(self) -> str | None:
        return None if self.pipeline else self.job

    @property
    def decided(self) -> bool:
        return any(gate.decides for gate in self.gates)


def when_full_of(word: str) -> WhenFull:
    """Return the mode that a stored limit names.

    A word of a newer program counts as `queue`: runs wait for room, and none is refused, skipped or stopped.
    """
    return _BY_WORD.get(word, WhenFull.QUEUE)


def _decides(mode: WhenFull, max_queued: int | None) -> bool:
    match mode:
        case WhenFull.QUEUE:
            return max_queued is not None
        case WhenFull.SKIP | WhenFull.REJECT | WhenFull.CANCEL_OLDEST:
            return True
        case _:
            assert_never(mode)


def limit_of(value: object) -> Limit:
    """Parse a limit: a Limit, or a dict of its fields.

    Its mode is checked here and not in `Limit`, which is stored: a newer program's word must not make it unreadable.
    """
    limit = value if isinstance(value, Limit) else _limit_in(value)
    if limit.when_full not in WHEN_FULL:
        hint = did_you_mean(limit.when_full, WHEN_FULL)
        raise Invalid(f"limit.when_full cannot be {limit.when_full!r}", hint=hint)
    mode = when_full_of(limit.when_full)
    match mode:
        case WhenFull.QUEUE:
            return limit
        case WhenFull.SKIP | WhenFull.REJECT | WhenFull.CANCEL_OLDEST:  # they leave no run to wait
            return _without_waiting(limit)
        case _:
            assert_never(mode)


def _without_waiting(limit: Limit) -> Limit:
    if limit.max_queued is not None:
        hint = "leave one of them out"
        raise Invalid(f"limit.max_queued means nothing if when_full is {limit.when_full!r}", hint=hint)
    if limit.per is not None:
        hint = 'a rate supports only "queue", optionally with max_queued'
        raise Invalid(f"limit.when_full cannot be {limit.when_full!r} together with per", hint=hint)
    return limit


def _limit_in(value: object) -> Limit:
    if not isinstance(value, dict):
        hint = 'write {"max": 2, "by": ["scope", "customer"]}, or a list of such'
        raise Invalid(f"limit cannot be {value!r:.80}", hint=hint)
    for name in value:
        if name not in Limit.__struct_fields__:
            raise UnknownOption(str(name), Limit.__struct_fields__, where="limit")
    by, per = value.get("by", ()), value.get("per")
    fields = {
        **value,
        "by": [by] if isinstance(by, str) else by,
        "per": None if per is None else parse_duration(per, "limit.per"),
    }
    try:
        return msgspec.convert(fields, Limit, strict=True)
    except msgspec.ValidationError as error:
        raise Invalid(f"limit: {error}", hint="max, by, when_full, max_queued, per") from None


def limit_of_schedule(options: Mapping[str, Any]) -> Limit | None:
    """Parse the limit of a schedule from its options; errors name these options."""
    if "max_concurrency" not in options:
        for name in ("when_full", "max_queued"):
            if name in options:
                raise Invalid(f"{name} means nothing without max_concurrency")
        return None
    for name, least in (("max_concurrency", 1), ("max_queued", 0)):
        number = options.get(name)
        is_set = number is not None or name == "max_concurrency"
        if is_set and (type(number) is not int or number < least):
            raise Invalid(f"{name} must be a whole number from {least} up, not {number!r:.80}")
    more = {name: options[name] for name in ("when_full", "max_queued") if name in options}
    try:
        return limit_of({"max": options["max_concurrency"], **more})
    except Invalid as error:
        raise Invalid(error.message.removeprefix("limit."), hint=error.hint) from None


def rate_of(value: object, what: str = "rate") -> Limit | None:
    """Parse a rate: "100/1m", "5/s", or a pair (100, "1m")."""
    if value is None or isinstance(value, Limit):
        return value
    pair: Any = value
    if isinstance(value, str) and (match := _WRITTEN_RATE.fullmatch(value)):
        period = match[2]
        pair = (int(match[1]), f"1{period}" if period in _UNITS else period)  # "5/s" is "5/1s"
    if not isinstance(pair, tuple | list) or len(pair) != 2 or type(pair[0]) is not int:
        raise Invalid(f"{what} cannot be {value!r:.80}", hint='"100/1m", or a pair (100, "1m")')
    per = parse_duration(pair[1], what)
    try:
        return Limit(max=pair[0], per=per)
    except Invalid as error:
        raise Invalid(f"{what}: {error.message.removeprefix('limit.')}", hint=error.hint) from None


def measure(most: int, period: int | None) -> str:
    if period is not None:
        return f"{most} per {format_duration(timedelta(microseconds=period))}"
    return f"{most} at once" if most else "it is paused"


def limits_of(value: Any) -> tuple[Limit, ...]:
    """Parse one limit or a list of them."""
    if value is None:
        return ()
    return tuple(limit_of(item) for item in value) if isinstance(value, list | tuple) else (limit_of(value),)


def job_key(job: str) -> str:
    return f"job:{job}"


def keys_prefix(job: str, by: Sequence[str]) -> str:
    """Return the common prefix of the keys of one limit of a job."""
    return f"key:{job}:{','.join(by)}:"


def rate_prefixes(limits: Iterable[Limit]) -> list[str]:
    """Return the key prefix of each limit.

    A rate must not share its key with a concurrency limit of the same runs, nor with a second rate of these runs that
    has a longer period.
    """
    limits = list(limits)
    rates: dict[frozenset[str], list[timedelta]] = {}
    for limit in limits:
        if limit.per is not None:
            rates.setdefault(frozenset(limit.by), []).append(limit.per)
    return ["" if one.per is None else _prefix(sorted(rates[frozenset(one.by)]).index(one.per)) for one in limits]


def _prefix(number: int) -> str:
    return f"rate{number + 1 if number else ''}:"


def title(key: str, of: str | None = None) -> str:
    """Name a limit for people, by what it limits: its key has ids and digests.

    `of`: the name of the schedule that it limits, or the values of the fields by which it does.
    """
    what = "rate" if _RATE.match(key) else "limit"
    prefix, colon, rest = without_rate(key).partition(":")
    match prefix + colon:
        case "job:":
            return f"{what} of job {rest!r}"
        case "key:":
            job, by, _ = rest.rsplit(":", 2)
            return f"{what} of job {job!r} by {by}" + (f" ({of})" if of else "")
        case "schedule:":
            return f"{what} of " + (f"schedule {of!r}" if of else "its schedule")
        case "backfill:":
            return "concurrency of its backfill"
        case "quota:":
            return f"{'rate in the quota' if what == 'rate' else 'quota'} of {rest}"
        case "live:":
            kind, _, name = rest.partition(":")
            return f"live {what} of {kind} {name!r}"
        case _:
            return f"limit {key!r}"


def gate_under(key: str, limit: Limit, of: str | None = None) -> Gate:
    return Gate(key, limit.max, when_full_of(limit.when_full), limit.max_queued, limit.period, of)


def gate_of(job: str, limit: Limit, scope: Scope, payload: Mapping[str, Any], prefix: str = "") -> Gate:
    if not limit.by:
        return gate_under(prefix + job_key(job), limit)
    parts = [[scope.kind, scope.id] if name == BY_SCOPE else payload.get(name) for name in limit.by]
    digest = hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:24]
    return gate_under(prefix + keys_prefix(job, limit.by) + digest, limit, _scope_in(limit.by, scope))


def _scope_in(by: Sequence[str], scope: Scope) -> str | None:
    """Return the value of the key for people, if it is the scope: fields of a payload may be secret."""
    return f"{scope.kind}/{scope.id}" if BY_SCOPE in by else None


def gates_of_schedule(
    schedule_id: str, limit: Limit | None, rate: Limit | None, name: str | None = None
) -> tuple[Gate, ...]:
    key = f"schedule:{schedule_id}"
    bounds = ((f"rate:{key}", rate), (key, limit))
    return tuple(gate_under(bound_key, bound, name) for bound_key, bound in bounds if bound is not None)


def narrowest_first(gates: Iterable[Gate]) -> tuple[Gate, ...]:
    """Sort gates: of a key, the schedule, the job, the quota, then live ones; otherwise stable."""
    return tuple(sorted(gates, key=lambda gate: _width(gate.key)))


def without_rate(key: str) -> str:
    """Return the key of a concurrency limit of the same runs."""
    rate = _RATE.match(key)
    return key[rate.end() :] if rate else key


def is_line(key: str) -> bool:
    return key.startswith(LINE)


def _behind(line: str) -> str:
    """Return the key of the first limit of the runs in a line."""
    return line.split(":", 2)[2]


def _width(key: str) -> int:
    plain = without_rate(key)
    return next((width for width, kind in enumerate(_WIDTHS) if plain.startswith(kind)), -1)


def is_schedules(key: str) -> bool:
    """Return whether a limit is that of a schedule."""
    return _width(key) == _WIDTHS.index("schedule:")


def is_quota(key: str) -> bool:
    return _width(key) == _WIDTHS.index("quota:")


def is_settled(key: str) -> bool:
    """Return whether a limit comes from a quota, or is a live one: runs come under it, and leave it, at any time."""
    return _width(key) >= _WIDTHS.index("quota:")


@functools.lru_cache(4_096)
def is_of_jobs(key: str) -> bool:
    """Return whether runs of several jobs may be under a limit."""
    return is_of_jobs(_behind(key)) if is_line(key) else is_quota(key) or without_rate(key).startswith("live:queue:")


@functools.lru_cache(4_096)
def limit_of_key(key: str) -> str:
    """Return what the keys of one limit have in common; of a limit without keys, all of it.

    The lines of a key are turns of its limit. Those of a limit without keys have no turns: priority and age decide.
    """
    if is_line(key):
        return limit_of_key(_behind(key)) if _width(_behind(key)) == _WIDTHS.index("key:") else key
    width = _width(key)
    if width == _WIDTHS.index("quota:"):
        return "quota"
    return key.rpartition(":")[0] if width == _WIDTHS.index("key:") else key
