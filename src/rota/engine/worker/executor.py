"""Run attempts on behalf of a worker: begin, interrupt, abandon and finish them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, assert_never

from rota.config import Config
from rota.core.jobs.allowed_addresses import networks_of
from rota.core.jobs.job import Isolation
from rota.core.progress.steps import StepDefinition
from rota.core.runs.claim import Claim
from rota.core.runs.outcome import Report
from rota.core.states import Outcome
from rota.core.workers.worker import WorkerInfo
from rota.engine.handlers.attempt import Attempt, Reports
from rota.engine.handlers.call import Calls
from rota.engine.handlers.current_run import worker_context
from rota.engine.handlers.note_buffer import NoteBuffer
from rota.engine.jobs.http_client import HttpClient, worker_client
from rota.engine.observability.attempt_observers import watched
from rota.registry.hooks.lifespan import States
from rota.registry.jobs import Handler
from rota.store import Store
from rota.values.json import Limits

_LONGEST_COOPERATION = 5.0  # seconds that a cancelled handler has to stop by itself
_ABANDON_AFTER = 1.0  # seconds that an interrupted handler has to return before it is abandoned


class ExecutorHost(Protocol):
    """The worker on whose behalf attempts run."""

    def ended(self, attempt: Attempt, report: Report | None) -> None:
        """Handle the end of `attempt`. `report` is None if the lease is gone or the end is committed already."""

    def freed(self) -> None:
        """Handle a slot that may have become free."""

    def renew(self) -> None:
        """Renew all leases now."""


class Executor:
    """The attempts that are active, and the timers that interrupt them."""

    def __init__(
        self,
        store: Store,
        info: WorkerInfo,
        config: Config,
        note_buffer: NoteBuffer,
        reports: Reports,
        host: ExecutorHost,
    ) -> None:
        self.active: dict[str, Attempt] = {}
        self.success = reports.succeeded
        self._clock = store.clock
        self._reports = reports
        self._host = host
        self._calls = Calls(store, info, Limits(config.max_payload), note_buffer, self)
        self._call = watched(self._calls.call, store, config)
        self._http_client = HttpClient(networks_of(config.http_allow), config.max_payload)
        self._context = worker_context(info.id)
        self._context.run(worker_client.set, self._http_client)
        self._loop = asyncio.get_running_loop()
        self.grow: Callable[[WorkerInfo], None] = self._calls.grow
        self.use: Callable[[States], None] = self._calls.use
        self.freed: Callable[[], None] = host.freed
        self.renew: Callable[[], None] = host.renew

    @property
    def slots_taken(self) -> int:
        return len(self.active) + self._calls.zombies

    def begin(self, claim: Claim, handler: Handler) -> None:
        attempt = self.active[claim.run_id] = Attempt(claim, handler)
        # The end of another attempt may be what begins this one: it must not inherit that attempt's context variables.
        attempt.task = self._loop.create_task(self._run(attempt), context=self._context.copy())

    async def _run(self, attempt: Attempt) -> None:
        report: Report | None
        try:
            try:
                result = await self._call(attempt)
            except BaseException as error:
                report = self._reports.failure(attempt, error)
            else:
                report = None if attempt.lost else self._reports.success(attempt, result)
        except Exception as error:  # the handler's own objects would not even be described
            report = self._reports.indescribable(attempt, error)
        self._finish(attempt, report)
        # The task's context names the attempt: a ring of a dozen objects for each run, and finding these was a quarter
        # of the worker's time.
        attempt.task = None

    def began(self, attempt: Attempt) -> None:
        """Start the handler's timeout.

        In a child process this is when the handler begins, not when it waits for a process.
        """
        if attempt.began_at is not None:  # a local retry runs under the timeout of the first call
            return
        attempt.began_at = self._clock.monotonic()
        if (timeout := attempt.timeout) is not None:
            attempt.after(timeout.total_seconds(), self._interrupt, Outcome.TIMED_OUT)

    def _finish(self, attempt: Attempt, report: Report | None) -> None:
        attempt.cancel_timers()
        # Race between a report and a cancel, timeout or lost lease: whichever finishes the attempt first decides, and
        # exactly one report is sent. An abandoned handler that returns later ends up here, too.
        if attempt.reported:
            return
        attempt.reported = True
        # After a lost lease the same worker may have claimed the run again: that attempt must stay.
        if self.active.get(attempt.claim.run_id) is attempt:
            del self.active[attempt.claim.run_id]
        self._host.ended(attempt, None if attempt.finished else report)

    def _interrupt(self, attempt: Attempt, outcome: Outcome) -> None:
        """Stop an attempt now, by the strongest means that its isolation offers. Abandon it if it does not stop."""
        if attempt.reported or attempt.stopped is not None:
            return
        attempt.stopped = outcome
        attempt.cancelled = True
        if self._calls.interrupt(attempt):
            attempt.after(attempt.handler.definition.cancel.grace.total_seconds(), self._abandon)
        else:
            self._abandon(attempt)

    def _abandon(self, attempt: Attempt) -> None:
        """Report the attempt without waiting for its handler. The slot stays taken until the handler really returns."""
        if attempt.reported:
            return
        self._calls.abandon(attempt)
        report = None if attempt.lost else self._reports.stopped(attempt, attempt.stopped or Outcome.HANDED_BACK)
        self._finish(attempt, report)

    def lose(self, attempt: Attempt) -> None:
        """Interrupt an attempt whose lease is lost; nothing is reported.

        An attempt that finished its run itself goes on.
        """
        if attempt.finished:
            return
        attempt.lost = True
        self._interrupt(attempt, Outcome.LOST)

    def overdue(self, attempt: Attempt, step: StepDefinition) -> None:
        attempt.overdue = step
        self._interrupt(attempt, Outcome.TIMED_OUT)

    def cancel(self, attempt: Attempt, *, by_policy: bool = False) -> None:
        """Request a cooperative stop. A handler that takes a context has part of its grace before it is interrupted;
        a coroutine that a policy cancels has none: its successor waits for it.
        """
        if attempt.cancelled and (attempt.superseded or not by_policy):
            return
        attempt.superseded = attempt.superseded or by_policy
        if not attempt.cancelled:
            attempt.cancelled = True
            self._calls.tell(attempt)
        attempt.after(_cooperation_time(attempt), self._interrupt_cancelled)

    def unshielded(self, attempt: Attempt) -> None:
        if attempt.cancelled and not attempt.shields:
            attempt.after(_cooperation_time(attempt), self._interrupt_cancelled)

    def _interrupt_cancelled(self, attempt: Attempt) -> None:
        # A shielded step runs to its end; `unshielded` starts the timer again when the last one is over.
        if self._calls.can_interrupt(attempt) and not attempt.shields:
            self._interrupt(attempt, Outcome.CANCELLED)

    async def wait(self, seconds: float | None) -> None:
        """Wait for all active attempts, at most `seconds`; None waits without limit."""
        tasks = [attempt.task for attempt in self.active.values() if attempt.task]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def end(self, grace: float) -> None:
        """Shut down: announce it to all handlers, wait for `grace` seconds, interrupt the rest, then abandon it."""
        for attempt in self.active.values():
            attempt.shutting_down = True
            self._calls.tell_of_shutdown(attempt)
        await self.wait(grace)
        for attempt in list(self.active.values()):
            self._interrupt(attempt, Outcome.HANDED_BACK)
        await self.wait(_ABANDON_AFTER)
        for attempt in list(self.active.values()):
            self._abandon(attempt)

    async def close(self) -> None:
        await self._calls.close()
        await self._http_client.close()


def _is_task(handler: Handler) -> bool:
    """Return whether it is a coroutine in this process, which is interrupted at an await and may catch that."""
    match handler.isolation:
        case Isolation.THREAD:
            return handler.is_async
        case Isolation.PROCESS:
            return False
        case _:
            assert_never(handler.isolation)


def _cooperation_time(attempt: Attempt) -> float:
    hurries = attempt.superseded and _is_task(attempt.handler)
    cooperative = attempt.handler.payload.wants_context is not None and not hurries
    grace = attempt.handler.definition.cancel.grace.total_seconds()
    return min(grace / 3, _LONGEST_COOPERATION) if cooperative else 0
