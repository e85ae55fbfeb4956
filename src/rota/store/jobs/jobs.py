"""Operations on a job as a whole: pause, resume, cancel, and the facts that its state is derived from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from rota.core.jobs.status import JobFacts, next_at
from rota.core.jobs.unique import KeyHold
from rota.core.monitoring.statistics import JobStats, stats_of
from rota.core.runs.claim import NIL_ID
from rota.core.runs.run import Enqueued, NewRun
from rota.core.states import RunState
from rota.errors import NotCancellable, NothingToRetry, RunIsFinal, UnknownRun
from rota.store.alerts import expectations
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.store.monitoring import statistics
from rota.store.planning.plan import NewId
from rota.store.runs import cancel as cancels
from rota.store.runs import enqueue, idempotency
from rota.store.schedules import change, schedules_of_job

_BITE = 200
_ALL = 2**31 - 1
_ROUNDS = 5
_WALK = 50_000
"""How many of a job's newest runs are searched for one that has ended."""


async def pause(database: Database, job: str, reason: str | None, actor: str | None, new_id: NewId) -> None:
    """Pause a job, and then its schedules in batches.

    From the first transaction on nothing of it is claimed. If the rest is cut short, another pause finishes it.
    """

    async def body(tx: Tx) -> None:
        # The job's lock, before the cursors of its schedules. A pause of a dropped job would outlive it: the next job
        # of this name would be born paused.
        await change.require_job(tx, job)
        if await tx.fetch("pause_job", job=job, reason=reason, actor=actor):
            await audit.note(tx, "job", job, "paused", actor, {"reason": reason})

    await database.transact(body)
    after: str | None = NIL_ID
    while after is not None:
        after = await database.transact(
            partial(schedules_of_job.pause_schedules_of, job=job, after=after, actor=actor, new_id=new_id)
        )


async def resume(database: Database, job: str, mode: str, actor: str | None, new_id: NewId) -> bool:
    """Resume a job's schedules in batches, and then the job. Return whether it was paused.

    The pause is deleted last, so that a resume which was cut short can be repeated.
    """
    after: str | bool = NIL_ID
    while isinstance(after, str):
        after = await database.transact(
            partial(_resume_some, job=job, after=after, mode=mode, actor=actor, new_id=new_id)
        )
    return after


async def _resume_some(tx: Tx, job: str, after: str, mode: str, actor: str | None, new_id: NewId) -> str | bool:
    """Resume a batch of schedules. Return the id to continue after, or, at the end, whether the job was paused."""
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
    """Number of runs that ended at once, and of those that were asked to stop."""

    ended: int = 0
    asked: int = 0

    @property
    def total(self) -> int:
        return self.ended + self.asked

    def __add__(self, other: Cancelled) -> Cancelled:
        return Cancelled(self.ended + other.ended, self.asked + other.asked)


async def cancel(database: Database, job: str, reason: str | None, actor: str | None, new_id: NewId) -> Cancelled:
    """Cancel a job: its schedules first, so that no new runs come, then its live runs.

    In batches, so that workers get their turn in between.
    """
    order = _Order(job, reason, actor, new_id())
    after: str | None = NIL_ID
    while after is not None:
        after = await database.transact(partial(_disable_some, order=order, after=after, new_id=new_id))
    total = Cancelled()
    for _ in range(_ROUNDS):  # a run that moved between waiting and running between two reads is met in the next round
        batch = await _cancel_running(database, order) + await _cancel_waiting(database, order)
        total += batch
        if not batch.total:
            break
    return total


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


async def _disable_some(tx: Tx, order: _Order, after: str, new_id: NewId) -> str | None:
    last = await schedules_of_job.disable_schedules_of(tx, order.job, after, order.actor, new_id)
    if last is not None:
        await order.note(tx)
    return last


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
    return [await _with_end(tx, live[job], newest.get(job), begun.get(job)) for job in jobs]


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


async def _with_end(tx: Tx, live: JobFacts, newest: Row | None, begun: int | None) -> JobFacts:
    """Add when the newest run began and how it ended. `begun` is when an older run began, if the newest never did."""
    if newest is None:  # it never ran, all of its runs were pruned, or too many wait after the last one that ended
        counted = await statistics.counted_tally(tx, live.job)
        return msgspec.structs.replace(live, began_at=counted.began_at, ended=counted.ended)
    state, started_at, finished_at = newest
    if started_at is None and state == RunState.EXPIRED:
        started_at = finished_at
    if started_at is None:
        started_at = begun if begun is not None else (await statistics.counted_tally(tx, live.job)).began_at
    return msgspec.structs.replace(live, began_at=started_at, ended=state)


async def stats(tx: Tx, job: str) -> JobStats:
    tally = await statistics.tally(tx, job)
    (live,) = map(_facts, await tx.fetch("job_facts", [(job,)]))
    return stats_of(job, tally, live.running_since, next_at(live))


async def retry_newest(tx: Tx, run: NewRun, request: KeyHold | None) -> Enqueued | None:
    """Enqueue a retry of the job's newest run. Return None, and do nothing, if it is not the newest any more.

    Two retries of the same run wait for each other at the old run's row: the second finds the retry of the first.
    """
    await enqueue.hold_jobs(tx, [run])  # lock order: jobs before runs
    await tx.fetch("lock_runs", [(run.retry_of,)])
    if not await tx.fetch("which_exist", [(run.id,)]):  # else an earlier try, whose answer got lost, has committed
        for made in () if request is None else await idempotency.asked_before(tx, request):
            return Enqueued(made, False)
        # Ids tell the time: after a clock was set back, the retry may look older than the run that it repeats.
        for (live,) in await tx.fetch("live_retry", id=run.retry_of):
            raise NothingToRetry(run.job, str(live), None)
        newest, _ = await newest_run(tx, run.job) or (None, None)
        if newest is None or newest != run.retry_of:
            return None
    (answer,) = await enqueue.enqueue_again(tx, [run])
    return answer


async def newest_run(tx: Tx, job: str) -> tuple[str, RunState | None] | None:
    """Return the id and final state (None while it is live) of the job's newest run. Skipped runs do not count."""
    for id, state in await tx.fetch("newest_run", job=job):
        return str(id), RunState(state) if state else None
    return None
