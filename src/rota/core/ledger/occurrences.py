"""Occurrences: the ledger of a schedule for readers, one line per plan time, or per range where there are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.core.ledger.verify import UNNAMED, History, Range, Stretch
from rota.core.schedules.plan_times import plan_times
from rota.core.states import RunState
from rota.values.instants import instant, micros_at
from rota.values.scope import Scope

_MOST_TOLD = 1_000_000  # occurrences of one plan time: one per scope
KINDS = ("ran", "skipped", "coalesced", "missed", "paused", "pruned", "pending")
_STATES = (RunState.SUCCEEDED, *(state for state in RunState if state is not RunState.SUCCEEDED))


class Replacement(msgspec.Struct, frozen=True):
    """Newest run that a retry or a backfill made in place of one that did not succeed."""

    run_id: str
    state: str
    """State of that run."""


class PlanTimeSummary(msgspec.Struct, frozen=True):
    """Summary of one plan time over all its scopes. A run counts by the newest run that was made in its place."""

    scopes: int
    """Number of scopes that have a run."""
    states: Mapping[str, int]
    """Number of runs by state."""
    words: str
    """The same for people: `37 succeeded, 2 failed, 1 cancelled`."""


def summary_of(outcomes: Iterable[str]) -> PlanTimeSummary:
    """Summarize the states of the runs of one plan time."""
    counts = Counter(outcomes)
    states = {state.value: counts[state] for state in _STATES if counts[state]}
    return PlanTimeSummary(counts.total(), states, ", ".join(f"{count} {state}" for state, count in states.items()))


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """Plan time, or `count` of them between `from_at` and `to_at`; without a scope, those of all scopes.

    `run_id` is the run that it got, or the one that it was coalesced into.
    """

    kind: str
    """What became of it: `ran`, `skipped`, `coalesced`, `missed`, `paused`, `pruned` or `pending`."""
    plan_time: datetime | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None
    count: int = 1
    """Number of plan times that this line stands for."""
    scope: Scope | None = None
    run_id: str | None = None
    """The run that it got, or the one that it was coalesced into."""
    state: str | None = None
    """State of that run."""
    reason: str | None = None
    """Why it got no run, or was skipped."""
    revision: int | None = None
    """Revision of the schedule that decided."""
    again: Replacement | None = None
    """Run that was made in place of one that did not succeed."""
    summary: PlanTimeSummary | None = None
    """Summary of the plan time over its scopes, if it has several: in the first of its lines."""

    @property
    def outcome(self) -> str | None:
        """State of its run, or of the one that was made in its place."""
        return self.state if self.again is None else self.again.state


class PlannedRun(msgspec.Struct, frozen=True):
    """Run of a plan time, with its current `state`."""

    id: str
    scope: Scope
    plan_time: int
    covers_from: int | None
    covered: int
    state: str
    reason: str | None
    again: Replacement | None = None

    @property
    def outcome(self) -> str:
        """State of the run, or of the one that was made in its place."""
        return self.state if self.again is None else self.again.state

    @property
    def was_vain(self) -> bool:
        return self.state != RunState.SUCCEEDED and RunState(self.state).is_final


class PagePosition(msgspec.Struct, frozen=True):
    """End of a page: `at` is the start of its last occurrence, `told` how many with that start were returned.

    `from_at` and `to_at` are the time range of its list, if the place tells it.
    """

    at: datetime
    told: int
    from_at: datetime | None = None
    to_at: datetime | None = None


class OccurrencePage(msgspec.Struct, frozen=True):
    """Page of occurrences; `next` is the `after` of the next page, None after the last."""

    occurrences: Sequence[Occurrence]
    next: PagePosition | None


def whole_plan_times(lines: Sequence[Occurrence], limit: int) -> int:
    """Return how many of more than `limit` lines a page takes: it ends where a plan time does. 0: the first plan time
    has more than `limit` lines."""
    while limit and _beginning(lines[limit]) == _beginning(lines[limit - 1]):
        limit -= 1
    return limit


def first_plan_time(lines: Sequence[Occurrence]) -> int:
    """Return how many lines have the beginning of the first one."""
    count = 0
    while count < len(lines) and _beginning(lines[count]) == _beginning(lines[0]):
        count += 1
    return count


def with_summaries(lines: Sequence[Occurrence], *, cut: Collection[datetime | None]) -> list[Occurrence]:
    """Add its summary to the first line of each plan time of several scopes. Those in `cut` are not here whole."""
    times: dict[datetime | None, list[int]] = {}
    for place, line in enumerate(lines):
        if line.state is not None:  # else it stands for a range
            times.setdefault(line.plan_time, []).append(place)
    summed = list(lines)
    for places in (places for at, places in times.items() if len(places) > 1 and at not in cut):
        summary = summary_of(line.outcome for line in (lines[place] for place in places) if line.outcome is not None)
        summed[places[0]] = msgspec.structs.replace(lines[places[0]], summary=summary)
    return summed


def place_after(page: Sequence[Occurrence], before: PagePosition | None = None) -> PagePosition | None:
    """Return where the next page begins; `before` is where this one began."""
    if not page:
        return before
    at = _beginning(page[-1])
    count = sum(_beginning(occurrence) == at for occurrence in page)
    return PagePosition(at, count + before.told if before is not None and before.at == at else count)


def written_place(place: PagePosition) -> list[int]:
    """Write a place that tells its time range, as a cursor holds it: a page of the last day continues in that day."""
    assert place.from_at is not None
    assert place.to_at is not None
    return [micros_at(place.from_at), micros_at(place.to_at), micros_at(place.at), place.told]


def read_place(written: Any) -> PagePosition:
    """Read such a place. Raises TypeError, ValueError or OverflowError if it is none."""
    from_at, to_at, at, told = written
    if not 0 <= told <= _MOST_TOLD:
        raise ValueError(told)
    return PagePosition(instant(at), told, instant(from_at), instant(to_at))


def _beginning(occurrence: Occurrence) -> datetime:
    at = occurrence.plan_time or occurrence.from_at
    assert at is not None
    return at


class OccurrenceQuery(msgspec.Struct, frozen=True):
    """Time range and page; the first `told` occurrences from `past` on were returned before, and are left out."""

    from_at: int
    to_at: int
    limit: int
    past: int = 0
    told: int = 0

    @property
    def most(self) -> int:
        return self.limit + self.told


def resting(history: History, query: OccurrenceQuery, *, now: int, active: bool) -> list[Stretch]:
    """Return the inactive stretches within the range; their plan times have runs only by a backfill."""
    end = history.cursor if active else max(history.cursor, now)
    return [
        msgspec.structs.replace(
            stretch, after=max(stretch.after, query.from_at - 1), until=min(stretch.until, query.to_at)
        )
        for stretch in history.up_to(end)
        if not stretch.revision.active
        and not history.ended(stretch)
        and stretch.until >= query.from_at
        and stretch.after < query.to_at
    ]


def occurrences(
    history: History,
    query: OccurrenceQuery,
    runs: Iterable[PlannedRun],
    ranges: Iterable[Range],
    held: Iterable[tuple[Stretch, Sequence[tuple[Scope, int]]]],
    *,
    active: bool,
    room: int | None,
    next_plan: int | None,
) -> list[Occurrence]:
    """Return the occurrences of a page in the order of plan times.

    `runs` and `ranges` are those that touch the range; `held`: each inactive stretch with all its plan times that have
    a run, even those that are not on this page.
    """
    pairs = [pair for run in runs for pair in _of_run(history, run)]
    pairs += [(r.from_at, _of_range(history, r)) for r in ranges if r.reason != UNNAMED]
    pairs += [pair for stretch, taken in held for pair in _paused(history, stretch, taken)]
    if active:
        pairs += _pending(history, query, room, next_plan)
    pairs = [pair for pair in pairs if pair[0] >= query.past]
    pairs.sort(key=lambda pair: (pair[0], _order(pair[1].scope), pair[1].kind))
    skipped = min(query.told, sum(at == query.past for at, _ in pairs))  # if some were pruned meanwhile, skip no others
    return [occurrence for _, occurrence in pairs[skipped : skipped + query.limit]]


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


def _of_range(history: History, gap: Range) -> Occurrence:
    first, last = history.at(gap.from_at), history.at(gap.to_at)
    return Occurrence(
        kind=gap.kind,
        from_at=instant(gap.from_at),
        to_at=instant(gap.to_at),
        count=gap.count,
        scope=gap.scope,
        reason=gap.reason,
        revision=first.revision.no if first and first == last else None,
    )


def _paused(history: History, stretch: Stretch, runs: Sequence[tuple[Scope, int]]) -> Iterator[tuple[int, Occurrence]]:
    """Yield the paused ranges between backfilled runs; per scope if there are such runs."""
    after, until = stretch.after, stretch.until
    lanes: list[tuple[Scope | None, int, int]] = [*history.lanes(stretch)] if runs else [(None, after, until)]
    taken: dict[Scope | None, list[int]] = {}
    for lane, at in runs:
        if stretch.times.is_time(at):
            taken.setdefault(lane, []).append(at)
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
    history: History, query: OccurrenceQuery, room: int | None, next_plan: int | None
) -> Iterator[tuple[int, Occurrence]]:
    revision = history.revisions[-1]
    if revision.definition.follows is not None:
        plans = iter([next_plan] if next_plan is not None else [])
    else:
        plans = _following(history, query, room)
    for at in plans:
        if query.from_at <= at <= query.to_at:
            yield at, Occurrence(kind="pending", plan_time=instant(at), revision=revision.no)


def _following(history: History, query: OccurrenceQuery, room: int | None) -> Iterator[int]:
    """Return the next plan times, at most as many as the page takes and as `max_runs` allows."""
    times = history.revisions[-1].definition.times(history.name)
    start = max(query.from_at, query.past) - 1
    return iter(plan_times(times, history.cursor, start, query.most, room, query.to_at))
