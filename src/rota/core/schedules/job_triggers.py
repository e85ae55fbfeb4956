"""Schedules that follow the ends of other jobs: cycles among them, and the cause that a run records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rota.values.scope import GLOBAL, Scope

CAUSE = "triggered_by"
"""Key in the metadata of a run that names the run whose end it follows."""

_STATE_WORDS = {
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
    """Return the shortest cycle that would arise if ends of `followed` started `job`; None if there is none.

    An edge is a job and one that it starts. The first job of the cycle is repeated at its end.
    """
    starts: dict[str, list[str]] = {}
    for first, then in edges:
        starts.setdefault(first, []).append(then)
    paths = [[followed, job]]
    seen = {job}
    for path in paths:  # breadth first, the list grows meanwhile: the shortest cycle is found first
        if path[-1] == followed:
            return path
        for then in starts.get(path[-1], ()):
            if then == followed or then not in seen:
                seen.add(then)
                paths.append([*path, then])
    return None


def scopes_after(ended: Scope | None, own: Sequence[Scope]) -> Sequence[Scope]:
    """Return the scopes of a schedule that get a run when a run of the scope `ended` ends.

    A global run starts all scopes, any other its own scope alone: other scopes would get what is not theirs. A global
    schedule follows all runs. `ended` is None if the run is deleted, and its scope unknown.
    """
    if ended is not None and ended in own:
        return [ended]
    return own if ended in (None, GLOBAL) else [scope for scope in own if scope == GLOBAL]


def with_cause(metadata: str | None, cause: Cause) -> str:
    values: dict[str, Any] = msgspec.json.decode(metadata) if metadata else {}
    return msgspec.json.encode({**values, CAUSE: cause}).decode()


def cause_of(metadata: Mapping[str, Any]) -> Cause | None:
    try:
        return msgspec.convert(metadata[CAUSE], Cause)
    except (KeyError, msgspec.ValidationError):  # no cause, or the key holds something of the user's
        return None


def because(cause: Cause) -> str:
    return f"because run {cause.run_id} of {cause.job} {_STATE_WORDS.get(cause.state, cause.state)}"
