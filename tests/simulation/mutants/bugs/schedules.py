"""Bugs in planning: what a plan time gets, what is told of those that get nothing, and what a change leaves behind."""

from __future__ import annotations

from tests.simulation.mutants.patches import Edit, Planted, planted, seen_in

_SQLITE, _PLANNING_SQL = "store/sql/databases/sqlite.sql", "store/sql/planning/planning.sql"
_PLANNING, _CATCH_UP, _DECIDING = (
    "core/planning/tick.py",
    "core/planning/catch_up.py",
    "core/planning/overlap_and_failure.py",
)
_FIRING = "store/planning/fast_path.py"
_STORE, _SCHEDULES, _BACKFILLING = "store/planning/plan.py", "store/schedules/change.py", "store/ledger/backfill.py"

_CURSOR = (
    planted(
        "ordinary-fire-is-the-last",
        "P1",
        _FIRING,
        "entry.fire.next_plan for entry in fires], [entry.fire.next_at for entry in fires",
        "None for _ in fires], [None for _ in fires",
    ),
    planted(
        "cursor-is-not-advanced",
        "P1",
        _SQLITE,
        "on conflict (no) do update set cursor_at = excluded.cursor_at, next_plan",
        "on conflict (no) do update set next_plan",
    ),
    planted(
        "cursor-is-set-to-now",
        "P1",
        _PLANNING,
        "cursor, pause, decided = due.cursor, None, 0",
        "cursor, pause, decided = now, None, 0",
    ),
    planted(
        "next-plan-time-is-counted-from-now",
        "P1",
        _PLANNING,
        "next_plan = standing.times.next(cursor) if due.following is UNSET else due.following",
        "next_plan = standing.times.next(now)",
    ),
    planted(
        "plans-ahead-by-the-delay",
        "P2",
        _PLANNING,
        "return now - delay",
        "return now + delay",
    ),
    planted(
        "delay-is-forgotten",
        "P2",
        _PLANNING,
        "    at = plan_time + definition.delay_micros\n    if not",
        "    at = plan_time\n    if not",
    ),
    planted("jitter-makes-early", "P2", _PLANNING, "return at + int.from_bytes(", "return at - int.from_bytes("),
    planted(
        "follower-is-early",
        "P2",
        _PLANNING,
        "at = -(-(ended_at + in_micros(follows)) // SECOND) * SECOND",
        "at = (ended_at + in_micros(follows)) // SECOND * SECOND",
    ),
    planted(
        "follower-does-not-wait-when-it-is-resumed",
        "P2",
        _SCHEDULES,
        "return msgspec.structs.replace(row, awaits=str(id)), now",
        "return row, now",
    ),
    planted(
        "one-run-more-than-max-runs", "P3", _PLANNING, "max(0, most - self.fired)", "max(0, most - self.fired + 1)"
    ),
)

_MISSED = (
    planted(
        "missed-plan-times-are-not-written",
        "P1",
        _STORE,
        '        await tx.fetch("insert_ranges", missed)\n',
        "        pass\n",
    ),
    planted(
        "missed-range-holds-the-run-too",
        "P1",
        _CATCH_UP,
        '_gap(times, edge, newest - 1, "due together with a newer one")',
        '_gap(times, edge, newest, "due together with a newer one")',
    ),
    planted(
        "covered-plan-times-are-one-too-many",
        "P4",
        _CATCH_UP,
        "older = times.count(edge, newest) - 1",
        "older = times.count(edge, newest)",
    ),
    planted(
        "catch-up-drops-what-is-over-its-bite",
        "P4",
        _CATCH_UP,
        "return Due(kept, kept[-1], missed=missed, more=",
        "return Due(kept, horizon, missed=missed, more=",
    ),
)

_CHANGES = (
    planted(
        "change-forgets-what-was-due",
        "P1",
        _SCHEDULES,
        "    row = await _settle(tx, row, new_id, int(now))\n    await _give_up(tx, row, int(now))\n",
        "",
    ),
    planted(
        "change-sets-the-cursor-back",
        "P1",
        _SCHEDULES,
        "cursor_at=max(int(now), row.cursor_at))",
        "cursor_at=int(now))",
    ),
    planted(
        "resume-does-not-reopen-the-pause",
        "P3",
        _SCHEDULES,
        '    await tx.fetch("reopen_revisions", id=row.id, valid_from=row.cursor_at, '
        'note=f"paused, and caught up with ({mode})")\n',
        "",
    ),
    Planted(
        "deleted-schedule-goes-on",
        "P3",
        (
            Edit(_SCHEDULES, "if deleted or not row.active or", "if not row.active or"),
            Edit(_SCHEDULES, "next_at=None if deleted else _next_at(row)", "next_at=_next_at(row)"),
        ),
    ),
)

_OVERLAP = (
    planted("ordinary-fire-does-not-look-at-its-lane", "P6", _FIRING, " and lanes.are_well(row.id)", ""),
    planted(
        "overlap-ignores-runs-that-back-off",
        "P6",
        _DECIDING,
        "    live = lane.live\n    if not live",
        "    live = tuple(run for run in lane.live if run.claimed or not run.begun)\n    if not live",
    ),
    planted(
        "queue-one-queues-two",
        "P6",
        _DECIDING,
        "case OverlapMode.QUEUE_ONE if any(not run.begun for run in live):",
        "case OverlapMode.QUEUE_ONE if sum(not run.begun for run in live) > 1:",
    ),
    planted(
        "queue-all-waits-for-the-oldest-only",
        "P6",
        _DECIDING,
        "return Create(after=tuple(run.id for run in live if not run.followed))",
        "return Create(after=(live[0].id,))",
    ),
    planted(
        "cancel-previous-does-not-wait",
        "P6",
        _DECIDING,
        "return Create(after=running, supersedes=waiting, cancels=running)",
        "return Create(supersedes=waiting, cancels=running)",
    ),
    planted(
        "run-that-makes-way-keeps-its-place",
        "P6",
        "core/runs/admit.py",
        "    gone = {id for id in run.displaces if id not in facts.fixed}\n",
        "    gone: set[str] = set()\n",
    ),
    planted(
        "begun-run-is-skipped-by-the-next",
        "P31",
        "core/states.py",
        "return RunState.CANCELLED if wanted is RunState.SKIPPED and has_begun(fence) else wanted",
        "return wanted",
    ),
    planted(
        "run-that-waits-for-its-retry-was-never-begun",
        "P31",
        "core/states.py",
        "    return fence > 0\n",
        "    return False\n",
    ),
    planted(
        "runs-planned-together-do-not-see-each-other",
        "P6",
        _PLANNING,
        "            self.lanes[scope] = after_decision(lane, run_id, decision)\n",
        "",
    ),
    planted(
        "retry-by-hand-is-not-in-the-lane",
        "P6",
        "store/runs/enqueue.py",
        '        await tx.fetch("inherit_lanes", retries)\n',
        "",
    ),
)

BUGS = (
    *seen_in("schedules changes", _CURSOR),
    *seen_in("schedules", _MISSED),
    *seen_in("changes", _CHANGES),
    *seen_in("order", _OVERLAP),
)
