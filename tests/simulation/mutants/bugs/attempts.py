"""Bugs in the life of an attempt: claimed, renewed, reported, taken away; and in the worker that executes it."""

from __future__ import annotations

from tests.simulation.mutants.patches import Edit, Planted, planted, seen_in

_SQLITE, _RUNS = "store/sql/databases/sqlite.sql", "store/sql/runs/runs.sql"
_HOT, _STORE, _REPORTING = "store/databases/sqlite/sqlite_hot.py", "store/store.py", "store/runs/report.py"
_ENDINGS, _RETRY = "core/runs/outcome.py", "core/jobs/retry.py"
_WORKER, _ATTEMPTS, _REPORTER = "engine/worker/worker.py", "engine/handlers/attempt.py", "engine/worker/reporter.py"
_HEARTBEAT, _REAPER = "engine/worker/heartbeat.py", "engine/loops/reaper.py"

_CLAIM = (
    planted(
        "claim-keeps-the-fence", "P9", _SQLITE, "greatest(w.fence + 1, {fence_floor}) as fence", "w.fence as fence"
    ),
    planted(
        "limited-claim-keeps-the-fence",
        "P9",
        _SQLITE,
        "greatest(w.fence + 1, {fence_floor}), w.attempt + 1",
        "w.fence, w.attempt + 1",
    ),
    planted("claim-does-not-count-the-attempt", "P13", _SQLITE, "w.attempt + 1 as attempt", "w.attempt as attempt"),
    planted(
        "claim-takes-what-is-not-due",
        "P2",
        _SQLITE,
        "w.hold = {open} and w.queue = :queue and (w.rank, w.run_at, w.run_id) > (:rank, :run_at, :id)\n        and",
        "w.hold in ({open}, {open_later}) and w.queue = :queue\n        and",
    ),
    planted(
        "claim-leaves-the-run-in-the-queue",
        "P12",
        _HOT,
        'await self._tx.fetch("take", claims=candidates)\n',
        "pass\n",
    ),
    planted("lease-in-the-wrong-unit", "P12", _SQLITE, ":now + :lease from", ":now + :lease * 1000 from"),
)

_COMPLETION = (
    planted(
        "success-ends-the-run-under-any-fence",
        "P10",
        _SQLITE,
        "join rota_lease l on l.run_id = rows.id and l.fence = rows.fence\nwhere rota_run.id",
        "join rota_lease l on l.run_id = rows.id\nwhere rota_run.id",
    ),
    planted(
        "success-releases-the-lease-under-any-fence",
        "P10",
        _SQLITE,
        "from {rows id id, fence int} join rota_lease l on l.run_id = rows.id and l.fence = rows.fence;",
        "from {rows id id, fence int} join rota_lease l on l.run_id = rows.id;",
    ),
    Planted(
        "success-is-not-fenced-at-all",
        "P10",
        (
            Edit(
                _SQLITE,
                "join rota_lease l on l.run_id = rows.id and l.fence = rows.fence\nwhere rota_run.id",
                "join rota_lease l on l.run_id = rows.id\nwhere rota_run.id",
            ),
            Edit(
                _SQLITE,
                "from {rows id id, fence int} join rota_lease l on l.run_id = rows.id and l.fence = rows.fence;",
                "from {rows id id, fence int} join rota_lease l on l.run_id = rows.id;",
            ),
        ),
    ),
    planted("success-keeps-the-lease", "P12", _HOT, 'await self._tx.fetch("release", current=current)\n', "pass\n"),
)

_REPORTS = (
    planted(
        "loss-keeps-the-fence",
        "P9",
        _ENDINGS,
        "(outcome in (Outcome.HANDED_BACK, Outcome.LOST) or",
        "(outcome is Outcome.HANDED_BACK or",
    ),
    planted(
        "loss-costs-no-attempt",
        "P13",
        _ENDINGS,
        "Requeue(0, lease.attempt, taken_away, keeps_place=True)",
        "Requeue(0, lease.attempt - 1, taken_away, keeps_place=True)",
    ),
    planted(
        "hand-back-costs-an-attempt",
        "P13",
        _ENDINGS,
        "Requeue(0, lease.attempt - 1, taken_away, keeps_place=True)",
        "Requeue(0, lease.attempt, taken_away, keeps_place=True)",
    ),
    planted(
        "snooze-costs-an-attempt",
        "P13",
        _ENDINGS,
        "Requeue(report.retry_in or 0, lease.attempt - 1,",
        "Requeue(report.retry_in or 0, lease.attempt,",
    ),
    planted("snooze-does-not-wait", "P2", _ENDINGS, "Requeue(report.retry_in or 0,", "Requeue(0,"),
    planted("retry-does-not-wait", "P13", _ENDINGS, "Requeue(report.retry_in, lease", "Requeue(0, lease"),
    planted("requeue-is-due-at-once", "P13", _RUNS, "r.run_at else :now + rows.delay end", "r.run_at else :now end"),
    planted(
        "backoff-in-milliseconds",
        "P13",
        _ATTEMPTS,
        "None if retry_in is None else in_micros(retry_in)",
        "None if retry_in is None else in_micros(retry_in) // 1_000",
    ),
    planted(
        "backoff-begins-with-the-second-delay-last",
        "P13",
        _RETRY,
        "self.delays[min(attempt, len(self.delays)) - 1]",
        "self.delays[-min(attempt, len(self.delays))]",
    ),
    planted(
        "loss-ignores-on-lost",
        "P14",
        _ENDINGS,
        "if lease.on_lost in AT_MOST_ONCE or lease.attempt >= lease.max_attempts:",
        "if lease.attempt >= lease.max_attempts:",
    ),
    planted(
        "hand-back-ignores-on-lost",
        "P14",
        _ENDINGS,
        "if report.began and lease.on_lost in AT_MOST_ONCE:",
        "if not report.began and lease.on_lost in AT_MOST_ONCE:",
    ),
    planted(
        "loss-is-tried-once-too-often",
        "P13",
        _ENDINGS,
        "lease.attempt >= lease.max_attempts:",
        "lease.attempt > lease.max_attempts:",
    ),
    planted(
        "failure-is-tried-once-too-often",
        "P13",
        _RETRY,
        "if attempt >= policy.max_attempts:",
        "if attempt > policy.max_attempts:",
    ),
    planted(
        "retry-by-signal-knows-no-budget",
        "P13",
        _RETRY,
        "isinstance(decision, GiveUp):\n        return None\n",
        "isinstance(decision, GiveUp):\n        return after\n",
    ),
    planted(
        "failure-forgets-that-it-was-cancelled",
        "P15",
        _ENDINGS,
        "if lease.cancel_at is not None or outcome is Outcome.CANCELLED:",
        "if outcome is Outcome.CANCELLED:",
    ),
    planted(
        "attempt-that-is-tried-again-is-not-recorded",
        "P17",
        _REPORTING,
        "_attempt_row(ending) for ending in endings])",
        "_attempt_row(e) for e in endings if isinstance(e.next, End)])",
    ),
)

_REAP_AND_EXTEND = (
    planted(
        "reaper-knows-no-grace",
        "P10",
        _RUNS,
        "where l.expires_at < :now or (l.cancel_at < :now and l.shielded <= 0)",
        "where l.expires_at < :now or (l.cancel_at is not null and l.shielded <= 0)",
    ),
    planted(
        "reaper-takes-by-age",
        "P10",
        _RUNS,
        "where l.expires_at < :now or (l.cancel_at < :now and l.shielded <= 0)",
        "where l.claimed_at < :now - 10000000 or l.cancel_at < :now",
    ),
    planted(
        "reaper-leaves-what-cannot-be-tried-again",
        "P12",
        _RUNS,
        "from taken t {then rota_run r | r.id = t.run_id}\norder by t.expires_at;",
        "from taken t {then rota_run r | r.id = t.run_id}\n"
        "where r.on_lost = 'retry' and t.attempt < r.max_attempts order by t.expires_at;",
    ),
    planted(
        "reaper-never-gets-over-its-caution",
        "P12",
        _REAPER,
        "        self._seen = (wall, steady)\n        if self._wait_until is not None:\n",
        "        if self._wait_until is not None:\n",
    ),
    planted("renewal-ends-at-once", "P12", _RUNS, "set expires_at = :now + :lease", "set expires_at = :now"),
    planted(
        "renewal-forgets-a-request-to-stop",
        "P15",
        _RUNS,
        "set expires_at = :now + :lease\n",
        "set expires_at = :now + :lease, cancel_at = null\n",
    ),
    planted(
        "renewal-is-not-fenced",
        "P10",
        _RUNS,
        "where (run_id, fence) in (select rows.id, rows.fence from {rows id id, fence int})\nreturning run_id, case",
        "where run_id in (select rows.id from {rows id id, fence int})\nreturning run_id, case",
    ),
    planted(
        "renewal-stops-those-that-were-not-asked",
        "P15",
        _RUNS,
        "case when cancel_at is null then 0 else 1 end",
        "case when cancel_at is null then 1 else 0 end",
    ),
)

_WORK = (
    planted(
        "worker-hands-back-what-it-knows",
        "P14",
        _WORKER,
        " if self.held.get(lease[0]) != lease[1]]",
        "]",
    ),
    planted(
        "worker-begins-on-a-lease-that-ran-out",
        "P9",
        _WORKER,
        "if handler is None or not fresh:",
        "if handler is None:",
    ),
    planted(
        "worker-waits-for-hints-only",
        "P19",
        _WORKER,
        "rest = min(poll, self._again) if missed else poll\n",
        "rest = min(poll, self._again) if missed else 86_400.0\n",
    ),
    planted(
        "worker-is-never-told-to-cancel",
        "P15",
        _WORKER,
        "            self._executor.cancel(attempt, by_policy=by_policy)\n",
        "            pass\n",
    ),
    planted(
        "reports-are-dropped-on-trouble",
        "P12",
        _REPORTER,
        "await asyncio.sleep(_REST_AFTER_TROUBLE)",
        "self.pending.clear()",
    ),
)

BUGS = (
    *seen_in("attempts limits", _CLAIM),
    *seen_in("zombies attempts", _COMPLETION),
    *seen_in("attempts", _REPORTS),
    *seen_in("zombies attempts shields cancels", _REAP_AND_EXTEND),
    *seen_in("attempts zombies cancels", _WORK),
)
