"""Cancel a job as a whole: it is held, its schedules rest, and its live runs end, until it is resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import JobFacts, JobVerb, Standing, require_verb
from rota.core.runs.claim import NIL_ID
from rota.core.states import RunState
from rota.errors import NotCancellable, RunIsFinal, UnknownRun
from rota.store.databases.database import Database, Row, Tx
from rota.store.jobs import jobs
from rota.store.jobs.jobs import Declared
from rota.store.ledger import audit
from rota.store.planning.plan import NewId
from rota.store.runs import cancel as cancels
from rota.store.runs import read
from rota.store.schedules import schedules_of_job

Check = Callable[[JobDefinition | None], None] | None
_BITE = 200
_ALL = 2**31 - 1
_ROUNDS = 5
_MOST_NAMED = 500


class Cancelled(msgspec.Struct, frozen=True):
    """Number of runs that ended at once, and of those that were asked to stop; the job's facts after that.

    `schedules`: the names of those that rest because of it.
    """

    ended: int = 0
    asked: int = 0
    facts: JobFacts | None = None
    schedules: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.ended + self.asked

    def __add__(self, other: Cancelled) -> Cancelled:
        return Cancelled(self.ended + other.ended, self.asked + other.asked)


async def cancel(
    database: Database,
    job: str,
    reason: str | None,
    actor: str | None,
    new_id: NewId,
    *,
    declared: Declared,
    guarded: bool = True,
    check: Check = None,
) -> Cancelled:
    """Cancel a job: its schedules first, so that no new runs come, then its live runs.

    In batches, so that workers get their turn in between. A job without schedules, or with few, and with few runs takes
    one transaction for the former and one for the latter. From the first on nothing of the job begins. A second cancel
    finishes one that was cut short, and stops runs that came since; if nothing is left to do, it is refused. Unless
    `guarded`, nothing is refused. `check` raises to refuse it before anything changes.
    """
    order = _Order(job, reason, actor, new_id(), guarded)
    struck = await database.transact(partial(_strike, order=order, new_id=new_id, declared=declared, check=check))
    names, after = list(struck.schedules), struck.after
    while after is not None:
        rows, after = await database.transact(
            partial(schedules_of_job.cancel_schedules_of, job=job, after=after, actor=actor, new_id=new_id)
        )
        names += rows
    begun = struck.begun
    if begun is None:
        begun = await database.transact(partial(_cancel_first, order=order))
    total = begun.done
    if not begun.whole:
        total = await _cancel_rest(database, order, total)
    if struck.again and guarded and not names and not total.total:
        require_verb(job, Standing.CANCELLED, JobVerb.CANCEL)
    return msgspec.structs.replace(total, schedules=tuple(names[:_MOST_NAMED]))


async def _cancel_rest(database: Database, order: _Order, total: Cancelled) -> Cancelled:
    for _ in range(_ROUNDS):  # a run that moved between waiting and running between two reads is met in the next round
        batch = await _cancel_running(database, order) + await _cancel_waiting(database, order)
        total += batch
        if not batch.total:
            break
    (after_all,) = await database.read(lambda tx: jobs.facts(tx, [order.job]))
    return msgspec.structs.replace(total, facts=after_all)


async def cancel_left(
    database: Database, job: str, run_ids: Sequence[str], reason: str | None, actor: str | None, new_id: NewId
) -> None:
    """Cancel these runs of a job that was dropped, and no others: a new job may have its name by now."""
    order = _Order(job, reason, actor, new_id())
    for run_id in run_ids:
        await database.transact(partial(_cancel_all, rows=[(run_id,)], order=order))


async def end_left(
    tx: Tx, job: str, users: Sequence[tuple[str, bool]], reason: str | None, actor: str | None, new_id: NewId
) -> list[str]:
    """Cancel what is left of a job that this transaction drops: its live runs that nobody has asked to stop, and
    `users`, runs of pipelines that need it, each with whether somebody holds it.

    Return the ids of those that the caller has to cancel: claimed ones, because a completion locks many leases at once,
    in its own order, and all beyond a batch. Runs that wait end here, so that none is left if the caller dies: nobody
    might ever claim them.
    """
    live = [*((str(id), bool(is_held)) for id, is_held in await tx.fetch("live_of", job=job, limit=_ALL)), *users]
    held = {id for id, is_held in live if is_held}
    waiting = sorted({id for id, _ in live} - held)
    order = _Order(job, reason, actor, new_id())
    await _cancel_all(tx, [(id,) for id in waiting[:_BITE]], order)
    return sorted(held) + waiting[_BITE:]


class _Order(msgspec.Struct, frozen=True):
    """One cancel of a job, which takes many transactions.

    `act` identifies it: the first transaction that changes anything notes it.
    """

    job: str
    reason: str | None
    actor: str | None
    act: str
    guarded: bool = True

    async def note(self, tx: Tx) -> None:
        details = {"reason": self.reason, "act": self.act}
        await audit.note_once(tx, "job", self.job, "cancelled", self.actor, details)


class _Begun(msgspec.Struct, frozen=True):
    """Result of the first transaction that cancels runs. `whole`: nothing is left to do."""

    done: Cancelled
    whole: bool


class _Struck(msgspec.Struct, frozen=True):
    """Result of the first transaction. `after`: the schedule to continue after; `again`: it was cancelled before."""

    schedules: list[str]
    after: str | None
    begun: _Begun | None
    again: bool


async def _strike(tx: Tx, order: _Order, new_id: NewId, *, declared: Declared, check: Check) -> _Struck:
    """Mark the job as cancelled, with a first batch of its schedules. If it has none, begin with the runs."""
    job, actor = order.job, order.actor
    await jobs.require(tx, job, declared=declared)  # the job's lock, before the cursors of its schedules
    if check is not None:  # under that lock: nobody changes the job until this cancel has begun
        check(await read.job(tx, job))
    marked = await tx.fetch("cancel_of_job", job=job)
    again = bool(marked) and marked[0][0] != order.act  # its own act: the answer of an earlier try got lost
    was_paused = bool(await tx.fetch("job_is_paused", job=job))
    if not marked:
        await tx.fetch("cancel_job", job=job, actor=actor, reason=order.reason, act=order.act)
    rows, planned, after = await schedules_of_job.cancel_schedules_with(tx, job, NIL_ID, actor, new_id)
    begun = None if rows or after else await _cancel_first(tx, order)
    if order.guarded and not (marked or was_paused or planned) and not await _has_live(tx, job, begun):
        require_verb(job, Standing.IDLE, JobVerb.CANCEL)  # raises: all this is undone
    if not again:
        await order.note(tx)
    # With schedules, not in the same transaction with the runs: what was due may have been planned under limits just
    # now, and limits come after runs in the order of locks.
    return _Struck(rows, after, begun, again)


async def _has_live(tx: Tx, job: str, begun: _Begun | None) -> bool:
    return bool(begun.done.total if begun is not None else 0) or bool(await tx.fetch("live_of", job=job, limit=1))


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
    (after_all,) = await jobs.facts(tx, [order.job])
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
