"""Backfill: which past plan times get a run, and what remains of the missed ranges that contained them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import assert_never

import msgspec

from rota.core.calendar.rules import Times
from rota.core.ledger.occurrences import PlannedRun
from rota.core.ledger.verify import History, Range
from rota.core.states import RunState
from rota.errors import Invalid, did_you_mean
from rota.values.scope import Scope

MOST_RUNS = 10_000
MOST_LOOKED_AT = 200_000
SAMPLE = 10


class Ran(StrEnum):
    """Choice of the plan times with a run that get another: none, those whose run did not succeed, or all."""

    NONE = "none"
    FAILED = "failed"
    ALL = "all"

    @property
    def repeats(self) -> bool:
        match self:
            case Ran.NONE:
                return False
            case Ran.FAILED | Ran.ALL:
                return True
            case _:
                assert_never(self)


RAN = tuple(mode.value for mode in Ran)


def ran_of(word: str) -> Ran:
    """Return the choice that a caller names; it is not stored."""
    if word not in RAN:
        raise Invalid(f"ran cannot be {word!r}", hint=did_you_mean(str(word), RAN))
    return Ran(word)


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a backfill, or of a dry run."""

    schedule: str
    count: int
    """Number of runs."""
    retried: int
    """How many of them are for plan times that had a run."""
    already: int
    """Plan times that ran already, or were coalesced into a run."""
    known: int
    """Plan times that only a compacted range still accounts for."""
    pending: int
    """Plan times that are still to be decided."""
    held: int = 0
    """Plan times whose unique key another run has."""
    runs: tuple[str, ...]
    """Ids of the runs."""
    plan_times: tuple[datetime, ...]
    """The first plan times that got a run."""
    dry_run: bool


class MissingPlanTime(msgspec.Struct, frozen=True):
    """Plan time that gets a run; `instead_of` is the run that it had."""

    scope: Scope
    plan_time: int
    instead_of: str | None = None


class Choice(msgspec.Struct, frozen=True):
    missing: list[MissingPlanTime]
    already: int
    known: int


def choose(
    plan_times: Sequence[int],
    scopes: Sequence[Scope],
    runs: Iterable[PlannedRun],
    newest: Mapping[str, str],
    ranges: Iterable[Range],
    ran: Ran,
) -> Choice:
    """Choose the plan times to run; `newest` maps a run to the state of its latest retry."""
    missing, already, known = [], 0, 0
    for scope, lane in _lanes(scopes, runs, ranges).items():
        for at in plan_times:
            run = lane.runs.get(at)
            if run is not None and _runs_again(newest.get(run.id, run.state), ran):
                missing.append(MissingPlanTime(scope, at, run.id))
            elif run is not None or _holds(lane.covers, at):
                already += 1
            elif not _holds(lane.missed, at) and _holds(lane.known, at):
                known += 1
            else:
                missing.append(MissingPlanTime(scope, at))
    missing.sort(key=lambda item: item.plan_time)
    return Choice(missing, already, known)


def _lanes(scopes: Iterable[Scope], runs: Iterable[PlannedRun], ranges: Iterable[Range]) -> dict[Scope, _Lane]:
    lanes = {scope: _Lane({}, [], [], []) for scope in scopes}
    for run in runs:
        if run.scope in lanes:
            lanes[run.scope].add(run)
    for gap in ranges:
        for lane in [lanes.get(gap.scope)] if gap.scope else list(lanes.values()):
            if lane is not None:
                (lane.missed if gap.is_dense else lane.known).append((gap.from_at, gap.to_at))
    return lanes


class _Lane(msgspec.Struct):
    """Records of one scope's plan times; ranges as (first, last)."""

    runs: dict[int, PlannedRun]
    covers: list[tuple[int, int]]
    missed: list[tuple[int, int]]
    known: list[tuple[int, int]]

    def add(self, run: PlannedRun) -> None:
        self.runs[run.plan_time] = run
        if run.covers_from is not None:
            self.covers.append((run.covers_from, run.plan_time))


def _holds(ranges: Sequence[tuple[int, int]], at: int) -> bool:
    return any(first <= at <= last for first, last in ranges)


def _runs_again(state: str, ran: Ran) -> bool:
    if not RunState(state).is_final:
        return False
    match ran:
        case Ran.NONE:
            return False
        case Ran.FAILED:
            return state != RunState.SUCCEEDED
        case Ran.ALL:
            return True
        case _:
            assert_never(ran)


def cut(gap: Range, times: Times, made: Sequence[int]) -> list[Range]:
    """Return what remains of a missed range without the plan times `made`, which are sorted."""
    inside = made[bisect_left(made, gap.from_at) : bisect_right(made, gap.to_at)]
    taken = [at for at in inside if times.is_time(at)]
    return [
        msgspec.structs.replace(gap, from_at=first, to_at=last, count=count)
        for first, last, count in times.parts(gap.from_at - 1, gap.to_at, taken)
    ]


def cut_all(
    history: History, ranges: Iterable[Range], made: Iterable[MissingPlanTime]
) -> Iterator[tuple[Range, list[Range]]]:
    """Yield each affected missed range with what remains of it.

    A range of all scopes stays one if all scopes lost the same plan times; otherwise it is split by scope.
    """
    by_scope: dict[Scope, list[int]] = {}
    for item in made:
        if item.instead_of is None:
            by_scope.setdefault(item.scope, []).append(item.plan_time)
    for gap in ranges:
        stretch = history.at(gap.from_at)
        if not gap.is_dense or stretch is None:
            continue
        lanes = {scope: (after, until) for scope, after, until in history.lanes(stretch)}
        scopes = [gap.scope] if gap.scope else list(lanes)
        own = {scope: _inside(gap, by_scope.get(scope, [])) for scope in scopes}
        if not any(own.values()):
            continue
        alike = len({tuple(plan_times) for plan_times in own.values()}) == 1
        whole = all(after < gap.from_at and gap.to_at <= until for after, until in lanes.values())
        if gap.scope or (alike and whole):
            yield gap, cut(gap, stretch.times, next(iter(own.values())))
            continue
        parts = []
        for scope, plan_times in own.items():
            after, until = lanes[scope]
            part = _part(gap, scope, stretch.times, after, until)
            parts += cut(part, stretch.times, plan_times) if part else []
        yield gap, parts


def _inside(gap: Range, plan_times: Sequence[int]) -> list[int]:
    return [at for at in plan_times if gap.from_at <= at <= gap.to_at]


def _part(gap: Range, scope: Scope, times: Times, after: int, until: int) -> Range | None:
    """Return the part of a range of all scopes that belongs to one scope."""
    if after < gap.from_at and gap.to_at <= until:
        return msgspec.structs.replace(gap, scope=scope)
    low, high = max(after, gap.from_at - 1), min(until, gap.to_at)
    first, last = times.next(low), times.prev(high + 1)
    count = times.count(low, high)
    if not count or first is None or last is None:
        return None
    return msgspec.structs.replace(gap, from_at=first, to_at=last, scope=scope, count=count)


def of_scope(gap: Range, history: History) -> list[Range]:
    """Split a missed range of all scopes into one per scope."""
    stretch = history.at(gap.from_at)
    if stretch is None or gap.scope is not None:
        return [gap]
    lanes = history.lanes(stretch)
    parts = [_part(gap, scope, stretch.times, after, until) for scope, after, until in lanes]
    return [part for part in parts if part is not None]


class BackfillOrder(msgspec.Struct, frozen=True):
    """A backfill of the plan times from `from_at` to `to_at`, both included.

    At most `concurrency` of its runs run at once. `ran` tells which plan times that have a run get another one.
    """

    from_at: int
    to_at: int
    ran: Ran = Ran.NONE
    concurrency: int = 1
    dry_run: bool = False
    actor: str | None = None
