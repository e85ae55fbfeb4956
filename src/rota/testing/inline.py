"""Enqueue means call: handlers run at once, in the caller, and no database is needed."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from rota.app import Rota
from rota.blocking import BlockingClient
from rota.client import Client, Order
from rota.core import jsonvalue
from rota.core.claims import Claim
from rota.core.jsonvalue import Limits
from rota.core.model import Enqueued
from rota.core.publishing import new_run
from rota.core.signals import Cancelled, HandedOver
from rota.engine.context import Standing, context_for
from rota.errors import Unavailable
from rota.registry.jobs import Handler
from rota.store import Store, new_id
from rota.testing.absent import AbsentDatabase
from rota.testing.inlinedesk import InlineDesk

T = TypeVar("T")


class InlineRun(msgspec.Struct):
    """What became of one enqueue. `error` is what the handler raised; `result` is as a client would read it."""

    id: str
    job: str
    payload: dict[str, Any]
    options: dict[str, Any]
    result: Any = None
    error: BaseException | None = None
    waits: HandedOver | None = None


class Inlined:
    """What `inline(app)` gives: `runs`, in the order of their enqueues."""

    def __init__(self, app: Rota) -> None:
        self.runs: list[InlineRun] = []
        self._app = app
        self._limits = Limits(app.config.max_payload)

    def run(self, order: Order) -> Enqueued:
        """For sync callers; a coroutine gets an event loop of its own."""
        run, call = self._begin(order)
        with self._recording(run):
            value = call()
            self._keep(run, _complete(value) if inspect.iscoroutine(value) else value)
        return Enqueued(run.id, True)

    async def arun(self, order: Order) -> Enqueued:
        run, call = self._begin(order)
        with self._recording(run):
            value = call()
            self._keep(run, await value if inspect.iscoroutine(value) else value)
        return Enqueued(run.id, True)

    def _begin(self, order: Order) -> tuple[InlineRun, Callable[[], Any]]:
        """Checked as the real enqueue would."""
        handler = self._app.registry.newest(order.job)
        text = handler.payload.encode(handler.payload.bind((), order.arguments), self._limits)
        claim = _claim(handler, text, order)
        run = InlineRun(claim.run_id, order.job, msgspec.json.decode(text), dict(order.options))
        self.runs.append(run)

        def call() -> Any:
            arguments = handler.payload.arguments(text)
            if handler.payload.wants_context:
                standing = Standing()
                desk = InlineDesk(handler.definition.steps, self._limits)
                arguments[handler.payload.wants_context] = context_for(handler.is_async)(
                    claim, "inline", standing, desk
                )
            return handler.fn(**arguments)

        return run, call

    def _keep(self, run: InlineRun, value: object) -> None:
        run.result = msgspec.json.decode(jsonvalue.encode(value, self._limits))

    @contextmanager
    def _recording(self, run: InlineRun) -> Iterator[None]:
        """The caller of an enqueue does not hear of the handler's troubles here either."""
        try:
            yield
        except HandedOver as handed_over:
            run.waits = handed_over
        except (Exception, Cancelled) as error:
            run.error = error


def _claim(handler: Handler, payload: str, order: Order) -> Claim:
    """As a worker would hold it at the first attempt; checks the options."""
    run = new_run(handler.definition, new_id(), payload, order.options)
    return Claim(
        run_id=run.id,
        fence=1,
        attempt=1,
        job=run.job,
        job_version=run.job_version,
        payload=run.payload,
        queue=run.queue,
        rank=-run.priority,
        run_at=run.run_at or 0,
        scope_kind=run.scope_kind,
        scope_id=run.scope_id,
        key=run.key,
        overrides=run.overrides,
        origin_id=None,
        max_attempts=run.max_attempts,
        on_lost=run.on_lost,
        created_at=0,
    )


def _complete(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from sync code, even if that was itself called from an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()


class _InlineClient(Client):
    def __init__(self, app: Rota, inlined: Inlined) -> None:
        super().__init__(Store(AbsentDatabase()), app.registry, app.config)
        self._inlined = inlined

    async def enqueue(self, order: Order) -> Enqueued:
        return await self._inlined.arun(order)

    async def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Enqueued]:
        return [await self._inlined.arun(order) for order in orders]


class _InlineBlockingClient(BlockingClient):
    def __init__(self, inlined: Inlined) -> None:
        self._inlined = inlined

    def _call(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        raise Unavailable("inside inline() there is no database to ask")

    def close(self) -> None:
        """Nothing is open."""

    def enqueue(self, order: Order) -> Enqueued:
        return self._inlined.run(order)

    def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Enqueued]:
        return [self._inlined.run(order) for order in orders]


_active: WeakKeyDictionary[Rota, Inlined] = WeakKeyDictionary()


def inlined_of(app: Rota) -> Inlined | None:
    return _active.get(app)


@contextmanager
def inline(app: Rota) -> Iterator[Inlined]:
    """Inside the block `job.enqueue(...)` and `await job.aenqueue(...)` call the handler at once, and only once.

        with inline(app) as inlined:
            sign_up("ada@example.com")           # enqueues `welcome`
        assert inlined.runs[0].result == "sent"

    Delays, priorities and unique keys are checked and recorded, but change nothing; failures are recorded and not
    tried again. What a handler enqueues runs inside it.
    """
    inlined = Inlined(app)

    async def opener() -> Client:
        return _InlineClient(app, inlined)

    outer = _active.get(app)
    _active[app] = inlined
    try:
        with app.diverted(opener, blocking=_InlineBlockingClient(inlined)):
            yield inlined
    finally:
        if outer is None:
            del _active[app]
        else:
            _active[app] = outer
