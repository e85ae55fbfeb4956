"""Every question and command there is; the only door to the store for anything outside the engine."""

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
from rota.core.workers.replicas import Replica
from rota.core.workers.requirements import NOTHING, restricted_to
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


class AssignmentVerbs:
    store: Store
    scope: Scope | None

    async def _find(self, run_id: str) -> str:
        """The whole id, by a part of it: every verb that is given one finds it here, within the client's scope."""
        return await self.store.find_run(run_id, self.scope)

    async def restrict(self, run_id: str, only_workers: Sequence[str] | None, *, actor: str | None = None) -> Run:
        """Only workers of these names may have it; None: of any name. From others that have it, it is taken away."""
        found = await self._find(run_id)
        await self.store.restrict(found, restricted_to(only_workers), checked_actor(actor))
        return await self.store.get_run(found)

    async def replicas(self, run_id: str) -> Sequence[Replica]:
        """Those of a run that several workers do, each a run of its own: whose it is, and how far."""
        return await self.store.conducts.replicas(await self._find(run_id))


__all__ = ["MOST_LISTED", "Client", "Order"]

MOST_LISTED = 500
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5
_PATIENCE = 0.25
_TRIES = 5


class Client(EnqueueVerbs, AssignmentVerbs):
    def __init__(self, store: Store, registry: Registry, config: Config, meters: Meters | None = None) -> None:
        self.store = store
        self.scope = None
        self.registry = registry
        self.config = config
        self.meters = meters or Meters()
        self._levels = GaugeReader(store, config.lease)
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
        """Whoever closes it when itself forgotten: it lives as long as this client."""

    def within(self, scope: Scope | tuple[str, str]) -> Client:
        """The same client for whoever is for one scope only: as if there were no runs, and no keys, but those of it.

        Jobs, queues, schedules, workers and the like know no such wall: whoever lets others ask refuses them those.
        """
        walled = copy(self)
        walled.scope = scope_of(scope)
        walled._bulk = Bulk(self.store, walled._again, self.meters.runs[RunState.CANCELLED])
        return walled

    async def close(self) -> None:
        """Close its connections."""
        await self._hints.close()
        await self.store.close()

    async def time(self) -> datetime:
        """The database's clock."""
        return instant(await self.store.now())

    async def metrics(self) -> str:
        """For Prometheus: what this process has counted, and how full the database is; that it is away, if it is."""
        return self.meters.text(await self._levels.read())

    async def get(self, run_id: str) -> Run:
        """One run, by its id or a part of it."""
        return await self.store.get_run(await self._find(run_id))

    async def get_many(self, run_ids: Iterable[str], *, gone_ok: bool = False) -> Sequence[Run]:
        """By whole ids, in their order. `UnknownRun` if one is not there; with `gone_ok` it is left out."""
        wanted = [*run_ids]
        if not gone_ok:
            if self.scope is not None:
                await self.store.find_runs(wanted, self.scope)
            return await self.store.get_runs(wanted)
        found = {run.id: run for run in await self.store.searching.runs(wanted) if self.scope in (None, run.scope)}
        return [found[id] for id in wanted if id in found]

    async def check_ready(self) -> None:
        """Raises unless the database answers and its schema serves this program."""
        await self.store.require_schema()

    async def list(self, wanted: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> list[Run]:
        """Newest first, as many as there are up to `limit`, however long that takes; `page` stops looking in time."""
        require_limit(limit, MOST_LISTED)
        return await self.store.list_runs(await self._whole(wanted or RunFilter()), limit, before)

    async def page(self, wanted: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> RunPage:
        """As `list`, but within a moment: so it may be short, and say where to go on."""
        require_limit(limit, MOST_LISTED)
        chosen = await self._whole(wanted or RunFilter())
        return await self.store.searching.page(chosen, limit, before, _PATIENCE)

    async def _whole(self, wanted: RunFilter) -> RunFilter:
        """As it means runs here: within one scope, those of it. An id may be shortened everywhere."""
        if self.scope is not None and wanted.scope not in (None, self.scope):
            raise Forbidden(f"only runs of {self.scope.kind}/{self.scope.id} may be seen here")
        if self.scope is not None:
            wanted = msgspec.structs.replace(wanted, scope=self.scope)
        if wanted.parent is None:
            return wanted
        return msgspec.structs.replace(wanted, parent=await self._find(wanted.parent))

    async def attempts(self, run_id: str) -> Sequence[Attempt]:
        """Every attempt of a run, the oldest first."""
        return await self.store.attempts(await self._find(run_id))

    async def steps(self, run_id: str) -> Sequence[Step]:
        """Those that its job declares, and those that it has opened."""
        return await self.store.notes.steps(await self._find(run_id))

    async def progress(self, run_id: str) -> Progress:
        """How far it says it is; if it only has steps, how many of them are over."""
        run = await self.get(run_id)
        return progress_of(run.progress, await self.store.notes.steps(run.id), run.state)

    async def logs(self, run_id: str, *, after: str | None = None, last: int | None = None) -> Sequence[LogLine]:
        """What its attempts have logged, oldest first, a page at a time: `after` is the cursor of the last line seen.

        `last`: only so many lines from the end.
        """
        found = await self._find(run_id)
        if last is not None:
            return await self.store.notes.last_logs(found, checked_count(last, "last"))
        return await self.store.notes.logs(found, after)

    async def parents(self, run_id: str) -> Sequence[RelatedRun]:
        """The runs that it follows, or has followed, in the order given."""
        return await self._seen(await self.store.dependencies.parents(await self._find(run_id)))

    async def children(self, run_id: str) -> Sequence[RelatedRun]:
        """The runs that follow it, the oldest first."""
        return await self._seen(await self.store.dependencies.children(await self._find(run_id)))

    async def _seen(self, related: Sequence[RelatedRun]) -> Sequence[RelatedRun]:
        """Those of the client's scope: whoever sees all of them may have let runs of two scopes follow each other."""
        if self.scope is None:
            return related
        mine = await self.store.of_scope([one.id for one in related], self.scope)
        return [one for one in related if one.id in mine]

    async def wait(self, run_id: str, timeout: Duration | None = None) -> Run:
        """The run once it is final; `StillRunning` after `timeout`."""
        run_id = await self._find(run_id)
        clock = self.store.clock
        deadline = None if timeout is None else clock.monotonic() + parse_duration(timeout).total_seconds()
        rest = _FIRST_LOOK
        while True:
            run = await self.store.get_run(run_id)
            if run.state.is_final:
                return run
            if deadline is not None and clock.monotonic() >= deadline:
                raise StillRunning(run_id, run.state)
            await asyncio.sleep(rest)
            rest = min(_LONGEST_LOOK, rest * 1.5)

    async def cancel(self, run_id: str, *, reason: str | None = None, actor: str | None = None) -> RunState:
        """Cancel a run, or ask its worker to stop it; the state that it has then."""
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
        """A new run of the same work; the old one stays as it ended. An active holder of its key is a conflict.

        `keep_steps`: what its steps have done is not done again; with `from_step`, only what they did before that one.
        With an `idempotency_key` it may be asked again: the answer is the run that was made the first time.
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
        old = await self.get(run_id)
        if not old.state.is_final:
            raise RunNotFinal(old.id, old.state)
        if old.parent_id is not None:
            raise Conflict(f"run {old.id} is a replica of run {old.parent_id}", hint=f"retry that one: {old.parent_id}")
        definition = await self.job(old.job)
        copy = await self.store.copy_of(old.id)
        own = own_overrides(copy)
        options = {} if own.unique is None else {"unique": own.unique}
        holds = key_holds(definition, old.scope, old.key, copy.payload, options)
        strict = tuple(msgspec.structs.replace(hold, on_conflict="reject") for hold in holds)
        return msgspec.structs.replace(
            copy,
            id=self.store.new_id(),
            retry_of=old.id,
            actor=checked_actor(actor),
            origin_id=copy.origin_id or old.id,
            holds=strict,
            gates=await self._gates_again(old, gates_of(definition, old.scope, copy.payload)),
            eligibility=eligibility_of(definition, own.requirements or NOTHING),
            droppable=self._is_droppable(definition),
        )

    async def _gates_again(self, run: Run, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
        """Done again, it is under the limit of its schedule still."""
        schedule = None if run.schedule is None else await self.store.schedules.get(run.schedule)
        return gates if schedule is None else with_limits_of_schedule(gates, schedule.definition.gates(schedule.id))

    async def count(
        self, wanted: RunFilter | None = None, *, most: int = 10_000, within: Duration | None = None
    ) -> Counted:
        """How many runs match; it stops counting at `most`, or after that time."""
        return await self._bulk.count(await self._whole(wanted or RunFilter()), most, within)

    async def cancel_many(
        self,
        wanted: RunFilter,
        *,
        reason: str | None = None,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """All that match and have not ended. `BulkMismatch`, and nothing is done, if they are more than `expected`."""
        chosen = to_cancel(await self._whole(wanted), everything=everything)
        return await self._bulk.cancel(chosen, reason, checked_actor(actor), expected, progress)

    async def retry_many(
        self,
        wanted: RunFilter,
        *,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult:
        """All that match, did not go well (unless the filter says otherwise) and were not retried since."""
        chosen = to_retry(await self._whole(wanted), everything=everything)
        return await self._bulk.retry(chosen, checked_actor(actor), expected, progress)

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Subscribe to hints that something changed: of `run:<id>`, `runs`, `schedules`, `workers` or `queues`."""
        return self._hints.subscribe(topics)

    def follow(self, run_id: str) -> AsyncGenerator[Run]:
        """The run now, and each time that it has changed or said something, until it is final."""
        return self._hints.follow(run_id, self.scope)

    async def retry_job(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> Enqueued:
        """Its newest run once more, if that failed, timed out, expired or was cancelled.

        With an `idempotency_key` it may be asked again: the answer is the run that was made the first time.
        """
        await self.job(name)
        asked = None if idempotency_key is None else request_hold(idempotency_key, "retry job", name, within=self.scope)
        for _ in range(_TRIES):  # another one may become the newest meanwhile, and it is that one that is meant then
            for made in () if asked is None else await self.store.asked_before(asked):
                return Enqueued(made, False)
            run_id, state = await self.store.newest_run(name) or (None, None)
            if run_id is None or state not in RETRIED_BY_HAND:
                raise NothingToRetry(name, run_id, state)
            answer = await self.store.retry_newest(asked_as(await self._again(run_id, actor), asked), asked)
            if answer is not None:
                self.meters.enqueued.add(answer.created)
                return answer
        raise Unavailable(f"job {name!r} kept getting new runs while it was being retried", hint="try again")

    async def explain(self, run_id: str) -> Explanation:
        """Why a run is in the state that it is in."""
        run_id = await self._find(run_id)
        return await self.store.ledger.explain_run(run_id, in_micros(self.config.lease), self.scope)

    async def events(self, run_id: str) -> Sequence[Event]:
        """Every change of a run's state, the oldest first: when, by whom, under which fence."""
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
        """What people and policies did, the newest first; `before` is the last `seq` of the page before.

        `subject` is the whole id of a run or a worker, or the name of a job, a schedule or a queue.
        """
        require_limit(limit, MOST_LISTED)
        if kind is not None and kind not in KINDS:
            raise Invalid(f"there are no events of kind {kind!r}", hint=did_you_mean(kind, KINDS))
        wanted = {"kind": kind, "subject": subject, "actor": actor}
        asked = {column: value for column, value in wanted.items() if value is not None}
        return await self.store.events.audit(asked, limit, before)

    async def prune(self) -> int:
        """Delete the runs that their jobs do not want to keep any longer; how many those were."""
        pruned = await prune(self.store)
        self.meters.pruned.add(pruned)
        return pruned
