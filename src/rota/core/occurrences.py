"""Occurrences: the ledger of a schedule as people read it, plan time by plan time, ranges where they are many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from rota.core.ledger import UNNAMED, History, Range, Stretch
from rota.core.scope import Scope
from rota.core.states import RunState
from rota.instants import instant

KINDS = ("ran", "skipped", "coalesced", "missed", "paused", "pruned", "pending")


class Again(msgspec.Struct, frozen=True):
    """The newest run that was made in place of one that did not succeed, by a retry or a backfill."""

    run_id: str
    state: str


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """One plan time, or with `from_at` and `to_at` so many of them; without a scope, for all that there were.

    `run_id` is the run's that it got, or of the one that it was coalesced into.
    """

    kind: str
    plan_time: datetime | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None
    count: int = 1
    scope: Scope | None = None
    run_id: str | None = None
    state: str | None = None
    reason: str | None = None
    revision: int | None = None
    again: Again | None = None


class PlannedRun(msgspec.Struct, frozen=True):
    """A run of a plan time; `state` as it is now."""

    id: str
    scope: Scope
    plan_time: int
    covers_from: int | None
    covered: int
    state: str
    reason: str | None
    again: Again | None = None

    @property
    def was_vain(self) -> bool:
        return self.state != RunState.SUCCEEDED and RunState(self.state).is_final


class Wanted(msgspec.Struct, frozen=True):
    from_at: int
    to_at: int
    limit: int


def occurrences(
    history: History,
    wanted: Wanted,
    runs: Iterable[PlannedRun],
    ranges: Iterable[Range],
    *,
    now: int,
    active: bool,
    room: int | None,
    next_plan: int | None,
) -> list[Occurrence]:
    """In the order of plan times. `runs` and `ranges` are those that touch what is wanted."""
    runs = list(runs)
    found = [pair for run in runs for pair in _of_run(history, run)]
    found += [(r.from_at, _of_range(history, r)) for r in ranges if r.reason != UNNAMED]
    end = history.cursor if active else max(history.cursor, now)
    known = _known(wanted, runs)
    for stretch in history.up_to(end):
        if stretch.revision.active or history.ended(stretch):
            continue
        if stretch.until >= known.from_at and stretch.after < known.to_at:
            found += _paused(history, stretch, known, runs)
    if active:
        found += _pending(history, wanted, room, next_plan)
    found.sort(key=lambda pair: (pair[0], _order(pair[1].scope)))
    return [occurrence for _, occurrence in found[: wanted.limit]]


def _order(scope: Scope | None) -> tuple[str, ...]:
    return () if scope is None else (scope.kind, scope.id)


def _of_run(history: History, run: PlannedRun) -> Iterator[tuple[int, Occurrence]]:
    stretch = history.at(run.plan_time)
    revision = stretch.revision.no if stretch else None
    if run.covers_from is not None and run.covered:
        last = stretch.times.prev(run.plan_time) if stretch and history.is_verifiable(stretch) else None
        yield (
            run.covers_from,
            Occurrence(
                kind="coalesced",
                from_at=instant(run.covers_from),
                to_at=instant(last if last is not None else run.plan_time),
                count=run.covered,
                scope=run.scope,
                run_id=run.id,
                revision=revision,
            ),
        )
    yield (
        run.plan_time,
        Occurrence(
            kind="skipped" if run.state == "skipped" else "ran",
            plan_time=instant(run.plan_time),
            scope=run.scope,
            run_id=run.id,
            state=run.state,
            reason=run.reason,
            revision=revision,
            again=run.again,
        ),
    )


def _of_range(history: History, found: Range) -> Occurrence:
    first, last = history.at(found.from_at), history.at(found.to_at)
    return Occurrence(
        kind=found.kind,
        from_at=instant(found.from_at),
        to_at=instant(found.to_at),
        count=found.count,
        scope=found.scope,
        reason=found.reason,
        revision=first.revision.no if first and first == last else None,
    )


def _known(wanted: Wanted, runs: Sequence[PlannedRun]) -> Wanted:
    """Up to where all runs are known: if there may be more than were read, what is later is not part of this page."""
    if len(runs) < wanted.limit:
        return wanted
    last = max(run.plan_time if run.covers_from is None else run.covers_from for run in runs)
    return Wanted(wanted.from_at, min(wanted.to_at, last - 1), wanted.limit)


def _paused(
    history: History, stretch: Stretch, wanted: Wanted, runs: Iterable[PlannedRun]
) -> Iterator[tuple[int, Occurrence]]:
    """Of the part that is wanted, what lies between runs that a backfill made; then for each scope on its own."""
    after, until = max(stretch.after, wanted.from_at - 1), min(stretch.until, wanted.to_at)
    within = [run for run in runs if after < run.plan_time <= until]
    lanes: list[tuple[Scope | None, int, int]] = [*history.lanes(stretch)] if within else [(None, after, until)]
    taken: dict[Scope | None, list[int]] = {}
    for run in within:
        if stretch.times.is_time(run.plan_time):
            taken.setdefault(run.scope, []).append(run.plan_time)
    for scope, since, end in lanes:
        low, high = max(after, since), min(until, end)
        own = sorted(at for at in taken.get(scope, ()) if low < at <= high)
        for first, last, count in stretch.times.parts(low, high, own):
            yield (
                first,
                Occurrence(
                    kind="paused",
                    from_at=instant(first),
                    to_at=instant(last),
                    count=count,
                    scope=scope,
                    reason=history.rests[stretch.revision.no].reason,
                    revision=stretch.revision.no,
                ),
            )


def _pending(
    history: History, wanted: Wanted, room: int | None, next_plan: int | None
) -> Iterator[tuple[int, Occurrence]]:
    revision = history.revisions[-1]
    if revision.definition.follows is not None:
        plans = iter([next_plan] if next_plan is not None else [])
    else:
        plans = _following(history, wanted, room)
    for at in plans:
        if wanted.from_at <= at <= wanted.to_at:
            yield at, Occurrence(kind="pending", plan_time=instant(at), revision=revision.no)


def _following(history: History, wanted: Wanted, room: int | None) -> Iterator[int]:
    """Not more than are wanted, nor more than may still get a run."""
    times = history.revisions[-1].definition.times(history.name)
    start = max(history.cursor, wanted.from_at - 1)
    left = wanted.limit
    if room is not None:
        left = min(left, max(0, room - times.count(history.cursor, start)))
    at = times.next(start)
    while at is not None and at <= wanted.to_at and left > 0:
        yield at
        at = times.next(at)
        left -= 1
