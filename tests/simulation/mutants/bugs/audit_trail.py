"""Bugs in what is told of runs afterwards, and in what becomes of runs whose attempts were lost."""

from __future__ import annotations

from tests.simulation.mutants.patches import Edit, Planted, planted, seen_in

_CONTROL, _REPORTING, _WAITS, _STORE = (
    "store/runs/cancel.py",
    "store/runs/report.py",
    "store/runs/waits.py",
    "store/store.py",
)
_ENQUEUEING, _EVENTS, _RUNS = "store/runs/enqueue.py", "core/ledger/audit.py", "store/sql/runs/runs.sql"
_SUSPECTS, _WORKER, _SLOTS = "engine/worker/suspects.py", "engine/worker/worker.py", "store/limits/slots.py"

_TRAIL = (
    planted(
        "trail-does-not-tell-who-asked-to-cancel",
        "P17",
        _CONTROL,
        '            await audit.note(tx, "run", run_id, CANCEL_ASKED, actor, change, fence=fence)\n',
        "",
    ),
    planted(
        "trail-tells-a-cancel-twice-that-is-asked-for-twice",
        "P17",
        _CONTROL,
        "            if asked_at is None:\n                change",
        "            if True:\n                change",
    ),
    Planted(
        "cancel-is-told-in-a-transaction-of-its-own",
        "P17",
        (
            Edit(
                _CONTROL,
                '            await audit.note(tx, "run", run_id, CANCEL_ASKED, actor, change, fence=fence)\n',
                "",
            ),
            Edit(
                _STORE,
                "        return await self.database.transact(body)\n\n    async def restrict(\n",
                "        run = await self.database.transact(body)\n"
                "        told = {'from': 'running', 'to': 'cancelling'}\n"
                "        note = audit.note\n"
                "        if run.state == 'cancelling':\n"
                "            await self.database.transact(\n"
                "                lambda tx: note(tx, 'run', run_id, 'cancel_asked', actor, told)\n"
                "            )\n"
                "        return run\n\n    async def restrict(\n",
            ),
        ),
    ),
    planted(
        "trail-tells-what-is-due-now-as-due-later",
        "P17",
        _REPORTING,
        "(RunState.SCHEDULED.value, following.delay) if following.delay > 0 else",
        "(RunState.SCHEDULED.value, following.delay) if following.delay >= 0 else",
    ),
    planted(
        "trail-does-not-tell-when-a-run-is-due-again",
        "P17",
        _RUNS,
        "rows.error, rows.measures, rows.left_as, :now + rows.delay\n",
        "rows.error, rows.measures, rows.left_as, null\n",
    ),
    planted(
        "trail-does-not-tell-how-a-lost-attempt-left-its-run",
        "P17",
        _REPORTING,
        "    if isinstance(following, End):\n        return following.state.value, None\n",
        "    if isinstance(following, End):\n        return RunState.FAILED.value, None\n",
    ),
    planted(
        "trail-does-not-tell-what-was-released",
        "P17",
        _WAITS,
        "    await audit.note_runs(tx, RELEASED, rows)\n",
        "",
    ),
    planted(
        "trail-does-not-tell-the-end-of-what-was-not-claimed",
        "P17",
        _CONTROL,
        "unclaimed=True, notes=notes)",
        "unclaimed=True)",
    ),
    planted(
        "trail-does-not-tell-who-retried",
        "P17",
        _ENQUEUEING,
        "        await audit.note_runs(tx, RETRIED, notes)\n",
        "",
    ),
    planted(
        "trail-is-in-the-order-of-clocks",
        "P17",
        _EVENTS,
        "steps.sort(key=lambda step: (step.fence, step.phase, step.seq))",
        "steps.sort(key=lambda step: (step.at, step.seq))",
    ),
)

_LOST = (
    planted(
        "lost-runs-are-not-suspected",
        "P12",
        _RUNS,
        "as lost) = 2 then 2",
        "as lost) = 2 then 0",
    ),
    planted(
        "suspects-of-several-queues-are-begun-together",
        "P12",
        "store/workers/claims.py",
        "        if any(claim.suspect for claim in answer.others):",
        "        if False:",
    ),
    planted(
        "worker-forgets-that-it-has-a-suspect",
        "P12",
        _SUSPECTS,
        "                self._held = (claim.run_id, claim.fence)\n",
        "                pass\n",
    ),
    planted(
        "suspects-under-limits-are-claimed-together",
        "P12",
        _SLOTS,
        "for run in runs if run.solo != SUSPECTS or run.run_id == first]",
        "for run in runs]",
    ),
    planted(
        "ordinary-claims-bring-suspects",
        "P12",
        "store/workers/claims.py",
        "request.lease, PLAIN, before.watermark)",
        "request.lease, 2, before.watermark)",
    ),
    planted(
        "suspects-are-never-looked-for",
        "P12",
        _SUSPECTS,
        "        return SUSPECTS if self._held is None else AT_ONCE",
        "        return AT_ONCE",
    ),
    planted(
        "worker-never-lets-go-of-a-suspect",
        "P12",
        _SUSPECTS,
        "        self._held = None\n        return True",
        "        return True",
    ),
)

_FAULTS = (
    planted(
        "runs-that-were-skipped-are-not-found-as-faults",
        "P17",
        "store/sql/migrations/0006_insight.sqlite.sql",
        "\nfrom rota_run where state is not null and state <> 'succeeded';",
        "\nfrom rota_run where state is not null and state not in ('succeeded', 'skipped');",
    ),
)

BUGS = (
    *seen_in("cancels order attempts", _TRAIL),
    *seen_in("suspects", _LOST),
    *seen_in("schedules dependencies", _FAULTS),
)
