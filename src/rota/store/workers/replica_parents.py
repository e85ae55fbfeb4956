"""Runs with replicas: begun when they are due, looked after while their replicas live, ended after the last of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.ledger.audit import CONDUCTS
from rota.core.limits.limits import LimitedRun
from rota.core.limits.lines import line_key
from rota.core.runs.claim import NIL_ID
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import EndedRun
from rota.core.runs.run import RunError
from rota.core.states import RunState
from rota.core.workers.replicas import Finish, More, Replica, Replicas, Stop, decide, done_share, result_of
from rota.core.workers.requirements import REPLICA, meets
from rota.core.workers.worker import Worker, WorkerState
from rota.errors import NotCancellable, RunIsFinal, UnknownRun
from rota.store.databases.database import Database, Row, Tx
from rota.store.databases.pinned_plans import last_of, walk_indexes
from rota.store.ledger import audit
from rota.store.limits import admit, quotas
from rota.store.runs import cancel, read
from rota.store.runs.end import EndedRuns, end
from rota.store.workers import replicas, requirements
from rota.store.workers.workers import list_workers
from rota.values.actor import POLICY
from rota.values.durations import in_micros
from rota.values.scope import Scope

CONDUCTING = f"{POLICY}replicas"
_BATCH = 100
_WATCHED = 100
_ONE = Replicas(count=1)


class ConductResult(msgspec.Struct, frozen=True):
    """Result of a step, and how soon the next run to conduct is due (µs): it was, if it waits for workers.

    `ended`: how runs ended by it, replicas among them.
    """

    count: int
    next_in: int | None
    ended: list[EndedRun]


class _Parent(msgspec.Struct, frozen=True):
    id: str
    fence: int
    attempt: int
    policy: Replicas
    since: int
    cancel_at: int | None
    job: str
    queue: str
    scope: Scope


class ReplicaStore:
    """Any number of processes may do all of this at once: a run that one of them is at, the others pass over."""

    def __init__(self, database: Database, new_id: Callable[[], str]) -> None:
        self._database = database
        self._new_id = new_id
        self._looked_to = NIL_ID

    async def step(self, *, absent: bool) -> ConductResult:
        """`absent`: look, too, for replicas whose worker is gone."""
        # One cheap question first: mostly there is nothing to conduct, and every server asks again and again.
        next_in, looks, conducts = await self._database.glance(_work)
        ended: list[EndedRun] = []
        count = await self._begin_due() if next_in is not None and next_in <= 0 else 0
        if looks:
            count += await self._look(ended)
        if absent and conducts:
            count += await self._give_up_absent(ended)
        return ConductResult(count, next_in, ended)

    async def replicas(self, part: str, within: Scope | None = None) -> list[Replica]:
        return await read.about(self._database, part, within, replicas.of_run)

    async def _begin_due(self) -> int:
        # `after`, because parents that wait for workers stay due: the next batch must not begin with them again.
        count, after = 0, (0, NIL_ID)
        while True:
            begun = await self._database.transact(partial(_begin_some, after=after, new_id=self._new_id), acts=True)
            count += begun.count
            if begun.last is None:
                return count
            after = begun.last

    async def _look(self, ended: list[EndedRun]) -> int:
        """Decided under the lock of the run; needless replicas are stopped afterwards, each in its own transaction,
        because a report that ends one holds its lease first. What is cut short, the next look finds again."""
        looked = await self._database.transact(partial(_look_at_some, new_id=self._new_id), acts=True)
        ended += looked.ended
        for run_id, reason in looked.needless:
            ended += await self._database.transact(partial(_stop, run_id=run_id, reason=reason))
        return looked.count

    async def _give_up_absent(self, ended: list[EndedRun]) -> int:
        # Found without locks. `_expire` and `_let_others` look again under them, in a transaction for each replica, so
        # that none of its locks is held while another is waited for.
        gone, last = await self._database.read(partial(_absent, after=self._looked_to))
        self._looked_to = last or NIL_ID
        for run_id, worker, bound in gone:
            give_up = _expire if bound else _let_others
            ended += await self._database.transact(partial(give_up, run_id=run_id, worker=worker), acts=True)
        return len(gone)


class _Begun(msgspec.Struct, frozen=True):
    """`last`: where the next look goes on, if there may be more."""

    count: int
    last: tuple[int, str] | None


class _Looked(msgspec.Struct, frozen=True):
    count: int
    needless: list[tuple[str, str]]
    ended: list[EndedRun]


async def _work(tx: Tx) -> tuple[int | None, int, int]:
    ((next_in, looks, conducts),) = await tx.fetch("work_to_conduct")
    return next_in, int(looks), int(conducts)


async def _begin_some(tx: Tx, after: tuple[int, str], new_id: Callable[[], str]) -> _Begun:
    """Whatever waits for workers that are not there is passed over, and looked at again."""
    # The ready row of the parent first, as a claim would take it; the rows of its replicas are new.
    due = await tx.fetch("lock_due_conducts", after_at=after[0], after_id=after[1], limit=_BATCH)
    jobs: dict[str, JobDefinition | None] = {}
    alive: list[Worker] | None = None
    count = 0
    limited: list[LimitedRun] = []
    for run_id, fence, attempt, _, job, queue, *scope in due:
        if job not in jobs:
            jobs[job] = await read.job(tx, job)
        definition = jobs[job]
        policy = (definition.replicas if definition else None) or _ONE
        if policy.all and alive is None:
            # Read once for the batch, and only if one of them is for all workers.
            alive = [worker for worker in await list_workers(tx) if worker.state is WorkerState.WORKING]
        names = await _eligible_workers(tx, str(run_id), job, queue, alive or []) if policy.all else []
        if policy.all and not names:
            continue
        parent = _Parent(str(run_id), fence + 1, attempt + 1, policy, 0, None, job, queue, Scope(*scope))
        limited += await _begin(tx, parent, More(policy.count or 0, tuple(names)), new_id)
        tx.wake(queue)
        count += 1
    # Limits last and all at once, whatever the number of parents.
    await admit.open_for(tx, limited)
    if len(due) < _BATCH:
        return _Begun(count, None)
    run_id, _, _, run_at, *_ = due[-1]
    return _Begun(count, (int(run_at), str(run_id)))


async def _eligible_workers(tx: Tx, run_id: str, job: str, queue: str, alive: Sequence[Worker]) -> list[str]:
    """The names of the workers that may do it."""
    required = await requirements.requirements_of_run(tx, run_id)
    able = [worker for worker in alive if queue in worker.queues and job in worker.jobs]
    return sorted({worker.name for worker in able if meets(worker, required)})


async def _begin(tx: Tx, parent: _Parent, more: More, new_id: Callable[[], str]) -> list[LimitedRun]:
    await tx.fetch("drop_ready", id=parent.id)
    await tx.fetch("drop_gates", [(parent.id,)])  # it waited, as one run; from now on its replicas do
    policy = msgspec.json.encode(parent.policy).decode()
    await tx.fetch("insert_conduct", id=parent.id, fence=parent.fence, attempt=parent.attempt, policy=policy)
    change = {"from": RunState.SCHEDULED, "to": RunState.WAITING, "replicas": more.count or len(more.workers)}
    await audit.note(tx, "run", parent.id, CONDUCTS, CONDUCTING, change, fence=parent.fence)
    limited = await _make(tx, parent, more, new_id)
    await _show_progress(tx, parent)
    return limited


async def _make(tx: Tx, parent: _Parent, more: More, new_id: Callable[[], str]) -> list[LimitedRun]:
    """Replicas are what runs: each is under the quota of its scope, and under live limits. They were asked for with
    their parent, so that none is refused because too many wait. Returns those for which limits are to be opened, all of
    a transaction at once."""
    bound = bool(more.workers)
    under = await quotas.under(tx, [parent.scope], [(parent.job, parent.queue)])
    gates = under.gates(parent.job, parent.queue, parent.scope)
    children = [(new_id(), worker) for worker in more.workers or (None,) * more.count]
    await requirements.keep(tx, {REPLICA: "{}"})
    await tx.fetch("insert_replica_runs", [(id, parent.id) for id, _ in children])
    await tx.fetch("insert_replicas", [(parent.id, id, worker, int(bound)) for id, worker in children])
    await tx.fetch("insert_replica_waits", [(parent.id, id) for id, _ in children])
    # After the runs, whose columns these rows repeat.
    await tx.fetch("insert_replica_readies", [(*child, line_key(gates)) for child in children])
    gated = [LimitedRun(id, parent.job, gates) for id, _ in children] if gates else []
    await admit.place(tx, gated)
    return gated


async def _look_at_some(tx: Tx, new_id: Callable[[], str]) -> _Looked:
    parents = [_parent(row) for row in await tx.fetch("lock_looks", limit=_BATCH)]
    needless: list[tuple[str, str]] = []
    settled: list[Row] = []
    ended: list[EndedRun] = []
    limited: list[LimitedRun] = []
    for parent in parents:
        # A statement of its own: the one that waited for the lock may not see what its last holder did.
        own_replicas = await replicas.of_run(tx, parent.id)
        decision = decide(
            parent.policy,
            own_replicas,
            cancelling=parent.cancel_at is not None,
            stoppable=await _stoppable(tx, parent.id),
        )
        match decision:
            case Stop(run_ids):
                reason = "its run was cancelled" if parent.cancel_at is not None else _FAILED
                needless += [(id, reason) for id in run_ids]
                continue  # to be looked at again, until they are stopped
            case Finish(state):
                if state is RunState.CANCELLED and parent.cancel_at is None:
                    await tx.fetch("note_cancel", id=parent.id, reason=_NOBODY_LEFT, actor=CONDUCTING)
                await _end(tx, parent, state, own_replicas, ended)
            case More():
                limited += await _make(tx, parent, decision, new_id)
                tx.wake(parent.queue)
        settled.append((parent.id,))
        if not isinstance(decision, Finish):
            await _show_progress(tx, parent)
    await admit.open_for(tx, limited)
    if settled:
        # Under the locks of the parents: a replica that ends meanwhile waits for them, and sets the mark anew.
        await tx.fetch("looked_at", settled)
    return _Looked(len(parents), needless, ended)


_FAILED = "more replicas of its run failed than may"
_NOBODY_LEFT = "none of the workers that it was for may do it any more"


async def _stoppable(tx: Tx, run_id: str) -> bool:
    """Return whether its replicas may be cancelled, as a cancel of them will see it."""
    ((_, _, definition),) = await tx.fetch("cancel_facts", id=run_id)
    return cancel.cancel_policy(definition).supported


async def _show_progress(tx: Tx, parent: _Parent) -> None:
    done, summary = done_share(parent.policy, await replicas.of_run(tx, parent.id))
    await tx.fetch("put_progress", [(parent.id, parent.fence, done, summary)])


async def _end(
    tx: Tx, parent: _Parent, state: RunState, own_replicas: Sequence[Replica], ended: list[EndedRun]
) -> None:
    ended.append(EndedRun(state, parent.job, parent.queue))
    await tx.fetch("end_conduct", id=parent.id)
    error = _error(own_replicas) if state is RunState.FAILED else None
    await tx.fetch(
        "end_conducted",
        id=parent.id,
        state=state.value,
        attempt=parent.attempt,
        fence=parent.fence + 1,
        since=parent.since,
        result=result_of(own_replicas),
        error=error,
    )
    before = RunState.WAITING if parent.cancel_at is None else RunState.CANCELLING
    notes = {state.value: [(parent.id, CONDUCTING, parent.fence + 1, {"from": before, "to": state})]}
    ended += (await end(tx, EndedRuns({parent.id: state.value}, notes=notes))).in_vain


def _error(own_replicas: Sequence[Replica]) -> str:
    failed = [each for each in own_replicas if each.counts and each.failed and each.state is not RunState.CANCELLED]
    details = "; ".join(f"{each.worker or each.run_id}: {each.error or each.state.value}" for each in failed[:5])
    more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
    words = f"{len(failed)} replica{'' if len(failed) == 1 else 's'} failed: {details}{more}"
    reasons = "; ".join(sorted({replica.error or replica.state.value for replica in failed}))
    return stored_error(RunError(type="ReplicasFailed", message=words[:2_000]), telling=reasons)


def _parent(row: Row) -> _Parent:
    run_id, fence, attempt, policy, since, cancel_at, job, queue, *scope = row
    replica_policy = msgspec.json.decode(policy, type=Replicas)
    return _Parent(str(run_id), fence, attempt, replica_policy, since, cancel_at, job, queue, Scope(*scope))


async def _stop(tx: Tx, run_id: str, reason: str) -> list[EndedRun]:
    """Cancel a replica; return how it ended, if it did: one that runs is asked to."""
    try:
        state = await cancel.cancel(tx, run_id, reason, CONDUCTING)
    except (NotCancellable, RunIsFinal, UnknownRun):  # it goes on to its end, or has ended meanwhile
        return []
    return [await _ended(tx, run_id, state)] if state.is_final else []


async def _ended(tx: Tx, run_id: str, state: RunState) -> EndedRun:
    ((job, queue),) = await tx.fetch("job_and_queue", id=run_id)
    return EndedRun(state, job, queue)


async def _absent(tx: Tx, after: str) -> tuple[list[tuple[str, str, bool]], str | None]:
    """Replicas whose worker was not heard of for too long, its name, and whether nobody else may have them; of some
    runs, in turn, and of which the last."""
    # Pinned: this is asked again and again, and PostgreSQL may guess that to read whole tables is cheaper.
    await walk_indexes(tx)
    parents = [(str(id),) for (id,) in await tx.fetch("conducts_after", after=after, limit=_WATCHED)]
    ((now,),) = await tx.fetch("now")
    absent = []
    for run_id, worker, bound, policy, since, seen_at, ended_at in await tx.fetch("absent_replicas", parents):
        heard_at = max(at for at in (since, seen_at, ended_at) if at is not None)
        if heard_at < int(now) - in_micros(msgspec.json.decode(policy, type=Replicas).absent_after):
            absent.append((str(run_id), str(worker), bool(bound)))
    return absent, last_of(parents, _WATCHED)


async def _expire(tx: Tx, run_id: str, worker: str) -> list[EndedRun]:
    expired = await cancel.expire_unclaimed(tx, run_id, f"worker {worker} is gone", CONDUCTING)
    return [await _ended(tx, run_id, RunState.EXPIRED)] if expired else []


async def _let_others(tx: Tx, run_id: str, worker: str) -> list[EndedRun]:
    """Free a replica that was to be tried again by a worker that is gone; nothing ends. If somebody has it by now,
    nothing happens.
    """
    for queue, need in await tx.fetch("lock_replica_of_absent", id=run_id, worker=worker):
        # Its ready row is locked, so that the worker, if it is back, cannot claim it between these statements.
        await replicas.free(tx, [run_id])
        await tx.fetch("hold_for_needs", [(run_id, need)])
        tx.wake(queue)
    return []
