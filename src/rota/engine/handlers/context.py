"""The context of a handler: identity of the run, requests to stop, progress, steps and transactions."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar, overload

import msgspec

from rota.core.progress.control_flow import Cancelled, Fail, HandedOver, step_timed_out
from rota.core.progress.notes import LONGEST_SUMMARY, hundredths, storable
from rota.core.runs.claim import Claim
from rota.core.runs.dependencies import RelatedRun
from rota.engine.handlers.track import BREATH, Breath, Items, Tracked
from rota.engine.handlers.transaction import SyncTransaction, Transaction
from rota.errors import BadPayload, Invalid, LeaseLost
from rota.observability.tracing import step_span
from rota.registry.hooks.lifespan import States
from rota.values import json
from rota.values.durations import Duration
from rota.values.instants import instant, maybe_instant
from rota.values.json import Limits
from rota.values.names import checked_name
from rota.values.scope import Scope

P = ParamSpec("P")
T = TypeVar("T")


class Standing:
    """Requests and losses that concern a run in progress: written by the worker, read by the handler."""

    __slots__ = ("cancelled", "counters", "lost", "shields", "shutting_down")

    def __init__(self) -> None:
        self.cancelled = False
        self.lost = False
        self.shutting_down = False
        self.shields = 0
        self.counters: dict[str, float] | None = None


class Opened(msgspec.Struct, frozen=True):
    """An open step or, with `is_done`, its recorded result."""

    is_done: bool
    result: Any = None
    timeout: timedelta | None = None
    shielded: bool = False


class ContextBackend(Protocol):
    """The receiver of what a handler tells its context; `stops_threads` if it can stop one, by ending the process."""

    stops_threads: bool

    @property
    def states(self) -> States: ...

    def progress(self, done: int | None, summary: str | None, step: str | None) -> None: ...

    def skip_step(self, id: str, reason: str | None) -> None: ...

    async def open_step(self, id: str, *, interruptible: bool) -> Opened:
        """Open a step. `interruptible`: the handler itself enforces the timeout."""

    async def close_step(self, id: str, result: object) -> Any:
        """Store the result and return it as later attempts will get it."""

    async def leave_step(self, id: str, error: BaseException | None) -> None:
        """Leave a step without a result. Without an error it will be opened again."""

    def give_up_step(self, id: str) -> None:
        """Leave a step without a result and without waiting."""

    async def parents(self) -> Sequence[RelatedRun]: ...

    async def in_thread(self, call: Callable[[], Any]) -> Any: ...

    def wait(self, act: Coroutine[Any, Any, T]) -> T:
        """Run `act` for a handler that is not a coroutine, and block its thread meanwhile."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]: ...

    def sync_transaction(self) -> AbstractContextManager[SyncTransaction]: ...


class RunContext:
    """The common part of both kinds of context."""

    __slots__ = ("_backend", "_claim", "_renew", "_standing", "worker_id")

    def __init__(
        self,
        claim: Claim,
        worker_id: str,
        standing: Standing,
        backend: ContextBackend,
        renew: Callable[[], None] | None = None,
    ) -> None:
        self.worker_id = worker_id
        self._claim = claim
        self._standing = standing
        self._backend = backend
        self._renew = renew

    @property
    def run_id(self) -> str:
        return self._claim.run_id

    @property
    def job(self) -> str:
        return self._claim.job

    @property
    def attempt(self) -> int:
        """Number of this attempt, counted from 1."""
        return self._claim.attempt

    @property
    def max_attempts(self) -> int:
        return self._claim.max_attempts

    @property
    def fence(self) -> int:
        """Number that grows with every claim. Pass it to systems that can refuse an older one."""
        return self._claim.fence

    @property
    def scope(self) -> Scope:
        return Scope(self._claim.scope_kind, self._claim.scope_id)

    @property
    def key(self) -> str | None:
        return self._claim.key

    @property
    def payload(self) -> dict[str, Any]:
        return msgspec.json.decode(self._claim.payload)  # type: ignore[no-any-return]

    @property
    def created_at(self) -> datetime:
        return instant(self._claim.created_at)

    @property
    def plan_time(self) -> datetime | None:
        """The instant that a schedule planned; None if the run was enqueued or triggered by hand."""
        return maybe_instant(self._claim.plan_time)

    @property
    def covers_from(self) -> datetime | None:
        """The first plan time that this run stands for besides its own, after an outage."""
        return maybe_instant(self._claim.covers_from)

    @property
    def missed_count(self) -> int:
        """Number of plan times that this run stands for besides its own."""
        return self._claim.missed_count or 0

    @property
    def idempotency_key(self) -> str:
        """Key that is the same for every attempt, and for every manual retry of the same work."""
        return self._claim.idempotency_key

    @property
    def state(self) -> Any:
        """The object that the app's lifespan yielded in this process. With several, take each by its type."""
        return self._backend.states.only()

    @property
    def cancelled(self) -> bool:
        """True once somebody has asked to cancel the run."""
        return self._standing.cancelled

    @property
    def shutting_down(self) -> bool:
        """True once the worker is stopping: finish soon, or the run is handed back to another worker."""
        return self._standing.shutting_down

    @property
    def log(self) -> logging.Logger:
        """Logger whose lines are stored with the attempt, as are those of any other logger in this handler."""
        return job_logger(self._claim.job)

    def checkpoint(self) -> None:
        """Raise if the run is cancelled or its lease is lost: call it where it is safe to stop."""
        if self._standing.lost:
            raise LeaseLost(self.run_id, self.fence)
        if self._standing.cancelled and not self._standing.shields:
            raise Cancelled(f"run {self.run_id} was cancelled")

    def heartbeat(self) -> None:
        """Renew the lease now instead of at the worker's next heartbeat. Also a checkpoint."""
        if self._renew:
            self._renew()
        self.checkpoint()

    def _progress(
        self, percentage: float | None = None, summary: str | None = None, *, step: str | None = None
    ) -> Breath:
        done = None if percentage is None else hundredths(percentage)
        self._backend.progress(done, None if summary is None else storable(summary, LONGEST_SUMMARY), step)
        self.checkpoint()
        return BREATH

    def track(
        self, items: Items[T], *, total: int | None = None, summary: str | None = None, step: str | None = None
    ) -> Tracked[T]:
        """Iterate over `items` and report progress after each: `for page in ctx.track(pages): …`."""
        return Tracked(items, total, summary, partial(self._progress, step=step))

    def skip_step(self, id: str, reason: str | None = None) -> None:
        """Record that a step is not needed this time."""
        self._backend.skip_step(id, None if reason is None else storable(reason, LONGEST_SUMMARY))

    def count(self, name: str, n: float = 1) -> None:
        """Add to a counter that is stored with the attempt: `ctx.count("items", 25)`."""
        if not isinstance(n, int | float) or isinstance(n, bool) or not math.isfinite(n):
            raise Invalid(f"a counter grows by a number, not {n!r}")
        counters = self._standing.counters
        if counters is None:
            counters = self._standing.counters = {}
        if checked_name(name, "a counter's name") not in counters and len(counters) >= 100:
            raise Invalid("a run has at most 100 counters")
        total = counters.get(name, 0) + n
        if not math.isfinite(total):
            raise Invalid(f"counter {name!r} would exceed the largest number")
        counters[name] = total


class Context(RunContext):
    """Context of an async handler: declare a parameter of this type, or name it `ctx`."""

    __slots__ = ()

    def progress(
        self, percentage: float | None = None, summary: str | None = None, *, step: str | None = None
    ) -> Breath:
        """Report progress from 0 to 100 of the run, or of one of its open steps. Also a checkpoint.

        It is cheap: at most two writes a second reach the database. Awaiting it is optional.
        """
        return self._progress(percentage, summary, step=step)

    @overload
    async def step(self, id: str, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    async def step(self, id: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def step(self, id: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Do a part of the work once: later attempts get the recorded result. A plain function gets a thread.

        The result is what JSON makes of it, also the first time.
        """
        _require_callable(fn)
        self.checkpoint()
        threaded = not inspect.iscoroutinefunction(fn)
        opened = await self._backend.open_step(id, interruptible=not (threaded and self._backend.stops_threads))
        if opened.is_done:
            return opened.result
        watch = asyncio.timeout(None if opened.timeout is None else opened.timeout.total_seconds())
        try:
            async with watch:
                with step_span(id):
                    value = await self._do(partial(fn, *args, **kwargs), threaded=threaded)
        except Exception as error:
            is_late = isinstance(error, TimeoutError) and watch.expired()
            failure = step_timed_out(id, opened.timeout) if is_late and opened.timeout else error
            await self._backend.leave_step(id, failure)
            if failure is error:
                raise
            raise failure from error
        except BaseException:  # interrupted: if the attempt goes on nevertheless, the step may be opened again
            self._backend.give_up_step(id)
            raise
        result = await self._backend.close_step(id, value)
        self.checkpoint()
        return result

    async def _do(self, call: Callable[[], Any], *, threaded: bool) -> Any:
        value = await self._backend.in_thread(call) if threaded else call()
        return await value if inspect.isawaitable(value) else value

    async def parents(self) -> Sequence[RelatedRun]:
        """Return the runs that this one depends on, in the order given: id, job, state, result."""
        return await self._backend.parents()

    @overload
    async def wait_for_external(self, timeout: Duration) -> NoReturn: ...

    @overload
    async def wait_for_external(self, timeout: Duration, *, step: str) -> Any: ...

    async def wait_for_external(self, timeout: Duration, *, step: str | None = None) -> Any:
        """Hand the run over to an external party that knows its id and fence. The handler ends here.

        They must end the run within `timeout`. With `step` they end that step, and the handler is called again: then
        this returns the step's result.
        """
        self.checkpoint()
        leaving = HandedOver(timeout, step)
        if step is not None:
            opened = await self._backend.open_step(step, interruptible=True)
            if opened.is_done:
                return opened.result
            await self._backend.leave_step(step, None)
        raise leaving

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction: your SQL and `tx.finish(result)` are committed together, or neither is."""
        return self._backend.transaction()


class SyncContext(RunContext):
    """Context of a handler that is not a coroutine; nothing of it is awaited."""

    __slots__ = ()

    def progress(self, percentage: float | None = None, summary: str | None = None, *, step: str | None = None) -> None:
        """Report progress from 0 to 100 of the run, or of one of its open steps. Also a checkpoint."""
        self._progress(percentage, summary, step=step)

    @overload
    def step(self, id: str, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    def step(self, id: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    def step(self, id: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Do a part of the work once; the result is as JSON makes it. A coroutine gets an event loop of its own."""
        _require_callable(fn)
        self.checkpoint()
        opened = self._backend.wait(self._backend.open_step(id, interruptible=False))
        if opened.is_done:
            return opened.result
        try:
            with step_span(id):
                value = fn(*args, **kwargs)
                if inspect.iscoroutine(value):
                    value = asyncio.run(value)
        except BaseException as error:
            self._backend.wait(self._backend.leave_step(id, error if isinstance(error, Exception) else None))
            raise
        result = self._backend.wait(self._backend.close_step(id, value))
        self.checkpoint()
        return result

    def parents(self) -> Sequence[RelatedRun]:
        """Return the runs that this one depends on, in the order given: id, job, state, result."""
        return self._backend.wait(self._backend.parents())

    @overload
    def wait_for_external(self, timeout: Duration) -> NoReturn: ...

    @overload
    def wait_for_external(self, timeout: Duration, *, step: str) -> Any: ...

    def wait_for_external(self, timeout: Duration, *, step: str | None = None) -> Any:
        """Hand the run over to an external party that knows its id and fence. The handler ends here.

        They must end the run within `timeout`. With `step` they end that step, and the handler is called again: then
        this returns the step's result.
        """
        self.checkpoint()
        leaving = HandedOver(timeout, step)
        if step is not None:
            opened = self._backend.wait(self._backend.open_step(step, interruptible=True))
            if opened.is_done:
                return opened.result
            self._backend.wait(self._backend.leave_step(step, None))
        raise leaving

    def transaction(self) -> AbstractContextManager[SyncTransaction]:
        """Open a transaction: your SQL and `tx.finish(result)` are committed together, or neither is."""
        return self._backend.sync_transaction()


def context_for(is_async: bool) -> type[RunContext]:
    return Context if is_async else SyncContext


def _require_callable(fn: object) -> None:
    if not callable(fn):
        raise Invalid(f"a step is a function, not {fn!r:.60}", hint="ctx.step(id, function, its, arguments)")


def stored(step: str, result: object, limits: Limits) -> str:
    """Encode a step's result, or fail the run: a retry would only repeat the step in vain."""
    try:
        return json.encode(result, limits)
    except BadPayload as error:
        raise Fail(f"the result of step {step!r} cannot be stored: {error.problem}") from error


def job_logger(job: str) -> logging.Logger:
    logger = logging.getLogger(f"rota.job.{job}")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    return logger
