"""Bugs in what runs say and do while they work: steps, shields, notes, transactions."""

from __future__ import annotations

from tests.simulation.mutants.patches import Edit, Planted, planted, seen_in

_NOTES, _RUNS = "store/sql/progress/notes.sql", "store/sql/runs/runs.sql"
_CORE_STEPS, _SHIELDING, _EXECUTOR = "core/progress/steps.py", "engine/handlers/shield.py", "engine/worker/executor.py"
_DESK, _NOTEBOOK, _CONTEXT = (
    "engine/handlers/context_backend.py",
    "engine/handlers/note_buffer.py",
    "engine/handlers/context.py",
)
_WORKER, _REPORTER = "engine/worker/worker.py", "engine/worker/reporter.py"
_TRANSACTING, _SESSIONS = "engine/handlers/transaction.py", "store/databases/held_transaction.py"
_STORE, _STORED_NOTES = "store/store.py", "store/progress/notes.py"

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
        _CORE_STEPS,
        "before = set(order[: order.index(from_step)])",
        "before = set(order[: order.index(from_step) + 1])",
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
        "    s.result, s.error, coalesce(s.kept_from, s.run_id)",
        "    null, s.error, coalesce(s.kept_from, s.run_id)",
    ),
    planted(
        "steps-are-kept-in-a-transaction-of-their-own",
        "P16",
        _STORE,
        "            if answer.created:\n"
        "                await notes.keep_steps(tx, run.retry_of or run.id, answer.id, from_step)\n"
        "                await pipeline_stages.go_on(tx, answer.id)\n"
        "            return enqueued_as(await read.get_run(tx, answer.id), created=answer.created)\n\n"
        "        return await self.database.transact(body)\n",
        "            return enqueued_as(await read.get_run(tx, answer.id), created=answer.created)\n\n"
        "        answer = await self.database.transact(body)\n"
        "        old_id = run.retry_of or run.id\n"
        "        await self.database.transact(lambda tx: notes.keep_steps(tx, old_id, answer.id, from_step))\n"
        "        return answer\n",
    ),
    planted(
        "result-of-another-step-is-returned",
        "P16",
        _DESK,
        "return Opened(True, _decoded(results[id]))",
        "return Opened(True, _decoded(results[min(results)]))",
    ),
    planted(
        "end-of-a-step-is-written-with-the-next-notes",
        "P16",
        _DESK,
        "            await self._record(opened, self._note(opened, StepState.SUCCEEDED, result=text))\n",
        "            note = self._note(opened, StepState.SUCCEEDED, result=text)\n"
        "            if opened.definition.cancelable:\n"
        "                self._notes.step(note, opened.begun)\n"
        "            else:\n"
        "                await self._record(opened, note)\n",
    ),
    planted(
        "end-of-a-step-is-given-up-on-trouble",
        "P16",
        _DESK,
        "            writing = self._until_available(lambda: self._host.note_buffer.write_step(note))\n",
        "            async def once() -> bool:\n"
        "                try:\n"
        "                    return await self._host.note_buffer.write_step(note)\n"
        "                except Unavailable:\n"
        "                    return True\n\n"
        "            writing = once()\n",
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
        "(l.cancel_at < :now and l.shielded <= 0)",
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
        "case when cancel_at is null and shielded > -cast(:no as int) then",
        "case when shielded > -cast(:no as int) then",
    ),
    planted(
        "shield-that-is-refused-is-taken-for-set",
        "P15",
        _NOTES,
        "returning case when shielded = cast(:no as int) then 1 else 0 end;",
        "returning 1;",
    ),
    planted(
        "late-shield-lowers-itself",
        "P15",
        _NOTES,
        "    when shielded = cast(:no as int) then shielded\n",
        "",
    ),
    planted(
        "second-shield-lifts-the-first",
        "P15",
        _NOTES,
        "    when cast(:another as int) = 1 then shielded else -cast(:no as int) end\n",
        "    else -cast(:no as int) end\n",
    ),
    planted(
        "shields-are-not-set-and-lifted-in-turn",
        "P15",
        _SHIELDING,
        "self._changing = asyncio.Lock()",
        'self._changing = __import__("contextlib").nullcontext()',
    ),
    planted("shield-is-not-lifted", "P15", _SHIELDING, "if attempt.shields > 1:", "if True:"),
    planted("end-of-a-shield-forgets-the-others", "P15", _SHIELDING, "attempt.shields -= 1", "attempt.shields = 0"),
    planted(
        "first-of-two-shields-to-end-lifts-both",
        "P15",
        _SHIELDING,
        "if attempt.shields > 1:",
        "if attempt.shields > 2:",
    ),
    planted(
        "shield-is-lifted-under-any-fence",
        "P15",
        _NOTES,
        "where run_id = :id and fence = :fence and shielded between",
        "where run_id = :id and shielded between",
    ),
    planted(
        "late-end-of-a-shield-lifts-the-next",
        "P15",
        _NOTES,
        "shielded between 1 and cast(:no as int)",
        "shielded > 0 and :no > 0",
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
        _EXECUTOR,
        "if self._calls.can_interrupt(attempt) and not attempt.shields:",
        "if self._calls.can_interrupt(attempt):",
    ),
    planted(
        "worker-forgets-the-cancel-that-had-to-wait",
        "P15",
        _SHIELDING,
        "            self._guard.unshielded(attempt)\n",
        "            pass\n",
    ),
    planted(
        "step-that-is-given-up-keeps-its-shield",
        "P15",
        _CONTEXT,
        "            self._backend.give_up_step(id)\n",
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
        "accepted = notes if len(current) == len(leases) else notes.under(current)",
        "accepted = notes",
    ),
    planted(
        "report-does-not-wait-for-notes",
        "notes",
        _REPORTER,
        "        await self._prepare()\n",
        "",
    ),
    planted(
        "report-does-not-wait-for-notes-on-their-way",
        "notes",
        _NOTEBOOK,
        "if self._dirty or self._writing.locked():",
        "if self._dirty:",
    ),
    planted(
        "report-does-not-wait-for-ends-of-steps-on-their-way",
        "P16",
        _NOTEBOOK,
        "        if self._background:\n            await asyncio.wait(self._background)\n",
        "",
    ),
    planted(
        "end-of-a-step-is-given-up-with-its-handler",
        "P16",
        _DESK,
        "if not await asyncio.shield(self._host.note_buffer.keep_running(writing)):",
        "if not await writing:",
    ),
    planted("report-waits-for-notes-for-ever", "P12", _REPORTER, "if self._unprepared < _TRIES:", "if True:"),
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
        "self._unsent = [earlier for earlier in self._unsent if earlier.no not in chunk.drops] + [chunk]",
        "self._unsent = [chunk]",
    ),
)

_TRANSACTIONS = (
    planted(
        "transaction-is-not-fenced",
        "P10",
        _SESSIONS,
        'if await write(tx, notes) if notes else not await tx.fetch("lock_noted", [lease]):',
        "if notes and await write(tx, notes):",
    ),
    Planted(
        "transaction-goes-on-though-its-end-is-refused",
        "P10",
        (
            Edit(
                _SESSIONS,
                'if await write(tx, notes) if notes else not await tx.fetch("lock_noted", [lease]):',
                "if await write(tx, notes) is None if notes else not await tx.fetch('lock_noted', [lease]):",
            ),
            Edit(
                _SESSIONS,
                "(await reports.report(tx, [report])).refused:",
                "(await reports.report(tx, [report])) is None:",
            ),
        ),
    ),
    Planted(
        "end-of-the-run-is-not-in-its-transaction",
        "P10",
        (
            Edit(_TRANSACTING, "await end(tx.result) if tx.is_finished else (None, None)", "(None, None)"),
            Edit(_DESK, "            if tx.is_finished:\n", "            if False:\n"),
        ),
    ),
    planted(
        "transaction-without-an-end-ends-its-run",
        "P10",
        _TRANSACTING,
        "await end(tx.result) if tx.is_finished else (None, None)",
        "await end(tx.result)",
    ),
    planted(
        "last-words-are-not-in-the-transaction-that-ends-the-run",
        "notes",
        _DESK,
        "return self._host.success(self._attempt, result), self.unwritten_notes()",
        "return self._host.success(self._attempt, result), Notes()",
    ),
    Planted(
        "handler-that-ended-its-run-is-taken-for-lost",
        "P10",
        (
            Edit(_EXECUTOR, "        if attempt.finished:\n            return\n", ""),
            Edit(_WORKER, "        if attempt is not None and attempt.finished:\n            return\n", ""),
        ),
    ),
)

BUGS = (
    *seen_in("steps zombies", _STEPS),
    *seen_in("shields zombies", _SHIELDS),
    *seen_in("notes steps zombies", _SAID),
    *seen_in("transactions zombies", _TRANSACTIONS),
)
