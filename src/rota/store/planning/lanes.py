"""Lanes: a schedule's runs for one scope, read as planning needs them, and what planning leaves behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from rota.core.planning.overlap_and_failure import Lane, LiveRun
from rota.core.planning.tick import WELL
from rota.core.states import has_begun
from rota.store.databases.database import Row, Tx
from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.actor import is_policy
from rota.values.scope import Scope

_FAILURES = ("failed", "timed_out", "expired", "cancelled")
_FAILED_ATTEMPTS = ("failed", "timed_out", "lost")

Scopes = Mapping[str, tuple[Scope, ...]]


class Lanes(msgspec.Struct, gc=False):
    """Of one schedule, and of scopes that it is not planned for now. `before` is what the table holds; `open_plan` the
    schedule's, if the run there is not final yet.
    """

    lanes: dict[Scope, Lane]
    others: dict[Scope, Lane]
    before: dict[Scope, Lane]
    digested: list[Row]
    open_plan: int | None = None


class AllLanes:
    """Of a batch. Schedules that are well share theirs: nobody changes what was read. `ended`: when the runs ended that
    were not final when planning last looked.
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._well: dict[tuple[Scope, ...], Lanes] = {}
        self._own: dict[str, Lanes] = {}
        self.ended: dict[str, int] = {}

    def are_well(self, id: str) -> bool:
        """Nothing is in the way of this schedule, nor is there anything to note of its past."""
        return id not in self._own

    def of(self, id: str) -> Lanes:
        some = self._scopes[id]
        return self._own.get(id) or self._well.get(some) or self._well.setdefault(some, _well(some))

    def own(self, id: str) -> Lanes:
        return self._own.get(id) or self._own.setdefault(id, _well(self._scopes[id]))


def _well(scopes: tuple[Scope, ...]) -> Lanes:
    return Lanes(dict.fromkeys(scopes, WELL), {}, {}, [])


async def read_lanes(tx: Tx, schedules: Sequence[ScheduleRow], scopes: Scopes) -> AllLanes:
    """One lane for each of the scopes given, and those of other scopes that have runs."""
    found = AllLanes(scopes)
    ids = [(row.id,) for row in schedules if row.has_lanes]
    for id, kind, name, failed, failures, attempt, finished_at, skips in await tx.fetch("lanes", ids) if ids else ():
        lanes, scope = found.own(str(id)), Scope(kind, name)
        lane = lanes.before[scope] = Lane((), bool(failed), failures, attempt, finished_at, skips)
        (lanes.lanes if scope in lanes.lanes else lanes.others)[scope] = lane
    runs: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in await tx.fetch("lane_runs", ids) if ids else ():
        runs[str(row[0]), row[1], row[2]].append(row)
    for row in await _open_runs(tx, schedules):
        runs[str(row[0]), row[1], row[2]].append(row)
    for (id, kind, name), rows in runs.items():
        _digest(found.own(id), Scope(kind, name), rows, found.ended)
    return found


async def _open_runs(tx: Tx, schedules: Sequence[ScheduleRow]) -> Sequence[Row]:
    wanted = []
    for row in schedules:
        if row.open_plan is not None:
            (scope,) = row.definition.lanes
            well = 0 if row.has_lanes or row.awaits is not None else 1
            wanted.append((row.id, scope.kind, scope.id, row.open_plan, well))
    return await tx.fetch("open_runs", wanted) if wanted else ()


def _digest(lanes: Lanes, scope: Scope, rows: Sequence[Row], ends: dict[str, int]) -> None:
    """Runs that have ended tell how the lane fares, in the order of their ends; the others are live."""
    live, over = [], []
    for row in rows:
        open_plan = row[12]
        if row[4] is not None and row[5] is None:
            claimed = row[10] is not None
            live.append(LiveRun(str(row[3]), claimed or has_begun(row[11] or 0), claimed, bool(row[9])))
            lanes.open_plan = lanes.open_plan if open_plan is None else open_plan
        else:
            over.append(row)
            if open_plan is None:
                lanes.digested.append(row[:4])
    place = lanes.lanes if scope in lanes.lanes else lanes.others
    lane = place.get(scope, WELL)
    if live:
        lane = msgspec.structs.replace(lane, live=tuple(sorted(live, key=lambda run: run.id)))
    ended = [row for row in over if row[5] is not None]
    if len(ended) > 1:
        ended.sort(key=lambda row: (row[7], str(row[3])))
    for row in ended:
        _, _, _, run_id, _, state, attempt, finished_at, by, *_, gave_up_after = row
        ends[str(run_id)] = finished_at
        if state == "succeeded" and not lane.failures and not lane.failed and not lane.skips:
            continue  # well before, and well now
        if state != "skipped":
            # One that gave way while it waited for its retry has failed: nobody will know whether a retry had helped.
            neutral = state == "cancelled" and is_policy(by) and gave_up_after not in _FAILED_ATTEMPTS
            failed = state in _FAILURES and not neutral
            lane = lane.ended(failed=failed, neutral=neutral, attempt=attempt, finished_at=finished_at)
    place[scope] = lane


def changed_lanes(id: str, read: Lanes, lanes: Mapping[Scope, Lane]) -> list[Row]:
    """Rows to save: a lane that is well, and was when it was last saved, needs none."""
    rows: list[Row] = []
    for scope, lane in (*lanes.items(), *read.others.items()) if read.others else lanes.items():
        was = read.before.get(scope)
        if was is None and not lane.failed and not lane.failures and not lane.skips:
            continue
        if was == msgspec.structs.replace(lane, live=()):
            continue
        failed = int(lane.failed)
        rows.append((id, scope.kind, scope.id, failed, lane.failures, lane.attempt, lane.finished_at, lane.skips))
    return rows
