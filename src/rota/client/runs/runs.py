"""Verbs about runs: get, list, wait for, cancel and retry them. Part of `Client`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from rota.client.runs.assignment import AssignmentVerbs
from rota.client.runs.enqueue import EnqueueVerbs
from rota.client.schedules.definition import require_limit
from rota.client.subscription import Subscription
from rota.core.jobs.status import RETRIED_BY_HAND
from rota.core.jobs.unique import OnConflict
from rota.core.ledger.audit import Event
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.limits.limits import Gate
from rota.core.progress.notes import LogLine, Progress, checked_count, progress_of
from rota.core.progress.steps import Step
from rota.core.runs.bulk import BulkResult, Counted, SoFar, to_cancel, to_retry
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.options import (
    asked_as,
    eligibility_of,
    gates_of,
    key_holds,
    own_overrides,
    request_hold,
    with_limits_of_schedule,
)
from rota.core.runs.run import Attempt, Enqueued, NewRun, Run, RunFilter
from rota.core.runs.search import RunPage
from rota.core.states import RunState
from rota.core.workers.requirements import NOTHING
from rota.errors import Conflict, Forbidden, NothingToRetry, RunNotFinal, StillRunning, Unavailable
from rota.values.actor import checked_actor
from rota.values.durations import Duration, in_micros, parse_duration

if TYPE_CHECKING:
    from rota.client.changes import ChangePoller
    from rota.client.runs.bulk import Bulk
    from rota.config import Config

MOST_LISTED = 500
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5
_PATIENCE = 0.25
_TRIES = 5


class RunVerbs(EnqueueVerbs, AssignmentVerbs):
    """Verbs about runs, by id."""

    config: Config
    _bulk: Bulk
    _hints: ChangePoller

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
        definition = await self._definition(old.job)
        original = await self.store.copy_of(old.id)
        overrides = own_overrides(original)
        options = {} if overrides.unique is None else {"unique": overrides.unique}
        holds = key_holds(definition, old.scope, old.key, original.payload, options)
        strict = tuple(msgspec.structs.replace(hold, on_conflict=OnConflict.REJECT) for hold in holds)
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
        await self._definition(name)
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
