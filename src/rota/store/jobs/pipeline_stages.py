"""Parts of pipelines: which one a run is at, and what the end of a part does to the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.pipelines import Part, Pipeline, is_pipeline
from rota.core.ledger.audit import ADVANCED
from rota.core.ledger.explain_run import PartFacts
from rota.core.progress.notes import Notes, StepNote
from rota.core.progress.steps import StepState, number_of
from rota.core.runs.claim import Claim
from rota.core.runs.outcome import Lease, Report
from rota.core.runs.run import NewRun
from rota.core.states import Outcome
from rota.errors import Conflict
from rota.store.databases.database import Row, Tx
from rota.store.ledger import audit
from rota.store.progress import notes

_decode = msgspec.json.Decoder(Pipeline).decode
_job = msgspec.json.Decoder(JobDefinition).decode


async def begin_like(tx: Tx, runs: Iterable[tuple[str, NewRun | None]]) -> None:
    """Like `begin`, for runs that were made from a model; wake the queues where they wait."""
    plans = {id: model.pipeline for id, model in runs if model is not None and model.pipeline is not None}
    if plans:
        await place(tx, {id: (plan, plan.parts[0]) for id, plan in plans.items()})


async def begin(tx: Tx, runs: Iterable[NewRun]) -> None:
    """Let new runs of pipelines, whose rows exist, wait for their first part.

    A retry uses the plan of the run that it repeats. One that was skipped has none: then its job's version does.
    """
    staged = {run.id: run for run in runs if is_pipeline(run.overrides)}
    if not staged:
        return
    repeated = [(run.retry_of,) for run in staged.values() if run.pipeline is None]
    old_plans = {str(id): _decode(plan) for id, plan in await tx.fetch("plans_of", repeated)} if repeated else {}
    plans = {id: run.pipeline or old_plans.get(str(run.retry_of)) for id, run in staged.items()}
    unplanned = sorted({(run.job, run.job_version) for id, run in staged.items() if plans[id] is None})
    if unplanned:
        texts = [text for (text,) in await tx.fetch("data_job_definitions", unplanned)]
        declared = {(job.name, job.version): Pipeline(job.pipeline) for job in map(_job, texts)}
        plans = {id: plan or declared.get((staged[id].job, staged[id].job_version)) for id, plan in plans.items()}
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


async def users_of(tx: Tx, job: str) -> tuple[list[str], list[tuple[str, bool]]]:
    """Return the names of pipelines that have the job as a part, and their live runs that have it before them: the id
    of each, and whether somebody holds it.

    Runs are looked for only if some version of a pipeline had the job: this reads all runs of pipelines that are kept.
    """
    # Signs that mean something in a pattern match any character: the texts are read below.
    pattern = "%" + msgspec.json.encode(job).decode().replace("\\", "_") + "%"
    versions = await tx.fetch("pipelines_with", pattern=pattern)
    newest = {name: text for name, dropped_at, text in versions if dropped_at is None}
    pipelines = [name for name, text in newest.items() if job in {part.job for part in _job(text).pipeline}]
    runs = await tx.fetch("live_stages_with", pattern=pattern) if versions else ()
    users = [
        (str(id), bool(is_held))
        for id, plan, no, is_held in runs
        if job in {part.job for part in _decode(plan).parts[no - 1 :]}
    ]
    return sorted(pipelines), users


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


async def advance(tx: Tx, reports: Sequence[Report], locked: Mapping[tuple[str, int], Lease]) -> Sequence[Report]:
    """Apply successful parts: record each as a step, and snooze runs that have a next part.

    Returns the reports to apply instead. A report whose lease is not among those that are `locked` is returned as it
    is, and nothing is written for it.
    """
    ends = {report.run_id: report for report in reports if report.part and report.outcome is Outcome.SUCCEEDED}
    if not ends:
        return reports
    # Fenced: a lease that is gone, or another's by now, is not among them.
    keys = [(end.run_id, end.fence) for end in ends.values()]
    leases = {key[0]: locked[key] for key in keys if key in locked}
    plans = {str(id): _decode(plan) for id, plan in await tx.fetch("plans_of", [(id,) for id in leases])}
    await notes.write(tx, Notes(steps=tuple(_done(ends[id], lease) for id, lease in leases.items())))
    following = {id: (plan, part) for id, plan in plans.items() if (part := plan.next(str(ends[id].part)))}
    if following:
        # A run that was asked to stop ends here: it does not get its next part.
        await _put(tx, {id: place for id, place in following.items() if leases[id].cancel_at is None})
        events = [_event(leases[id], ends[id], part) for id, (_, part) in following.items()]
        await audit.note_runs(tx, ADVANCED, events)
    return [_put_off(report) if report.run_id in following else report for report in reports]


def _event(lease: Lease, report: Report, following: Part) -> tuple[str, str, int, audit.Details]:
    next_part = {"next": following.step, "job": following.job} if lease.cancel_at is None else {}
    return report.run_id, lease.worker_id, lease.fence, {"step": report.part, **next_part}


def _done(report: Report, lease: Lease) -> StepNote:
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
