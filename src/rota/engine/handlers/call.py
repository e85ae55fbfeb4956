"""Call handlers: coroutines on the event loop, functions in threads, isolated ones in child processes."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, assert_never

import msgspec

from rota.core.jobs.job import Isolation
from rota.core.progress.steps import StepDefinition
from rota.core.runs.outcome import Report
from rota.core.runs.run import Measures
from rota.core.workers.worker import WorkerInfo
from rota.engine.handlers.attempt import Attempt, UnreadablePayload
from rota.engine.handlers.context import context_for
from rota.engine.handlers.context_backend import WorkerBackend
from rota.engine.handlers.current_run import current_run
from rota.engine.handlers.local_retry import repeated, timed
from rota.engine.handlers.note_buffer import NoteBuffer
from rota.engine.handlers.shield import Guard
from rota.engine.handlers.threads import HandlerThreads
from rota.engine.isolation.answer import answer, take_notes
from rota.engine.observability.log_capture import speaker
from rota.errors import BadPayload
from rota.registry.hooks.lifespan import NO_STATES, States
from rota.store import Store
from rota.values.json import Limits

if TYPE_CHECKING:
    from rota.engine.isolation.process_pool import ProcessPool

_CLOSING = timedelta(seconds=1)
_CLOSING_LIFESPANS = timedelta(seconds=3)
"""Time that child processes have to leave their lifespans."""


class Host(Guard, Protocol):
    """The executor on whose behalf handlers are called."""

    def began(self, attempt: Attempt) -> None: ...

    def freed(self) -> None: ...

    def renew(self) -> None: ...

    def overdue(self, attempt: Attempt, step: StepDefinition) -> None: ...

    def success(self, attempt: Attempt, result: str | None) -> Report: ...


class Calls:
    """Threads, child processes and backends of one worker's handlers."""

    def __init__(self, store: Store, worker: WorkerInfo, limits: Limits, note_buffer: NoteBuffer, host: Host) -> None:
        self.store = store
        self.limits = limits
        self.note_buffer = note_buffer
        self.cancel = host.cancel
        self.overdue = host.overdue
        self.success = host.success
        self.unshielded = host.unshielded
        self._host = host
        self._isolated: dict[str, Attempt] = {}
        self._worker = worker
        self._threads: HandlerThreads | None = None
        self._processes: ProcessPool | None = None
        self._counters: dict[str, dict[str, float]] = {}
        self._abandoned: set[asyncio.Future[Any]] = set()
        self._replying: set[asyncio.Task[None]] = set()
        self._backend_lock = threading.Lock()
        self.states = NO_STATES

    @property
    def zombies(self) -> int:
        """Return how many abandoned handlers still run, and still take a slot."""
        return len(self._abandoned)

    def grow(self, worker: WorkerInfo) -> None:
        """Allow more threads and processes. With fewer slots the worker begins fewer runs, and the surplus idles."""
        self._worker = worker
        for pool in (self._threads, self._processes):
            if pool:
                pool.grow(worker.slots)

    def use(self, states: States) -> None:
        """Let handlers ask for the states of the worker's lifespans."""
        self.states = states

    def call(self, attempt: Attempt) -> Awaitable[object]:
        if attempt.handler.definition.local_retries:
            return repeated(attempt, self._call)
        return self._call(attempt)

    async def _call(self, attempt: Attempt) -> object:
        handler = attempt.handler
        match handler.isolation:
            case Isolation.THREAD:
                pass
            case Isolation.PROCESS:
                return await self._in_process(attempt)
            case _:
                assert_never(handler.isolation)
        self._host.began(attempt)
        arguments = _arguments(attempt)
        if handler.payload.wants_context:
            backend = self.backend(attempt)
            kind = context_for(handler.is_async)
            arguments[handler.payload.wants_context] = kind(
                attempt.claim, self._worker.id, attempt, backend, self._host.renew
            )
        if handler.payload.injects:
            arguments |= self.states.arguments(handler.payload.injects)
        speaker.set((self, attempt))  # this task has a context of its own, so no reset is needed
        current_run.set(attempt.claim)
        if handler.is_async:
            return await handler.call(**arguments)
        return await self.in_thread(attempt, partial(timed, attempt, partial(_complete, handler.call, arguments)))

    def backend(self, attempt: Attempt) -> WorkerBackend:
        """Return the attempt's backend, created on first use: most handlers write no notes.

        Safe from several threads.
        """
        if attempt.backend is None:
            with self._backend_lock:
                attempt.backend = attempt.backend or WorkerBackend(attempt, self)
            if attempt.reported:  # a thread or task that the handler left behind asks for it
                attempt.backend.close()
        return attempt.backend

    def say(self, attempt: Attempt, level: int, logger: str, text: str) -> None:
        if not attempt.reported:  # lines of what a handler leaves behind belong to no attempt
            self.backend(attempt).say(level, logger, text)

    async def in_thread(self, attempt: Attempt, call: Callable[[], Any]) -> object:
        if self._threads is None:
            self._threads = HandlerThreads(self._worker.slots)
        future = asyncio.wrap_future(self._threads.submit(call))
        try:
            # Shielded: a cancelled task cannot stop the thread, whose future must stay pending until it really returns.
            return await asyncio.shield(future)
        finally:
            self._leave(future)

    async def _in_process(self, attempt: Attempt) -> object:
        from rota.engine.isolation import isolated_call
        from rota.engine.isolation.process_pool import ProcessPool

        if self._processes is None:
            self._processes = ProcessPool(self._worker.slots, on_message=self._on_message)
        key = attempt.key
        url = getattr(self.store.database, "url", None)
        call = isolated_call.call_of(attempt.handler, attempt.claim, self._worker.id, self.limits, url)
        self._isolated[key] = attempt
        try:
            outcome = await self._processes.run(key, call)
        finally:
            del self._isolated[key]
            counters = self._counters.pop(key, {})
        attempt.measures = Measures(outcome.cpu_time_ms, outcome.memory_peak_mb, counters)
        match outcome.status:
            case "returned":
                return msgspec.json.decode(outcome.value)
            case "raised":
                raise isolated_call.raised(outcome.value)
            case "died":
                raise isolated_call.died(outcome.value)
            case _:
                assert_never(outcome.status)

    def _on_message(self, key: str, kind: str, body: bytes) -> None:
        if kind == "began":
            self._host.began(self._isolated[key])
        elif kind == "counters":
            self._counters[key] = msgspec.json.decode(body)
        elif kind == "said":
            take_notes(self.backend(self._isolated[key]), body)
        elif kind == "renew":
            self._host.renew()
        elif kind == "ask":
            task = asyncio.create_task(self._reply(key, body))
            self._replying.add(task)
            task.add_done_callback(self._replying.discard)

    async def _reply(self, key: str, body: bytes) -> None:
        attempt = self._isolated[key]
        no, reply = await answer(self.backend(attempt), attempt, body)
        if self._processes:
            self._processes.reply(key, no, reply)

    def tell(self, attempt: Attempt) -> None:
        """Request a cooperative stop from a child process. Coroutines and threads see it in their context already."""
        if self._processes:
            self._processes.request_cancel(attempt.key)

    def tell_of_shutdown(self, attempt: Attempt) -> None:
        if self._processes:
            self._processes.tell_of_shutdown(attempt.key)

    def can_interrupt(self, attempt: Attempt) -> bool:
        isolation = attempt.handler.isolation
        match isolation:
            case Isolation.PROCESS:
                return True
            case Isolation.THREAD:
                return attempt.handler.is_async
            case _:
                assert_never(isolation)

    def interrupt(self, attempt: Attempt) -> bool:
        """Interrupt a handler; return False if that is impossible, as it is for a thread."""
        isolation = attempt.handler.isolation
        match isolation:
            case Isolation.PROCESS:
                assert self._processes is not None or attempt.task is not None
                if self._processes:
                    self._processes.kill(attempt.key)
                elif attempt.task:
                    attempt.task.cancel()
                return True
            case Isolation.THREAD:
                if attempt.handler.is_async and attempt.task:
                    attempt.task.cancel()
                    return True
                return False
            case _:
                assert_never(isolation)

    def abandon(self, attempt: Attempt) -> None:
        if attempt.task is not None:
            self._leave(attempt.task)

    def _leave(self, future: asyncio.Future[Any]) -> None:
        """Keep the slot of a call that goes on after its attempt taken, until it returns."""
        if not future.done() and future not in self._abandoned:
            self._abandoned.add(future)
            future.add_done_callback(self._returned)

    def _returned(self, future: asyncio.Future[Any]) -> None:
        self._abandoned.discard(future)
        if not future.cancelled():
            future.exception()  # retrieve it, or asyncio logs "exception was never retrieved"
        self._host.freed()

    async def close(self) -> None:
        if self._threads:
            self._threads.close()
        if self._processes:
            await self._processes.close(_CLOSING if self.states is NO_STATES else _CLOSING_LIFESPANS)


def _arguments(attempt: Attempt) -> dict[str, Any]:
    try:
        return attempt.handler.payload.arguments(attempt.claim.payload)
    except BadPayload as error:
        raise UnreadablePayload(error) from error


def _complete(fn: Callable[..., Any], arguments: dict[str, Any]) -> object:
    """Call a plain function. If it returns a coroutine, as some decorators do, run that on an event loop of its own."""
    value = fn(**arguments)
    return asyncio.run(value) if inspect.iscoroutine(value) else value
