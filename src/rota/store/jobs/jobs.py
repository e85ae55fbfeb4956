"""What is done to a job as a whole: paused, resumed, cancelled; and the facts that its state is derived from."""

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
"""How many of a job's newest runs are looked at for one that has ended."""


async def pause(database: Database, job: str, reason: str | None, actor: str | None, new_id: NewId) -> None:
    """Nothing is claimed from now on; its schedules follow in bites. What was cut short, another pause finishes."""

    async def body(tx: Tx) -> None:
        await change.require_job(tx, job)  # one that was dropped meanwhile would be made again paused
        if await tx.fetch("pause_job", job=job, reason=reason, actor=actor):
            await audit.note(tx, "job", job, "paused", actor, {"reason": reason})

    await database.transact(body)
    after: str | None = NIL_ID
    while after is not None:
        after = await database.transact(
            partial(schedules_of_job.pause_schedules_of, job=job, after=after, actor=actor, new_id=new_id)
        )


async def resume(database: Database, job: str, mode: str, actor: str | None, new_id: NewId) -> bool:
    """Whether it was paused; if not, nothing changes. The pause itself goes last, so that it can be repeated."""
    after: str | bool = NIL_ID
    while isinstance(after, str):
        after = await database.transact(
            partial(_resume_some, job=job, after=after, mode=mode, actor=actor, new_id=new_id)
        )
    return after


async def _resume_some(tx: Tx, job: str, after: str, mode: str, actor: str | None, new_id: NewId) -> str | bool:
    """Where to go on, or whether the job was paused."""
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
    """Runs that ended at once, and that were asked to stop."""

    ended: int = 0
    asked: int = 0

    @property
    def total(self) -> int:
        return self.ended + self.asked

    def __add__(self, other: Cancelled) -> Cancelled:
        return Cancelled(self.ended + other.ended, self.asked + other.asked)


async def cancel(database: Database, job: str, reason: str | None, actor: str | None, new_id: NewId) -> Cancelled:
    """Its schedules first, so that no new runs come; then its live runs, in bites, so that workers come in between."""
    order = _Order(job, reason, actor, new_id())
    after: str | None = NIL_ID
    while after is not None:
        after = await database.transact(partial(_disable_some, order=order, after=after, new_id=new_id))
    all_of_them = Cancelled()
    for _ in range(_ROUNDS):  # a run that changed places between two looks is met in the next round
        some = await _cancel_running(database, order) + await _cancel_waiting(database, order)
        all_of_them += some
        if not some.total:
            break
    return all_of_them


async def cancel_left(
    database: Database, job: str, run_ids: Sequence[str], reason: str | None, actor: str | None, new_id: NewId
) -> None:
    """These runs of a job that was dropped, and no others: there may be a new one of its name by now."""
    order = _Order(job, reason, actor, new_id())
    for run_id in run_ids:
        await database.transact(partial(_cancel_all, rows=[(run_id,)], order=order))


async def left_of(tx: Tx, job: str) -> list[str]:
    """Its live runs that nobody has asked to stop."""
    ((last,),) = await tx.fetch("last_waiting") or [(NIL_ID,)]
    waiting = await tx.fetch("waiting_of", job=job, after=NIL_ID, last=str(last), limit=_ALL)
    return [str(row[0]) for row in (*await tx.fetch("running_of", job=job), *waiting)]


class _Order(msgspec.Struct, frozen=True):
    """A job's cancel. `act` names it, because it takes many transactions: the first that changes anything notes it."""

    job: str
    reason: str | None
    actor: str | None
    act: str

    async def note(self, tx: Tx) -> None:
        told = {"reason": self.reason, "act": self.act}
        await audit.note_once(tx, "job", self.job, "cancelled", self.actor, told)


async def _disable_some(tx: Tx, order: _Order, after: str, new_id: NewId) -> str | None:
    last = await schedules_of_job.disable_schedules_of(tx, order.job, after, order.actor, new_id)
    if last is not None:
        await order.note(tx)
    return last


async def _cancel_running(database: Database, order: _Order) -> Cancelled:
    """One transaction each: a completion holds many leases at once, in an order of its own."""
    running = await database.read(lambda tx: tx.fetch("running_of", job=order.job))
    done = Cancelled()
    for row in running:
        done += await database.transact(partial(_cancel_all, rows=[row], order=order))
    return done


async def _cancel_waiting(database: Database, order: _Order) -> Cancelled:
    """Those that are there at the beginning: whoever enqueues faster than this cancels does not keep it busy."""
    newest = await database.read(lambda tx: tx.fetch("last_waiting"))
    last = str(newest[0][0]) if newest else NIL_ID
    after, done = NIL_ID, Cancelled()
    while bite := await database.read(partial(_waiting, job=order.job, after=after, last=last)):
        done += await database.transact(partial(_cancel_all, rows=bite, order=order))
        after = str(bite[-1][0])
        await asyncio.sleep(0)
    return done


async def _waiting(tx: Tx, job: str, after: str, last: str) -> Sequence[Row]:
    return await tx.fetch("waiting_of", job=job, after=after, last=last, limit=_BITE)


async def _cancel_all(tx: Tx, rows: Sequence[Row], order: _Order) -> Cancelled:
    done = Cancelled()
    for (run_id,) in rows:
        try:
            state = await cancels.cancel(tx, str(run_id), order.reason, order.actor)
        except (NotCancellable, RunIsFinal, UnknownRun):  # it goes on to its end, or has ended meanwhile
            continue
        done += Cancelled(ended=1) if state is RunState.CANCELLED else Cancelled(asked=1)
    if done.total:
        await order.note(tx)
    return done


async def facts(tx: Tx, jobs: Sequence[str]) -> list[JobFacts]:
    names = [(job,) for job in jobs]
    if not names:
        return []
    found = {row[0]: _facts(row) for row in await tx.fetch("job_facts", names)}
    # Looked at afterwards: a run that ended in between is among them, or was running still.
    newest = {row[0]: row[1:] for row in await tx.fetch("newest_ended", names, walk=_WALK)}
    unbegun = [(job,) for job, (_, started_at, _) in newest.items() if started_at is None]
    begun = {row[0]: row[1] for row in await tx.fetch("newest_begun", unbegun, walk=_WALK)} if unbegun else {}
    return [await _with_end(tx, found[job], newest.get(job), begun.get(job)) for job in jobs]


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


async def _with_end(tx: Tx, found: JobFacts, newest: Row | None, begun: int | None) -> JobFacts:
    """`begun` is when an older one began, if the newest never did."""
    if newest is None:  # it never ran, all of its runs were pruned, or too many wait after the last one that ended
        counted = await statistics.counted_tally(tx, found.job)
        return msgspec.structs.replace(found, began_at=counted.began_at, ended=counted.ended)
    state, started_at, finished_at = newest
    if started_at is None and state == RunState.EXPIRED:
        started_at = finished_at
    if started_at is None:
        started_at = begun if begun is not None else (await statistics.counted_tally(tx, found.job)).began_at
    return msgspec.structs.replace(found, began_at=started_at, ended=state)


async def stats(tx: Tx, job: str) -> JobStats:
    tally = await statistics.tally(tx, job)
    (found,) = map(_facts, await tx.fetch("job_facts", [(job,)]))
    return stats_of(job, tally, found.running_since, next_at(found))


async def retry_newest(tx: Tx, run: NewRun, request: KeyHold | None) -> Enqueued | None:
    """None, and nothing is done, if the run that it repeats is not its job's newest any more.

    Two that retry the same one wait for each other at the old run: the second finds the retry of the first.
    """
    await enqueue.hold_jobs(tx, [run])  # jobs before runs, as everybody
    await tx.fetch("lock_runs", [(run.retry_of,)])
    if not await tx.fetch("which_exist", [(run.id,)]):  # else it was done before, and its answer got lost
        for made in () if request is None else await idempotency.asked_before(tx, request):
            return Enqueued(made, False)
        for (live,) in await tx.fetch("live_retry", id=run.retry_of):  # which a clock set back may let look older
            raise NothingToRetry(run.job, str(live), None)
        newest = await newest_run(tx, run.job)
        if newest is None or newest[0] != run.retry_of:
            return None
    (answer,) = await enqueue.enqueue_again(tx, [run])
    return answer


async def newest_run(tx: Tx, job: str) -> tuple[str, RunState | None] | None:
    """Its id and final state, None while it is live; skipped ones do not count."""
    rows = await tx.fetch("newest_run", job=job)
    return (str(rows[0][0]), RunState(rows[0][1]) if rows[0][1] else None) if rows else None
