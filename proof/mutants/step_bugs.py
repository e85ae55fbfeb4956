"""Bugs in what runs say and do while they work: steps, shields, notes, transactions."""

from __future__ import annotations

from proof.mutants.planting import Edit, Planted, planted

_NOTES, _RUNS = "store/sql/notes.sql", "store/sql/runs.sql"
_DESK, _NOTEBOOK, _CONTEXT = "engine/desk.py", "engine/notebook.py", "engine/context.py"
_WORKER, _REPORTER = "engine/worker.py", "engine/reporter.py"
_TRANSACTING, _SESSIONS = "engine/transacting.py", "store/sessions.py"
_STORE, _STORED_NOTES = "store/store.py", "store/notes.py"

_STEPS = (
    planted(
        "recorded-success-is-overwritten",
        "P16",
        _NOTES,
        "where rota_step.state <> 'succeeded' and rota_step.fence <= excluded.fence;",
        "where rota_step.fence <= excluded.fence;",
    ),
    planted(
        "later-attempts-do-not-look-at-steps",
        "P16",
        _DESK,
        "if self._claim.fence > 1 or self._claim.origin_id is not None:",
        "if self._claim.origin_id is not None:",
    ),
    planted(
        "retries-do-not-look-at-kept-steps",
        "P16",
        _DESK,
        "if self._claim.fence > 1 or self._claim.origin_id is not None:",
        "if self._claim.fence > 1:",
    ),
    planted(
        "only-the-second-attempt-looks-at-steps",
        "P16",
        _DESK,
        "if self._claim.fence > 1 or self._claim.origin_id is not None:",
        "if self._claim.attempt == 2 or self._claim.origin_id is not None:",
    ),
    planted(
        "steps-kept-include-the-one-to-begin-from",
        "P16",
        _NOTES,
        "(cast(:before as int) is null or no < :before)",
        "(cast(:before as int) is null or no <= :before)",
    ),
    planted(
        "steps-kept-include-failed-ones",
        "P16",
        _NOTES,
        "state in ('succeeded', 'skipped')",
        "state in ('succeeded', 'skipped', 'failed')",
    ),
    planted(
        "steps-are-kept-without-their-results",
        "P16",
        _NOTES,
        "no, state, 0, attempt, started_at, finished_at, done, summary, result, error,",
        "no, state, 0, attempt, started_at, finished_at, done, summary, null, error,",
    ),
    planted(
        "steps-are-kept-in-a-transaction-of-their-own",
        "P16",
        _STORE,
        "            await keep_steps(tx, run.retry_of or run.id, answer.id, from_step)\n            return answer\n\n"
        "        answer = await self.database.transact(body)\n",
        "            return answer\n\n        answer = await self.database.transact(body)\n"
        "        old_id = run.retry_of or run.id\n"
        "        await self.database.transact(lambda tx: keep_steps(tx, old_id, answer.id, from_step))\n",
    ),
    planted(
        "result-of-another-step-is-returned",
        "P16",
        _DESK,
        "no, state, result = (await self._steps_before()).get(id, (None, None, None))",
        "no, state, result = (lambda b: b.get(id) and b[min(b)] or (None, None, None))(await self._steps_before())",
    ),
    planted(
        "end-of-a-step-is-written-with-the-next-notes",
        "P16",
        _DESK,
        "        await self._record(opened, self._note(opened, StepState.SUCCEEDED, result=text))\n",
        "        note = self._note(opened, StepState.SUCCEEDED, result=text)\n"
        "        if opened.definition.cancelable:\n"
        "            self._page.step(note, opened.begun)\n"
        "        else:\n"
        "            await self._record(opened, note)\n",
    ),
    planted(
        "end-of-a-step-is-given-up-on-trouble",
        "P16",
        _DESK,
        "            written = await self._surely(lambda: self._floor.notebook.write_step(note))\n",
        "            try:\n"
        "                written = await self._floor.notebook.write_step(note)\n"
        "            except Unavailable:\n"
        "                written = True\n",
    ),
    planted(
        "refused-end-of-a-step-is-taken-for-written",
        "P16",
        _NOTEBOOK,
        "return [(note.run_id, note.fence) not in gone for note in notes]",
        "return [True for note in notes if note not in gone]",
    ),
    planted(
        "result-of-a-step-that-was-noted-is-not-written",
        "P16",
        _NOTES,
        "done = excluded.done, summary = excluded.summary, result = excluded.result,\n    error",
        "done = excluded.done, summary = excluded.summary, result = coalesce(rota_step.result, '\"\"'),\n    error",
    ),
)

_SHIELDS = (
    planted(
        "reaper-does-not-look-at-shields",
        "P15",
        _RUNS,
        "(l.cancel_at < :now and l.shielded = 0)",
        "l.cancel_at < :now",
    ),
    planted(
        "grace-does-not-begin-after-a-shield",
        "P15",
        _NOTES,
        "cancel_at = case when cancel_at is null then null else :now + :grace end",
        "cancel_at = case when cancel_at < :now + :grace then cancel_at end",
    ),
    planted(
        "shield-though-a-cancel-was-asked-for",
        "P15",
        _NOTES,
        "case when cancel_at is null then 1 else cast(:another as smallint) end",
        "1",
    ),
    planted(
        "shield-that-is-refused-is-taken-for-set",
        "P15",
        _NOTES,
        "returning case when cancel_at is null then 1 else 0 end;",
        "returning 1;",
    ),
    planted(
        "second-shield-lifts-the-first",
        "P15",
        _NOTES,
        "then 1 else cast(:another as smallint) end",
        "then 1 else 0 end",
    ),
    planted(
        "shields-are-not-set-and-lifted-in-turn",
        "P15",
        _DESK,
        "            async with self._shielding:\n                if attempt.shields > 1:",
        "            async with asyncio.Lock():\n                if attempt.shields > 1:",
    ),
    planted(
        "shield-is-not-lifted", "P15", _DESK, "                if attempt.shields > 1:", "                if True:"
    ),
    planted(
        "first-of-two-shields-to-end-lifts-both",
        "P15",
        _DESK,
        "                if attempt.shields > 1:",
        "                if attempt.shields > 2:",
    ),
    planted(
        "shield-is-lifted-under-any-fence",
        "P15",
        _NOTES,
        "where run_id = :id and fence = :fence and shielded = 1",
        "where run_id = :id and shielded = 1",
    ),
    planted(
        "checkpoint-raises-within-a-shield",
        "P15",
        _CONTEXT,
        "if self._standing.cancelled and not self._standing.shields:",
        "if self._standing.cancelled:",
    ),
    planted(
        "worker-interrupts-within-a-shield",
        "P15",
        _WORKER,
        "if self._calls.can_interrupt(attempt) and not attempt.shields:",
        "if self._calls.can_interrupt(attempt):",
    ),
    planted(
        "worker-forgets-the-cancel-that-had-to-wait",
        "P15",
        _DESK,
        "            floor.unshielded(attempt)\n",
        "            pass\n",
    ),
    planted(
        "step-that-is-given-up-keeps-its-shield",
        "P15",
        _CONTEXT,
        "            self._give_up(id)\n",
        "            pass\n",
    ),
)

_SAID = (
    planted(
        "notes-are-not-fenced",
        "P10",
        _NOTES,
        "from {rows id id, fence int} join rota_lease l on l.run_id = rows.id and l.fence = rows.fence\norder",
        "from {rows id id, fence int} join rota_lease l on l.run_id = rows.id\norder",
    ),
    planted(
        "notes-of-leases-that-are-gone-are-written",
        "P10",
        _STORED_NOTES,
        "told = notes if len(current) == len(leases) else notes.under(current)",
        "told = notes",
    ),
    planted(
        "report-does-not-wait-for-notes",
        "notes",
        _REPORTER,
        "        if self._before:\n            await self._before()\n",
        "",
    ),
    planted(
        "report-does-not-wait-for-notes-on-their-way",
        "notes",
        _NOTEBOOK,
        "if not self._dirty and not self._writing.locked():",
        "if not self._dirty:",
    ),
    planted(
        "progress-is-dropped-on-trouble",
        "notes",
        _NOTEBOOK,
        "self._progressed = self._progressed or bool(notes.progress)",
        "self._progressed = self._progressed",
    ),
    planted(
        "log-is-dropped-on-trouble",
        "notes",
        _NOTEBOOK,
        "            self._unsent += [sheet] if sheet else []\n",
        "            self._unsent = [sheet] if sheet else []\n",
    ),
)

_TRANSACTIONS = (
    planted(
        "transaction-is-not-fenced",
        "P10",
        _SESSIONS,
        'if not await tx.fetch("lock_noted", [(run_id, fence)]):',
        "if False:",
    ),
    planted(
        "transaction-goes-on-though-its-end-is-refused",
        "P10",
        _SESSIONS,
        "    if reported.refused:\n        raise LeaseLost(run_id, fence)\n",
        "",
    ),
    Planted(
        "end-of-the-run-is-not-in-its-transaction",
        "P10",
        (
            Edit(
                _TRANSACTING, "        if tx.is_finished:\n            report", "        if False:\n            report"
            ),
            Edit(_TRANSACTING, "    if tx.is_finished:\n        finished()\n", ""),
        ),
    ),
    planted(
        "transaction-without-an-end-ends-its-run",
        "P10",
        _TRANSACTING,
        "        if tx.is_finished:\n            report",
        "        if True:\n            report",
    ),
)

BUGS = (*_STEPS, *_SHIELDS, *_SAID, *_TRANSACTIONS)
