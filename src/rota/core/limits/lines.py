"""Lines: runs that need the same limits wait in one line, so that none waits behind a run that waits for another limit.

A run is found by the first of its gates. If all runs under that limit are under its other limits, too, the limit is the
line. Otherwise a line of its own stands before it: an unlimited gate, with a name that the runs under the same limits
share. Without it, a scope whose quota is full would hold back the runs of all other scopes under the limit of a job.
"""

from __future__ import annotations

import functools
import hashlib
from enum import StrEnum
from typing import assert_never

from rota.core.limits.limits import BY_SCOPE, LINE, UNLIMITED, Gate, without_rate


def in_line(gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """Return the gates of a run as they are stored: it is found by the first one."""
    if not gates[1:]:
        return gates
    line = _line(tuple(gate.key for gate in gates))
    return gates if line is None else (Gate(line, UNLIMITED), *gates)


def line_key(gates: tuple[Gate, ...]) -> str | None:
    """Return the key by which a run with these gates is found; None if it is under no limit."""
    return in_line(gates)[0].key if gates else None


@functools.lru_cache(16_384)
def _line(keys: tuple[str, ...]) -> str | None:
    first, *others = keys
    crossing = [key for key in others if not _is_within(without_rate(first), without_rate(key))]
    if not crossing:
        return None
    digest = hashlib.sha256("\n".join(crossing).encode()).hexdigest()[:16]
    return f"{LINE}{digest}:{first}"


class _Kind(StrEnum):
    """Kind of a limit: how its key begins."""

    BACKFILL = "backfill"
    KEY = "key"
    SCHEDULE = "schedule"
    JOB = "job"
    QUOTA = "quota"
    LIVE = "live"


_KINDS = {kind.value: kind for kind in _Kind}
_OF_ONE_JOB = (_Kind.BACKFILL, _Kind.KEY, _Kind.SCHEDULE, _Kind.JOB)


def _is_within(narrow: str, wide: str) -> bool:
    """Return whether all runs under one limit are under the other limit of one of them, too.

    The runs of a schedule are of one job. Of the limits of a newer program nothing is known.
    """
    kind = _kind(narrow)
    if narrow == wide:
        return True
    match _kind(wide):
        case _Kind.JOB:
            return kind in _OF_ONE_JOB
        case _Kind.LIVE:
            return kind in _OF_ONE_JOB and wide.startswith("live:job:")
        case _Kind.SCHEDULE:
            return kind is _Kind.BACKFILL
        case _Kind.KEY:
            return kind is _Kind.KEY and _fields(wide) <= _fields(narrow)
        case _Kind.QUOTA:
            return kind is _Kind.KEY and BY_SCOPE in _fields(narrow)
        case _Kind.BACKFILL | None:
            return False
        case unknown:
            assert_never(unknown)


def _kind(key: str) -> _Kind | None:
    return _KINDS.get(key.partition(":")[0])


def _fields(key: str) -> set[str]:
    """Return what the runs under a key share."""
    return {*key.rsplit(":", 2)[1].split(",")}
