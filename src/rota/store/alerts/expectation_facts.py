"""Facts that decide whether expectations are met: all live runs, and some of the newest that have ended.

The cost does not depend on how many runs have ended: indexes are walked from their newest end, for a bounded number of
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from rota.core.alerts.expectations import End, Expectations, Facts, Since
from rota.core.monitoring.statistics import Tally
from rota.core.runs.admission import Hold
from rota.core.runs.claim import LAST_ID
from rota.core.states import RunState
from rota.store.alerts.expectations import StoredExpectation, Subject
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
"""Extra ended runs to read. Walks go by id, but of two runs the older one may be the last to end."""
_NEVER = 0


class ExpectationRow(msgspec.Struct, frozen=True):
    """An expectation with its facts. `facts` is None while the subject rests; `gone`: the schedule no longer exists."""

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


class _OpenRun(NamedTuple):
    """The columns of `open_of_schedules`, in their order."""

    schedule_id: object
    run_id: object
    run_at: int
    ready_at: int | None
    hold: int | None
    began_at: int | None
    released_at: int | None


class _EndedRun(NamedTuple):
    """The columns of the statements `last_ends_…` and `last_success_…`, in their order."""

    run_id: object
    state: str
    finished_at: int


async def observe(tx: Tx, rows: Sequence[StoredExpectation], now: int) -> list[ExpectationRow]:
    """Read the facts for rows of `expectations`, as of one instant if the transaction has a snapshot."""
    watched = [*await _jobs(tx, rows, now), *await _schedules(tx, rows, now)]
    return sorted(watched, key=lambda row: (row.subject.kind, row.subject.name))


async def awake(tx: Tx, rows: Sequence[StoredExpectation]) -> set[tuple[str, str]]:
    """Return the subjects, as (kind, name), that are not resting: neither paused nor disabled."""
    jobs = [row for row in rows if row.kind == "job"]
    paused = await _paused(tx, jobs)
    schedules = await _read_schedules(tx, [row for row in rows if row.kind == "schedule"], now=0)
    awake_jobs = {row.key for row in jobs if not row.rests and row.name not in paused}
    return awake_jobs | {("schedule", schedule.name) for schedule in schedules if schedule.active}


async def _paused(tx: Tx, jobs: Sequence[StoredExpectation]) -> set[str]:
    return {name for (name,) in await tx.fetch("paused_of_jobs", [(row.name,) for row in jobs])} if jobs else set()


async def _jobs(tx: Tx, rows: Sequence[StoredExpectation], now: int) -> list[ExpectationRow]:
    jobs = [row for row in rows if row.kind == "job"]
    paused = await _paused(tx, jobs)
    awake = {row.name: row.expect for row in jobs if not row.rests and row.name not in paused}
    waiting = await _late(tx, "late_to_begin", [(job, now, it.start_within) for job, it in awake.items()])
    live = await _late(tx, "late_to_end", [(job, now, it.finish_within) for job, it in awake.items()])
    running = await _held(tx, awake, now, live)
    watched = []
    for row in jobs:
        job, expect, facts = row.name, row.expect, None
        if job in awake:
            facts = Facts(
                since=row.since,
                waiting=waiting.get(job),
                live=live.get(job),
                running=running.get(job),
                ends=await _ends_of_job(tx, job, expect.looks_back),
                last_success=await _success_of_job(tx, job) if expect.success_every is not None else None,
            )
        watched.append(ExpectationRow(Subject("job", job, job), expect, row.owner, row.since, facts))
    return watched


async def _late(tx: Tx, statement: str, limits: Iterable[tuple[str, int, timedelta | None]]) -> dict[str, Since]:
    """Return, per job, the run that has been due longest, if it is overdue by more than its limit."""
    rows = [(job, now - in_micros(limit)) for job, now, limit in limits if limit is not None]
    longest: dict[str, Since] = {}
    for job, run_id, run_at, released in await tx.fetch(statement, rows, most=_MOST_LATE) if rows else ():
        _keep_earliest(longest, job, Since(max(run_at, released or 0), str(run_id)))
    return longest


async def _held(tx: Tx, awake: dict[str, Expectations], now: int, live: dict[str, Since]) -> dict[str, Since]:
    """Return, per job, the claimed run that has been going on longest. Add overdue claimed runs to `live`."""
    rows = []
    for job, expect in awake.items():
        longest, finish = expect.max_duration, expect.finish_within
        if longest is not None or finish is not None:
            began = _NEVER if longest is None else now - in_micros(longest)
            rows.append((job, began, _NEVER if finish is None else now - in_micros(finish)))
    running: dict[str, Since] = {}
    for job, id, began, run_at, released in await tx.fetch("held_of_jobs", rows) if rows else ():
        _keep_earliest(running, job, Since(began, str(id)))
        _keep_earliest(live, job, Since(max(run_at, released or 0), str(id)))
    return running


def _keep_earliest(earliest: dict[str, Since], name: str, since: Since) -> None:
    # Of two at the same time, the one with the smaller id, so that repeated checks name the same run.
    best = earliest.get(name)
    if best is None or (since.at, since.run_id or "") < (best.at, best.run_id or ""):
        earliest[name] = since


async def _ends_of_job(tx: Tx, job: str, count: int) -> list[End]:
    return _in_order(await _walked(tx, "last_ends_of_job", job, count + _MORE), count) if count else []


async def _success_of_job(tx: Tx, job: str) -> int | None:
    successes = await _walked(tx, "last_success_of_job", job, _SUCCESSES)
    if successes:
        return max(int(run.finished_at) for run in successes)
    counted = (await statistics.counted_tallies(tx, [job])).get(job, Tally())  # the run may be pruned already
    return counted.ended_at if counted.ended == RunState.SUCCEEDED else None


async def _walked(tx: Tx, statement: str, job: str, count: int) -> list[_EndedRun]:
    """Read ended runs of a job, newest first, in two bounded walks.

    The first walk starts at the newest run. If too many waiting runs are in front, the second starts just below the
    oldest waiting one, where ended runs begin.
    """
    runs = [_EndedRun(*row) for row in await tx.fetch(statement, job=job, below=LAST_ID, walk=_WALK, count=count)]
    if len(runs) < count:
        for (first,) in await tx.fetch("first_waiting", job=job):
            rows = await tx.fetch(statement, job=job, below=str(first), walk=_WALK, count=count)
            seen = {run.run_id for run in runs}
            runs += [run for run in (_EndedRun(*row) for row in rows) if run.run_id not in seen]
    return runs


def _in_order(runs: Iterable[_EndedRun], count: int) -> list[End]:
    newest = sorted(((int(run.finished_at), str(run.run_id), run.state) for run in runs), reverse=True)
    return [End(at, state == RunState.SUCCEEDED) for at, _, state in newest[:count]]


async def _schedules(tx: Tx, rows: Sequence[StoredExpectation], now: int) -> list[ExpectationRow]:
    rows = [row for row in rows if row.kind == "schedule"]
    schedules = {schedule.name: schedule for schedule in await _read_schedules(tx, rows, now)}
    lanes = [(schedule.id, *_pair(schedule.lane)) for schedule in schedules.values() if schedule.active]
    runs = [_OpenRun(*run) for run in await tx.fetch("open_of_schedules", lanes)] if lanes else []
    watched = []
    for row in rows:
        schedule, expect = schedules.get(row.name), row.expect
        if schedule is None:
            subject = Subject("schedule", row.name, "")
            watched.append(ExpectationRow(subject, expect, row.owner, row.since, gone=True))
            continue
        facts = None
        if schedule.active:
            own = [run for run in runs if str(run.schedule_id) == schedule.id]
            facts = await _with_ends(tx, schedule, expect, _live_facts(schedule, own, row.since, now))
        subject = Subject("schedule", row.name, schedule.job, schedule.id)
        watched.append(ExpectationRow(subject, expect, row.owner, row.since, facts))
    return watched


async def _read_schedules(tx: Tx, rows: Sequence[StoredExpectation], now: int) -> list[_Schedule]:
    names = [(row.name,) for row in rows]
    return [_schedule(row, now) for row in await tx.fetch("expected_schedules", names)] if names else []


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


def _live_facts(schedule: _Schedule, runs: Iterable[_OpenRun], since: int, now: int) -> Facts:
    """Build the facts about live runs. An overdue plan time without a run has neither begun nor ended."""
    waiting, live, running = dict[str, Since](), dict[str, Since](), dict[str, Since]()
    if schedule.overdue_since is not None:
        waiting[schedule.id] = live[schedule.id] = Since(schedule.overdue_since)
    for run in runs:
        if run.hold == Hold.BLOCKED or run.run_at > now:  # it waits for other runs, or for its time
            continue
        id, released_at = str(run.run_id), run.released_at or 0
        _keep_earliest(live, schedule.id, Since(max(run.run_at, released_at), id))
        if run.began_at is not None:
            _keep_earliest(running, schedule.id, Since(run.began_at, id))
        elif run.ready_at is not None and run.ready_at <= now:
            _keep_earliest(waiting, schedule.id, Since(max(run.ready_at, released_at), id))
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
        runs = await _ends_of_schedule(tx, schedule, few, "ends", count + _MORE)
        facts = msgspec.structs.replace(facts, ends=_in_order(runs, count))
    if expect.success_every is not None:
        runs = await _ends_of_schedule(tx, schedule, few, "success", _SUCCESSES)
        last_success = max((int(run.finished_at) for run in runs), default=None)
        facts = msgspec.structs.replace(facts, last_success=last_success)
    return facts


async def _ends_of_schedule(
    tx: Tx, schedule: _Schedule, lanes: Iterable[Scope], kind: str, count: int
) -> Iterable[_EndedRun]:
    """Read ended runs of a schedule: by plan time in each lane, and recent ones that were triggered by hand."""
    by_hand = {"job": schedule.job, "id": schedule.id, "walk": _WALK_BY_HAND, "count": count}
    runs = [_EndedRun(*row) for row in await tx.fetch(f"last_{kind}_by_hand", **by_hand)]
    for scope in lanes:
        lane = {"id": schedule.id, "kind": scope.kind, "name": scope.id, "walk": _WALK, "count": count}
        runs += [_EndedRun(*row) for row in await tx.fetch(f"last_{kind}_of_lane", **lane)]
    return {run.run_id: run for run in runs}.values()  # a run with a plan time is in both
