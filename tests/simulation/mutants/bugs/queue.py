"""Bugs in what holds a run back or takes it away: time, limits, keys, other runs, cancellation, retention."""

from __future__ import annotations

from tests.simulation.mutants.patches import Edit, Planted, planted, seen_in

_SQLITE, _RUNS, _HOLDING = "store/sql/databases/sqlite.sql", "store/sql/runs/runs.sql", "store/sql/limits/limits.sql"
_PRUNING_SQL, _HOT = "store/sql/runs/prune.sql", "store/databases/sqlite/sqlite_hot.py"
_STORE, _CONTROL, _ENQUEUEING = "store/store.py", "store/runs/cancel.py", "store/runs/enqueue.py"
_SLOTS, _WAITS, _REPORTING, _PRUNING = (
    "store/limits/slots.py",
    "store/runs/waits.py",
    "store/runs/report.py",
    "store/runs/prune.py",
)
_ADMIT = "core/runs/admit.py"
_END, _STRAYS, _CLAIMS = "store/runs/end.py", "store/limits/strays.py", "store/workers/claims.py"

_TIME = (
    planted(
        "promoted-a-second-early",
        "P2",
        _RUNS,
        "where hold = {open_later} and run_at <= :now order by run_at",
        "where hold = {open_later} and run_at <= :now + 1000000 order by run_at",
    ),
    planted(
        "limited-runs-are-promoted-together",
        "P2",
        _RUNS,
        "where hold = {limited_later} and run_at <= :now order by run_at",
        "where hold = {limited_later} order by run_at",
    ),
    planted(
        "nobody-looks-for-limited-runs-that-become-due",
        "P12",
        _RUNS,
        "    select (select run_at from rota_ready where hold = {limited_later} order by run_at limit 1), 0\n"
        "    union all\n",
        "",
    ),
    planted(
        "promoter-waits-for-hints-only",
        "P19",
        "engine/loops/promoter.py",
        "            return self._poll\n",
        "            return timedelta(days=1)\n",
    ),
    planted(
        "paused-queues-and-jobs-are-mixed-up",
        "pause",
        _HOT,
        'for which in ("job", "queue"))',
        'for which in ("queue", "job"))',
    ),
)

_LIMITS = (
    planted(
        "limit-counts-nobody-in",
        "P6",
        _HOT,
        '        await self._tx.fetch("enter_gates", [(claim.run_id, claim.fence) for claim in taken])\n',
        "",
    ),
    planted(
        "retries-slip-past-their-limit",
        "P6",
        _RUNS,
        "{hold_of g.key | r.need | rows.delay > 0}",
        "{hold_of null | r.need | rows.delay > 0}",
    ),
    planted(
        "limited-retries-do-not-back-off",
        "P2",
        _RUNS,
        "{hold_of g.key | r.need | rows.delay > 0}",
        "{hold_of g.key | r.need | rows.delay > 0 and g.key is null}",
    ),
    planted("retries-lose-their-limit-key", "P12", _RUNS, "r.job_version), g.key,\n", "r.job_version), null,\n"),
    planted(
        "limit-is-one-more-than-it-says",
        "P6",
        _HOLDING,
        "rows.max - case when rows.period is null",
        "rows.max + case when rows.period is null then 1 else 0 end - case when rows.period is null",
    ),
    planted(
        "lost-slot-opens-no-limit",
        "P12",
        _REPORTING,
        "held=list(states), again=requeued)",
        "held=list(states))",
    ),
    Planted(
        "slot-never-comes-back-after-a-loss",
        "P12",
        (
            Edit(
                _REPORTING,
                "held=list(states), again=requeued)",
                "held=list(states))",
            ),
            Edit(
                _HOLDING,
                "fence is not null and (\n            1 = (select 1 from rota_lease l where l.run_id",
                "fence is not null and (1 = 1 or\n            1 = (select 1 from rota_lease l where l.run_id",
            ),
            Edit(
                _STRAYS,
                "        again=sorted({(str(id), fence) for id, fence, live in held if live}),",
                "        again=[],",
            ),
        ),
    ),
    planted(
        "limit-stays-shut-when-a-run-comes",
        "P12",
        _HOLDING,
        "    and (rota_limit.shut = 1 and rows.shut = 0 or rota_limit.job <> rows.job",
        "    and (rota_limit.job <> rows.job",
    ),
    planted(
        "wider-limit-is-one-more-than-it-says",
        "P6",
        "core/limits/turns.py",
        "left.get(wider, 1) <= 0",
        "left.get(wider, 1) < 0",
    ),
)

_WAITS_FOR_OTHERS = (
    planted(
        "run-goes-on-though-another-is-not-over",
        "P6",
        _HOLDING,
        " and hold + 0 = {blocked}\n"
        "    and not exists (select 1 from rota_wait a where a.run_id = rota_ready.run_id)\n",
        " and hold + 0 = {blocked}\n",
    ),
    planted(
        "run-goes-on-before-its-time",
        "P2",
        _HOLDING,
        "    run_at > :now and run_at > (select r.created_at",
        "    limit_key is not null and run_at > :now and run_at > (select r.created_at",
    ),
    planted(
        "loss-releases-nobody",
        "P12",
        _REPORTING,
        "EndedRuns(states, held=list(states), again=requeued)",
        "EndedRuns(states, held=list(states), again=requeued, is_new=True)",
    ),
    planted(
        "cancel-releases-nobody",
        "P12",
        _CONTROL,
        "unclaimed=True, notes=notes)",
        "unclaimed=True, is_new=True, notes=notes)",
    ),
    planted(
        "cancelled-run-lets-its-follower-overtake",
        "P6",
        _END,
        "            await waits.bequeath(tx, run_id)\n",
        "            pass\n",
    ),
    Planted(
        "success-releases-nobody-and-nobody-tidies",
        "P12",
        (
            Edit(
                _REPORTING,
                "EndedRuns(followed, signalled=True)",
                "EndedRuns({}, signalled=True)",
            ),
            Edit(_STRAYS, "        await release(tx, strays.awaited)\n", "        pass\n"),
        ),
    ),
)

_CANCEL = (
    planted(
        "cancel-again-begins-a-new-grace",
        "P15",
        _RUNS,
        "set cancel_at = coalesce(cancel_at, :now + :grace)",
        "set cancel_at = :now + :grace",
    ),
    planted(
        "cancel-gives-no-grace",
        "P15",
        _RUNS,
        "set cancel_at = coalesce(cancel_at, :now + :grace)",
        "set cancel_at = coalesce(cancel_at, :now)",
    ),
    planted(
        "cancel-only-notes-who-asked",
        "P15",
        _CONTROL,
        "                await tx.fetch(ask, id=run_id, grace=grace)\n",
        "",
    ),
    planted(
        "cancel-ends-what-runs",
        "P10",
        _CONTROL,
        "    if not ready:\n        return None\n    ((attempt, fence, hold),) = ready\n",
        "    attempt, fence, hold = ready[0] if ready else (0, 0, 0)\n",
    ),
    planted(
        "cancelled-run-stays-in-the-queue",
        "P11",
        _RUNS,
        "delete from rota_ready where run_id = :id returning attempt, fence, hold;",
        "update rota_ready set hold = hold where run_id = :id returning attempt, fence, hold;",
    ),
)

_KEYS = (
    planted(
        "idempotency-key-is-free-when-its-run-is-over",
        "P8",
        _ADMIT,
        "if not (holder.live or within_period or (holder.once and holder.done)):",
        "if not (holder.live or (holder.once and holder.done)):",
    ),
    planted(
        "idempotency-key-is-pruned-with-its-run-over",
        "P8",
        _PRUNING_SQL,
        "case when u.held_until < :now\n    and (u.once",
        "case when (u.once",
    ),
    planted(
        "idempotency-key-takes-another-body",
        "P8",
        _ADMIT,
        "if hold.fingerprint and holder.fingerprint != hold.fingerprint:",
        "if hold.fingerprint and holder.fingerprint is None:",
    ),
    planted(
        "unique-key-is-not-held",
        "P8",
        _ADMIT,
        "if not (holder.live or within_period or (holder.once and holder.done)):",
        "if not (within_period or (holder.once and holder.done)):",
    ),
    planted(
        "unique-key-is-held-by-a-run-that-is-over",
        "P8",
        _ENQUEUEING,
        "live = bool(exists) and state is None",
        "live = bool(exists)",
    ),
    planted(
        "what-has-begun-is-replaced",
        "P31",
        _ADMIT,
        "replaces=holder.waits and not holder.begun",
        "replaces=holder.waits",
    ),
    planted(
        "lost-reply-enqueues-twice",
        "P7",
        _STORE,
        "partial(enqueue.enqueue_again, runs=runs)",
        "partial(enqueue.enqueue, runs=[msgspec.structs.replace(run, id=self.new_id()) for run in runs])",
    ),
)

_PRUNE = (
    planted(
        "pruned-run-is-not-in-the-ledger",
        "P1",
        _PRUNING,
        "        await compact.fold_runs(tx, [run.planned for run in dropped])\n",
        "",
    ),
)

_ORDER = (
    planted(
        "plain-runs-come-before-all-others",
        "P30",
        _CLAIMS,
        "        return {source: min(positions) for source, positions in found.items() if positions}",
        "        return {one: END if one else min(positions) for one, positions in found.items() if positions}",
    ),
    planted(
        "plain-runs-pass-those-that-must-begin-at-once",
        "P30",
        _CLAIMS,
        "            if source is Source.RESTRICTED and self._free(ask) <= 0:",
        "            if source is not Source.PLAIN:\n                continue\n            if False:",
    ),
    planted(
        "plain-runs-are-claimed-by-age",
        "P30",
        _SQLITE,
        "    order by w.rank, w.run_at, w.run_id\n    limit :wanted);",
        "    order by w.run_at, w.run_id\n    limit :wanted);",
    ),
)

_RANKS = (
    planted(
        "replicas-come-behind-all-others",
        "P30",
        "store/workers/requirements.py",
        "    found += await tx.hot.open_replicas(request, 1) if request.met.open_to else []\n",
        "",
    ),
    planted(
        "replicas-are-claimed-by-age",
        "P30",
        "store/workers/requirements.py",
        "    first = _one_suspect(sorted(candidates))[: request.slots]\n",
        "    first = _one_suspect(sorted(candidates, key=lambda one: one.run_at))[: request.slots]\n",
    ),
    planted(
        "restricted-runs-come-behind-all-others",
        "P30",
        _CLAIMS,
        "        restricted = await requirements.first(self._tx, request) if request.met else None\n",
        "        restricted = END if request.met and await requirements.first(self._tx, request) else None\n",
    ),
    planted(
        "limited-runs-come-behind-all-others",
        "P30",
        _CLAIMS,
        "        limited = slots.positions(open_keys)\n",
        "        limited = [END for _ in slots.positions(open_keys)]\n",
    ),
    planted(
        "limits-are-served-by-age-and-not-by-priority",
        "P30",
        "core/limits/turns.py",
        "    ages = sorted((candidate.rank, candidate.run_at, candidate.run_id) for candidate in lane)\n",
        "    ages = sorted((0, candidate.run_at, candidate.run_id) for candidate in lane)\n",
    ),
    planted(
        "an-enqueue-keeps-its-priority-from-the-limit",
        "P30",
        "store/sql/limits/limits.sql",
        "        or rows.rank < rota_limit.rank\n",
        "",
    ),
)

BUGS = (
    *seen_in("ranks", _RANKS),
    *seen_in("priorities", _ORDER),
    *seen_in("keys limits changes", _TIME),
    *seen_in("limits", _LIMITS),
    *seen_in("order", _WAITS_FOR_OTHERS),
    *seen_in("cancels order", _CANCEL),
    *seen_in("keys", _KEYS),
    *seen_in("schedules changes", _PRUNE),
)
