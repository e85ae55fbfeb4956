"""Compaction: runs and ranges past their retention become one range per schedule, scope and reason."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.core.ledger.verify import Range
from rota.values.scope import Scope

RAN, MISSED = "ran", "missed"
"""Reasons of pruned ranges."""


class ForgottenRun(msgspec.Struct, frozen=True):
    """Run of a plan time that is about to be pruned, with the plan times that it covers."""

    schedule_id: str
    scope: Scope
    plan_time: int
    covers_from: int | None
    covered: int
    state: str
    reason: str | None
    backfilled: bool


def short_reason(reason: str | None) -> str:
    """Return the common first word of skip reasons that differ in an id, a key or a number: `overlap`, `limit`."""
    words = (reason or "").partition(":")[0].split()
    return words[0] if words else "policy"


def range_of_gone(run: ForgottenRun, reason: str) -> Range:
    """Return the range that accounts for a pruned run; `reason` applies unless the run was skipped."""
    skipped = run.state == "skipped"
    first = run.plan_time if run.covers_from is None else run.covers_from
    return Range(
        first,
        run.plan_time,
        run.scope,
        "skipped" if skipped else "pruned",
        short_reason(run.reason) if skipped else reason,
        1 + run.covered,
    )


def joined(ranges: Iterable[tuple[str, Range]]) -> dict[tuple[str, Scope | None, str, str], Range]:
    """Merge ranges per schedule, scope, kind and reason: from the first plan time to the last, counts added up."""
    merged: dict[tuple[str, Scope | None, str, str], Range] = {}
    for id, piece in ranges:
        key = (id, piece.scope, piece.kind, piece.reason)
        other = merged.get(key, piece)
        merged[key] = msgspec.structs.replace(
            piece,
            from_at=min(piece.from_at, other.from_at),
            to_at=max(piece.to_at, other.to_at),
            count=piece.count + (other.count if key in merged else 0),
        )
    return merged
