"""Verify the ledger of a schedule: its records must account for every plan time exactly once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

import msgspec

from rota.core.calendar.rules import Rule, Times
from rota.core.schedules.revisions import Inactivity, Revision, rests
from rota.values.instants import instant
from rota.values.scope import Scope

BACKFILL = "backfill"
"""Tag of backfilled runs, for searches; their rows have a column for it."""
UNNAMED = "backfilled"
"""Reason of a range of pruned backfilled runs: it accounts for no plan time."""

_UTC = ("UTC", "Etc/UTC", "Etc/GMT", "GMT")
_SHOWN = 5

Lane = tuple[Scope, int, int]
"""Scope, and its interval of plan times: after the first instant, up to and including the second."""


class Stretch(msgspec.Struct, frozen=True):
    """Validity of one revision: the plan times after `after`, up to and including `until`."""

    revision: Revision
    times: Times
    after: int
    until: int

    @property
    def count(self) -> int:
        return self.times.count(self.after, self.until)


class Span(msgspec.Struct, frozen=True):
    scope: Scope
    since: int
    until: int | None = None


class Range(msgspec.Struct, frozen=True):
    """Plan times without a run of their own; without a scope, those of all scopes at that time."""

    from_at: int
    to_at: int
    scope: Scope | None
    kind: str
    reason: str
    count: int

    @property
    def is_dense(self) -> bool:
        """Return whether it contains every plan time from its first to its last, and not only `count` of them."""
        return self.kind == "missed"


class Tally(msgspec.Struct, frozen=True):
    """Number of runs of one scope in one stretch, and of the plan times they cover besides their own."""

    runs: int = 0
    covered: int = 0


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Inconsistency."""

    problem: str
    """What is inconsistent, for programs."""
    words: str
    """What is inconsistent, for people."""
    scope: Scope | None = None
    revisions: tuple[int, ...] = ()
    """Revisions of the schedule that are concerned."""
    from_at: datetime | None = None
    to_at: datetime | None = None
    expected: int | None = None
    """How many plan times or records there should be."""
    found: int | None = None
    """How many there are."""
    run_id: str | None = None
    plan_times: tuple[datetime, ...] = ()


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Result for one schedule."""

    schedule: str
    plan_times: int
    """Number of plan times that were compared, of all scopes."""
    findings: tuple[Finding, ...] = ()
    """Inconsistencies."""
    unverified: tuple[str, ...] = ()
    """Stretches that cannot be computed again."""

    @property
    def ok(self) -> bool:
        return not self.findings


class History(msgspec.Struct, frozen=True, dict=True):
    """Revisions of a schedule in order, spans of its scopes, and the cursor up to which plan times are decided."""

    id: str
    name: str
    revisions: tuple[Revision, ...]
    spans: tuple[Span, ...]
    cursor: int
    tzdata: str

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """Stretches that are not empty, up to the cursor."""
        return tuple(self.up_to(self.cursor))

    @cached_property
    def rests(self) -> dict[int, Inactivity]:
        """Reason of inactivity of each revision that was not active, by its number."""
        return rests(self.revisions)

    def ended(self, stretch: Stretch) -> bool:
        """Return whether the schedule had used up `max_runs` then: its rule continues, but it has no plan times."""
        inactivity = self.rests.get(stretch.revision.no)
        return inactivity is not None and inactivity.ended

    def after_end(self, until: int) -> Iterator[tuple[int, int]]:
        """Yield the intervals from an end of the schedule to where it went on after all."""
        return ((stretch.after, stretch.until) for stretch in self.up_to(until) if self.ended(stretch))

    def up_to(self, end: int) -> Iterator[Stretch]:
        ends = [revision.valid_from for revision in self.revisions[1:]] + [end]
        for revision, until in zip(self.revisions, ends, strict=True):
            if min(until, end) > revision.valid_from:
                times = revision.definition.times(self.name)
                yield Stretch(revision, times, revision.valid_from, min(until, end))

    def at(self, plan_time: int) -> Stretch | None:
        place = bisect_left(self.stretches, plan_time, key=lambda stretch: stretch.until)
        if place == len(self.stretches) or self.stretches[place].after >= plan_time:
            return None
        return self.stretches[place]

    def lanes(self, stretch: Stretch) -> Iterator[Lane]:
        """Yield the scopes of a stretch, each with its part of it."""
        definition = stretch.revision.definition
        if definition.provider is None:
            yield from ((scope, stretch.after, stretch.until) for scope in definition.lanes)
            return
        for span in self.spans:
            after = max(span.since, stretch.after)
            until = stretch.until if span.until is None else min(span.until, stretch.until)
            if until > after:
                yield span.scope, after, until

    def names(self, scope: Scope, plan_time: int) -> bool:
        """Return whether the schedule was active and had this plan time for this scope."""
        stretch = self.at(plan_time)
        if stretch is None or not stretch.revision.active or not self._is_time(stretch, plan_time):
            return False
        return any(lane == scope and after < plan_time <= until for lane, after, until in self.lanes(stretch))

    def _is_time(self, stretch: Stretch, plan_time: int) -> bool:
        return not self.is_verifiable(stretch) or stretch.times.is_time(plan_time)

    def is_verifiable(self, stretch: Stretch) -> bool:
        """Return whether plan times can be recomputed: not from the ends of runs, nor with other time zone data."""
        if stretch.revision.definition.follows is not None:
            return False
        return stretch.revision.tzdata == self.tzdata or not is_zoned(stretch.revision.definition.rule)


def is_zoned(rule: Rule) -> bool:
    zones = set(rule.trigger.zones)
    zones |= {rule.timezone} if rule.windows or rule.exclude else set()
    return not zones.issubset(_UTC)


class _Piece(msgspec.Struct):
    """Part of an active stretch that belongs to one scope. Pieces that share a range form a group."""

    stretch: Stretch
    after: int
    until: int
    found: int = 0
    group: int = 0


def account(
    history: History,
    tallies: Mapping[tuple[int, Scope, int], Tally],
    ranges: Sequence[Range],
    backfilled: Iterable[tuple[Scope, int]],
) -> tuple[int, list[Finding]]:
    """Compare plan times with records, scope by scope; return how many plan times were compared, and the findings.

    `tallies` are keyed by revision number, scope, and the instant after which the scope's part of the revision begins;
    `backfilled` are the backfilled runs that have a regular plan time.
    """
    by_scope: dict[Scope, list[_Piece]] = {}
    for stretch in history.stretches:
        for scope, after, until in history.lanes(stretch) if stretch.revision.active else ():
            tally = tallies.get((stretch.revision.no, scope, after), Tally())
            piece = _Piece(stretch, after, until, tally.runs + tally.covered)
            by_scope.setdefault(scope, []).append(piece)
    for scope, plan_time in backfilled:
        for piece in _touched(by_scope[scope], plan_time, plan_time):
            piece.found += 1
    of_all = [gap for gap in ranges if gap.scope is None]
    own: dict[Scope, list[Range]] = {}
    for gap in ranges:
        if gap.scope is not None and gap.reason != UNNAMED:
            own.setdefault(gap.scope, []).append(gap)
    findings = [_unknown_range(scope, gap) for scope in own.keys() - by_scope.keys() for gap in own[scope]]
    compared, counts = 0, _Counts()
    for scope, pieces in by_scope.items():
        for place, piece in enumerate(pieces):
            piece.group = place
        findings += [_unknown_range(scope, r) for r in own.get(scope, ()) if not _credit(pieces, r)]
        for gap in of_all:
            _credit(pieces, gap)
        count, wrong = _compare(history, scope, pieces, counts)
        compared += count
        findings += wrong
    return compared, findings


def _touched(pieces: Sequence[_Piece], from_at: int, to_at: int) -> list[_Piece]:
    return [piece for piece in pieces if piece.after < to_at and from_at <= piece.until]


def _credit(pieces: Sequence[_Piece], gap: Range) -> bool:
    touched = _touched(pieces, gap.from_at, gap.to_at)
    if len(touched) == 1 and (gap.scope is not None or _within(touched[0], gap)):
        touched[0].found += gap.count
    elif gap.is_dense:
        for piece in touched:
            first, last = max(gap.from_at - 1, piece.after), min(gap.to_at, piece.until)
            piece.found += piece.stretch.times.count(first, last)
    elif touched:
        touched[0].found += gap.count
        groups = {piece.group for piece in touched}
        for piece in pieces:
            if piece.group in groups:
                piece.group = min(groups)
    return bool(touched)


def _within(piece: _Piece, gap: Range) -> bool:
    return piece.after < gap.from_at and gap.to_at <= piece.until


class _Counts(dict[tuple[int, int, int], int]):
    """Cache of counts: thousands of scopes share their plan times."""

    def of(self, piece: _Piece) -> int:
        key = (piece.stretch.revision.no, piece.after, piece.until)
        if key not in self:
            self[key] = piece.stretch.times.count(piece.after, piece.until)
        return self[key]


def _compare(history: History, scope: Scope, pieces: Sequence[_Piece], counts: _Counts) -> tuple[int, list[Finding]]:
    groups: dict[int, list[_Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.group, []).append(piece)
    compared, findings = 0, []
    for group in groups.values():
        if not all(history.is_verifiable(piece.stretch) for piece in group):
            continue
        expected = sum(counts.of(piece) for piece in group)
        recorded = sum(piece.found for piece in group)
        compared += expected
        if expected != recorded:
            findings.append(_wrong_count(scope, group, expected, recorded))
    return compared, findings


def _wrong_count(scope: Scope, group: Sequence[_Piece], expected: int, recorded: int) -> Finding:
    numbers = tuple(piece.stretch.revision.no for piece in group)
    revisions = f"revision {numbers[0]}" if len(numbers) == 1 else f"revisions {numbers[0]} to {numbers[-1]}"
    kind = "too few" if recorded < expected else "too many"
    return Finding(
        problem="count",
        words=f"{revisions}: {expected} plan times for {scope.kind}/{scope.id}, but {recorded} are recorded: {kind}",
        scope=scope,
        revisions=numbers,
        from_at=instant(group[0].after),
        to_at=instant(group[-1].until),
        expected=expected,
        found=recorded,
    )


def _unknown_range(scope: Scope, gap: Range) -> Finding:
    return Finding(
        problem="unnamed",
        words=f"a {gap.kind} range has {gap.count} plan times of {scope.kind}/{scope.id} that no revision has",
        scope=scope,
        from_at=instant(gap.from_at),
        to_at=instant(gap.to_at),
        expected=0,
        found=gap.count,
    )


def check_ranges(history: History, ranges: Iterable[Range]) -> Iterator[Finding]:
    """Check missed ranges: they contain every plan time from first to last, so the count is known; none may overlap."""
    dense = sorted((gap for gap in ranges if gap.is_dense), key=lambda gap: (gap.from_at, gap.to_at))
    for gap in dense:
        stretch = history.at(gap.from_at)
        if stretch is None or not history.is_verifiable(stretch):
            continue
        expected = stretch.times.count(gap.from_at - 1, gap.to_at)
        if expected != gap.count:
            words = f"a missed range counts {gap.count} plan times ({gap.reason}), but revision "
            words += f"{stretch.revision.no} has {expected} there"
            yield _of_range("range", words, gap, expected, gap.count)
    last: dict[Scope | None, Range] = {}
    for gap in dense:
        before = [last[key] for key in ({None, gap.scope} if gap.scope else set(last)) if key in last]
        for other in before:
            if other.to_at >= gap.from_at:
                yield _of_range("double", "two missed ranges contain the same plan times", gap, 1, 2)
                break
        if gap.scope not in last or last[gap.scope].to_at < gap.to_at:
            last[gap.scope] = gap


def check_covers(history: History, covers: Iterable[tuple[int, int, int]]) -> Iterator[Finding]:
    """Check coalesced plan times; `covers`: (first covered plan time, the run's own, how many it claims to cover)."""
    for first, own, count in covers:
        stretch = history.at(own)
        if stretch is None or not history.is_verifiable(stretch):
            continue
        expected = stretch.times.count(first - 1, own - 1)
        if expected != count:
            words = f"a run claims to cover {count} plan times, but revision {stretch.revision.no} has {expected}"
            yield Finding(
                problem="range",
                words=words,
                revisions=(stretch.revision.no,),
                from_at=instant(first),
                to_at=instant(own),
                expected=expected,
                found=count,
            )


def check_plan_time(history: History, plan_time: int) -> str | None:
    """Return why no run can belong to this instant; None if one can."""
    stretch = history.at(plan_time)
    if stretch is None:
        return "it is not decided yet" if plan_time > history.cursor else "it is before the schedule's first revision"
    if not stretch.revision.active:
        return f"revision {stretch.revision.no} was not active ({stretch.revision.note})"
    if history.is_verifiable(stretch) and not stretch.times.is_time(plan_time):
        return f"revision {stretch.revision.no} does not have this plan time"
    return None


def check_scope(history: History, scope: Scope, plan_time: int) -> str | None:
    reason = check_plan_time(history, plan_time)
    if reason is None and not history.names(scope, plan_time):
        return f"the schedule did not apply to {scope.kind}/{scope.id} then"
    return reason


def unrecorded(
    stretch: Stretch, after: int, until: int, ranges: Iterable[Range], runs: Iterable[tuple[int, int]]
) -> tuple[datetime, ...]:
    """Return the first few plan times without a record; `runs` are (first covered or own, own plan time)."""
    held = sorted([(gap.from_at, gap.to_at) for gap in ranges] + list(runs))
    missing: list[datetime] = []
    at = stretch.times.next(after)
    for first, last in [*held, (until + 1, until + 1)]:
        while at is not None and at < first and at <= until and len(missing) < _SHOWN:
            missing.append(instant(at))
            at = stretch.times.next(at)
        if at is not None and at <= last:
            at = stretch.times.next(last)
    return tuple(missing)


def _of_range(problem: str, words: str, gap: Range, expected: int, count: int) -> Finding:
    return Finding(
        problem=problem,
        words=words,
        scope=gap.scope,
        from_at=instant(gap.from_at),
        to_at=instant(gap.to_at),
        expected=expected,
        found=count,
    )
