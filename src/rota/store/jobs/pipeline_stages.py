"""Parts of pipelines: which one a run is at, and what the end of a part does to the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.pipelines import Part, Pipeline, is_pipeline
from rota.core.ledger.audit import ADVANCED
from rota.core.ledger.explain_run import PartFacts
from rota.core.progress.notes import Notes, StepNote
from rota.core.progress.steps import StepState, number_of
from rota.core.runs.claim import Claim
from rota.core.runs.outcome import Report
from rota.core.runs.run import NewRun
from rota.core.states import Outcome
from rota.errors import Conflict
from rota.store.databases.database import Row, Tx
from rota.store.ledger import audit
from rota.store.progress import notes

_decode = msgspec.json.Decoder(Pipeline).decode
_job = msgspec.json.Decoder(JobDefinition).decode


class _Lease(NamedTuple):
    """The columns of `lock_leases` that matter for parts."""

    fence: int
    attempt: int
    worker_id: str
    cancel_at: int | None


async def begin_like(tx: Tx, runs: Iterable[tuple[str, NewRun | None]]) -> None:
    """Like `begin`, for runs that were made from a model; wake the queues where they wait."""
    plans = {id: model.pipeline for id, model in runs if model is not None and model.pipeline is not None}
    if plans:
        await place(tx, {id: (plan, plan.parts[0]) for id, plan in plans.items()})


async def begin(tx: Tx, runs: Iterable[NewRun]) -> None:
    """Let new runs of pipelines, whose rows exist, wait for their first part.

    A retry uses the plan of the run that it repeats.
    """
    staged = {run.id: run for run in runs if is_pipeline(run.overrides)}
    if not staged:
        return
    repeated = [(run.retry_of,) for run in staged.values() if run.pipeline is None]
    old_plans = {str(id): _decode(plan) for id, plan in await tx.fetch("plans_of", repeated)} if repeated else {}
    plans = {id: run.pipeline or old_plans.get(str(run.retry_of)) for id, run in staged.items()}
    await place(tx, {id: (plan, plan.parts[0]) for id, plan in plans.items() if plan is not None})


async def place(tx: Tx, parts: dict[str, tuple[Pipeline, Part]]) -> None:
    """Let waiting runs wait for this part; wake their queues."""
    await _put(tx, parts)
    tx.wake(*[queue for (queue,) in await tx.fetch("ready_for_parts", [(id,) for id in sorted(parts)])])


async def go_on(tx: Tx, run_id: str) -> None:
    """Let a retry that keeps finished parts begin with the first unfinished one."""
    for (text,) in await tx.fetch("untouched_plan", id=run_id):
        plan = _decode(text)
        recorded = await tx.fetch("recorded_steps", id=run_id)
        part = plan.after(id for id, _, state, _ in recorded if state == StepState.SUCCEEDED)
        if part is None:
            raise Conflict("every part of this pipeline is done", hint="name the one to begin with: --from-step")
        await place(tx, {run_id: (plan, part)})


async def part_now(tx: Tx, run_id: str) -> PartFacts | None:
    for step, job, queue, no, plan in await tx.fetch("stage_now", id=run_id):
        return PartFacts(step, job, queue, no, len(_decode(plan).parts))
    return None


async def _put(tx: Tx, parts: dict[str, tuple[Pipeline, Part]]) -> None:
    if not parts:
        return
    names = sorted({part.job for _, part in parts.values()})
    rows = await tx.fetch("job_definitions", [(name,) for name in names])
    texts: dict[str, str] = {name: text for name, text in rows}  # noqa: C416
    # A part whose job is not declared yet waits in the queue that the job would have by default.
    jobs = {name: _job(texts[name]) if name in texts else JobDefinition(name=name) for name in names}
    await tx.fetch("put_stages", [_row(id, plan, part, jobs[part.job]) for id, (plan, part) in sorted(parts.items())])


def _row(id: str, plan: Pipeline, part: Part, job: JobDefinition) -> Row:
    no = plan.parts.index(part) + 1
    text = msgspec.json.encode(plan).decode()
    return id, text, no, part.step, part.job, job.version, plan.queue or job.queue


async def opened(tx: Tx, claims: Iterable[Claim]) -> None:
    """Note that these parts are running, numbered before the steps that their handlers open."""
    begun = [
        StepNote(claim.run_id, claim.fence, claim.attempt, claim.part, number_of(claim.fence, 0), StepState.RUNNING, 0)
        for claim in claims
        if claim.part
    ]
    if begun:
        await notes.write(tx, Notes(steps=tuple(begun)))


async def advance(tx: Tx, reports: Sequence[Report]) -> Sequence[Report]:
    """Apply successful parts: record each as a step, and snooze runs that have a next part.

    Returns the reports to apply instead. A report whose lease is gone is returned as it is, and nothing is written for
    it.
    """
    ends = {report.run_id: report for report in reports if report.part and report.outcome is Outcome.SUCCEEDED}
    if not ends:
        return reports
    # Fenced: a report of a lease that is gone finds no row. The lease comes first in the order of locks, as for any
    # other end of a run.
    rows = await tx.fetch("lock_leases", [(end.run_id, end.fence) for end in ends.values()])
    leases = {
        str(id): _Lease(fence, attempt, worker_id, cancel_at)
        for id, fence, attempt, worker_id, _, cancel_at, *_ in rows
    }
    plans = {str(id): _decode(plan) for id, plan in await tx.fetch("plans_of", [(id,) for id in leases])}
    await notes.write(tx, Notes(steps=tuple(_done(ends[id], lease) for id, lease in leases.items())))
    following = {id: (plan, part) for id, plan in plans.items() if (part := plan.next(str(ends[id].part)))}
    if following:
        # A run that was asked to stop ends here: it does not get its next part.
        await _put(tx, {id: place for id, place in following.items() if leases[id].cancel_at is None})
        events = [_event(leases[id], ends[id], part) for id, (_, part) in following.items()]
        await audit.note_runs(tx, ADVANCED, events)
    return [_put_off(report) if report.run_id in following else report for report in reports]


def _event(lease: _Lease, report: Report, following: Part) -> tuple[str, str, int, audit.Details]:
    next_part = {"next": following.step, "job": following.job} if lease.cancel_at is None else {}
    return report.run_id, lease.worker_id, lease.fence, {"step": report.part, **next_part}


def _done(report: Report, lease: _Lease) -> StepNote:
    return StepNote(
        report.run_id,
        lease.fence,
        lease.attempt,
        str(report.part),
        number_of(lease.fence, 0),
        StepState.SUCCEEDED,
        report.busy,
        result=report.result or "null",
    )


def _put_off(report: Report) -> Report:
    return Report(
        report.run_id,
        report.fence,
        Outcome.SNOOZED,
        report.busy,
        measures=report.measures,
        retry_in=0,
        part=report.part,
        advances=True,
    )


async def advanced_before(tx: Tx, reports: Sequence[Report]) -> set[tuple[str, int]]:
    """Return the reports, as (run id, fence), that repeat an end of a part which was applied before."""
    ends = [(report.run_id, report.fence) for report in reports if report.part and report.outcome is Outcome.SUCCEEDED]
    return {(str(id), fence) for id, fence in await tx.fetch("advanced_before", ends)} if ends else set()
