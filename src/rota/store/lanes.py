"""Lanes: a schedule's runs for one scope, read as planning needs them, and what planning leaves behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.core.actors import is_policy
from rota.core.deciding import Lane, LiveRun
from rota.core.scope import Scope
from rota.store.database import Row, Tx

_EMPTY = Lane()
_FAILURES = ("failed", "timed_out", "expired", "cancelled")


class Lanes(msgspec.Struct, gc=False):
    """Of one schedule, and of scopes that it is not planned for now. `before` is what the table holds; `ended` when a
    run that was digested just now ended.
    """

    lanes: dict[Scope, Lane]
    others: dict[Scope, Lane]
    before: dict[Scope, Lane]
    digested: list[Row]
    ended: dict[str, int]


async def read_lanes(tx: Tx, scopes: Mapping[str, Iterable[Scope]]) -> dict[str, Lanes]:
    """Schedule → its lanes, one for each of the scopes given, and those of other scopes that have runs."""
    ids = [(id,) for id in scopes]
    found = {id: Lanes(dict.fromkeys(wanted, _EMPTY), {}, {}, [], {}) for id, wanted in scopes.items()}
    for id, kind, name, failed, failures, attempt, finished_at, skips in await tx.fetch("lanes", ids):
        lanes, scope = found[str(id)], Scope(kind, name)
        lane = lanes.before[scope] = Lane((), bool(failed), failures, attempt, finished_at, skips)
        (lanes.lanes if scope in lanes.lanes else lanes.others)[scope] = lane
    runs: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in await tx.fetch("lane_runs", ids):
        runs[str(row[0]), row[1], row[2]].append(row)
    for (id, kind, name), rows in runs.items():
        _digest(found[id], Scope(kind, name), rows)
    return found


def _digest(lanes: Lanes, scope: Scope, rows: Sequence[Row]) -> None:
    """Runs that have ended tell how the lane fares, in the order of their ends; the others are live."""
    live, over = [], []
    for row in rows:
        if row[4] is not None and row[5] is None:
            claimed = row[10] is not None
            live.append(LiveRun(str(row[3]), claimed or bool(row[11]), claimed, bool(row[9])))
        else:
            over.append(row)
            lanes.digested.append(row[:4])
    place = lanes.lanes if scope in lanes.lanes else lanes.others
    lane = place.get(scope, _EMPTY)
    if live:
        lane = msgspec.structs.replace(lane, live=tuple(sorted(live, key=lambda run: run.id)))
    ended = [row for row in over if row[5] is not None]
    if len(ended) > 1:
        ended.sort(key=lambda row: (row[7], str(row[3])))
    for row in ended:
        _, _, _, run_id, _, state, attempt, finished_at, by, *_ = row
        lanes.ended[str(run_id)] = finished_at
        if state == "succeeded" and not lane.failures and not lane.failed and not lane.skips:
            continue  # well before, and well now
        if state != "skipped":
            neutral = state == "cancelled" and is_policy(by)
            failed = state in _FAILURES and not neutral
            lane = lane.ended(failed=failed, neutral=neutral, attempt=attempt, finished_at=finished_at)
    place[scope] = lane


def changed_lanes(id: str, read: Lanes, lanes: Mapping[Scope, Lane]) -> list[Row]:
    """Rows to save: a lane that is well, and was when it was last saved, needs none."""
    rows: list[Row] = []
    for scope, lane in (*lanes.items(), *read.others.items()):
        was = read.before.get(scope)
        now = msgspec.structs.replace(lane, live=())
        if was == now or (was is None and not now.failed and not now.failures and not now.skips):
            continue
        failed = int(lane.failed)
        rows.append((id, scope.kind, scope.id, failed, lane.failures, lane.attempt, lane.finished_at, lane.skips))
    return rows
