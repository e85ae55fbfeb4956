"""The parts of pipelines: which one a run is at, and what the end of one makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
_CANCEL_AT = 5
_job = msgspec.json.Decoder(JobDefinition).decode


async def begin_like(tx: Tx, runs: Iterable[tuple[str, NewRun | None]]) -> None:
    """The same of runs that were made after a model; wake the queues where they wait."""
    plans = {id: model.pipeline for id, model in runs if model is not None and model.pipeline is not None}
    if plans:
        await place(tx, {id: (plan, plan.parts[0]) for id, plan in plans.items()})


async def begin(tx: Tx, runs: Iterable[NewRun]) -> None:
    """Those that are pipelines, whose rows are there, wait for their first part. A retry is as what it repeats was."""
    staged = {run.id: run for run in runs if is_pipeline(run.overrides)}
    if not staged:
        return
    old = [(run.retry_of,) for run in staged.values() if run.pipeline is None]
    plans = {str(id): _decode(plan) for id, plan in await tx.fetch("plans_of", old)} if old else {}
    found = {id: run.pipeline or plans.get(str(run.retry_of)) for id, run in staged.items()}
    await place(tx, {id: (plan, plan.parts[0]) for id, plan in found.items() if plan is not None})


async def place(tx: Tx, parts: dict[str, tuple[Pipeline, Part]]) -> None:
    """Let these runs, which wait, wait for whoever does that part; wake their queues."""
    await _put(tx, parts)
    tx.wake(*[queue for (queue,) in await tx.fetch("ready_for_parts", [(id,) for id in sorted(parts)])])


async def go_on(tx: Tx, run_id: str) -> None:
    """A retry that keeps what was done begins with the first part that was not."""
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
    # One that nobody has declared yet is waited for, where it would be by default.
    jobs = {name: _job(texts[name]) if name in texts else JobDefinition(name=name) for name in names}
    await tx.fetch("put_stages", [_row(id, plan, part, jobs[part.job]) for id, (plan, part) in sorted(parts.items())])


def _row(id: str, plan: Pipeline, part: Part, job: JobDefinition) -> Row:
    no = plan.parts.index(part) + 1
    text = msgspec.json.encode(plan).decode()
    return id, text, no, part.step, part.job, job.version, plan.queue or job.queue


async def opened(tx: Tx, claims: Iterable[Claim]) -> None:
    """That these parts are being done. They come before the steps that their handlers open."""
    begun = [
        StepNote(one.run_id, one.fence, one.attempt, one.part, number_of(one.fence, 0), StepState.RUNNING, 0)
        for one in claims
        if one.part
    ]
    if begun:
        await notes.write(tx, Notes(steps=tuple(begun)))


async def advance(tx: Tx, reports: Sequence[Report]) -> Sequence[Report]:
    """What these ends mean for their runs: a part is done, and if it was not the last, its run is put off for the next.

    Those whose lease is gone stay as they are: nothing is written.
    """
    ends = {report.run_id: report for report in reports if report.part and report.outcome is Outcome.SUCCEEDED}
    if not ends:
        return reports
    held = await tx.fetch("lock_leases", [(end.run_id, end.fence) for end in ends.values()])
    leases = {str(row[0]): row for row in held}
    plans = {str(id): _decode(plan) for id, plan in await tx.fetch("plans_of", [(id,) for id in leases])}
    await notes.write(tx, Notes(steps=tuple(_done(ends[id], lease) for id, lease in leases.items())))
    following = {id: (plan, part) for id, plan in plans.items() if (part := plan.next(str(ends[id].part)))}
    if following:
        # One that was asked to stop ends here.
        await _put(tx, {id: one for id, one in following.items() if leases[id][_CANCEL_AT] is None})
        told = [_told(leases[id], ends[id], part) for id, (_, part) in following.items()]
        await audit.note_runs(tx, ADVANCED, told)
    return [_put_off(report) if report.run_id in following else report for report in reports]


def _told(lease: Row, report: Report, following: Part) -> tuple[str, str, int, audit.Details]:
    _, fence, _, worker_id, _, cancel_at, *_ = lease
    goes_on = {"next": following.step, "job": following.job} if cancel_at is None else {}
    return report.run_id, worker_id, fence, {"step": report.part, **goes_on}


def _done(report: Report, lease: Row) -> StepNote:
    _, fence, attempt, *_ = lease
    step, result = str(report.part), report.result or "null"
    return StepNote(
        report.run_id, fence, attempt, step, number_of(fence, 0), StepState.SUCCEEDED, report.busy, result=result
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
    """Those of them that say again what was done."""
    told = [(report.run_id, report.fence) for report in reports if report.part and report.outcome is Outcome.SUCCEEDED]
    return {(str(id), fence) for id, fence in await tx.fetch("advanced_before", told)} if told else set()
