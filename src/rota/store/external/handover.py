"""Runs in other hands: handed over by their handlers, locked for whoever ends them, taken away when nobody does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import RetryPolicy, jitter_of, rest_before_retry
from rota.core.ledger.audit import HANDED_OVER
from rota.core.progress.steps import StepState
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import AT_MOST_ONCE, Lease, Report, Wait
from rota.core.runs.run import Overrides, RunError
from rota.core.states import Outcome, RunState
from rota.store.databases.database import Row, Tx
from rota.store.ledger import audit
from rota.values.durations import format_duration, in_micros


class HeldRun(msgspec.Struct, frozen=True):
    """A run in somebody's hands, its row locked. `busy`: for how long (µs); `waits`: no lease, it was handed over.

    `part`: the step of a pipeline; the definition is then that of its job.
    """

    lease: Lease
    job: str
    overrides: str | None
    definition: JobDefinition
    busy: int
    step: str | None
    waits: bool
    part: str | None

    @property
    def retry_policy(self) -> RetryPolicy:
        own = msgspec.json.decode(self.overrides, type=Overrides).retry if self.overrides else None
        return own or self.definition.retry

    def rest_before_retry(self, after: timedelta | None = None) -> int | None:
        """Return the rest (µs) by the policy of the run, or else of its job; None: it is not tried again."""
        lease = self.lease
        jitter = jitter_of(lease.run_id, lease.fence)
        rest = rest_before_retry(self.retry_policy, lease.max_attempts, lease.attempt, jitter, after)
        return None if rest is None else in_micros(rest)

    def rest_after_deadline(self) -> int | None:
        """Like `rest_before_retry`, for a run whose time outside is over.

        Nobody can stop those outside: what must not be repeated might be done twice, as after a loss.
        """
        return None if self.lease.on_lost in AT_MOST_ONCE else self.rest_before_retry()


async def unless_done(tx: Tx, report: Report) -> Report:
    """Drop the wait of a report if somebody quick has ended the step before its handler said that it waits for it: then
    it goes on at once.
    """
    step = report.wait.step if report.wait is not None else None
    # Asked under the lock of the lease, which `ExternalStore.step` takes, too: an answer comes before this or finds the
    # run handed over.
    if step is None or not any(
        id == step and state == StepState.SUCCEEDED
        for id, _, state, _ in await tx.fetch("recorded_steps", id=report.run_id)
    ):
        return report
    return msgspec.structs.replace(report, wait=None)


async def hand_over(tx: Tx, reports: Sequence[tuple[Lease, Report]]) -> None:
    """No lease and no slot of a worker any more; the same fence, and the same slots under limits: it is being done."""
    handed = [(lease, report, report.wait) for lease, report in reports if report.wait is not None]
    if not handed:
        return
    # From one table to the other in one transaction, lease first: no reader sees the run in both or in neither. Gates
    # stay as they are, for the slots are still in use.
    await tx.fetch("drop_leases", [(lease.run_id, lease.fence) for lease, _, _ in handed])
    rows = await tx.fetch("hand_over", [_row(lease, report, wait) for lease, report, wait in handed])
    deadlines = {str(run_id): deadline for run_id, deadline in rows}
    change = {"from": RunState.RUNNING, "to": RunState.WAITING}
    notes = [
        (lease.run_id, lease.worker_id, lease.fence, {**change, "until_at": deadlines[lease.run_id], "step": wait.step})
        for lease, _, wait in handed
    ]
    await audit.note_runs(tx, HANDED_OVER, notes)


def _row(lease: Lease, report: Report, wait: Wait) -> Row:
    return (
        lease.run_id, lease.fence, lease.attempt, lease.worker_id, lease.claimed_at, report.busy, wait.timeout,
        wait.step,
    )  # fmt: skip


async def handed_over_before(tx: Tx, reports: Sequence[Report]) -> set[tuple[str, int]]:
    """Return those of these reports that say again what was done."""
    rows = [(report.run_id, report.fence) for report in reports if report.wait is not None]
    return {(str(id), fence) for id, fence in await tx.fetch("handed_over_before", rows)} if rows else set()


async def lock(tx: Tx, run_id: str, fence: int) -> HeldRun | None:
    """Wherever it is. Between the two looks its handler may have handed it over, but nobody hands it back."""
    # Fenced by both statements: a run that was taken away and claimed again is not found under the old fence.
    for statement, waits in (("lock_fenced", False), ("lock_outside", True)):
        for row in await tx.fetch(statement, id=run_id, fence=fence):
            return _held(row, waits=waits)
    return None


async def lease_again(tx: Tx, held: HeldRun) -> None:
    """Lease a run for the rest of this transaction, in which it ends as any lease does."""
    # The caller has the row of the handed-over run locked, so that nobody meets this lease before the transaction ends.
    await tx.fetch("lease_again", id=held.lease.run_id, fence=held.lease.fence)
    await tx.fetch("drop_outside", [(held.lease.run_id, held.lease.fence)])


async def take_overdue(tx: Tx, limit: int) -> list[tuple[Lease, Report]]:
    """Past their deadline, or the grace of a cancel: they are nobody's now, and this is to be said of them."""
    # Skips what an external party is ending at this moment: its word counts, although the deadline is over.
    rows = await tx.fetch("lock_overdue", limit=limit)
    if not rows:
        return []
    taken = [(_held(row, waits=True), timedelta(microseconds=span), bool(stopped)) for *row, span, stopped in rows]
    await tx.fetch("drop_outside", [(held.lease.run_id, held.lease.fence) for held, _, _ in taken])
    return [
        (msgspec.structs.replace(held.lease, overdue=1), _overdue(held, limit, stopped=stopped))
        for held, limit, stopped in taken
    ]


def _overdue(held: HeldRun, limit: timedelta, *, stopped: bool) -> Report:
    lease = held.lease
    if stopped:
        words = "the run was asked to stop, and nobody outside said within its grace that it has"
        return Report(lease.run_id, lease.fence, Outcome.LOST, error=_error("LeaseLost", words, "stale_timeout"))
    words = f"nobody outside ended {_subject(held)} within {format_duration(limit)}"
    return Report(
        lease.run_id,
        lease.fence,
        Outcome.TIMED_OUT,
        held.busy,
        error=_error("TimedOut", words, "timed_out"),
        retry_in=held.rest_after_deadline(),
        adapts=held.retry_policy.has_default_backoff,
    )


def _subject(held: HeldRun) -> str:
    return "it" if held.step is None else f"step {held.step!r}"


def _error(kind: str, message: str, code: str) -> str:
    return stored_error(RunError(type=kind, message=message, code=code))


def _held(row: Row, *, waits: bool) -> HeldRun:
    run_id, *facts, overrides, definition, busy, step, part = row
    lease = Lease(str(run_id), *facts)
    job_definition = (
        msgspec.json.decode(definition, type=JobDefinition) if definition else JobDefinition(name=lease.job)
    )
    return HeldRun(lease, lease.job, overrides, job_definition, max(0, int(busy)), step, waits, part)
