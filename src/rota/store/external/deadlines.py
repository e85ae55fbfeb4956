"""Timeouts and steps that must not be cancelled, of runs that external workers have: kept by the lease itself.

Our own workers watch the time of a handler, and finish such a step before they obey a cancel. Nobody can make an
external worker do so. So the lease has a deadline, beyond which no heartbeat extends it, and a shield, which hides a
cancel from the heartbeats and from the reaper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.pipelines import within
from rota.core.progress.control_flow import step_timed_out
from rota.core.progress.steps import StepDefinition, StepState
from rota.core.runs.claim import Claim
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import Lease, Report
from rota.core.runs.run import Overrides, RunError
from rota.core.states import Outcome
from rota.errors import Conflict
from rota.store.databases.database import Tx
from rota.store.external import handover
from rota.store.external.handover import HeldRun
from rota.values.durations import format_duration, in_micros


async def begin(tx: Tx, claims: Sequence[Claim]) -> None:
    """Give leases just taken by an external worker the deadlines of their runs."""
    jobs = sorted({(claim.job, claim.job_version) for claim in claims})
    rows = await tx.fetch("definitions_of", jobs)
    definitions = {
        (job, version): msgspec.json.decode(definition, type=JobDefinition) for job, version, definition in rows
    }
    timed = []
    for claim in claims:
        definition = definitions.get((claim.job, claim.job_version), JobDefinition(name=claim.job))
        timeout = _timeout(definition, claim.overrides)
        if timeout is not None:
            timed.append((claim.run_id, claim.fence, in_micros(timeout)))
    if timed:
        await tx.fetch("limit_leases", sorted(timed))


def _timeout(definition: JobDefinition, overrides: str | None) -> timedelta | None:
    """Return how long an attempt may take, as for our own workers."""
    own = msgspec.json.decode(overrides, type=Overrides).timeout if overrides else None
    return own or definition.timeout


class _OpenStep(msgspec.Struct, frozen=True):
    """Step that the worker has begun, under its fence, and not ended. `age` and `left` are in µs."""

    definition: StepDefinition
    age: int

    @property
    def left(self) -> int | None:
        timeout = self.definition.timeout
        return None if timeout is None else in_micros(timeout) - self.age


async def follow_steps(tx: Tx, held: HeldRun) -> bool:
    """Fit deadline and shield of a lease, which the caller has locked, to the steps that are open now.

    Return False if nothing depends on steps. `Conflict`: the run was asked to stop, and a step that must not be
    cancelled was about to begin.
    """
    guarded = _guarded(held)
    if held.waits or not guarded:
        return False
    steps = await _open_steps(tx, held, guarded)
    shielding = [step.definition.id for step in steps if not step.definition.cancelable]
    values = {"id": held.lease.run_id, "fence": held.lease.fence, "grace": in_micros(held.definition.cancel.grace)}
    left = _left(held, steps)
    ((shielded,),) = await tx.fetch("guard_lease", left=left, shield=int(bool(shielding)), **values)
    if shielding and shielded <= 0:
        raise Conflict(
            f"run {held.lease.run_id} was asked to stop before step {shielding[0]!r}, which must not be cancelled",
            hint="stop, and report it as cancelled",
        )
    return True


def _guarded(held: HeldRun) -> dict[str, StepDefinition]:
    """Return the declared steps that have a timeout, or must not be cancelled."""
    return {
        within(held.part, step.id): step
        for step in held.definition.steps
        if step.timeout is not None or not step.cancelable
    }


async def _open_steps(tx: Tx, held: HeldRun, guarded: Mapping[str, StepDefinition]) -> list[_OpenStep]:
    return [
        _OpenStep(guarded[id], int(age))
        for id, _, state, fence, age in await tx.fetch("opened_steps", id=held.lease.run_id)
        if id in guarded and state == StepState.RUNNING and fence == held.lease.fence
    ]


def _left(held: HeldRun, steps: Sequence[_OpenStep]) -> int | None:
    """Return the time (µs) until the first of its timeouts; None without any."""
    timeout = _timeout(held.definition, held.overrides)
    whole = None if timeout is None else in_micros(timeout) - held.busy
    return min((left for left in (whole, *(step.left for step in steps)) if left is not None), default=None)


async def is_shielded(tx: Tx, held: HeldRun) -> bool:
    """Return whether a step is open that must not be cancelled."""
    lease = held.lease
    return not held.waits and any(
        shielded > 0 for (shielded,) in await tx.fetch("shield_of", id=lease.run_id, fence=lease.fence)
    )


async def overdue_report(tx: Tx, lease: Lease) -> Report | None:
    """Say of an expired lease, which is locked, that its time was over; None if it only was not renewed."""
    if not lease.overdue:
        return None
    held = await handover.lock(tx, lease.run_id, lease.fence)
    if held is None:
        return None
    steps = await _open_steps(tx, held, _guarded(held))
    late = [step.definition for step in steps if step.left is not None and step.left <= 0]
    if late and late[0].timeout is not None:
        kind, message = "StepTimedOut", str(step_timed_out(late[0].id, late[0].timeout))
    else:
        timeout = _timeout(held.definition, held.overrides) or timedelta(0)
        kind, message = "TimedOut", f"longer than {format_duration(timeout)}"
    error = RunError(type=kind, message=message, code="timed_out")
    return Report(
        lease.run_id,
        lease.fence,
        Outcome.TIMED_OUT,
        held.busy,
        error=stored_error(error),
        retry_in=held.rest_after_deadline(),
        adapts=held.retry_policy.has_default_backoff,
        part=held.part,
    )
