"""Operations on a job as a whole: pause, resume, cancel, and the facts that its state is derived from."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import JobFacts, next_at
from rota.core.jobs.unique import KeyHold
from rota.core.monitoring.statistics import JobStats, Tally, stats_of
from rota.core.runs.claim import NIL_ID
from rota.core.runs.run import EnqueuedRun, NewRun, Run, enqueued_as
from rota.core.states import RunState
from rota.errors import NotCancellable, NothingToRetry, RunIsFinal, UnknownJob, UnknownRun
from rota.store.alerts import expectations
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.store.monitoring import statistics
from rota.store.planning.plan import NewId
from rota.store.runs import cancel as cancels
from rota.store.runs import enqueue, idempotency, read
from rota.store.runs.enqueue import RetryFacts
from rota.store.schedules import change, schedules_of_job
from rota.values.scope import Scope

Declared = Collection[str] | None
"""Names of the jobs that the caller's code declares; others must be stored. None: no job is looked for."""

_BITE = 200
_ALL = 2**31 - 1
_ROUNDS = 5
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
    """Resume a job's schedules in batches, and then the job. Return whether it was paused.

    The pause is deleted last, so that a resume which was cut short can be repeated.
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
    """Resume a batch of schedules. Return the id to continue after, or, at the end, whether the job was paused."""
    if declared is not None and job not in declared:
        await require(tx, job, declared=declared)
    last = await schedules_of_job.resume_schedules_of(tx, job, after, mode, actor, new_id)
    if last is not None:
        return last
    resumed = bool(await tx.fetch("resume_job", job=job))
    if resumed:
        await tx.fetch("unpark", job=job)
        await audit.note(tx, "job", job, "resumed", actor, {"catch_up": mode})
        await expectations.anew(tx, "job", job)
    return resumed


class Cancelled(msgspec.Struct, frozen=True):
    """Number of runs that ended at once, and of those that were asked to stop; and the job's facts after that."""

    ended: int = 0
    asked: int = 0
    facts: JobFacts | None = None

    @property
    def total(self) -> int:
        return self.ended + self.asked

    def __add__(self, other: Cancelled) -> Cancelled:
        return Cancelled(self.ended + other.ended, self.asked + other.asked)


async def cancel(
    database: Database, job: str, reason: str | None, actor: str | None, new_id: NewId, *, declared: Declared
) -> Cancelled:
    """Cancel a job: its schedules first, so that no new runs come, then its live runs.

    In batches, so that workers get their turn in between. A job without schedules, or with few, and with few runs takes
    one transaction for the former and one for the latter.
    """
    order = _Order(job, reason, actor, new_id())
    after: str | None = NIL_ID
    begun: _Begun | None = None
    while after is not None and begun is None:
        after, begun = await database.transact(
            partial(_disable_some, order=order, after=after, new_id=new_id, declared=declared)
        )
    if begun is None:
        begun = await database.transact(partial(_cancel_first, order=order))
    if begun.whole:
        return begun.done
    total = begun.done
    for _ in range(_ROUNDS):  # a run that moved between waiting and running between two reads is met in the next round
        batch = await _cancel_running(database, order) + await _cancel_waiting(database, order)
        total += batch
        if not batch.total:
            break
    (after_all,) = await database.read(lambda tx: facts(tx, [job]))
    return msgspec.structs.replace(total, facts=after_all)


async def cancel_left(
    database: Database, job: str, run_ids: Sequence[str], reason: str | None, actor: str | None, new_id: NewId
) -> None:
    """Cancel these runs of a job that was dropped, and no others: a new job may have its name by now."""
    order = _Order(job, reason, actor, new_id())
    for run_id in run_ids:
        await database.transact(partial(_cancel_all, rows=[(run_id,)], order=order))


async def left_of(tx: Tx, job: str) -> list[str]:
    """Return the ids of the job's live runs that nobody has asked to stop."""
    ((last,),) = await tx.fetch("last_waiting") or [(NIL_ID,)]
    waiting = await tx.fetch("waiting_of", job=job, after=NIL_ID, last=str(last), limit=_ALL)
    return [str(id) for (id,) in (*await tx.fetch("running_of", job=job), *waiting)]


class _Order(msgspec.Struct, frozen=True):
    """One cancel of a job, which takes many transactions.

    `act` identifies it: the first transaction that changes anything notes it.
    """

    job: str
    reason: str | None
    actor: str | None
    act: str

    async def note(self, tx: Tx) -> None:
        details = {"reason": self.reason, "act": self.act}
        await audit.note_once(tx, "job", self.job, "cancelled", self.actor, details)


class _Begun(msgspec.Struct, frozen=True):
    """Result of the first transaction that cancels runs. `whole`: nothing is left to do."""

    done: Cancelled
    whole: bool


async def _disable_some(
    tx: Tx, order: _Order, after: str, new_id: NewId, *, declared: Declared
) -> tuple[str | None, _Begun | None]:
    """Disable a batch of schedules. If there are none, begin with the runs."""
    await require_known(tx, order.job, declared)
    count, last = await schedules_of_job.disable_schedules_of(tx, order.job, after, order.actor, new_id)
    if count:
        # Not in the same transaction with the runs: what was due may have been planned under limits just now, and
        # limits come after runs in the order of locks.
        await order.note(tx)
        return last, None
    return None, await _cancel_first(tx, order)


async def _cancel_first(tx: Tx, order: _Order) -> _Begun:
    """Cancel a first batch of runs, as one statement sees them: so none is missed because it moves meanwhile.

    At most one lease is locked here: a completion locks many at once, in its own order.
    """
    rows = await tx.fetch("live_of", job=order.job, limit=_BITE + 1)
    claimed = [(id,) for id, is_claimed in rows if is_claimed]
    waiting = [(id,) for id, is_claimed in rows if not is_claimed][:_BITE]
    done = await _cancel_all(tx, [*claimed[:1], *waiting], order)
    if len(claimed) > 1 or len(rows) > _BITE:
        return _Begun(done, whole=False)
    (after_all,) = await facts(tx, [order.job])
    return _Begun(msgspec.structs.replace(done, facts=after_all), whole=True)


async def _cancel_running(database: Database, order: _Order) -> Cancelled:
    """Cancel claimed runs, one transaction each.

    In one transaction this could deadlock: a completion locks many leases at once, in its own order.
    """
    running = await database.read(lambda tx: tx.fetch("running_of", job=order.job))
    done = Cancelled()
    for row in running:
        done += await database.transact(partial(_cancel_all, rows=[row], order=order))
    return done


async def _cancel_waiting(database: Database, order: _Order) -> Cancelled:
    """Cancel the runs that waited at the beginning.

    Bounded by the newest of them, so that a client which enqueues faster than this cancels does not keep it busy.
    """
    last = NIL_ID
    for (newest,) in await database.read(lambda tx: tx.fetch("last_waiting")):
        last = str(newest)
    after, done = NIL_ID, Cancelled()
    while batch := await database.read(partial(_waiting, job=order.job, after=after, last=last)):
        done += await database.transact(partial(_cancel_all, rows=batch, order=order))
        (final,) = batch[-1]
        after = str(final)
        await asyncio.sleep(0)
    return done


async def _waiting(tx: Tx, job: str, after: str, last: str) -> Sequence[Row]:
    return await tx.fetch("waiting_of", job=job, after=after, last=last, limit=_BITE)


async def _cancel_all(tx: Tx, rows: Sequence[Row], order: _Order) -> Cancelled:
    done = Cancelled()
    for (run_id,) in rows:
        try:
            state = await cancels.cancel(tx, str(run_id), order.reason, order.actor)
        except (NotCancellable, RunIsFinal, UnknownRun):  # it cannot be stopped, or has ended meanwhile
            continue
        done += Cancelled(ended=1) if state is RunState.CANCELLED else Cancelled(asked=1)
    if done.total:
        await order.note(tx)
    return done


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
    job, paused_at, paused_by, reason, running, running_since, waiting, due_at, planned_at = row
    return JobFacts(
        job=job,
        paused_at=paused_at,
        paused_by=paused_by,
        pause_reason=reason,
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
    tally = await statistics.tally(tx, job)  # first: it begins a snapshot
    await require_known(tx, job, declared)
    (live,) = map(_facts, await tx.fetch("job_facts", [(job,)]))
    return stats_of(job, tally, live.running_since, next_at(live))


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
    for made in () if request is None else await idempotency.asked_before(tx, request):
        return await read.run_within(tx, made, within)
    newest, _ = await newest_run(tx, job, within) or (None, None)
    return None if newest is None else await enqueue.retry_facts(tx, newest)


async def newest_run(tx: Tx, job: str, within: Scope | None = None) -> tuple[str, RunState | None] | None:
    """Return the id and final state (None while it is live) of the job's newest run. Skipped runs do not count."""
    if within is None:
        rows = await tx.fetch("newest_run", job=job)
    else:
        rows = await tx.fetch("newest_run_within", job=job, kind=within.kind, name=within.id, walk=_WALK)
    for id, state in rows:
        return str(id), RunState(state) if state else None
    return None
