"""Operations on a job as a whole: pause and resume, and the facts that its state is derived from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import JobFacts, JobVerb, Standing, next_at, require_verb
from rota.core.jobs.unique import KeyHold
from rota.core.monitoring.statistics import JobStats, Tally, stats_of
from rota.core.runs.claim import NIL_ID
from rota.core.runs.run import EnqueuedRun, NewRun, Run, enqueued_as
from rota.core.states import RunState
from rota.errors import NothingToRetry, UnknownJob
from rota.store.alerts import expectations
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.store.ledger.occurrences import snapshot
from rota.store.limits import live as live_limits
from rota.store.monitoring import statistics
from rota.store.planning.plan import NewId
from rota.store.runs import enqueue, idempotency, read
from rota.store.runs.read import RetryFacts
from rota.store.schedules import change, schedules_of_job
from rota.values.scope import Scope

Declared = Collection[str] | None
"""Names of the jobs that the caller's code declares; others must be stored. None: no job is looked for."""

_WALK = 50_000
"""How many of a job's newest runs are searched for one that has ended, or that is of a scope."""


async def pause(
    database: Database, job: str, reason: str | None, actor: str | None, new_id: NewId, *, declared: Declared
) -> None:
    """Pause a job with a first batch of its schedules, and then the others in batches.

    From the first transaction on nothing of it is claimed. If the rest is cut short, another pause finishes it. Unless
    it is `declared` in code, it must be stored.
    """

    async def body(tx: Tx) -> str | None:
        # The job's lock, before the cursors of its schedules. A pause of a dropped job would outlive it: the next job
        # of this name would be born paused.
        await require(tx, job, declared=declared)
        if await tx.fetch("pause_job", job=job, reason=reason, actor=actor):
            await audit.note(tx, "job", job, "paused", actor, {"reason": reason})
        elif await tx.fetch("cancel_of_job", job=job):
            require_verb(job, Standing.CANCELLED, JobVerb.PAUSE)
        return await schedules_of_job.pause_schedules_of(tx, job=job, after=NIL_ID, actor=actor, new_id=new_id)

    after = await database.transact(body)
    while after is not None:
        after = await database.transact(
            partial(schedules_of_job.pause_schedules_of, job=job, after=after, actor=actor, new_id=new_id)
        )


async def require(tx: Tx, job: str, *, declared: Declared) -> None:
    """Lock a job. Raise `UnknownJob` if it is dropped, or, unless code declares it, not stored."""
    await change.require_job(tx, job)
    await require_known(tx, job, declared)


async def require_known(tx: Tx, job: str, declared: Declared) -> None:
    """Raise `UnknownJob` unless the job is declared in code or stored."""
    if declared is not None and job not in declared:
        await stored(tx, job, declared)


async def stored(tx: Tx, job: str, declared: Collection[str] = ()) -> JobDefinition:
    """Return the newest stored definition, with its secrets. Raise `UnknownJob` if there is none.

    That also suggests jobs which are `declared` in code.
    """
    definition = await read.job(tx, job)
    if definition is None:
        raise UnknownJob(job, {*declared, *(name for (name,) in await tx.fetch("job_names"))})
    return definition


async def resume(
    database: Database, job: str, mode: str, actor: str | None, new_id: NewId, *, declared: Declared
) -> bool:
    """Resume a job's schedules in batches, and then the job. Return whether it was paused or cancelled.

    A cancel holds a job as a pause does. What holds it is deleted last, so that a resume which was cut short can be
    repeated.
    """
    after: str | bool = NIL_ID
    while isinstance(after, str):
        after = await database.transact(
            partial(_resume_some, job=job, after=after, mode=mode, actor=actor, new_id=new_id, declared=declared)
        )
    return after


async def _resume_some(
    tx: Tx, job: str, after: str, mode: str, actor: str | None, new_id: NewId, *, declared: Declared
) -> str | bool:
    """Resume a batch of schedules. Return the id to continue after, or, at the end, whether the job was held."""
    if declared is not None and job not in declared:
        await require(tx, job, declared=declared)
    last = await schedules_of_job.resume_schedules_of(tx, job, after, mode, actor, new_id)
    if last is not None:
        return last
    if after != NIL_ID:
        # Race: a pause or cancel that came between two batches let schedules rest again that were resumed before. What
        # holds the job is dropped by a transaction that looked at all of them. Another one, because cursors are locked
        # in the order of ids.
        return NIL_ID
    resumed = bool(await tx.fetch("resume_job", job=job))
    if resumed:
        await tx.fetch("unpark", job=job)
        await audit.note(tx, "job", job, "resumed", actor, {"catch_up": mode})
        await expectations.anew(tx, "job", job)
    return resumed


async def facts(tx: Tx, jobs: Sequence[str]) -> list[JobFacts]:
    names = [(job,) for job in jobs]
    if not names:
        return []
    live = {row.job: row for row in map(_facts, await tx.fetch("job_facts", names))}
    # Read after the live runs: a run that ended in between is among these, or was counted as running.
    newest = {job: ended for job, *ended in await tx.fetch("newest_ended", names, walk=_WALK)}
    unbegun = [(job,) for job, (_, started_at, _) in newest.items() if started_at is None]
    begun = {job: at for job, at in await tx.fetch("newest_begun", unbegun, walk=_WALK)} if unbegun else {}  # noqa: C416
    # Of the others the statistics know it: they never ran, all of their runs were pruned, too many wait after the last
    # one that ended, or it never began.
    unknown = [job for job in jobs if job not in newest or (newest[job][1] is None and begun.get(job) is None)]
    counted = await statistics.counted_tallies(tx, unknown)
    return [_with_end(live[job], newest.get(job), begun.get(job), counted.get(job, Tally())) for job in jobs]


def _facts(row: Row) -> JobFacts:
    job, paused_at, paused_by, reason, *cancel, running, running_since, waiting, due_at, planned_at = row
    cancelled_at, cancelled_by, cancel_reason, created_at, updated_at, limit, now = cancel
    return JobFacts(
        job=job,
        paused_at=paused_at,
        paused_by=paused_by,
        pause_reason=reason,
        cancelled_at=cancelled_at,
        cancelled_by=cancelled_by,
        cancel_reason=cancel_reason,
        live_limit=live_limits.limit_in(limit, now),
        created_at=created_at,
        updated_at=updated_at,
        running=int(running or 0),
        running_since=running_since,
        waiting=int(waiting or 0),
        due_at=due_at,
        planned_at=planned_at,
    )


def _with_end(live: JobFacts, newest: Row | None, begun: int | None, counted: Tally) -> JobFacts:
    """Add when the newest run began and how it ended. `begun` is when an older run began, if the newest never did."""
    if newest is None:
        return msgspec.structs.replace(live, began_at=counted.began_at, ended=counted.ended)
    state, started_at, finished_at = newest
    if started_at is None and state == RunState.EXPIRED:
        started_at = finished_at
    if started_at is None:
        started_at = begun if begun is not None else counted.began_at
    return msgspec.structs.replace(live, began_at=started_at, ended=state)


async def stats(tx: Tx, job: str, *, declared: Declared) -> JobStats:
    await snapshot(tx)
    tallies = await statistics.tallies(tx, [job])
    await require_known(tx, job, declared)
    (live,) = map(_facts, await tx.fetch("job_facts", [(job,)]))
    return stats_of(job, tallies[job], live.running_since, next_at(live))


async def retry_newest(tx: Tx, run: NewRun, request: KeyHold | None, within: Scope | None = None) -> EnqueuedRun | None:
    """Enqueue a retry of the job's newest run. Return None, and do nothing, if it is not the newest any more.

    Two retries of the same run wait for each other at the old run's row: the second finds the retry of the first.
    """
    await enqueue.hold_jobs(tx, [run])  # lock order: jobs before runs
    await tx.fetch("lock_runs", [(run.retry_of,)])
    if not await tx.fetch("which_exist", [(run.id,)]):  # else an earlier try, whose answer got lost, has committed
        for made in () if request is None else await idempotency.asked_before(tx, request):
            return enqueued_as(await read.run_within(tx, made, within), created=False)
        # Ids tell the time: after a clock was set back, the retry may look older than the run that it repeats.
        for (live,) in await tx.fetch("live_retry", id=run.retry_of):
            raise NothingToRetry(run.job, str(live), None)
        newest, _ = await newest_run(tx, run.job, within) or (None, None)
        if newest is None or newest != run.retry_of:
            return None
    (answer,) = await enqueue.enqueue_again(tx, [run])
    return enqueued_as(await read.get_run(tx, answer.id), created=answer.created)


async def facts_of_newest(
    tx: Tx, job: str, request: KeyHold | None, within: Scope | None = None
) -> RetryFacts | Run | None:
    """Return what a retry of the job's newest run is made of; the run that the request made, if it came before.

    `within`: the only scope whose runs the caller knows.
    """
    newest, _ = await newest_run(tx, job, within) or (None, None)
    # Race: the newest may be what this request has made just now, in another call. Asked afterwards, that is found.
    for made in () if request is None else await idempotency.asked_before(tx, request):
        return await read.run_within(tx, made, within)
    return None if newest is None else await read.retry_facts(tx, newest)


async def newest_run(tx: Tx, job: str, within: Scope | None = None) -> tuple[str, RunState | None] | None:
    """Return the id and final state (None while it is live) of the job's newest run. Skipped runs do not count."""
    if within is None:
        rows = await tx.fetch("newest_run", job=job)
    else:
        rows = await tx.fetch("newest_run_within", [(job,)], kind=within.kind, name=within.id, walk=_WALK)
    for id, state in rows:
        return str(id), RunState(state) if state else None
    return None
