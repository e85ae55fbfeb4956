"""Verbs about runs: get, list, wait for, cancel and retry them. Part of `Client`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self, TypeVar

import msgspec
from msgspec import Meta

from rota.client.jobs.jobs import Reason
from rota.client.monitoring.audit import EVENTS
from rota.client.runs.assignment import AssignmentVerbs
from rota.client.runs.enqueue import EnqueueVerbs
from rota.client.runs.pages import RUN_PAGE, TAIL, Before, LineCursor, Lines, checked_place
from rota.client.runs.relations import RelationVerbs
from rota.client.subscription import Subscription
from rota.core.access.roles import Role
from rota.core.jobs.status import RETRIED_BY_HAND
from rota.core.jobs.unique import OnConflict
from rota.core.ledger.audit import Event
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.progress.notes import LogLine, Progress, progress_of
from rota.core.progress.steps import Step
from rota.core.runs.bulk import MOST_COUNTED, BulkResult, Counted, Purged, SoFar, to_cancel, to_purge, to_retry
from rota.core.runs.options import (
    asked_as,
    eligibility_of,
    gates_of,
    key_holds,
    own_overrides,
    request_hold,
    with_limits_of_schedule,
)
from rota.core.runs.payload import taken_again
from rota.core.runs.redaction import Discreet, edited_fields, restored
from rota.core.runs.run import Attempt, EnqueuedRun, NewRun, Run, RunFilter, enqueued_as
from rota.core.runs.search import RunPage
from rota.core.states import RunState
from rota.core.workers.requirements import NOTHING
from rota.errors import (
    BadPayload,
    Conflict,
    Forbidden,
    Invalid,
    JobDisabled,
    NothingToRetry,
    RotaError,
    RunFailed,
    RunNotFinal,
    StillRunning,
    Unavailable,
    UnknownRun,
)
from rota.values.actor import checked_actor
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.scope import scope_text
from rota.verbs.bounds import within_bounds
from rota.verbs.examples import ATTEMPT, EVENT, EXPLANATION, LOG_LINE, PROGRESS, RUN, STEP
from rota.verbs.pages import MOST, Limit, Page
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.client.changes import ChangePoller
    from rota.client.runs.bulk import Bulk
    from rota.config import Config
    from rota.store.runs.read import RetryFacts

T = TypeVar("T")
MOST_LISTED = MOST
_FIRST_LOOK = 0.02
_LONGEST_LOOK = 0.5
_PATIENCE = 0.25
_TRIES = 5
_about_run = partial(verb, "GET", role=Role.VIEWER, scoped=True, about_run=True)


def _failed(run: Run) -> RunFailed:
    error = run.error
    if error is None:
        return RunFailed(run.id, run.job, run.state, reason=run.reason)
    return RunFailed(
        run.id,
        run.job,
        run.state,
        type=error.type,
        message=error.message,
        traceback=error.traceback,
        reason=run.reason,
    )


class RunVerbs(EnqueueVerbs, AssignmentVerbs, RelationVerbs):
    """Verbs about runs, by id."""

    config: Config
    _bulk: Bulk
    _hints: ChangePoller

    @verb("GET", "/runs/{id}", Role.VIEWER, scoped=True, gives=RUN, operation="get_run")
    async def get(
        self,
        run_id: str,
        *,
        steps: Annotated[
            bool, Meta(description="Add the run's steps to `progress`, and derive the percentage from them if need be")
        ] = True,
    ) -> Run:
        """Return a run by its id, or by the unique beginning or end of one."""
        return await self.store.get_run(run_id, self.scope, steps=steps)

    async def get_many(self, run_ids: Iterable[str], *, gone_ok: bool = False) -> Sequence[Run]:
        """Return runs by whole ids, in the order given. A missing run raises `UnknownRun`, or is left out with
        `gone_ok`."""
        ids = [*run_ids]
        if not gone_ok:
            return await self.store.get_runs(ids, self.scope)
        runs = {run.id: run for run in await self.store.searching.runs(ids) if self.scope in (None, run.scope)}
        return [runs[id] for id in ids if id in runs]

    @within_bounds()
    async def list(
        self, run_filter: RunFilter | None = None, *, limit: Limit = 50, before: str | None = None
    ) -> list[Run]:
        """List matching runs, newest first, up to `limit`, however long the search takes; `page` stops early."""
        page = await self.page(run_filter, limit=limit, before=before)
        runs = list(page.runs)
        while page.next is not None and len(runs) < limit:
            page = await self.page(run_filter, limit=limit - len(runs), before=page.next)
            runs += page.runs
        return runs

    @verb(
        "GET",
        "/runs",
        Role.VIEWER,
        scoped=True,
        names={"before": "cursor"},
        answer=RUN_PAGE,
        gives=RUN,
        operation="list_runs",
    )
    async def page(self, run_filter: RunFilter | None = None, *, limit: Limit = 50, before: Before = None) -> RunPage:
        """List matching runs, newest first.

        A filter that matches few of many runs stops searching after a quarter of a second. The page may then be short
        or even empty; as long as it names a next one, there may be more. `list` goes on until the end.
        """
        scoped = await self._scoped_filter(run_filter or RunFilter())
        return await self.store.searching.page(scoped, limit, checked_place(before), _PATIENCE)

    async def _scoped_filter(self, run_filter: RunFilter) -> RunFilter:
        """Return the filter with its ids completed and limited to the client's scope."""
        if self.scope is not None and run_filter.scope not in (None, self.scope):
            raise Forbidden(f"only runs of {scope_text(self.scope)} are visible here")
        if self.scope is not None:
            run_filter = msgspec.structs.replace(run_filter, scope=self.scope)
        if run_filter.parent is None:
            return run_filter
        return msgspec.structs.replace(run_filter, parent=await self.store.find_run(run_filter.parent, self.scope))

    @_about_run("/runs/{id}/attempts", page=Page(), gives=ATTEMPT, operation="list_attempts")
    async def attempts(self, run_id: str) -> Sequence[Attempt]:
        """List the attempts of a run, oldest first."""
        return await self.store.attempts(run_id, self.scope)

    @_about_run("/runs/{id}/steps", page=Page(), gives=STEP, operation="list_steps")
    async def steps(self, run_id: str) -> Sequence[Step]:
        """List the steps that a run's job declares and those that the run has opened."""
        return await self.store.notes.steps(run_id, self.scope)

    @_about_run("/runs/{id}/progress", gives=PROGRESS, operation="get_progress")
    async def progress(self, run_id: str) -> Progress:
        """Return the progress that a run has reported; if it only has steps, derive it from those that are over."""
        run = await self.store.get_run(run_id, self.scope, steps=True)
        return run.progress or progress_of(None, (), run.state)

    @_about_run("/runs/{id}/logs", gives=LOG_LINE, operation="list_logs")
    async def logs(
        self,
        run_id: str,
        *,
        limit: Lines = 1_000,
        cursor: LineCursor = None,
        tail: Annotated[Lines | None, Meta(description=TAIL)] = None,
    ) -> Sequence[LogLine]:
        """List log lines of a run's attempts, oldest first, one page at a time. `cursor` is that of the last line seen.

        `tail` begins so many lines before the end.
        """
        if tail is None:
            return await self.store.notes.logs(run_id, cursor, self.scope, limit)
        if cursor is not None:
            raise Invalid("cursor and tail exclude each other", hint="give one of them")
        return (await self.store.notes.last_logs(run_id, tail, self.scope))[:limit]

    async def wait(self, run_id: str, timeout: Duration | None = None) -> Run:
        """Wait until a run is final and return it; raise `StillRunning` after `timeout`."""
        clock = self.store.clock
        deadline = None if timeout is None else clock.monotonic() + parse_duration(timeout).total_seconds()
        pause = _FIRST_LOOK
        run = await self.store.get_run(run_id, self.scope)
        while not run.state.is_final:
            if deadline is not None and clock.monotonic() >= deadline:
                raise StillRunning(run.id, run.state)
            await asyncio.sleep(pause)
            pause = min(_LONGEST_LOOK, pause * 1.5)
            run = await self.store.get_run(run.id)
        return run

    async def result(self, run_id: str, timeout: Duration | None = None) -> Any:
        """Wait until a run is final and return its result, in the type that its function is annotated to return.

        Raise `RunFailed` if it did not succeed, and `StillRunning` after `timeout`.
        """
        run = await self.wait(run_id, timeout)
        if run.state is not RunState.SUCCEEDED:
            raise _failed(run)
        try:
            return self._typed_result(run)
        except RotaError as error:
            raise error.within(f"run {run.id}") from None

    def _typed_result(self, run: Run) -> Any:
        handler = self.registry.for_run(run.job, run.job_version)
        return run.result if handler is None else handler.returns.read(run.result)

    def _wait_for(self, verb: Callable[[Self], Coroutine[Any, Any, T]]) -> NoReturn:
        """Refuse to wait: handles of an asynchronous client have no other thread to ask in."""
        raise Conflict(
            "this handle belongs to an asynchronous client", hint="`await handle`, or one of its verbs with an `a`"
        )

    async def _await(self, verb: Callable[[Self], Coroutine[Any, Any, T]]) -> T:
        """Run a verb for a handle."""
        return await verb(self)

    @verb(
        "POST",
        "/runs/{id}/cancel",
        Role.OPERATOR,
        scoped=True,
        optional_body=True,
        takes={"reason": "a mistake"},
        gives=RUN,
        operation="cancel_run",
    )
    async def cancel(self, run_id: str, *, reason: Reason = None, actor: str | None = None) -> Run:
        """Cancel a run, and return it: `cancelled`, or `cancelling` while its worker has its grace period."""
        run = await self.store.cancel(run_id, reason, checked_actor(actor), self.scope)
        counters = self.meters.of[run.job, run.queue]
        counters.cancels.add()
        if run.state is RunState.CANCELLED:
            counters.runs[run.state].add()
        return run

    @verb(
        "POST",
        "/runs/{id}/retry",
        Role.OPERATOR,
        scoped=True,
        optional_body=True,
        created=lambda run: run.created,
        location="/runs/{id}",
        takes={"keep_steps": True},
        gives={**RUN, "created": True},
        operation="retry_run",
    )
    async def retry(
        self,
        run_id: str,
        *,
        keep_steps: Annotated[bool, Meta(description="Reuse the results of completed steps")] = False,
        from_step: Annotated[str | None, Meta(description="Reuse only those before this step")] = None,
        payload: Annotated[
            dict[str, Any] | None, Meta(description="Payload of the new run, if it is to differ from the old one")
        ] = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> EnqueuedRun:
        """Enqueue a copy of a final run, whose `retry_of` names the old one, which stays as it is. Raise `Conflict` if
        an active run holds its unique key.

        `keep_steps` reuses the results of completed steps; `from_step` reuses only those before that step. With an
        `idempotency_key` the call is safe to repeat: it returns the run created the first time.

        Another `payload` is checked as that of any new run is; secrets that are masked in it stay as they were, and the
        audit trail names the fields that differ. Results of steps are those of the old payload, so they cannot be kept.
        """
        if payload is not None and (keep_steps or from_step is not None):
            raise Invalid("results of steps cannot be kept for another payload", hint="give one of the two")
        again = await self._again(run_id, actor, payload)
        if idempotency_key is not None:
            content = ("retry", again.retry_of, keep_steps, from_step, *([] if payload is None else [again.payload]))
            again = asked_as(again, request_hold(idempotency_key, *content, within=self.scope))
        if keep_steps or from_step is not None:
            run = await self.store.enqueue_keeping(again, from_step)
        else:
            run = await self.store.enqueue_retry(again)
        self.meters.of[run.job, run.queue].enqueued.add(run.created)
        return run

    async def _again(self, run_id: str, actor: str | None, payload: dict[str, Any] | None = None) -> NewRun:
        """Build the retry of a run, with another payload if one is given; write nothing."""
        facts = await self.store.retry_facts(run_id, self.scope)
        return await self._retry_of(facts if payload is None else await self._edited(facts, payload), actor)

    async def _edited(self, facts: RetryFacts, payload: dict[str, Any]) -> RetryFacts:
        """Return what a retry with another payload is made of."""
        old = facts.run
        if not isinstance(payload, dict):
            raise BadPayload("$", "must be an object")
        whole = restored(payload, old.payload, Discreet(old).run().payload)
        handler = self.registry.newest.get(old.job)
        definition = facts.job if handler is None else handler.definition
        text = self._checked_payload(handler, definition or await self._definition(old.job), whole)
        copy = msgspec.structs.replace(facts.copy, payload=text, edited=edited_fields(whole, old.payload))
        return msgspec.structs.replace(facts, copy=copy)

    async def _all_again(self, run_ids: Sequence[str], actor: str | None) -> dict[str, NewRun | RotaError]:
        """Build the retries of runs, or tell why not; write nothing."""
        facts = await self.store.retry_facts_of(run_ids, self.scope)
        answers: dict[str, NewRun | RotaError] = {}
        for run_id in run_ids:
            try:
                if run_id not in facts:
                    raise UnknownRun(run_id)
                answers[run_id] = await self._retry_of(facts[run_id], actor)
            except Unavailable:
                raise
            except RotaError as error:
                answers[run_id] = error
        return answers

    async def _retry_of(self, facts: RetryFacts, actor: str | None) -> NewRun:
        old, original = facts.run, facts.copy
        if facts.taken:
            original = msgspec.structs.replace(original, payload=taken_again(original.payload, facts.taken))
        if not old.state.is_final:
            raise RunNotFinal(old.id, old.state)
        if old.parent_id is not None:
            raise Conflict(f"run {old.id} is a replica of run {old.parent_id}", hint=f"retry that one: {old.parent_id}")
        declared = self.registry.newest.get(old.job)
        definition = facts.job if declared is None else declared.definition
        if definition is None:
            definition = await self._definition(old.job)  # raises: nobody knows the job
        if not definition.enabled:
            raise JobDisabled(definition.name)
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
            gates=with_limits_of_schedule(gates_of(definition, old.scope, original.payload), facts.schedule_gates),
            eligibility=eligibility_of(definition, overrides.requirements or NOTHING),
            droppable=self._is_droppable(definition),
        )

    @verb(
        "GET",
        "/runs:count",
        Role.VIEWER,
        fixed={"within": "1s"},
        gives={"count": 3, "exact": True},
        operation="count_runs",
    )
    async def count(
        self,
        run_filter: RunFilter | None = None,
        *,
        most: Annotated[int, Meta(ge=1, le=MOST_COUNTED, description="Stop counting here")] = 10_000,
        within: Duration | None = None,
        run_time: Annotated[bool, Meta(description="Also sum up the durations of those that have ended")] = False,
    ) -> Counted:
        """Count matching runs; stop at `most`, or after `within` (over HTTP, always after a second). `run_time` also
        sums up how long they took: each its last attempt.

        If the answer is not `exact`, there are at least that many.
        """
        return await self._bulk.count(
            await self._scoped_filter(run_filter or RunFilter()), most, within, run_time=run_time
        )

    @within_bounds("reason")
    async def cancel_many(
        self,
        run_filter: RunFilter,
        *,
        reason: Reason = None,
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

    @within_bounds()
    async def purge(
        self,
        run_filter: RunFilter,
        *,
        older_than: Annotated[Duration | None, Meta(description="Only runs that ended longer ago")] = None,
        dry_run: bool = False,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> Purged:
        """Delete all matching runs that have ended, now, whatever their job's retention. If more than `expected` match,
        raise `BulkMismatch` and delete nothing.

        Runs that are still needed stay, and are counted by reason: those that live runs depend on, that keys lead to,
        that schedules continue from, and the newest success of a job. Statistics and ledgers keep what counts. A
        `dry_run` deletes nothing, and counts the same.
        """
        scoped = await self._scoped_filter(run_filter)
        scoped = to_purge(scoped, everything=everything or older_than is not None)
        return await self._bulk.purge(scoped, older_than, checked_actor(actor), expected, progress, dry_run=dry_run)

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Subscribe to change hints for topics: `run:<id>`, `runs`, `schedules`, `workers` or `queues`."""
        return self._hints.subscribe(topics, self.scope)

    def follow(self, run_id: str) -> AsyncGenerator[Run]:
        """Yield the run now, and again whenever its state, progress or log changes, until it is final."""
        return self._hints.follow(run_id, self.scope)

    @verb(
        "POST",
        "/jobs/{name}/retry",
        Role.OPERATOR,
        created=lambda run: run.created,
        location="/runs/{id}",
        gives={**RUN, "created": True},
    )
    async def retry_job(
        self, name: str, *, actor: str | None = None, idempotency_key: str | None = None
    ) -> EnqueuedRun:
        """Retry the newest run of a job if it failed, timed out, expired or was cancelled.

        With an `idempotency_key` the call is safe to repeat: it returns the run created the first time.
        """
        request = (
            None if idempotency_key is None else request_hold(idempotency_key, "retry job", name, within=self.scope)
        )
        # Race: another run may become the newest meanwhile, and is meant then. `retry_newest` returns None if so.
        for _ in range(_TRIES):
            facts = await self.store.facts_of_newest(name, request, self.scope)
            if isinstance(facts, Run):
                return enqueued_as(facts, created=False)
            if facts is None:
                await self._definition(name)  # raises if nobody knows the job
                raise NothingToRetry(name, None, None)
            if facts.run.state not in RETRIED_BY_HAND:
                raise NothingToRetry(name, facts.run.id, facts.run.state if facts.run.state.is_final else None)
            new_run = asked_as(await self._retry_of(facts, actor), request)
            run = await self.store.retry_newest(new_run, request, self.scope)
            if run is not None:
                self.meters.of[run.job, run.queue].enqueued.add(run.created)
                return run
        raise Unavailable(f"job {name!r} kept getting new runs while it was being retried", hint="try again")

    @_about_run("/runs/{id}/explain", gives=EXPLANATION, operation="explain_run")
    async def explain(self, run_id: str) -> Explanation:
        """Explain why a run is in its current state."""
        return await self.store.ledger.explain_run(run_id, in_micros(self.config.lease), self.scope)

    @_about_run("/runs/{id}/events", page=Page(), answer=EVENTS, gives=EVENT, operation="list_run_events")
    async def events(self, run_id: str) -> Sequence[Event]:
        """List the state changes of a run, oldest first, each with its time, actor and fence."""
        return await self.store.ledger.events_of_run(run_id, self.scope)
