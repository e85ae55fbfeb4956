"""Facts that tell whether expectations are met: of live runs, and of some of the newest that have ended.

However many have ended, the cost is the same: indexes are walked from their newest end, and not far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec

from rota.core.alerts.expectations import End, Expectations, Facts, Since
from rota.core.runs.admission import Hold
from rota.core.runs.claim import LAST_ID
from rota.core.states import RunState
from rota.store.alerts.expectations import Subject, decoded
from rota.store.databases.database import Row, Tx
from rota.store.monitoring import statistics
from rota.store.planning.scope_spans import open_scopes
from rota.store.schedules.schedule_row import decoded as schedule_definition
from rota.values.durations import in_micros
from rota.values.scope import Scope

_WALK = 50_000
_WALK_BY_HAND = 5_000
_MOST_LANES = 100
_MOST_LATE = 20
_MORE, _SUCCESSES = 50, 5
"""Ends that are looked at besides: walks go by ids, and of two runs the older one may be the last to end."""
_NEVER = 0


class ExpectationRow(msgspec.Struct, frozen=True):
    """An expectation's row. `facts` are missing while it rests; `gone`: there is no such schedule any more."""

    subject: Subject
    expect: Expectations
    owner: str
    since: int
    facts: Facts | None = None
    gone: bool = False


class _Schedule(msgspec.Struct, frozen=True):
    name: str
    id: str
    job: str
    lane: Scope
    lanes: tuple[Scope, ...]
    provider: str | None
    active: bool
    over: bool
    overdue_since: int | None


async def observe(tx: Tx, rows: Sequence[Row], now: int) -> list[ExpectationRow]:
    """Rows of `expectations`; all of it as of one instant, if the transaction has such a snapshot."""
    watched = [*await _jobs(tx, rows, now), *await _schedules(tx, rows, now)]
    return sorted(watched, key=lambda one: (one.subject.kind, one.subject.name))


async def awake(tx: Tx, rows: Sequence[Row]) -> set[tuple[str, str]]:
    """Those that do not rest."""
    jobs, schedules = [[(row[1],) for row in rows if row[0] == kind] for kind in ("job", "schedule")]
    paused = {row[0] for row in await tx.fetch("paused_of_jobs", jobs)} if jobs else set()
    known = [_schedule(row, 0) for row in await tx.fetch("expected_schedules", schedules)] if schedules else []
    found = {("job", row[1]) for row in rows if row[0] == "job" and not row[5] and row[1] not in paused}
    return found | {("schedule", one.name) for one in known if one.active}


async def _jobs(tx: Tx, rows: Sequence[Row], now: int) -> list[ExpectationRow]:
    mine = [(row[1], row) for row in rows if row[0] == "job"]
    paused = {row[0] for row in await tx.fetch("paused_of_jobs", [(name,) for name, _ in mine])} if mine else set()
    found = []
    for name, (_, _, text, owner, since, rests) in mine:
        facts = None if rests or name in paused else Facts(since=since)
        found.append(ExpectationRow(Subject("job", name, name), decoded(text), owner, since, facts))
    awake = {one.subject.name: one.expect for one in found if one.facts is not None}
    waiting = await _late(tx, "late_to_begin", [(job, now, it.start_within) for job, it in awake.items()])
    live = await _late(tx, "late_to_end", [(job, now, it.finish_within) for job, it in awake.items()])
    running = await _held(tx, awake, now, live)
    for place, one in enumerate(found):
        if one.facts is not None:
            job = one.subject.name
            facts = msgspec.structs.replace(
                one.facts,
                waiting=waiting.get(job),
                live=live.get(job),
                running=running.get(job),
                ends=await _ends_of_job(tx, job, one.expect.looks_back),
                last_success=await _success_of_job(tx, job) if one.expect.success_every is not None else None,
            )
            found[place] = msgspec.structs.replace(one, facts=facts)
    return found


async def _late(tx: Tx, statement: str, asked: Iterable[tuple[str, int, timedelta | None]]) -> dict[str, Since]:
    """The run that is due longest, of each job that has one which is due for longer than it may be."""
    rows = [(job, now - in_micros(limit)) for job, now, limit in asked if limit is not None]
    found: dict[str, Since] = {}
    for job, run_id, run_at, released in await tx.fetch(statement, rows, most=_MOST_LATE) if rows else ():
        _earliest(found, job, Since(max(run_at, released or 0), str(run_id)))
    return found


async def _held(tx: Tx, awake: dict[str, Expectations], now: int, live: dict[str, Since]) -> dict[str, Since]:
    """The runs that go on for long; those that are due for long are added to the `live` ones."""
    rows = []
    for job, expect in awake.items():
        longest, finish = expect.max_duration, expect.finish_within
        if longest is not None or finish is not None:
            began = _NEVER if longest is None else now - in_micros(longest)
            rows.append((job, began, _NEVER if finish is None else now - in_micros(finish)))
    found: dict[str, Since] = {}
    for job, id, began, run_at, released in await tx.fetch("held_of_jobs", rows) if rows else ():
        _earliest(found, job, Since(began, str(id)))
        _earliest(live, job, Since(max(run_at, released or 0), str(id)))
    return found


def _earliest(found: dict[str, Since], name: str, one: Since) -> None:
    if name not in found or (one.at, one.run_id or "") < (found[name].at, found[name].run_id or ""):
        found[name] = one


async def _ends_of_job(tx: Tx, job: str, count: int) -> list[End]:
    return _in_order(await _walked(tx, "last_ends_of_job", job, count + _MORE), count) if count else []


async def _success_of_job(tx: Tx, job: str) -> int | None:
    rows = await _walked(tx, "last_success_of_job", job, _SUCCESSES)
    if rows:
        return max(int(row[2]) for row in rows)
    counted = await statistics.counted_tally(tx, job)  # it may be pruned already
    return counted.ended_at if counted.ended == RunState.SUCCEEDED else None


async def _walked(tx: Tx, statement: str, job: str, count: int) -> list[Row]:
    """From the newest run on. Behind very many that wait, those that have ended are just below the first of them."""
    rows = list(await tx.fetch(statement, job=job, below=LAST_ID, walk=_WALK, count=count))
    if len(rows) < count:
        for (first,) in await tx.fetch("first_waiting", job=job):
            below = await tx.fetch(statement, job=job, below=str(first), walk=_WALK, count=count)
            known = {str(row[0]) for row in rows}
            rows += [row for row in below if str(row[0]) not in known]
    return rows


def _in_order(rows: Iterable[Row], count: int) -> list[End]:
    newest = sorted(((int(at), str(id), state) for id, state, at in rows), reverse=True)
    return [End(at, state == RunState.SUCCEEDED) for at, _, state in newest[:count]]


async def _schedules(tx: Tx, rows: Sequence[Row], now: int) -> list[ExpectationRow]:
    mine = [row for row in rows if row[0] == "schedule"]
    if not mine:
        return []
    known = {row[0]: _schedule(row, now) for row in await tx.fetch("expected_schedules", [(row[1],) for row in mine])}
    awake = [one for one in known.values() if one.active]
    opened = await tx.fetch("open_of_schedules", [(one.id, *_pair(one.lane)) for one in awake]) if awake else ()
    found = []
    for _, name, text, owner, since, _ in mine:
        one, expect = known.get(name), decoded(text)
        if one is None:
            found.append(ExpectationRow(Subject("schedule", name, ""), expect, owner, since, gone=True))
            continue
        facts = None
        if one.active:
            facts = _live_facts(one, [row for row in opened if str(row[0]) == one.id], since, now)
            facts = await _with_ends(tx, one, expect, facts)
        found.append(ExpectationRow(Subject("schedule", name, one.job, one.id), expect, owner, since, facts))
    return found


def _schedule(row: Row, now: int) -> _Schedule:
    name, id, job, text, enabled, paused_at, job_paused, next_plan, awaits = row
    definition = schedule_definition(text)
    due = None if next_plan is None else next_plan + in_micros(definition.delay + definition.jitter)
    return _Schedule(
        name=name,
        id=str(id),
        job=job,
        lane=definition.lanes[0],
        lanes=definition.lanes,
        provider=definition.provider,
        active=bool(enabled) and paused_at is None and not job_paused,
        over=next_plan is None and awaits is None,
        overdue_since=None if due is None or due > now else due,
    )


def _pair(scope: Scope) -> tuple[str, str]:
    return scope.kind, scope.id


def _live_facts(schedule: _Schedule, rows: Iterable[Row], since: int, now: int) -> Facts:
    """A plan time that is overdue, and has no run yet, has neither begun nor ended."""
    waiting, live, running = dict[str, Since](), dict[str, Since](), dict[str, Since]()
    if schedule.overdue_since is not None:
        waiting[schedule.id] = live[schedule.id] = Since(schedule.overdue_since)
    for _, id, run_at, ready_at, hold, began, released in rows:
        if hold == Hold.BLOCKED or run_at > now:  # it waits for other runs, or for its time
            continue
        _earliest(live, schedule.id, Since(max(run_at, released or 0), str(id)))
        if began is not None:
            _earliest(running, schedule.id, Since(began, str(id)))
        elif ready_at is not None and ready_at <= now:
            _earliest(waiting, schedule.id, Since(max(ready_at, released or 0), str(id)))
    return Facts(
        since=since,
        waiting=waiting.get(schedule.id),
        live=live.get(schedule.id),
        running=running.get(schedule.id),
        over=schedule.over,
    )


async def _with_ends(tx: Tx, schedule: _Schedule, expect: Expectations, facts: Facts) -> Facts:
    count = expect.looks_back
    lanes = await open_scopes(tx, schedule.id) if schedule.provider else schedule.lanes
    few = list(lanes)[:_MOST_LANES]
    if count:
        rows = await _ends_of_schedule(tx, schedule, few, "ends", count + _MORE)
        facts = msgspec.structs.replace(facts, ends=_in_order(rows, count))
    if expect.success_every is not None:
        rows = await _ends_of_schedule(tx, schedule, few, "success", _SUCCESSES)
        facts = msgspec.structs.replace(facts, last_success=max((int(row[2]) for row in rows), default=None))
    return facts


async def _ends_of_schedule(
    tx: Tx, schedule: _Schedule, lanes: Iterable[Scope], what: str, count: int
) -> Iterable[Row]:
    """By plan time in each lane; and those that were made by hand, if they are not too long ago."""
    by_hand = {"job": schedule.job, "id": schedule.id, "walk": _WALK_BY_HAND, "count": count}
    found = {str(row[0]): row for row in await tx.fetch(f"last_{what}_by_hand", **by_hand)}
    for scope in lanes:
        lane = {"id": schedule.id, "kind": scope.kind, "name": scope.id, "walk": _WALK, "count": count}
        found.update({str(row[0]): row for row in await tx.fetch(f"last_{what}_of_lane", **lane)})
    return found.values()
