"""`Client`: every query and command. Everything but the engine reaches the store through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from copy import copy
from datetime import datetime

import msgspec

from rota.client.access.tokens import TokensClient
from rota.client.alerts.expectations import ExpectationsClient
from rota.client.alerts.notifications import NotificationsClient
from rota.client.changes import ChangePoller
from rota.client.external.external import ExternalClient
from rota.client.jobs.data_jobs import DataJobsClient
from rota.client.limits.quotas import QuotasClient
from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.client.monitoring.monitoring import MonitoringClient
from rota.client.runs.assignment import AssignmentVerbs
from rota.client.runs.bulk import Bulk
from rota.client.runs.enqueue import EnqueueVerbs
from rota.client.schedules.definition import require_limit
from rota.client.schedules.schedules import SchedulesClient
from rota.client.subscription import Subscription
from rota.client.workers.workers import WorkersClient
from rota.config import Config
from rota.core.jobs.status import RETRIED_BY_HAND
from rota.core.ledger.audit import KINDS, Event
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.limits.limits import Gate
from rota.core.progress.notes import LogLine, Progress, checked_count, progress_of
from rota.core.progress.steps import Step
from rota.core.runs.bulk import BulkResult, Counted, SoFar, to_cancel, to_retry
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.options import (
    Order,
    asked_as,
    eligibility_of,
    gates_of,
    key_holds,
    own_overrides,
    request_hold,
    scope_of,
    with_limits_of_schedule,
)
from rota.core.runs.run import Attempt, Enqueued, NewRun, Run, RunFilter
from rota.core.runs.search import RunPage
from rota.core.states import RunState
from rota.core.workers.requirements import NOTHING
from rota.engine.loops.gauge_reader import GaugeReader
from rota.engine.loops.janitor import prune
from rota.engine.observability.meters import Meters
from rota.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NothingToRetry,
    RunNotFinal,
    StillRunning,
    Unavailable,
    did_you_mean,
)
from rota.observability import tracing
from rota.registry.jobs import Registry
from rota.store import Store
from rota.store.databases.batcher import Batcher
from rota.values.actor import checked_actor
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.instants import instant
from rota.values.json import Limits
from rota.values.scope import Scope

__all__ = ["MOST_LISTED", "Client", "Order"]

MOST_LISTED = 500
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5
_PATIENCE = 0.25
_TRIES = 5


class Client(EnqueueVerbs, AssignmentVerbs):
    """Asynchronous client: verbs about runs and jobs, and parts for everything else (`client.schedules`, …)."""

    def __init__(self, store: Store, registry: Registry, config: Config, meters: Meters | None = None) -> None:
        self.store = store
        self.scope = None
        self.registry = registry
        self.config = config
        self.meters = meters or Meters()
        self._gauges = GaugeReader(store, config.lease)
        self._traced = config.tracing and tracing.turn_on()
        self._limits = Limits(config.max_payload)
        self.schedules = SchedulesClient(store, registry, config, self.job)
        self._bulk = Bulk(store, self._again, self.meters.runs[RunState.CANCELLED])
        self._hints = ChangePoller(store)
        self.workers = WorkersClient(store)
        self.tokens = TokensClient(store)
        self.quotas = QuotasClient(store)
        self.external = ExternalClient(store, config, self.meters)
        self.expectations = ExpectationsClient(store, self.job)
        self.notifications = NotificationsClient(store, config)
        self.data_jobs = DataJobsClient(store, registry, self.schedules, self._of_stored, self.meters)
        self.monitoring = MonitoringClient(store, config)
        self.error_groups = ErrorGroupsClient(store)
        self._gatherer: Batcher[NewRun, Enqueued] = Batcher(store.enqueue)
        self._models = {}
        self.owner: object = None
        """Keeps the object alive that closes the store when it is garbage-collected."""

    def within(self, scope: Scope | tuple[str, str]) -> Client:
        """Return a client that only knows the runs and keys of one scope.

        Jobs, queues, schedules and workers have no scope and stay visible: refuse them to callers who must not see
        them.
        """
        scoped = copy(self)
        scoped.scope = scope_of(scope)
        scoped._bulk = Bulk(self.store, scoped._again, self.meters.runs[RunState.CANCELLED])
        return scoped

    async def close(self) -> None:
        """Close the client's database connections."""
        await self._hints.close()
        await self.store.close()

    async def time(self) -> datetime:
        """Return the database's current time."""
        return instant(await self.store.now())

    async def metrics(self) -> str:
        """Return this process's counters and the database's gauges in Prometheus format. A database outage is reported
        as a metric."""
        return self.meters.text(await self._gauges.read())

    async def get(self, run_id: str) -> Run:
        """Return a run by its id, or by the unique beginning or end of one."""
        return await self.store.get_run(await self._find(run_id))

    async def get_many(self, run_ids: Iterable[str], *, gone_ok: bool = False) -> Sequence[Run]:
        """Return runs by whole ids, in the order given. A missing run raises `UnknownRun`, or is left out with
        `gone_ok`."""
        ids = [*run_ids]
        if not gone_ok:
            if self.scope is not None:
                await self.store.find_runs(ids, self.scope)
            return await self.store.get_runs(ids)
        runs = {run.id: run for run in await self.store.searching.runs(ids) if self.scope in (None, run.scope)}
        return [runs[id] for id in ids if id in runs]

    async def check_ready(self) -> None:
        """Raise unless the database answers and its schema fits this version."""
        await self.store.require_schema()

    async def list(
        self, run_filter: RunFilter | None = None, *, limit: int = 50, before: str | None = None
    ) -> list[Run]:
        """List matching runs, newest first, up to `limit`, however long the search takes; `page` stops early."""
        require_limit(limit, MOST_LISTED)
        return await self.store.list_runs(await self._scoped_filter(run_filter or RunFilter()), limit, before)

    async def page(self, run_filter: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> RunPage:
        """List matching runs like `list`, but stop searching after a quarter of a second. The page may then be short;
        `next` says where to continue."""
        require_limit(limit, MOST_LISTED)
        scoped = await self._scoped_filter(run_filter or RunFilter())
        return await self.store.searching.page(scoped, limit, before, _PATIENCE)

    async def _scoped_filter(self, run_filter: RunFilter) -> RunFilter:
        """Return the filter with its ids completed and limited to the client's scope."""
        if self.scope is not None and run_filter.scope not in (None, self.scope):
            raise Forbidden(f"only runs of {self.scope.kind}/{self.scope.id} are visible here")
        if self.scope is not None:
            run_filter = msgspec.structs.replace(run_filter, scope=self.scope)
        if run_filter.parent is None:
            return run_filter
        return msgspec.structs.replace(run_filter, parent=await self._find(run_filter.parent))

    async def attempts(self, run_id: str) -> Sequence[Attempt]:
        """List the attempts of a run, oldest first."""
        return await self.store.attempts(await self._find(run_id))

    async def steps(self, run_id: str) -> Sequence[Step]:
        """List the steps that a run's job declares and those that the run has opened."""
        return await self.store.notes.steps(await self._find(run_id))

    async def progress(self, run_id: str) -> Progress:
        """Return the progress that a run has reported; if it only has steps, derive it from those that are over."""
        run = await self.get(run_id)
        return progress_of(run.progress, await self.store.notes.steps(run.id), run.state)

    async def logs(self, run_id: str, *, after: str | None = None, last: int | None = None) -> Sequence[LogLine]:
        """List log lines of a run's attempts, oldest first, one page at a time. `after` is the cursor of the last line
        seen.

        `last` returns only that many lines from the end.
        """
        whole_id = await self._find(run_id)
        if last is not None:
            return await self.store.notes.last_logs(whole_id, checked_count(last, "last"))
        return await self.store.notes.logs(whole_id, after)

    async def parents(self, run_id: str) -> Sequence[RelatedRun]:
        """List the runs that a run depends on, in the order given."""
        return await self._visible(await self.store.dependencies.parents(await self._find(run_id)))

    async def children(self, run_id: str) -> Sequence[RelatedRun]:
        """List the runs that depend on a run, oldest first."""
        return await self._visible(await self.store.dependencies.children(await self._find(run_id)))

    async def _visible(self, related: Sequence[RelatedRun]) -> Sequence[RelatedRun]:
        """Keep related runs of the client's scope. A caller who sees all scopes may link runs across scopes."""
        if self.scope is None:
            return related
        visible = await self.store.of_scope([run.id for run in related], self.scope)
        return [run for run in related if run.id in visible]

    async def wait(self, run_id: str, timeout: Duration | None = None) -> Run:
        """Wait until a run is final and return it; raise `StillRunning` after `timeout`."""
        run_id = await self._find(run_id)
        clock = self.store.clock
        deadline = None if timeout is None else clock.monotonic() + parse_duration(timeout).total_seconds()
        pause = _FIRST_LOOK
        while True:
            run = await self.store.get_run(run_id)
            if run.state.is_final:
                return run
            if deadline is not None and clock.monotonic() >= deadline:
                raise StillRunning(run_id, run.state)
            await asyncio.sleep(pause)
            pause = min(_LONGEST_LOOK, pause * 1.5)

    async def cancel(self, run_id: str, *, reason: str | None = None, actor: str | None = None) -> RunState:
        """Cancel a run, or ask its worker to stop it; return its new state."""
        checked_actor(actor)
        state = await self.store.cancel(await self._find(run_id), reason, actor)
        self.meters.cancels.add()
        if state is RunState.CANCELLED:
            self.meters.runs[state].add()
        return state

    async def retry(
        self,
        run_id: str,
        *,
        keep_steps: bool = False,
        from_step: str | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Enqueued:
        """Enqueue a copy of a final run and leave the old run as it is. Raise `Conflict` if an active run holds its
        unique key.

        `keep_steps` reuses the results of completed steps; `from_step` reuses only those before that step. With an
        `idempotency_key` the call is safe to repeat: it returns the run created the first time.
        """
        again = await self._again(run_id, actor)
        if idempotency_key is not None:
            content = ("retry", again.retry_of, keep_steps, from_step)
            again = asked_as(again, request_hold(idempotency_key, *content, within=self.scope))
        if keep_steps or from_step is not None:
            answer = await self.store.enqueue_keeping(again, from_step)
        else:
            (answer,) = await self.store.enqueue([again])
        self.meters.enqueued.add(answer.created)
        return answer

    async def _again(self, run_id: str, actor: str | None) -> NewRun:
        """Build the retry of a run; write nothing."""
        old = await self.get(run_id)
        if not old.state.is_final:
            raise RunNotFinal(old.id, old.state)
        if old.parent_id is not None:
            raise Conflict(f"run {old.id} is a replica of run {old.parent_id}", hint=f"retry that one: {old.parent_id}")
        definition = await self.job(old.job)
        original = await self.store.copy_of(old.id)
        overrides = own_overrides(original)
        options = {} if overrides.unique is None else {"unique": overrides.unique}
        holds = key_holds(definition, old.scope, old.key, original.payload, options)
        strict = tuple(msgspec.structs.replace(hold, on_conflict="reject") for hold in holds)
        return msgspec.structs.replace(
            original,
            id=self.store.new_id(),
            retry_of=old.id,
            actor=checked_actor(actor),
            origin_id=original.origin_id or old.id,
            holds=strict,
            gates=await self._gates_of_retry(old, gates_of(definition, old.scope, original.payload)),
            eligibility=eligibility_of(definition, overrides.requirements or NOTHING),
            droppable=self._is_droppable(definition),
        )

    async def _gates_of_retry(self, run: Run, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
        """Add the limit of the run's schedule, which also applies to its retry."""
        schedule = None if run.schedule is None else await self.store.schedules.get(run.schedule)
        return gates if schedule is None else with_limits_of_schedule(gates, schedule.definition.gates(schedule.id))

    async def count(
        self, run_filter: RunFilter | None = None, *, most: int = 10_000, within: Duration | None = None
    ) -> Counted:
        """Count matching runs; stop at `most`, or after `within`."""
        return await self._bulk.count(await self._scoped_filter(run_filter or RunFilter()), most, within)

    async def cancel_many(
        self,
        run_filter: RunFilter,
        *,
        reason: str | None = None,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """Cancel all matching runs that are not final. If more than `expected` match, raise `BulkMismatch` and change
        nothing."""
        scoped = to_cancel(await self._scoped_filter(run_filter), everything=everything)
        return await self._bulk.cancel(scoped, reason, checked_actor(actor), expected, progress)

    async def retry_many(
        self,
        run_filter: RunFilter,
        *,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """Retry all matching runs that did not succeed (unless the filter names states) and have not been retried
        since."""
        scoped = to_retry(await self._scoped_filter(run_filter), everything=everything)
        return await self._bulk.retry(scoped, checked_actor(actor), expected, progress)

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Subscribe to change hints for topics: `run:<id>`, `runs`, `schedules`, `workers` or `queues`."""
        return self._hints.subscribe(topics)

    def follow(self, run_id: str) -> AsyncGenerator[Run]:
        """Yield the run now, and again whenever its state, progress or log changes, until it is final."""
        return self._hints.follow(run_id, self.scope)

    async def retry_job(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> Enqueued:
        """Retry the newest run of a job if it failed, timed out, expired or was cancelled.

        With an `idempotency_key` the call is safe to repeat: it returns the run created the first time.
        """
        await self.job(name)
        request = (
            None if idempotency_key is None else request_hold(idempotency_key, "retry job", name, within=self.scope)
        )
        # Race: another run may become the newest meanwhile, and is meant then. `retry_newest` returns None if so.
        for _ in range(_TRIES):
            for existing_id in () if request is None else await self.store.asked_before(request):
                return Enqueued(existing_id, False)
            run_id, state = await self.store.newest_run(name) or (None, None)
            if run_id is None or state not in RETRIED_BY_HAND:
                raise NothingToRetry(name, run_id, state)
            answer = await self.store.retry_newest(asked_as(await self._again(run_id, actor), request), request)
            if answer is not None:
                self.meters.enqueued.add(answer.created)
                return answer
        raise Unavailable(f"job {name!r} kept getting new runs while it was being retried", hint="try again")

    async def explain(self, run_id: str) -> Explanation:
        """Explain why a run is in its current state."""
        run_id = await self._find(run_id)
        return await self.store.ledger.explain_run(run_id, in_micros(self.config.lease), self.scope)

    async def events(self, run_id: str) -> Sequence[Event]:
        """List the state changes of a run, oldest first, each with its time, actor and fence."""
        return await self.store.events.of_run(await self._find(run_id))

    async def audit(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        actor: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> Sequence[Event]:
        """List actions of people and policies, newest first. `before` is the last `seq` of the previous page.

        `subject` is the whole id of a run or worker, or the name of a job, schedule or queue.
        """
        require_limit(limit, MOST_LISTED)
        if kind is not None and kind not in KINDS:
            raise Invalid(f"unknown kind of event: {kind!r}", hint=did_you_mean(kind, KINDS))
        filters = {"kind": kind, "subject": subject, "actor": actor}
        columns = {column: value for column, value in filters.items() if value is not None}
        return await self.store.events.audit(columns, limit, before)

    async def prune(self) -> int:
        """Delete runs past their job's retention; return how many."""
        pruned = await prune(self.store)
        self.meters.pruned.add(pruned)
        return pruned
