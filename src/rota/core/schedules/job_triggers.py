"""Schedules that follow the ends of other jobs: rings, and what a run says of the one that it follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rota.values.scope import GLOBAL, Scope

CAUSE = "triggered_by"
"""Where the metadata of a run name the one whose end it follows."""

_SAID = {
    "succeeded": "succeeded",
    "failed": "failed",
    "timed_out": "timed out",
    "expired": "expired",
    "cancelled": "was cancelled",
}


class Cause(msgspec.Struct, frozen=True):
    run_id: str
    job: str
    state: str


def ring(edges: Iterable[tuple[str, str]], followed: str, job: str) -> list[str] | None:
    """Whether ends of `followed` that start `job` would come back to it; an edge is a job and one that it starts.

    The jobs along the ring, the first of them again at its end.
    """
    starts: dict[str, list[str]] = {}
    for first, then in edges:
        starts.setdefault(first, []).append(then)
    paths = [[followed, job]]
    seen = {job}
    for path in paths:  # which grows meanwhile: the shortest ring is found first
        if path[-1] == followed:
            return path
        for then in starts.get(path[-1], ()):
            if then == followed or then not in seen:
                seen.add(then)
                paths.append([*path, then])
    return None


def scopes_after(ended: Scope | None, own: Sequence[Scope]) -> Sequence[Scope]:
    """Which scopes of a schedule get a run at the end of one: its own, or all if it was nobody's in particular.

    One of a scope that the schedule is not for is nothing to its others: they would get what is not theirs. A schedule
    for nobody in particular follows all. `ended` None: the run is gone, and nobody knows whose it was.
    """
    if ended is not None and ended in own:
        return [ended]
    return own if ended in (None, GLOBAL) else [scope for scope in own if scope == GLOBAL]


def with_cause(metadata: str | None, cause: Cause) -> str:
    known: dict[str, Any] = msgspec.json.decode(metadata) if metadata else {}
    return msgspec.json.encode({**known, CAUSE: cause}).decode()


def cause_of(metadata: Mapping[str, Any]) -> Cause | None:
    try:
        return msgspec.convert(metadata[CAUSE], Cause)
    except (KeyError, msgspec.ValidationError):  # there is none, or people have put something else there
        return None


def because(cause: Cause) -> str:
    return f"because run {cause.run_id} of {cause.job} {_SAID.get(cause.state, cause.state)}"
