"""Bugs in coordination: runs that follow others, in other hands, for some workers or several, and under rates."""

from __future__ import annotations

from tests.simulation.mutants.patches import Edit, Planted, planted, seen_in

_NEEDED, _FOLLOWING, _WAITS = "core/runs/dependencies.py", "store/runs/dependencies.py", "store/runs/waits.py"
_OUTSIDE_SQL, _OUTSIDE, _OUTSIDERS = (
    "store/sql/external/external.sql",
    "store/external/handover.py",
    "store/external/external.py",
)
_DECIDING, _CONDUCTING, _CONDUCTING_SQL = (
    "core/workers/replicas.py",
    "store/workers/replica_parents.py",
    "store/sql/workers/replicas.sql",
)
_REPLICAS, _RESTRICTING, _NEEDS = (
    "store/workers/replicas.py",
    "store/workers/restrict.py",
    "core/workers/requirements.py",
)
_LIMITS_SQL = "store/sql/limits/limits.sql"
_RATES, _RATES_SQL = "store/limits/rates.py", "store/sql/limits/rates.sql"

_FOLLOWERS = (
    planted(
        "followers-do-not-need-a-success",
        "after",
        _NEEDED,
        "    return kind not in NEEDS_SUCCESS or state == RunState.SUCCEEDED\n",
        "    return True\n",
    ),
    planted(
        "followers-of-any-end-need-a-success",
        "after",
        _NEEDED,
        "    return kind not in NEEDS_SUCCESS or state == RunState.SUCCEEDED\n",
        "    return kind == REPLICA or state == RunState.SUCCEEDED\n",
    ),
    planted(
        "followers-in-vain-are-skipped-not-cancelled",
        "after",
        _NEEDED,
        "            state = RunState.SKIPPED if kind == SUCCESS_OR_SKIP else RunState.CANCELLED\n",
        "            state = RunState.SKIPPED\n",
    ),
    planted(
        "what-ended-before-it-was-followed-counts-not",
        "after",
        _FOLLOWING,
        "await release(tx, {after: state for _, after, _ in edges if (state :=",
        "await release(tx, {after: state for _, after, _ in () if (state :=",
    ),
    planted(
        "a-failure-before-it-was-followed-is-overlooked",
        "after",
        _FOLLOWING,
        "if states[edge[1]] is None or not is_met(edge[2], states[edge[1]])]",
        "if states[edge[1]] is None]",
    ),
    planted(
        "successes-are-not-told-to-followers",
        "after",
        "store/databases/sqlite/sqlite_hot.py",
        "current=current) if any_waits else []",
        "current=current) if not any_waits else []",
    ),
    planted(
        "followers-are-not-held-back",
        "after",
        _FOLLOWING,
        '    await tx.fetch("hold_for_runs", [(run,) for run in sorted({run for run, _, _ in edges})])\n',
        "",
    ),
    planted(
        "followers-go-on-after-the-first-end",
        "after",
        "store/sql/limits/limits.sql",
        "    and not exists (select 1 from rota_wait a where a.run_id = rota_ready.run_id)\nreturning",
        "returning",
    ),
    planted(
        "the-end-of-what-was-not-claimed-is-not-told-to-followers",
        "after",
        "store/runs/cancel.py",
        "unclaimed=True, notes=notes)",
        "unclaimed=True, is_new=True, notes=notes)",
    ),
    planted(
        "ends-in-vain-are-told-from-another-state",
        "P17",
        "store/runs/end.py",
        '        change = {"from": RunState.SCHEDULED, "to": state}\n',
        '        change = {"from": RunState.QUEUED, "to": state}\n',
    ),
)

_HANDS = (
    planted(
        "fence-of-those-outside-is-not-looked-at",
        "P10",
        _OUTSIDE_SQL,
        "where o.run_id = :id and o.fence = :fence\n{for_update o};",
        "where o.run_id = :id and :fence > 0\n{for_update o};",
    ),
    planted(
        "fence-of-claims-from-outside-is-not-looked-at",
        "P10",
        _OUTSIDE_SQL,
        "where l.run_id = :id and l.fence = :fence\n{for_update l};",
        "where l.run_id = :id and :fence > 0\n{for_update l};",
    ),
    planted(
        "deadline-is-not-looked-at",
        "P12",
        _OUTSIDE_SQL,
        "where deadline < :now order by deadline",
        "where deadline < 0 order by deadline",
    ),
    planted(
        "grace-of-those-outside-never-ends",
        "P12",
        _OUTSIDE_SQL,
        "where cancel_at < :now and deadline >= :now",
        "where cancel_at < 0 and deadline >= :now",
    ),
    planted("deadline-comes-early", "external", _OUTSIDE_SQL, ":now + rows.timeout,", ":now + rows.timeout / 2,"),
    planted(
        "what-is-handed-over-is-taken-back-early",
        "P10",
        _OUTSIDE_SQL,
        "where deadline < :now order by deadline",
        "where deadline < :now + 2000000 order by deadline",
    ),
    planted(
        "what-is-handed-over-keeps-its-lease",
        "P12",
        _OUTSIDE,
        '    await tx.fetch("drop_leases", [(lease.run_id, lease.fence) for lease, _, _ in handed])\n',
        "",
    ),
    planted(
        "whoever-is-quick-ends-what-nobody-handed-over",
        "P10",
        _OUTSIDERS,
        "            if not held.waits and not is_external(held.definition.kind):\n",
        "            if held.definition.kind is None:\n",
    ),
    planted(
        "what-is-said-otherwise-the-second-time-is-believed",
        "P10",
        _OUTSIDERS,
        "    if outcome == reported and left_as is not None:\n",
        "    if left_as is not None:\n",
    ),
    planted(
        "answered-step-costs-an-attempt",
        "P13",
        _OUTSIDERS,
        "        report = Report(lease.run_id, lease.fence, Outcome.SNOOZED, held.busy, retry_in=0)\n",
        "        report = Report(lease.run_id, lease.fence, Outcome.FAILED, held.busy, retry_in=0)\n",
    ),
    planted(
        "answered-step-is-not-recorded",
        "P16",
        _OUTSIDERS,
        "        await notes.write(tx, Notes(steps=(_step_note(held, step_report, opened),)))\n        report",
        "        _step_note(held, step_report, opened)\n        report",
    ),
    planted(
        "hand-over-is-not-told",
        "P17",
        _OUTSIDE,
        "    await audit.note_runs(tx, HANDED_OVER, notes)\n",
        "",
    ),
)

_SEVERAL = (
    planted(
        "replicas-are-given-to-no-name",
        "replicas",
        _CONDUCTING_SQL,
        "update rota_replica set worker = :name where",
        "update rota_replica set worker = null where :name <> '' and",
    ),
    planted(
        "lost-replica-is-not-freed",
        "replicas",
        _CONDUCTING_SQL,
        "update rota_replica set worker = null where run_id in (select rows.id from {rows id id}) and bound = 0;",
        "update rota_replica set worker = null where run_id in (select rows.id from {rows id id}) and bound = 2;",
    ),
    planted(
        "failed-replica-goes-to-another-worker",
        "replicas",
        "store/runs/report.py",
        "    taken_away = ending.report.outcome in (Outcome.LOST, Outcome.HANDED_BACK)\n",
        "    taken_away = True\n",
    ),
    planted(
        "cleared-replicas-count",
        "replicas",
        _DECIDING,
        "    counted = [replica for replica in replicas if replica.counts]\n    live",
        "    counted = list(replicas)\n    live",
    ),
    planted(
        "no-replica-may-fail",
        "replicas",
        _DECIDING,
        "    if cancelling or failed > policy.allowed_failures:\n",
        "    if cancelling or failed > 0:\n",
    ),
    planted(
        "one-more-replica-may-fail",
        "replicas",
        _DECIDING,
        "    if cancelling or failed > policy.allowed_failures:\n",
        "    if cancelling or failed > policy.allowed_failures + 1:\n",
    ),
    planted(
        "run-ends-before-its-replicas",
        "replicas",
        _DECIDING,
        "        if live:\n            needless",
        "        if live and cancelling:\n            needless",
    ),
    planted(
        "one-replica-too-many",
        "replicas",
        _DECIDING,
        "    return More(count=lacking) if lacking > 0 else Wait()\n",
        "    return More(count=lacking + 1) if lacking > 0 else Wait()\n",
    ),
    planted(
        "end-of-a-replica-is-not-noticed",
        "P12",
        _REPLICAS,
        '    await tx.fetch("look_at_conducts", rows)\n',
        "",
    ),
    planted(
        "cancel-of-a-run-with-replicas-is-not-noticed",
        "P12",
        _CONDUCTING_SQL,
        "update rota_conduct set cancel_at = :now, look = 1 where",
        "update rota_conduct set cancel_at = :now where",
    ),
    planted(
        "stopped-replicas-are-not-waited-for",
        "replicas",
        _DECIDING,
        "            return Stop(needless) if needless else Wait()\n",
        "            if needless:\n                return Stop(needless)\n",
    ),
    planted(
        "that-it-conducts-is-not-told",
        "P17",
        _CONDUCTING,
        '    await audit.note(tx, "run", parent.id, CONDUCTS, CONDUCTING, change, fence=parent.fence)\n',
        "",
    ),
    planted(
        "names-of-workers-are-not-looked-at",
        "needs",
        _NEEDS,
        "    if requirements.only_workers and worker.name not in requirements.only_workers:\n",
        "    if requirements.only_workers and not worker.name:\n",
    ),
    planted(
        "labels-of-workers-are-not-looked-at",
        "needs",
        _NEEDS,
        "    if not all(_has(worker.labels, label) for label in requirements.labels):\n",
        "    if not all(requirements.labels):\n",
    ),
    planted(
        "restricted-run-stays-where-it-is",
        "needs",
        _RESTRICTING,
        "        await report.take_away(tx, away)\n",
        "",
    ),
)

_SO_MANY = (
    planted(
        "rate-lets-one-more-begin",
        "rate",
        _LIMITS_SQL,
        "rows.max - case when rows.period is null",
        "rows.max + case when rows.period is null then 0 else 1 end - case when rows.period is null",
    ),
    Planted(
        "rate-forgets-what-has-begun",
        "rate",
        (
            Edit(_RATES_SQL, "b.at <= :now - 2 * l.period", "b.at < :now"),
            Edit(_LIMITS_SQL, "b.at <= at.now - 2 * rows.period limit 1", "b.at < at.now limit 1"),
        ),
    ),
    planted(
        "rate-of-half-a-period",
        "rate",
        _LIMITS_SQL,
        "b.at > at.now - rows.period)\n        end as free",
        "b.at > at.now - rows.period / 2)\n        end as free",
    ),
    Planted(
        "rate-forgets-what-is-ahead-of-a-clock-set-back",
        "rate",
        (
            Edit(
                _LIMITS_SQL,
                "b.at > at.now - rows.period)\n        end as free",
                "b.at > at.now - rows.period and b.at <= at.now)\n        end as free",
            ),
        ),
    ),
    planted(
        "only-the-first-key-of-a-claim-is-counted",
        "rate",
        "store/limits/slots.py",
        "for key in (candidate.key, *candidate.wider))",
        "for key in candidate.wider)",
    ),
)

BUGS = (
    *seen_in("dependencies", _FOLLOWERS),
    *seen_in("external", _HANDS),
    *seen_in("replicas republished", _SEVERAL),
    *seen_in("rates", _SO_MANY),
)
