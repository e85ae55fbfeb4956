"""Lanes: a schedule's runs for one scope, read as planning needs them, and what planning leaves behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.planning.overlap_and_failure import Lane, LiveRun
from rota.core.planning.tick import WELL, ScheduleState, following_plan
from rota.core.schedules.schedule import ScheduleDefinition
from rota.core.states import has_begun
from rota.store.databases.database import Row, Tx
from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.actor import is_policy
from rota.values.scope import Scope

_FAILURES = ("failed", "timed_out", "expired", "cancelled")
_FAILED_ATTEMPTS = ("failed", "timed_out", "lost")

Scopes = Mapping[str, tuple[Scope, ...]]


class LaneRun(NamedTuple):
    """A run of a lane as `lane_runs` and `open_runs` return it, in the order of their columns.

    `there`: None if the run was pruned. `is_awaited`: another run waits for its turn. `claimed_by`: not None while
    somebody has it. `ready_fence`: while nobody has. `open_plan`: of the schedule's only open run, which no row of its
    lanes names. `gave_up_after`: how the last attempt of a cancelled run had ended.
    """

    schedule_id: object
    scope_kind: str
    scope_id: str
    run_id: object
    there: object
    state: str | None
    attempt: int
    finished_at: int
    cancelled_by: str | None
    is_awaited: int
    claimed_by: object
    ready_fence: int | None
    open_plan: int | None
    gave_up_after: str | None

    @property
    def is_live(self) -> bool:
        return self.there is not None and self.state is None


class Lanes(msgspec.Struct, gc=False):
    """Lanes of one schedule, and of scopes that it is not planned for now. `before` is what the table holds;
    `open_plan` the schedule's, if the run there is not final yet.
    """

    lanes: dict[Scope, Lane]
    others: dict[Scope, Lane]
    before: dict[Scope, Lane]
    digested: list[Row]
    open_plan: int | None = None


class AllLanes:
    """Lanes of a batch. Schedules that are well share theirs: nobody changes what was read. `ended`: when the runs
    ended that were not final when planning last looked.
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._well: dict[tuple[Scope, ...], Lanes] = {}
        self._own: dict[str, Lanes] = {}
        self.ended: dict[str, int] = {}

    def are_well(self, id: str) -> bool:
        """Return whether nothing is in the way of this schedule, nor is there anything to note of its past."""
        return id not in self._own

    def of(self, id: str) -> Lanes:
        scopes = self._scopes[id]
        return self._own.get(id) or self._well.get(scopes) or self._well.setdefault(scopes, _well(scopes))

    def own(self, id: str) -> Lanes:
        return self._own.get(id) or self._own.setdefault(id, _well(self._scopes[id]))


def _well(scopes: tuple[Scope, ...]) -> Lanes:
    return Lanes(dict.fromkeys(scopes, WELL), {}, {}, [])


def up_to_date(
    row: ScheduleRow, definition: ScheduleDefinition, lanes: Lanes, ended: Mapping[str, int], now: int
) -> ScheduleState:
    """Return the state with the plan time that the end of the awaited run names, and with the zones as they are known
    now.
    """
    standing = ScheduleState(row.id, row.name, definition, row.cursor_at, row.next_plan, row.fired)
    if definition.follows is not None:
        if row.awaits is None:
            return standing
        live = any(run.id == row.awaits for lane in lanes.lanes.values() for run in lane.live)
        named = None if live else following_plan(standing, ended.get(row.awaits, now))
        return msgspec.structs.replace(standing, next_plan=named)
    # Its next plan time was computed with other time zone data. From the cursor, which is past, it comes out right.
    if row.tzdata != TZDATA_VERSION:
        return msgspec.structs.replace(standing, next_plan=standing.times.next(standing.cursor))
    return standing


async def read_lanes(tx: Tx, schedules: Sequence[ScheduleRow], scopes: Scopes) -> AllLanes:
    """One lane for each of the scopes given, and those of other scopes that have runs."""
    all_lanes = AllLanes(scopes)
    ids = [(row.id,) for row in schedules if row.has_lanes]
    for id, kind, name, failed, failures, attempt, finished_at, skips in await tx.fetch("lanes", ids) if ids else ():
        lanes, scope = all_lanes.own(str(id)), Scope(kind, name)
        lane = lanes.before[scope] = Lane((), bool(failed), failures, attempt, finished_at, skips)
        (lanes.lanes if scope in lanes.lanes else lanes.others)[scope] = lane
    # Not locked: a run that ends after this is digested by the next tick. What is decided from a live one (to supersede
    # it, to wait for it) is looked at again under its lock.
    runs: dict[tuple[str, str, str], list[LaneRun]] = defaultdict(list)
    tracked = await tx.fetch("lane_runs", ids) if ids else ()
    for run in map(LaneRun._make, (*tracked, *await _open_runs(tx, schedules, scopes))):
        runs[str(run.schedule_id), run.scope_kind, run.scope_id].append(run)
    for (id, kind, name), lane_runs in runs.items():
        _digest(all_lanes.own(id), Scope(kind, name), lane_runs, all_lanes.ended)
    return all_lanes


async def _open_runs(tx: Tx, schedules: Sequence[ScheduleRow], scopes: Scopes) -> Sequence[Row]:
    rows = []
    for row in schedules:
        if row.open_plan is not None:
            (scope,) = scopes[row.id]  # with several scopes, or another than before, it has lanes instead
            well = 0 if row.has_lanes or row.awaits is not None else 1
            rows.append((row.id, scope.kind, scope.id, row.open_plan, well))
    return await tx.fetch("open_runs", rows) if rows else ()


def _digest(lanes: Lanes, scope: Scope, runs: Sequence[LaneRun], ends: dict[str, int]) -> None:
    """Runs that have ended tell how the lane fares, in the order of their ends; the others are live."""
    live, ended = [], []
    for run in runs:
        if run.is_live:
            claimed = run.claimed_by is not None
            began = claimed or has_begun(run.ready_fence or 0)
            live.append(LiveRun(str(run.run_id), began, claimed, bool(run.is_awaited)))
            lanes.open_plan = lanes.open_plan if run.open_plan is None else run.open_plan
        else:
            # A run that was pruned before planning looked tells nothing, and only leaves the lane.
            ended += [run] if run.state is not None else []
            if run.open_plan is None:
                lanes.digested.append((run.schedule_id, run.scope_kind, run.scope_id, run.run_id))
    place = lanes.lanes if scope in lanes.lanes else lanes.others
    lane = place.get(scope, WELL)
    if live:
        lane = msgspec.structs.replace(lane, live=tuple(sorted(live, key=lambda run: run.id)))
    if len(ended) > 1:
        ended.sort(key=lambda run: (run.finished_at, str(run.run_id)))
    for run in ended:
        ends[str(run.run_id)] = run.finished_at
        if run.state == "succeeded" and not lane.failures and not lane.failed and not lane.skips:
            continue  # well before, and well now
        if run.state != "skipped":
            # One that gave way while it waited for its retry has failed: nobody will know whether a retry had helped.
            policy = run.state == "cancelled" and is_policy(run.cancelled_by)
            neutral = policy and run.gave_up_after not in _FAILED_ATTEMPTS
            failed = run.state in _FAILURES and not neutral
            lane = lane.ended(failed=failed, neutral=neutral, attempt=run.attempt, finished_at=run.finished_at)
    place[scope] = lane


def changed_lanes(id: str, read: Lanes, lanes: Mapping[Scope, Lane]) -> list[Row]:
    """Rows to save: a lane that is well, and was when it was last saved, needs none."""
    rows: list[Row] = []
    for scope, lane in (*lanes.items(), *read.others.items()) if read.others else lanes.items():
        before = read.before.get(scope)
        if before is None and not lane.failed and not lane.failures and not lane.skips:
            continue
        if before == msgspec.structs.replace(lane, live=()):
            continue
        failed = int(lane.failed)
        rows.append((id, scope.kind, scope.id, failed, lane.failures, lane.attempt, lane.finished_at, lane.skips))
    return rows
