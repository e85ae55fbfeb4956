"""Limits: how many runs of a job, a schedule or a key may be executed at once, and what happens to one too many."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rota.core.scope import Scope
from rota.errors import Invalid, UnknownOption, did_you_mean

WHEN_FULL = ("queue", "skip", "reject", "cancel_oldest")
_BY_SCOPE = "scope"


class Limit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """At most `max` at once, of all runs alike in `by`: "scope", or fields of the payload; of all runs if it is empty.

    `queue` lets one too many wait, as long as no more than `max_queued` do; the others act when it is enqueued.
    """

    max: int
    by: tuple[str, ...] = ()
    when_full: str = "queue"
    max_queued: int | None = None

    def __post_init__(self) -> None:
        if self.max < 1:
            raise Invalid(f"limit.max must be a whole number from 1 up, not {self.max}")
        if self.when_full not in WHEN_FULL:
            hint = did_you_mean(self.when_full, WHEN_FULL)
            raise Invalid(f"limit.when_full cannot be {self.when_full!r}", hint=hint)
        if self.max_queued is not None and self.when_full != "queue":
            hint = "leave one of them out"
            raise Invalid(f"limit.max_queued means nothing if when_full is {self.when_full!r}", hint=hint)
        if self.max_queued is not None and self.max_queued < 0:
            raise Invalid(f"limit.max_queued must be a whole number from 0 up, not {self.max_queued}")

    @property
    def fields(self) -> tuple[str, ...]:
        """Of the payload."""
        return tuple(name for name in self.by if name != _BY_SCOPE)


class Gate(msgspec.Struct, frozen=True, gc=False):
    """A limit as it applies to one run. Of a run's gates the narrowest comes first: by it the run is found."""

    key: str
    max: int
    when_full: str = "queue"
    max_queued: int | None = None

    @property
    def decides(self) -> bool:
        """Whether it has a say when a run is enqueued, and not only when it is claimed."""
        return self.when_full != "queue" or self.max_queued is not None


class Gated(msgspec.Struct, frozen=True):
    """A run about to be put under its limits."""

    id: str
    job: str
    gates: tuple[Gate, ...]

    @property
    def decided(self) -> bool:
        return any(gate.decides for gate in self.gates)


def limit_of(value: object) -> Limit:
    """What people write: a Limit, or all of it in a dict."""
    if isinstance(value, Limit):
        return value
    if not isinstance(value, dict):
        hint = 'write {"max": 2, "by": ["scope", "customer"]}, or a list of such'
        raise Invalid(f"limit cannot be {value!r:.80}", hint=hint)
    for name in value:
        if name not in Limit.__struct_fields__:
            raise UnknownOption(str(name), Limit.__struct_fields__, where="limit")
    by = value.get("by", ())
    try:
        return msgspec.convert({**value, "by": [by] if isinstance(by, str) else by}, Limit, strict=True)
    except msgspec.ValidationError as error:
        raise Invalid(f"limit: {error}", hint="max, by, when_full, max_queued") from None


def limits_of(value: Any) -> tuple[Limit, ...]:
    """One or several."""
    if value is None:
        return ()
    return tuple(limit_of(one) for one in value) if isinstance(value, list | tuple) else (limit_of(value),)


def job_key(job: str) -> str:
    return f"job:{job}"


def keys_prefix(job: str, by: Sequence[str]) -> str:
    """What the keys of one limit of a job have in common."""
    return f"key:{job}:{','.join(by)}:"


def gate_of(job: str, limit: Limit, scope: Scope, payload: Mapping[str, Any]) -> Gate:
    if not limit.by:
        return Gate(job_key(job), limit.max, limit.when_full, limit.max_queued)
    parts = [[scope.kind, scope.id] if name == _BY_SCOPE else payload.get(name) for name in limit.by]
    digest = hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:24]
    return Gate(keys_prefix(job, limit.by) + digest, limit.max, limit.when_full, limit.max_queued)


class Admit(msgspec.Struct, frozen=True):
    """It may wait or run; `stops` names the limits under which the oldest runs, that many, give way to it."""

    stops: tuple[tuple[str, int], ...] = ()


class Turn(msgspec.Struct, frozen=True):
    """It is one too many: skipped, or refused if whoever wants it can be told."""

    gate: Gate
    refused: bool

    @property
    def reason(self) -> str:
        waiting = "" if self.gate.max_queued is None else f" and {self.gate.max_queued} waiting"
        return f"limit {self.gate.key!r} is full: {self.gate.max} at once{waiting}"


def admission(gates: Sequence[Gate], live: Mapping[str, int]) -> Admit | Turn:
    """`live`: how many runs are under each limit and not final; those asked to stop do not count."""
    stops = []
    for gate in gates:
        count = live.get(gate.key, 0)
        if gate.when_full == "cancel_oldest" and count >= gate.max:
            stops.append((gate.key, count - gate.max + 1))
        elif gate.when_full in ("skip", "reject") and count >= gate.max:
            return Turn(gate, refused=gate.when_full == "reject")
        elif gate.max_queued is not None and count >= gate.max + gate.max_queued:
            return Turn(gate, refused=True)
    return Admit(tuple(stops))


class Candidate(msgspec.Struct, frozen=True):
    """A run that waits under `key`, its narrowest limit, and the wider ones that it needs, too."""

    run_id: str
    key: str
    wider: tuple[str, ...] = ()


class HandedOut(msgspec.Struct, frozen=True):
    """`full`: limits without a free slot left. `blocked`: limit → the wider one that its next run waits for."""

    taken: list[Candidate]
    full: set[str]
    blocked: dict[str, str]


def hand_out(waiting: Mapping[str, Sequence[Candidate]], free: Mapping[str, int], slots: int) -> HandedOut:
    """Turn by turn: one run of each limit, in the order given, then a second one of each, while there are slots.

    `free` has the limits whose row is locked: a wider one that is not there is somebody else's at this moment, and the
    run is left for the next look.
    """
    left = dict(free)
    taken: list[Candidate] = []
    blocked: dict[str, str | None] = {}
    queues = {key: list(reversed(candidates)) for key, candidates in waiting.items()}
    while slots > len(taken) and any(queues.values()):
        for key, candidates in queues.items():
            if len(taken) < slots and (found := _next(key, candidates, left, blocked)):
                taken.append(found)
                for needed in (key, *found.wider):
                    left[needed] -= 1
    served = {candidate.key for candidate in taken}
    full = {key for key in waiting if left.get(key, 0) <= 0}
    over = served | full
    return HandedOut(taken, full, {key: by for key, by in blocked.items() if by is not None and key not in over})


def _next(
    key: str, candidates: list[Candidate], left: Mapping[str, int], blocked: dict[str, str | None]
) -> Candidate | None:
    """The first that all its limits have room for; whoever stands before it is passed over."""
    while candidates:
        found = candidates.pop()
        if left.get(key, 0) <= 0:
            candidates.clear()
            return None
        full = [wider for wider in found.wider if left.get(wider, 1) <= 0]
        if full:
            blocked.setdefault(key, full[0])
        elif all(wider in left for wider in found.wider):
            return found
        else:
            blocked[key] = None  # nobody knows yet
    return None
