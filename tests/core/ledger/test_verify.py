"""Ledger as pure functions: stretches, lanes, accounting, and inconsistencies."""

from collections.abc import Sequence
from typing import Any

import pytest

from rota.core.calendar.rules import Rule
from rota.core.calendar.triggers import Trigger, after, cron, every
from rota.core.ledger.backfill import MissingPlanTime, Ran, choose, cut, cut_all
from rota.core.ledger.compact import joined, short_reason
from rota.core.ledger.occurrences import Occurrence, OccurrenceQuery, PlannedRun, occurrences, place_after, resting
from rota.core.ledger.verify import (
    History,
    Range,
    Span,
    Tally,
    account,
    check_covers,
    check_plan_time,
    check_ranges,
    check_scope,
    unrecorded,
)
from rota.core.schedules.revisions import Revision
from rota.core.schedules.schedule import ScheduleDefinition
from rota.values.instants import instant, micros_at
from rota.values.scope import GLOBAL, Scope

MINUTE = 60_000_000
A, B = Scope("shop", "a"), Scope("shop", "b")


def definition(trigger: Trigger | None = None, **options: Any) -> ScheduleDefinition:
    return ScheduleDefinition(job="work", rule=Rule(trigger or every("1m")), **options)


def revision(no: int, minute: int, *, active: bool = True, tzdata: str = "1", **options: Any) -> Revision:
    return Revision(no, minute * MINUTE, definition(**options), tzdata, active, None if active else "paused")


def history(*revisions: Revision, until: int = 100, spans: tuple[Span, ...] = ()) -> History:
    return History("id", "s", revisions, spans, until * MINUTE, "1")


def missed(first: int, last: int, scope: Scope | None = None, kind: str = "missed", count: int | None = None) -> Range:
    return Range(first * MINUTE, last * MINUTE, scope, kind, "why", last - first + 1 if count is None else count)


PAUSED_BETWEEN = history(revision(1, 0), revision(2, 10, active=False), revision(3, 20))


def test_stretches_are_what_each_revision_named() -> None:
    found = PAUSED_BETWEEN.stretches
    assert [(s.revision.no, s.after // MINUTE, s.until // MINUTE, s.count) for s in found] == [
        (1, 0, 10, 10), (2, 10, 20, 10), (3, 20, 100, 80),
    ]  # fmt: skip
    assert [PAUSED_BETWEEN.at(minute * MINUTE) for minute in (0, 101)] == [None, None]
    assert PAUSED_BETWEEN.at(10 * MINUTE) == found[0]
    assert PAUSED_BETWEEN.at(10 * MINUTE + 1) == found[1]


def test_revisions_of_one_instant_name_nothing() -> None:
    found = history(revision(1, 0), revision(2, 10), revision(3, 10), until=10)
    assert [stretch.revision.no for stretch in found.stretches] == [1]


def test_scopes_of_a_provider_count_for_their_span() -> None:
    spans = (Span(A, 0, 30 * MINUTE), Span(B, 20 * MINUTE), Span(A, 50 * MINUTE))
    found = history(revision(1, 10, provider="shops"), spans=spans)
    assert [(s.id, low // MINUTE, high // MINUTE) for s, low, high in found.lanes(found.stretches[0])] == [
        ("a", 10, 30), ("b", 20, 100), ("a", 50, 100),
    ]  # fmt: skip
    assert [found.names(A, minute * MINUTE) for minute in (11, 30, 31, 51)] == [True, True, False, True]


def test_everything_accounted_for() -> None:
    tallies = {(1, GLOBAL, 0): Tally(6, 2), (3, GLOBAL, 20 * MINUTE): Tally(40, 0)}
    ranges = [missed(4, 5), missed(30, 69)]
    assert account(PAUSED_BETWEEN, tallies, ranges, []) == (90, [])
    assert account(PAUSED_BETWEEN, tallies, ranges[:1], [(GLOBAL, m * MINUTE) for m in range(30, 70)]) == (90, [])


@pytest.mark.parametrize(
    ("tally", "ranges", "expected"),
    [
        (Tally(5, 2), [missed(4, 5)], [("count", 10, 9)]),
        (Tally(7, 2), [missed(4, 5)], [("count", 10, 11)]),
        (Tally(6, 2), [missed(4, 5), missed(12, 13, GLOBAL)], [("unnamed", 0, 2)]),
        (Tally(6, 2), [missed(4, 5), missed(1, 3, A, "pruned")], [("unnamed", 0, 3)]),
    ],
)
def test_what_does_not_add_up(tally: Tally, ranges: list[Range], expected: list[tuple[str, int, int]]) -> None:
    found = history(revision(1, 0), revision(2, 10, active=False), until=20)
    _, findings = account(found, {(1, GLOBAL, 0): tally}, ranges, [])
    assert [(f.problem, f.expected, f.found) for f in findings] == expected


def test_a_range_over_several_revisions_is_compared_with_all_of_them() -> None:
    pruned = missed(3, 60, GLOBAL, "pruned", count=50)
    tallies = {(3, GLOBAL, 20 * MINUTE): Tally(40, 0)}
    assert account(PAUSED_BETWEEN, tallies, [pruned], []) == (90, [])
    _, (finding,) = account(PAUSED_BETWEEN, tallies, [missed(3, 60, GLOBAL, "pruned", count=49)], [])
    assert (finding.revisions, finding.expected, finding.found) == ((1, 3), 90, 89)


def test_what_cannot_be_computed_any_more_is_not_compared() -> None:
    zoned = history(revision(1, 0, trigger=cron("* * * * *", "Europe/Berlin"), tzdata="0"))
    assert account(zoned, {}, [], []) == (0, [])
    assert account(history(revision(1, 0, trigger=after("1m"))), {}, [], []) == (0, [])
    assert account(history(revision(1, 0, tzdata="0")), {}, [], [])[0] == 100


def test_counts_of_ranges_and_covers() -> None:
    assert [f.problem for f in check_ranges(PAUSED_BETWEEN, [missed(3, 5, count=2)])] == ["range"]
    assert [f.problem for f in check_ranges(PAUSED_BETWEEN, [missed(3, 5), missed(5, 7)])] == ["double"]
    assert [f.problem for f in check_ranges(PAUSED_BETWEEN, [missed(3, 5, A), missed(4, 4)])] == ["double"]
    assert not [*check_ranges(PAUSED_BETWEEN, [missed(3, 5, A), missed(3, 5, B), missed(6, 6)])]
    assert not [*check_covers(PAUSED_BETWEEN, [(3 * MINUTE, 5 * MINUTE, 2)])]
    assert [f.expected for f in check_covers(PAUSED_BETWEEN, [(3 * MINUTE, 5 * MINUTE, 3)])] == [2]


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (5 * MINUTE, None),
        (5 * MINUTE + 1, "does not have this plan time"),
        (15 * MINUTE, "was not active"),
        (101 * MINUTE, "not decided yet"),
        (0, "before the schedule"),
    ],
)
def test_where_no_run_can_be(at: int, reason: str | None) -> None:
    found = check_plan_time(PAUSED_BETWEEN, at)
    assert (found is None) if reason is None else (found is not None and reason in found)
    assert check_scope(PAUSED_BETWEEN, GLOBAL, at) == found
    assert check_scope(PAUSED_BETWEEN, A, 5 * MINUTE) == "the schedule did not apply to shop/a then"


def test_the_plan_times_that_nothing_is_known_of() -> None:
    (stretch, *_) = PAUSED_BETWEEN.stretches
    runs = [(1 * MINUTE, 1 * MINUTE), (6 * MINUTE, 8 * MINUTE)]
    found = unrecorded(stretch, 0, 10 * MINUTE, [missed(3, 4)], runs)
    assert found == tuple(instant(minute * MINUTE) for minute in (2, 5, 9, 10))


def run(minute: int, scope: Scope = GLOBAL, state: str = "succeeded", covers: int = 0) -> PlannedRun:
    first = (minute - covers) * MINUTE if covers else None
    return PlannedRun(f"{scope.id}{minute}", scope, minute * MINUTE, first, covers, state, None)


def told(
    history: History,
    wanted: OccurrenceQuery,
    runs: Sequence[PlannedRun],
    ranges: Sequence[Range] = (),
    *,
    now: int = 0,
    room: int | None = None,
    next_plan: int | None = None,
) -> list[Occurrence]:
    """Query as the store does: as many runs as fit on a page, and all plan times of a pause that have one."""
    held = [
        (stretch, [(run.scope, run.plan_time) for run in runs if stretch.after < run.plan_time <= stretch.until])
        for stretch in resting(history, wanted, now=now, active=True)
    ]
    later = sorted((run for run in runs if run.plan_time >= wanted.past), key=lambda run: (run.plan_time, run.scope.id))
    return occurrences(history, wanted, later[: wanted.most], ranges, held, active=True, room=room, next_plan=next_plan)


def test_occurrences_in_order() -> None:
    runs, ranges = [run(8, covers=2), run(25, state="skipped")], [missed(1, 5)]
    wanted = OccurrenceQuery(MINUTE, 102 * MINUTE, 100)
    found = told(PAUSED_BETWEEN, wanted, runs, ranges, now=100 * MINUTE, room=1, next_plan=101 * MINUTE)
    assert [(o.kind, o.count) for o in found] == [
        ("missed", 5), ("coalesced", 2), ("ran", 1), ("paused", 10), ("skipped", 1), ("pending", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (100, [("paused", 11, 12), ("ran", 13, 13), ("ran", 14, 14), ("paused", 15, 17), ("ran", 18, 18),
               ("paused", 19, 20)]),
        (3, [("paused", 11, 12), ("ran", 13, 13), ("ran", 14, 14)]),
        (1, [("paused", 11, 12)]),
    ],
)  # fmt: skip
def test_a_pause_is_told_without_what_was_backfilled(limit: int, expected: list[tuple[str, int, int]]) -> None:
    found = told(PAUSED_BETWEEN, OccurrenceQuery(11 * MINUTE, 20 * MINUTE, limit), [run(13), run(14), run(18)])
    ends = [(o.kind, o.plan_time or o.from_at, o.plan_time or o.to_at) for o in found]
    assert ends == [(kind, instant(first * MINUTE), instant(last * MINUTE)) for kind, first, last in expected]
    assert [o.count for o in found] == [last - first + 1 for _, first, last in expected]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8])
def test_pages_tell_together_what_one_page_tells(limit: int) -> None:
    """Include a pause: one of its scopes got runs for some plan times on one page, the other on the next."""
    held = revision(2, 5, active=False, scopes=(A, B))
    past, end = history(revision(1, 0, scopes=(A, B)), held, revision(3, 20, scopes=(A, B))), 30 * MINUTE
    runs = [run(minute, scope) for minute in (2, 3, 22) for scope in (A, B)]
    runs += [run(8, A), run(9, A), run(9, B), run(15, B), run(16, B), run(19, A)]
    whole = told(past, OccurrenceQuery(MINUTE, end, 100), runs)
    assert [(o.scope, o.count) for o in whole if o.kind == "paused"] == [
        (A, 2), (B, 3), (A, 9), (B, 5), (B, 4), (A, 1)
    ]  # fmt: skip
    pages, place = list[Occurrence](), None
    while True:
        at = (0, 0) if place is None else (micros_at(place.at), place.told)
        page = told(past, OccurrenceQuery(MINUTE, end, limit, *at), runs)
        pages += page
        if len(page) < limit:
            break
        place = place_after(page, place)
    assert pages == whole


def test_a_page_goes_on_where_the_one_before_ended() -> None:
    runs = [run(minute, scope) for minute in (2, 3) for scope in (A, B)]

    def page(past: int, known: int) -> list[str | None]:
        wanted = OccurrenceQuery(MINUTE, 5 * MINUTE, 2, past * MINUTE, known)
        found = told(history(revision(1, 0, scopes=(A, B))), wanted, runs, now=5 * MINUTE, room=0)
        return [one.run_id for one in found]

    assert page(0, 0) == page(2, 0) == ["a2", "b2"]
    assert page(2, 1) == ["b2", "a3"]
    assert page(2, 2) == page(2, 9) == page(3, 0) == ["a3", "b3"]
    assert page(3, 2) == []


def test_choosing_what_to_backfill() -> None:
    plan_times = [minute * MINUTE for minute in range(1, 9)]
    runs = [run(3, covers=1), run(4, state="failed"), run(5, state="skipped"), run(6, state="queued")]
    ranges = [missed(7, 7), missed(1, 7, GLOBAL, "pruned", count=1)]

    def chosen(ran: Ran, **newest: str) -> tuple[list[int], int, int]:
        found = choose(plan_times, [GLOBAL], runs, newest, ranges, ran)
        return [one.plan_time // MINUTE for one in found.missing], found.already, found.known

    assert chosen(Ran.NONE) == ([7, 8], 5, 1)
    assert chosen(Ran.FAILED) == ([4, 5, 7, 8], 3, 1)
    assert chosen(Ran.FAILED, global4="succeeded") == ([5, 7, 8], 4, 1)
    assert chosen(Ran.ALL) == ([3, 4, 5, 7, 8], 2, 1)


def test_cutting_a_range() -> None:
    times = definition().times("s")
    left = cut(missed(1, 10), times, [minute * MINUTE for minute in (0, 1, 4, 5, 10, 12)])
    assert [(one.from_at // MINUTE, one.to_at // MINUTE, one.count) for one in left] == [(2, 3, 2), (6, 9, 4)]


def test_cutting_for_one_of_two_scopes() -> None:
    both = history(revision(1, 0, scopes=(A, B)))
    ((gone, left),) = cut_all(both, [missed(1, 4)], [MissingPlanTime(A, 2 * MINUTE)])
    assert gone == missed(1, 4)
    assert left == [missed(1, 1, A), missed(3, 4, A), missed(1, 4, B)]
    ((_, left),) = cut_all(both, [missed(1, 4)], [MissingPlanTime(A, 2 * MINUTE), MissingPlanTime(B, 2 * MINUTE)])
    assert left == [missed(1, 1), missed(3, 4)]


def test_folding() -> None:
    found = joined([("x", missed(3, 4, A)), ("x", missed(1, 1, A)), ("x", missed(1, 1, B))])
    assert sorted((one.from_at // MINUTE, one.to_at // MINUTE, one.count) for one in found.values()) == [
        (1, 1, 1), (1, 4, 3),
    ]  # fmt: skip
    assert [short_reason(text) for text in ("overlap: run 1 is not over", "limit 'k' is full: 1", None)] == [
        "overlap", "limit", "policy",
    ]  # fmt: skip
