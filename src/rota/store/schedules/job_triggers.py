"""Schedules that follow the ends of another job's runs: listeners, and the runs that each end gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rota.core.alerts.signals import Signal, is_followed
from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.jobs.payload_template import AfterRun, filled
from rota.core.planning.overlap_and_failure import Create, Lane, Pause, Skip, decide
from rota.core.planning.tick import Planned, Tick, after_decision, eligible
from rota.core.schedules.job_triggers import Cause, ring, scopes_after, with_cause
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import FollowingRing, UnreadableSchedule
from rota.store.databases.database import Tx
from rota.store.limits import quotas
from rota.store.planning.lanes import Lanes, changed_lanes, read_lanes
from rota.store.planning.make_runs import Pair, PlannedSchedule, RunTemplate, lane_run, make_runs, patterns_of
from rota.store.planning.plan import REST_AFTER_TROUBLE, NewId
from rota.store.schedules.schedule_row import ScheduleRow, schedule_row
from rota.values.scope import Scope

LISTENER = "schedule"
_PAUSED_BY = "planner"

Heard = tuple[Signal, Sequence[str]]
"""A signal, and the ids of the schedules that listen for it."""


async def heed(
    tx: Tx, id: str, name: str, definition: ScheduleDefinition, was: ScheduleDefinition | None = None
) -> None:
    """Listen to the job that the schedule follows, so that its ends leave signals. Raise for a ring of schedules."""
    awaited = definition.awaited
    if awaited is None:
        if was is not None and was.awaited is not None:
            await forget(tx, id)
        return
    # One at a time: of two schedules that close a ring together, neither transaction would see the other's listener.
    await tx.fetch("lock_followings", name=name)
    edges = [(followed, job) for followed, job, _, other in await tx.fetch("followings") if str(other) != id]
    path = ring(edges, awaited.job, definition.job)
    if path is not None:
        raise FollowingRing(name, path)
    await tx.fetch("add_listeners", [(awaited.job, LISTENER, id)])
    await tx.fetch("drop_listeners", what=LISTENER, subject=id, but=awaited.job)


async def forget(tx: Tx, id: str) -> None:
    await tx.fetch("drop_listeners", what=LISTENER, subject=id, but="")


class Ended(msgspec.Struct, frozen=True):
    """The run whose end is followed."""

    scope: Scope | None = None
    result: Any = None


async def follow(tx: Tx, heard: Sequence[Heard], new_id: NewId) -> int:
    """Create a run, or a skipped one that says why, for each end and each schedule that follows it.

    Return how many signals are done, from the first on. Where a limit or a key decides, a decision has to see what the
    database answered to the one before it. Then the rest is left for another transaction.
    """
    schedule_ids = {id for _, ids in heard for id in ids}
    if not schedule_ids:
        return len(heard)
    rows = await _locked(tx, schedule_ids)
    turn = await _turn(tx, rows, new_id)
    ended = await _ended(tx, [signal for signal, ids in heard if ids])
    done, met = 0, set[str]()
    for signal, ids in heard:
        followers = [id for id in ids if id in turn.patterns and turn.follows(id, signal)]
        if any(id in met and turn.patterns[id].decides for id in followers):
            break
        met.update(followers)
        for id in followers:
            turn.decide(id, signal, ended.get(signal.subject, Ended()))
        done += 1
    await _apply(tx, turn)
    return done


async def _locked(tx: Tx, ids: set[str]) -> list[ScheduleRow]:
    # Cursors before runs, limits and keys; sorted, because others lock several, too.
    numbers = await tx.fetch("lock_schedules_by_id", [(id,) for id in sorted(ids)])
    return [schedule_row(row) for row in await tx.fetch("read_locked_schedules", numbers)] if numbers else []


async def _ended(tx: Tx, signals: Sequence[Signal]) -> dict[str, Ended]:
    ids = sorted({signal.subject for signal in signals if signal.kind == "run"})
    rows = await tx.fetch("ended_runs", [(id,) for id in ids]) if ids else ()
    return {
        str(id): Ended(Scope(kind, name), None if result is None else msgspec.json.decode(result))
        for id, _, kind, name, result in rows
    }


async def _turn(tx: Tx, rows: Sequence[ScheduleRow], new_id: NewId) -> _Turn:
    """Prepare the decisions. A schedule that cannot be read, or has no job, gets its trouble noted and is left out."""
    patterns, troubled = {}, []
    for row, pattern in zip(rows, await patterns_of(tx, [row.text for row in rows]), strict=True):
        if isinstance(pattern, RunTemplate):
            patterns[row.id] = pattern
        else:
            troubled.append((row.cursor_no, pattern, REST_AFTER_TROUBLE))
    if troubled:
        await tx.fetch("note_trouble", troubled)
    usable = [row for row in rows if row.id in patterns]
    lanes = await read_lanes(tx, usable, {row.id: row.definition.lanes for row in usable})
    ((now,),) = await tx.fetch("now")
    return _Turn({row.id: row for row in usable}, patterns, {row.id: lanes.of(row.id) for row in usable}, now, new_id)


class _Turn:
    """Decisions of one transaction, each of which sees the one before it."""

    def __init__(
        self,
        rows: Mapping[str, ScheduleRow],
        patterns: Mapping[str, RunTemplate],
        lanes: Mapping[str, Lanes],
        now: int,
        new_id: NewId,
    ) -> None:
        self.rows, self.patterns, self.lanes, self.now = rows, patterns, lanes, now
        self.after: dict[str, dict[Scope, Lane]] = {}
        self.fired = {id: row.fired for id, row in rows.items()}
        self.paused: dict[str, str] = {}
        self.pairs: list[Pair] = []
        self._new_id = new_id

    def follows(self, id: str, signal: Signal) -> bool:
        try:
            definition = self.rows[id].definition
        except UnreadableSchedule:
            return False
        awaited, most = definition.awaited, definition.max_runs
        if awaited is None or awaited.job != signal.job or signal.kind != "run":
            return False
        return is_followed(awaited.on, signal.type) and (most is None or self.fired[id] < most)

    def decide(self, id: str, signal: Signal, ended: Ended) -> None:
        row, before = self.rows[id], self.lanes[id]
        scopes = scopes_after(ended.scope, row.definition.lanes)
        if not scopes:
            return
        lanes = self.after.setdefault(id, dict(before.lanes))
        for scope in scopes:
            decision = self._decision(row, lanes[scope], signal)
            run_id, at = self._new_id(), eligible(row.standing, scope, signal.at)
            planned = Planned(run_id, scope, signal.at, max(at, self.now), decision, by_hand=True)
            lanes[scope] = after_decision(lanes[scope], run_id, decision)
            pattern = _filled(self.patterns[id], row.name, scope, signal, ended)
            tick = Tick((planned,), (), lanes, row.cursor_at, None, None, row.fired)
            self.pairs.append((PlannedSchedule(row, row.standing, pattern, before, tick), planned))
        self.fired[id] += 1

    def _decision(self, row: ScheduleRow, lane: Lane, signal: Signal) -> Create | Skip:
        definition, pattern = row.definition, self.patterns[row.id]
        why_not = self.paused.get(row.id) or _resting(row) or pattern.reason
        if why_not is None and not row.standing.times.allows(signal.at):
            why_not = "the run that it follows ended outside of its windows"
        if why_not is not None:
            return Skip(why_not)
        decision = decide(definition.overlap, definition.failure, lane, self.now, pattern.job.retry.max_attempts)
        if isinstance(decision, Pause):
            self.paused[row.id] = decision.reason
            return Skip(f"{decision.reason}, so the schedule is paused", failure=True)
        return decision


def _resting(row: ScheduleRow) -> str | None:
    if not row.enabled:
        return "the schedule is disabled"
    if row.paused_at is not None:
        return "the schedule is paused"
    return f"job {row.definition.job!r} is paused or cancelled" if row.job_paused else None


def _filled(pattern: RunTemplate, name: str, scope: Scope, signal: Signal, ended: Ended) -> RunTemplate:
    """Fill the payload with values of the run that is followed.

    At once, so that values from there are not expanded a second time.
    """
    changes: dict[str, Any] = {"templated": False}
    if pattern.templated:
        after = AfterRun(signal.subject, signal.type, ended.result)
        payload = filled(pattern.definition.payload, name, scope, signal.at, after)
        changes["payload"] = msgspec.json.encode(payload).decode()
    if pattern.model is not None:
        cause = Cause(signal.subject, signal.job or "", signal.type)
        changes["model"] = msgspec.structs.replace(pattern.model, metadata=with_cause(pattern.model.metadata, cause))
    return msgspec.structs.replace(pattern, **changes)


async def _apply(tx: Tx, turn: _Turn) -> None:
    if not turn.pairs:
        return
    works = {(work.template.job.name, work.template.place[0]) for work, _ in turn.pairs}
    under = await quotas.under(tx, {planned.scope for _, planned in turn.pairs}, works)
    made = await make_runs(tx, turn.pairs, turn.now, under)
    if made:
        await tx.fetch("insert_lane_runs", [lane_run(*pair) for pair in made])
    for id, lanes in turn.after.items():
        row, before = turn.rows[id], turn.lanes[id]
        if before.digested:
            await tx.fetch("digest_lane_runs", before.digested)
        if before.open_plan != row.open_plan:
            await tx.fetch("close_plan", no=row.cursor_no)
        if saved := changed_lanes(id, before, lanes):
            await tx.fetch("save_lanes", saved)
        await _note_rest(tx, turn, row)
    await tx.fetch("count_fired", [(turn.rows[id].cursor_no, turn.fired[id]) for id in turn.after])


async def _note_rest(tx: Tx, turn: _Turn, row: ScheduleRow) -> None:
    """Record a revision if the schedule is paused by its own failure, or has had its last run."""
    most = row.definition.max_runs
    if row.id in turn.paused:
        note = f"paused: {turn.paused[row.id]}"
        await tx.fetch("pause_planned", id=row.id, reason=turn.paused[row.id])
    elif most is not None and turn.fired[row.id] >= most:
        note = f"ended: its max_runs were {most}"
    else:
        return
    facts = {"definition": row.text, "tzdata": TZDATA_VERSION, "active": 0, "note": note, "actor": _PAUSED_BY}
    revision = row.revision + 1
    await tx.fetch("insert_revision", id=row.id, no=revision, valid_from=max(turn.now, row.cursor_at), **facts)
    await tx.fetch("revise_schedule", id=row.id, revision=revision)
