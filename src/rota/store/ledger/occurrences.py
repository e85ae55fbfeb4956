"""The ledger, read from its tables: listed plan time by plan time, or verified by counting."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.ledger.occurrences import (
    Occurrence,
    OccurrenceQuery,
    PlannedRun,
    Replacement,
    first_plan_time,
    occurrences,
    resting,
    whole_plan_times,
    with_summaries,
)
from rota.core.ledger.verify import (
    Finding,
    History,
    Range,
    Span,
    Stretch,
    Tally,
    Verification,
    account,
    check_covers,
    check_plan_time,
    check_ranges,
    check_scope,
    unrecorded,
)
from rota.core.schedules.revisions import Revision
from rota.errors import UnknownSchedule
from rota.store.databases.database import Row, Tx
from rota.store.databases.statements import POSTGRES
from rota.store.schedules.schedule_row import ScheduleRow, decoded, schedule_row
from rota.values.instants import instant, micros_at
from rota.values.scope import Scope

_BITE = 10_000
_MOST_FINDINGS = 100
_MOST_EXPLAINED = 10


async def snapshot(tx: Tx) -> None:
    """Read everything that follows as of one instant. Otherwise concurrent planning would look like damage."""
    if tx.dialect is POSTGRES:
        await tx.script("set transaction isolation level repeatable read")


async def row_of(tx: Tx, name: str) -> ScheduleRow:
    for row in await tx.fetch("look_at_schedule", name=name):
        return schedule_row(row)
    raise UnknownSchedule(name, [other for (other,) in await tx.fetch("schedule_names")])


async def history_of(tx: Tx, row: ScheduleRow) -> History:
    revisions, spans = await revisions_of(tx, row.id), await spans_of(tx, row.id)
    return History(row.id, row.name, revisions, spans, row.cursor_at, TZDATA_VERSION)


async def revisions_of(tx: Tx, id: str) -> tuple[Revision, ...]:
    return tuple(
        Revision(no, valid_from, decoded(text), tzdata, bool(active), note, actor, made_at)
        for no, valid_from, text, tzdata, active, note, actor, made_at in await tx.fetch("revisions", id=id)
    )


async def spans_of(tx: Tx, id: str) -> tuple[Span, ...]:
    rows = await tx.fetch("spans", id=id)
    return tuple(Span(Scope(kind, name), since, until) for kind, name, since, until in rows)


def range_of(row: Row) -> Range:
    """Build a range from the columns of `ranges`, `ranges_between` and, after the schedule's id, `drop_ranges`."""
    from_at, to_at, scope_kind, scope_id, kind, reason, count = row
    return Range(from_at, to_at, Scope(scope_kind, scope_id) if scope_kind else None, kind, reason, int(count))


def range_row(schedule_id: str, entry: Range) -> tuple[object, ...]:
    """Return the columns of `put_ranges` and `extend_ranges`; all but the count are those of `drop_ranges`."""
    scope_kind, scope_id = (entry.scope.kind, entry.scope.id) if entry.scope else ("", "")
    return schedule_id, entry.from_at, entry.to_at, scope_kind, scope_id, entry.kind, entry.reason, entry.count


async def read_occurrences(tx: Tx, name: str, query: OccurrenceQuery) -> list[Occurrence]:
    """Return at most `query.limit` lines, whether or not they end with a plan time."""
    await snapshot(tx)
    return await _lines(tx, await row_of(tx, name), query)


async def read_page(tx: Tx, name: str, query: OccurrenceQuery, most: int) -> tuple[list[Occurrence], bool]:
    """Return the lines of a page, and whether there are more after it.

    A page of at most `query.limit` lines ends where a plan time does. One that has more lines is a page of its own, up
    to `most` lines.
    """
    await snapshot(tx)
    row = await row_of(tx, name)
    lines = await _lines(tx, row, msgspec.structs.replace(query, limit=query.limit + 1))
    taken = len(lines)
    if taken > query.limit and not (taken := whole_plan_times(lines, query.limit)):
        lines = await _lines(tx, row, msgspec.structs.replace(query, limit=most + 1))
        taken = min(first_plan_time(lines), most)
    cut = [instant(query.past) if query.told else None]
    if taken < first_plan_time(lines):
        cut.append(lines[0].plan_time)
    return with_summaries(lines[:taken], cut=cut), taken < len(lines)


async def _lines(tx: Tx, row: ScheduleRow, query: OccurrenceQuery) -> list[Occurrence]:
    history = await history_of(tx, row)
    ((now,),) = await tx.fetch("now")
    values = {
        "id": row.id, "from_at": query.from_at, "to_at": query.to_at, "past": query.past, "limit": query.most,
    }  # fmt: skip
    runs = await with_retries(tx, [planned_run(run) for run in await tx.fetch("runs_between", **values)])
    ranges = [range_of(columns) for columns in await tx.fetch("ranges_between", **values)]
    rests = resting(history, query, now=int(now), active=row.active)
    held = [(stretch, await _planned_in(tx, row.id, stretch)) for stretch in rests]
    return occurrences(
        history,
        query,
        runs,
        ranges,
        held,
        active=row.active,
        room=row.standing.room,
        next_plan=row.next_plan,
    )


async def _planned_in(tx: Tx, id: str, stretch: Stretch) -> list[tuple[Scope, int]]:
    rows = await tx.fetch("planned_in", id=id, after=stretch.after, until=stretch.until)
    return [(Scope(kind, name), at) for kind, name, at in rows]


def planned_run(row: Row) -> PlannedRun:
    id, kind, name, plan_time, covers_from, covered, state, reason = row
    return PlannedRun(str(id), Scope(kind, name), plan_time, covers_from, covered or 0, state, reason)


async def with_retries(tx: Tx, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Add to each unsuccessful run the newest run made in its place, followed through chains of retries."""
    newest: dict[str, Replacement] = {}
    origins = {run.id: run.id for run in runs if run.was_vain}
    while origins:
        made = [(str(of), str(id), state) for of, id, state in await tx.fetch("made_again", [(id,) for id in origins])]
        for of, id, state in made:
            if origins[of] not in newest or newest[origins[of]].run_id < id:
                newest[origins[of]] = Replacement(id, state)
        origins = {id: origins[of] for of, id, _ in made}
    return [msgspec.structs.replace(run, again=newest.get(run.id)) for run in runs]


async def verify(tx: Tx, name: str, *, thorough: bool) -> Verification:
    """Verify that every plan time is accounted for once.

    `thorough` checks the plan time of each run, too; otherwise runs are only counted.
    """
    await snapshot(tx)
    row = await row_of(tx, name)
    history = await history_of(tx, row)
    ranges = [range_of(columns) for columns in await tx.fetch("ranges", id=row.id)]
    backfilled = [
        (Scope(kind, scope), plan_time)
        for kind, scope, plan_time in await tx.fetch("backfilled_runs", id=row.id)
        if history.names(Scope(kind, scope), plan_time)
    ]
    tallies, counted = await _tallies(tx, history)
    compared, findings = account(history, tallies, ranges, backfilled)
    findings = [await _explained(tx, history, finding, ranges) for finding in findings[:_MOST_EXPLAINED]] + findings[
        _MOST_EXPLAINED:
    ]
    findings += check_ranges(history, ranges)
    findings += check_covers(history, [(a, b, int(n)) for a, b, n in await tx.fetch("covers", id=row.id)])
    findings += await _doubles(tx, history)
    ((total,),) = await tx.fetch("count_planned", id=row.id)
    if total != counted:
        findings += await _out_of_place(tx, history)
    elif thorough:
        findings += await _phantoms(tx, history)
    unverified = [
        f"revision {stretch.revision.no} was planned with time zone data {stretch.revision.tzdata}"
        for stretch in history.stretches
        if not history.is_verifiable(stretch) and stretch.revision.definition.follows is None
    ]
    return Verification(
        schedule=name,
        plan_times=compared,
        findings=tuple(findings[:_MOST_FINDINGS]),
        unverified=tuple(dict.fromkeys(unverified)),
    )


async def _tallies(tx: Tx, history: History) -> tuple[dict[tuple[int, Scope, int], Tally], int]:
    pieces = [
        (stretch.revision.no, scope.kind, scope.id, after, until)
        for stretch in history.stretches
        if stretch.revision.active
        for scope, after, until in history.lanes(stretch)
    ]
    tallies: dict[tuple[int, Scope, int], Tally] = {}
    for start in range(0, len(pieces), _BITE):
        rows = await tx.fetch("tally_runs", pieces[start : start + _BITE], id=history.id)
        for no, kind, name, after, runs, covered in rows:
            tallies[int(no), Scope(kind, name), int(after)] = Tally(int(runs), int(covered))
    return tallies, sum(tally.runs for tally in tallies.values())


async def _explained(tx: Tx, history: History, finding: Finding, ranges: Sequence[Range]) -> Finding:
    """Add some of the plan times that nothing is known of. Only here are they walked one by one."""
    if finding.problem != "count" or len(finding.revisions) != 1 or finding.scope is None:
        return finding
    if finding.expected is None or finding.found is None or finding.found >= finding.expected:
        return finding
    assert finding.from_at is not None
    assert finding.to_at is not None
    after, until = micros_at(finding.from_at), micros_at(finding.to_at)
    stretch = next(stretch for stretch in history.stretches if stretch.revision.no == finding.revisions[0])
    held = [r for r in ranges if r.scope in (None, finding.scope) and r.to_at > after and r.from_at <= until]
    if any(not r.is_dense for r in held) or finding.expected > _BITE:
        return finding
    rows = await tx.fetch(
        "plan_times_of", id=history.id, kind=finding.scope.kind, scope=finding.scope.id, after=after, until=until
    )
    missing = unrecorded(stretch, after, until, held, [(first, own) for first, own in rows])
    words = finding.words + "".join(f", {at.isoformat()}" for at in missing).replace(",", "; nothing is known of", 1)
    return msgspec.structs.replace(finding, words=words, plan_times=missing)


async def _doubles(tx: Tx, history: History) -> list[Finding]:
    """Find runs whose plan time is also accounted for by a missed range, or by a run that it was coalesced into."""
    findings = []
    for statement, other in (("runs_in_missed", "a missed range"), ("runs_in_covers", "another run")):
        for id, kind, name, plan_time in await tx.fetch(statement, id=history.id, limit=_MOST_FINDINGS):
            if not history.names(Scope(kind, name), plan_time):
                continue
            words = f"run {id} and {other} both account for {instant(plan_time).isoformat()}"
            findings.append(_of_run("double", words, str(id), Scope(kind, name), plan_time, 1, 2))
    return findings


async def _out_of_place(tx: Tx, history: History) -> list[Finding]:
    """Find runs where none can be, by checking them one by one."""
    findings: list[Finding] = []
    kind, name, plan_time = "", "", 0  # the loop leaves the last row's here: the next batch begins after it
    while rows := await tx.fetch(
        "planned_after", id=history.id, kind=kind, scope=name, plan_time=plan_time, limit=_BITE
    ):
        for id, kind, name, plan_time in rows:
            reason = check_scope(history, Scope(kind, name), plan_time)
            if reason is not None and len(findings) < _MOST_FINDINGS:
                words = f"run {id} is for {instant(plan_time).isoformat()}, but {reason}"
                findings.append(_of_run("unnamed", words, str(id), Scope(kind, name), plan_time, 0, 1))
    return findings


async def _phantoms(tx: Tx, history: History) -> list[Finding]:
    """Find runs at times that the schedule never named. All scopes share their plan times: each is checked once."""
    findings: list[Finding] = []
    plan_time = 0  # the loop leaves the last row's here: the next batch begins after it
    while rows := await tx.fetch("distinct_plan_times", id=history.id, after=plan_time, limit=_BITE):
        for plan_time, id in rows:
            reason = check_plan_time(history, plan_time)
            if reason is not None and len(findings) < _MOST_FINDINGS:
                words = f"run {id} is for {instant(plan_time).isoformat()}, but {reason}"
                findings.append(_of_run("unnamed", words, str(id), None, plan_time, 0, 1))
        if len(rows) < _BITE:
            break
    return findings


def _of_run(
    problem: str, words: str, run_id: str, scope: Scope | None, plan_time: int, expected: int, found: int
) -> Finding:
    return Finding(
        problem=problem,
        words=words,
        scope=scope,
        plan_times=(instant(plan_time),),
        expected=expected,
        found=found,
        run_id=run_id,
    )
