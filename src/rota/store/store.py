"""The store: every operation on the database, each one transaction that may be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Pause, Queue
from rota.core.jobs.status import JobFacts
from rota.core.jobs.unique import KeyHold
from rota.core.monitoring.counters import Gauges
from rota.core.monitoring.statistics import JobStats
from rota.core.runs.claim import Claim, ClaimRequest, LimitedRequest, OrderedRequest, RestrictedRequest
from rota.core.runs.dependencies import is_whole
from rota.core.runs.outcome import Report
from rota.core.runs.run import (
    Attempt,
    Enqueued,
    EnqueuedRun,
    NewRun,
    Run,
    RunFilter,
    enqueued_as,
    models_of,
    with_steps,
)
from rota.core.workers.requirements import Requirements
from rota.core.workers.worker import WorkerInfo
from rota.store.access.tokens import TokenStore
from rota.store.alerts import expectations
from rota.store.alerts.expectation_operations import ExpectationStore
from rota.store.alerts.notifications import NotificationStore
from rota.store.alerts.signals import SignalStore
from rota.store.databases.database import AlreadyThere, Database, Hint, LiveLimits, Row, Tx
from rota.store.external.external import Assigned, ExternalStore, assigned
from rota.store.janitor import Upkeep
from rota.store.jobs import cancel_job, jobs, pipeline_claims, pipeline_stages
from rota.store.jobs.cancel_job import Cancelled
from rota.store.jobs.data_jobs import DataJobStore, require_free
from rota.store.jobs.executions import ExecutionStore
from rota.store.jobs.job_views import JobViewStore, queue_view
from rota.store.jobs.jobs import Declared
from rota.store.ledger import audit, occurrences
from rota.store.ledger.database_state import StandingStore
from rota.store.ledger.family import FamilyStore
from rota.store.ledger.ledger_operations import LedgerStore
from rota.store.limits import admit, rates, strays
from rota.store.limits.live import LiveLimitStore
from rota.store.limits.quotas import QuotaStore
from rota.store.limits.slots import LimitedClaims
from rota.store.monitoring import gauges
from rota.store.monitoring.changes import Watch
from rota.store.monitoring.error_groups import ErrorGroupStore
from rota.store.monitoring.monitoring_operations import MonitoringStore
from rota.store.planning.due import PlanningStore
from rota.store.progress import notes
from rota.store.progress.notes import NoteStore
from rota.store.runs import cancel, enqueue, read, report, waits
from rota.store.runs.bulk import BulkStore
from rota.store.runs.dependencies import DependencyStore
from rota.store.runs.read import RetryFacts
from rota.store.runs.report import Reaped, Reported
from rota.store.runs.search import Searching
from rota.store.schedules.schedule_operations import ScheduleStore
from rota.store.schema import migrate
from rota.store.workers import heartbeat, requirements, restrict
from rota.store.workers.claims import OrderedClaims
from rota.store.workers.due_work import DueWorkStore
from rota.store.workers.heartbeat import Extended
from rota.store.workers.replica_parents import ReplicaStore
from rota.store.workers.requirements import RestrictedClaims
from rota.store.workers.workers import WorkerStore
from rota.values.actor import is_policy
from rota.values.clock import RunIds, compare, id_clock
from rota.values.scope import GLOBAL, Scope


class Promoted(msgspec.Struct, frozen=True):
    """`next_in`: microseconds until the next run becomes due, or a rate opens; None if none waits for its time.

    `opened`: some rates have, and runs under them may be claimed.
    """

    count: int
    next_in: int | None
    opened: bool = False


class Store:
    def __init__(self, database: Database, new_id: Callable[[], str] | None = None) -> None:
        self.database = database
        self.clock = database.clock
        new_id = self.new_id = new_id or RunIds(database.clock)
        self.schedules = ScheduleStore(database, new_id)
        self.planning = PlanningStore(database, new_id)
        self.ledger = LedgerStore(database, new_id)
        self.notes = NoteStore(database)
        self.bulk = BulkStore(database)
        self.searching = Searching(database)
        self.error_groups = ErrorGroupStore(database)
        self.dependencies = DependencyStore(database)
        self.families = FamilyStore(database)
        self.watch = Watch(database)
        self.workers = WorkerStore(database)
        self.prune = Upkeep(database).prune
        self.tokens = TokenStore(database)
        self.quotas = QuotaStore(database)
        self.live_limits = LiveLimitStore(self.quotas)
        self.external = ExternalStore(database)
        self.events = audit.EventStore(database)
        self.conducts = ReplicaStore(database, new_id)
        self.due_work = DueWorkStore(database)
        self.expectations = ExpectationStore(database)
        self.signals = SignalStore(database, new_id)
        self.notifications = NotificationStore(database)
        self.data_jobs = DataJobStore(database, new_id)
        self.job_views = JobViewStore(database)
        self.executions = ExecutionStore(database)
        self.monitoring = MonitoringStore(database)
        self.standing = StandingStore(database)
        self._looked_to = strays.START
        self._emptied = strays.ShutLimits()

    def twin(self) -> Store:
        return Store(self.database.twin(), self.new_id)

    async def close(self) -> None:
        await self.database.close()

    def listen(self, hint: Hint) -> Callable[[], None]:
        return self.database.listen(hint)

    async def now(self) -> int:
        """Return the database's time; every process with an engine asks often, so a host's clock may jump."""

        async def body(tx: Tx) -> int:
            ((micros,),) = await tx.fetch("now")
            return int(micros)

        before = id_clock()
        now = await self.database.read(body)
        compare(self.clock, before, now)
        return now

    async def migrate(self, *, force: bool = False) -> list[str]:
        applied = await migrate.migrate(self.database, force=force)
        if applied:
            await self.database.renew()  # connections record where the database is when they open, if they can
        return applied

    async def require_schema(self) -> None:
        await migrate.require_served(self.database)

    async def enqueue(self, runs: Sequence[NewRun]) -> list[Enqueued]:
        """Enqueue runs, in the order given. Repeated with the same ids, after a lost answer, it gives the first one."""
        models = models_of(runs)
        scoped = {run.scope_kind for run in models} - {GLOBAL.kind}
        quotas = (bool(scoped) or self.quotas.live) and await self.quotas.concern(scoped=bool(scoped))
        try:
            # A plain run takes no lock but that of its new rows: without a transaction around it, two round trips are
            # saved.
            if not quotas and not [run for run in models if run.is_special]:
                return await self.database.alone(lambda tx: enqueue.enqueue_plain(tx, runs))
            return await self.database.transact(lambda tx: enqueue.enqueue(tx, runs, quotas=quotas))
        # The ids were sent before, and the answer got lost. In a transaction of its own: the failed one is undone.
        except AlreadyThere:
            return await self.database.transact(partial(enqueue.enqueue_again, runs=runs))
        except LiveLimits:  # nothing was enqueued
            self.quotas.live = True
            return await self.enqueue(runs)

    async def retry_facts(self, part: str, within: Scope | None = None) -> RetryFacts:
        """Read what a retry of a run is made of."""
        return await self.database.read(lambda tx: read.retry_facts(tx, part, within))

    async def retry_facts_of(self, run_ids: Sequence[str], within: Scope | None = None) -> dict[str, RetryFacts]:
        """Read the parts of the retries of runs, in one transaction."""
        return await self.database.read(lambda tx: read.retry_facts_of(tx, run_ids, within))

    async def facts_of_newest(
        self, job: str, request: KeyHold | None = None, within: Scope | None = None
    ) -> RetryFacts | Run | None:
        """Read what a retry of the job's newest run is made of; the run that the request made, if it came before."""
        return await self.database.read(lambda tx: jobs.facts_of_newest(tx, job, request, within))

    async def enqueue_retry(self, run: NewRun) -> EnqueuedRun:
        """Enqueue a retry, and return it."""

        async def body(tx: Tx) -> EnqueuedRun:
            (answer,) = await enqueue.enqueue_again(tx, [run])
            return enqueued_as(await read.get_run(tx, answer.id), created=answer.created)

        return await self.database.transact(body)

    async def enqueue_keeping(self, run: NewRun, from_step: str | None) -> EnqueuedRun:
        """Enqueue a retry with the steps that its predecessor has done: all, or those before `from_step`."""

        async def body(tx: Tx) -> EnqueuedRun:
            (answer,) = await enqueue.enqueue_again(tx, [run])
            if answer.created:
                await notes.keep_steps(tx, run.retry_of or run.id, answer.id, from_step)
                await pipeline_stages.go_on(tx, answer.id)
            return enqueued_as(await read.get_run(tx, answer.id), created=answer.created)

        return await self.database.transact(body)

    async def retry_newest(
        self, run: NewRun, request: KeyHold | None, within: Scope | None = None
    ) -> EnqueuedRun | None:
        """A retry of its job's newest run; None if that is another one by now. Of several at once, one is made."""
        return await self.database.transact(lambda tx: jobs.retry_newest(tx, run, request, within))

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim runs. Not repeated by itself: a claim that nobody knows of would keep its runs until its leases end."""
        return await self.database.transact(lambda tx: pipeline_claims.claim(tx, request), repeatable=False, acts=True)

    async def claim_in_order(self, request: OrderedRequest) -> OrderedClaims:
        """Claim the first runs of whatever kind. Not repeated by itself either."""

        async def body(tx: Tx) -> OrderedClaims:
            return await pipeline_claims.claim_in_order(tx, request, self.clock.monotonic)

        result = await self.database.transact(body, repeatable=False, acts=True)
        self._emptied.add(result.emptied)
        return result

    async def claim_assigned(self, request: OrderedRequest) -> tuple[OrderedClaims, Assigned]:
        """Claim for an external worker: with deadlines, and what its runs have done before, in one transaction."""

        async def body(tx: Tx) -> tuple[OrderedClaims, Assigned]:
            answer = await pipeline_claims.claim_in_order(tx, request, self.clock.monotonic)
            return answer, await assigned(tx, [*answer.others, *answer.plain])

        result = await self.database.transact(body, repeatable=False, acts=True)
        self._emptied.add(result[0].emptied)
        return result

    async def claim_limited(self, request: LimitedRequest) -> LimitedClaims:
        """Claim runs under limits, as far as these have free slots. Not repeated by itself either."""
        result = await self.database.transact(
            lambda tx: pipeline_claims.claim_limited(tx, request), repeatable=False, acts=True
        )
        self._emptied.add(result.emptied)
        return result

    async def claim_restricted(self, request: RestrictedRequest) -> RestrictedClaims:
        """Claim runs for workers of this kind, and replicas. Not repeated by itself either."""
        return await self.database.transact(
            lambda tx: pipeline_claims.claim_restricted(tx, request), repeatable=False, acts=True
        )

    async def known_requirements(self) -> dict[str, Requirements]:
        return await self.database.glance(requirements.known)

    async def report(self, reports: Sequence[Report]) -> Reported:
        reported = await self.database.transact(lambda tx: report.report(tx, reports))
        if reported.refused:
            await self.standing.note_lost([(stale.run_id, stale.fence) for stale in reported.refused])
        return reported

    async def extend(self, worker: WorkerInfo, held: Sequence[tuple[str, int]], lease: int) -> Extended:
        """Renew all of a worker's leases and its own sign of life."""
        standing = self.database.standing
        extended = await self.database.transact(lambda tx: heartbeat.extend(tx, worker, held, lease, standing))
        if extended.lost:
            await self.standing.note_lost([lease for lease in held if lease[0] in extended.lost])
        return extended

    async def leases_of(self, worker_id: str) -> list[tuple[str, int]]:
        async def body(tx: Tx) -> list[tuple[str, int]]:
            return [(str(id), fence) for id, fence in await tx.fetch("leases_of_worker", worker_id=worker_id)]

        return await self.database.read(body)

    async def cancelling(self, worker_id: str) -> list[tuple[str, int, bool]]:
        """Runs of this worker that were asked to stop, and whether a policy asked."""

        async def body(tx: Tx) -> list[tuple[str, int, bool]]:
            rows = await tx.fetch("cancelling", worker_id=worker_id)
            return [(str(id), fence, is_policy(actor)) for id, fence, actor in rows]

        return await self.database.read(body)

    async def worker_gone(self, worker_id: str) -> None:
        await self.database.transact(lambda tx: tx.fetch("worker_gone", id=worker_id))

    async def reap(self, limit: int) -> Reaped:
        return await self.database.transact(lambda tx: report.reap(tx, limit), acts=True)

    async def tidy(self) -> None:
        """Limits shut though a slot is free, runs that wait for what has ended: seldom there are any."""
        emptied = self._emptied.next()
        # Looked for in a read, which blocks nobody, and put right only if there are any: on SQLite each transaction
        # that writes takes the only write lock.
        sweep = await self.database.read(lambda tx: strays.look_astray(tx, self._looked_to, emptied))
        self._looked_to = sweep.looked_to
        if sweep:
            await self.database.transact(lambda tx: strays.tidy(tx, sweep))
        await self.live_limits.end_expired(await self.quotas.settle_changed())

    async def promote(self, limit: int) -> Promoted:
        """Runs whose time has come may be claimed, and those under a rate that has a place again."""

        async def look(tx: Tx) -> Row:
            return (await tx.fetch("next_due"))[0]

        # Asked without a lock, because mostly nothing is due. Runs and rates are seen to in two transactions: one would
        # lock limits twice, and so not in the order of keys.
        next_in, needed, opens_in = await self.database.read(look)
        due, opens = (delay is not None and delay <= 0 for delay in (next_in, opens_in))
        promote = partial(waits.promote, limit=limit, needed=bool(needed))
        count = await self.database.transact(promote, acts=True) if due else 0
        opened = await self.database.transact(lambda tx: rates.open_due(tx, limit), acts=True) if opens else False
        if due or opens:
            next_in, _, opens_in = await self.database.read(look)
        upcoming = min((delay for delay in (next_in, opens_in) if delay is not None), default=None)
        return Promoted(count, upcoming, opened)

    async def cancel(self, part: str, reason: str | None, actor: str | None, within: Scope | None = None) -> Run:
        """Cancel a run, and return it."""
        run_id = await self._whole_id(part, within)

        async def body(tx: Tx) -> Run:
            await read.require_within(tx, run_id, within)
            await cancel.cancel(tx, run_id, reason, actor)
            return await read.get_run(tx, run_id)

        return await self.database.transact(body)

    async def restrict(
        self, part: str, only_workers: tuple[str, ...], actor: str | None, within: Scope | None = None
    ) -> Run:
        """Restrict a run to workers, and return it."""
        run_id = await self._whole_id(part, within)

        async def body(tx: Tx) -> Run:
            await read.require_within(tx, run_id, within)
            await restrict.restrict(tx, run_id, only_workers, actor)
            return await read.get_run(tx, run_id)

        return await self.database.transact(body)

    async def _whole_id(self, part: str, within: Scope | None) -> str:
        # Searched for in a read of its own: on SQLite, a search in the transaction that writes would keep all other
        # writers waiting.
        return part if is_whole(part) else await self.find_run(part, within)

    async def get_run(self, part: str, within: Scope | None = None, *, steps: bool = False) -> Run:
        """The run; with its steps in `progress`, if asked for."""

        async def body(tx: Tx) -> Run:
            if not steps:
                return await read.run_within(tx, part, within)
            await occurrences.snapshot(tx)  # the steps are those of this state
            run = await read.run_within(tx, part, within)
            return with_steps(run, await notes.steps(tx, run.id))

        return await self.database.read(body)

    async def get_runs(self, run_ids: Iterable[str], within: Scope | None = None) -> list[Run]:
        async def body(tx: Tx) -> list[Run]:
            return [await read.run_within(tx, run_id, within) for run_id in run_ids]

        return await self.database.read(body)

    async def find_run(self, part: str, within: Scope | None = None) -> str:
        """The whole id, by a part of it; `within` a scope there are no other runs."""
        return await self.database.read(lambda tx: read.find_run(tx, part, within))

    async def find_runs(self, parts: Sequence[str], within: Scope | None = None) -> dict[str, str]:
        return await self.database.read(lambda tx: read.find_runs(tx, parts, within)) if parts else {}

    async def list_runs(self, run_filter: RunFilter, limit: int, before: str | None = None) -> list[Run]:
        return list((await self.searching.page(run_filter, limit, before)).runs)

    async def attempts(self, part: str, within: Scope | None = None) -> list[Attempt]:
        return await read.about(self.database, part, within, read.attempts)

    async def copy_of(self, run_id: str) -> NewRun:
        """Copy a run, to be enqueued again: due at once."""
        return await self.database.read(lambda tx: read.copy_of(tx, run_id))

    async def metadata_of(self, run_ids: Sequence[str]) -> list[str | None]:
        """The text of each, in their order."""
        return await self.database.read(lambda tx: read.metadata_of(tx, run_ids))

    async def queue_counts(self) -> list[tuple[str, int, int, int]]:
        """(queue, running, queued, scheduled)."""
        return await self.database.read(read.queue_counts)

    async def levels(self, silence: int) -> Gauges:
        """Return how full it is now; a worker silent for longer than `silence` (µs) is not counted as alive."""
        return await self.database.read(lambda tx: gauges.levels(tx, silence))

    async def save_jobs(self, definitions: Iterable[JobDefinition]) -> None:
        # A body may be run again after a deadlock or a broken connection: an iterator would then be empty.
        declared = list(definitions)

        async def body(tx: Tx) -> None:
            await require_free(tx, {definition.name for definition in declared})
            for definition in declared:
                text = msgspec.json.encode(definition, order="deterministic").decode()
                name, version, kind = definition.name, definition.version, definition.kind
                changed = await tx.fetch("save_job", name=name, version=version, definition=text, kind=kind)
                newest = await read.job(tx, name) if changed else None
                if newest is not None:
                    await admit.declare(tx, newest)
                    await restrict.declare(tx, newest)
                    await expectations.declare_job(tx, newest)

        await self.database.transact(body)

    async def job(self, name: str) -> JobDefinition | None:
        return await self.database.read(lambda tx: read.job(tx, name))

    async def jobs(self) -> list[JobDefinition]:
        return await self.database.read(read.jobs)

    async def queue(self, queue: str) -> Queue:
        return await self.database.read(lambda tx: queue_view(tx, queue))

    async def pause_queue(self, queue: str, reason: str | None, actor: str | None) -> Queue:
        """Pause a queue and return it: no run is claimed from it until it is resumed; what runs, runs on."""

        async def body(tx: Tx) -> Queue:
            if await tx.fetch("pause_queue", queue=queue, reason=reason, actor=actor):
                await audit.note(tx, "queue", queue, "paused", actor, {"reason": reason})
            return await queue_view(tx, queue)

        return await self.database.transact(body)

    async def resume_queue(self, queue: str, actor: str | None = None) -> bool:
        """Resume a queue; return whether it was paused."""

        async def body(tx: Tx) -> bool:
            resumed = bool(await tx.fetch("resume_queue", queue=queue))
            if resumed:
                await audit.note(tx, "queue", queue, "resumed", actor, {})
            tx.wake(queue)
            return resumed

        return await self.database.transact(body)

    async def paused_queues(self) -> list[Pause]:
        return await self.database.read(read.paused_queues)

    async def pause_job(self, job: str, reason: str | None, actor: str | None, *, declared: Declared = None) -> None:
        """No run of it is claimed and none is planned until it is resumed; what runs, runs on.

        A job that is not `declared` in code must be stored.
        """
        await jobs.pause(self.database, job, reason, actor, self.new_id, declared=declared)

    async def resume_job(self, job: str, mode: str, actor: str | None, *, declared: Declared = None) -> None:
        if await jobs.resume(self.database, job, mode, actor, self.new_id, declared=declared):
            # Not `tx.wake`: a job's runs may wait in any queue, and it was resumed in several transactions.
            self.database.notify({None})

    async def cancel_job(
        self,
        job: str,
        reason: str | None,
        actor: str | None,
        *,
        declared: Declared = None,
        guarded: bool = True,
        check: cancel_job.Check = None,
    ) -> Cancelled:
        """Cancel a job; raise `JobRefuses` if nothing of it is live or planned, unless not `guarded`."""
        return await cancel_job.cancel(
            self.database, job, reason, actor, self.new_id, declared=declared, guarded=guarded, check=check
        )

    async def cancel_left(self, job: str, run_ids: Sequence[str], reason: str | None, actor: str | None) -> None:
        """Runs that a job left behind when it was dropped."""
        await cancel_job.cancel_left(self.database, job, run_ids, reason, actor, self.new_id)

    async def job_facts(self, names: Sequence[str]) -> list[JobFacts]:
        return await self.database.read(lambda tx: jobs.facts(tx, names))

    async def job_stats(self, job: str, *, declared: Declared = None) -> JobStats:
        return await self.database.read(lambda tx: jobs.stats(tx, job, declared=declared))
