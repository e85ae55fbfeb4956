"""Inline mode: an enqueue calls the handler at once, in the caller, without a database."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from rota.app import Rota
from rota.client.blocking import BlockingClient
from rota.client.client import Client, Order
from rota.client.handle import Handle, handle_by
from rota.client.runs.enqueue import built, linked
from rota.core.progress.control_flow import Cancelled, HandedOver
from rota.core.runs.claim import Claim
from rota.core.runs.dependencies import Dependency, RelatedRun, in_vain, is_met, written
from rota.core.runs.options import new_run
from rota.core.runs.payload import filled, pending_of, shown_places, written_places
from rota.core.runs.run import NewRun, Run
from rota.core.states import RunState
from rota.engine.handlers.context import Standing, context_for
from rota.engine.handlers.current_run import current_run
from rota.engine.handlers.describe_error import error_of
from rota.errors import Unavailable, UnknownRun
from rota.registry.hooks.lifespan import NO_STATES, States
from rota.registry.jobs import Handler
from rota.store import Store, new_id
from rota.store.databases.database import drive
from rota.testing.inline_mode.inline_backend import InlineBackend
from rota.testing.inline_mode.inline_lifetime import InlineLifetime
from rota.testing.inline_mode.no_database import NoDatabase
from rota.values import json
from rota.values.clock import HostClock
from rota.values.durations import Duration
from rota.values.json import Limits

T = TypeVar("T")


class InlineRun(msgspec.Struct):
    """Outcome of one enqueue. `error` is the handler's exception; `result` is what a client would read.

    `options` are those given, `made` is the run as it would have been stored. `skipped` says why the handler was not
    called: a run that it depends on (`after`) did not succeed.
    """

    id: str
    job: str
    payload: dict[str, Any]
    options: dict[str, Any]
    made: NewRun
    result: Any = None
    error: BaseException | None = None
    skipped: str | None = None
    waits: HandedOver | None = None

    @property
    def state(self) -> RunState:
        """The state; a run handed over to an external party counts as succeeded, since nobody can wait for it here."""
        if self.skipped is not None:
            return RunState.SKIPPED
        return RunState.SUCCEEDED if self.error is None else RunState.FAILED


class Inlined:
    """Record of `inline(app)`: `runs`, in the order of their enqueues; dependents come after the runs they follow."""

    def __init__(self, app: Rota) -> None:
        self.runs: list[InlineRun] = []
        self._app = app
        self._limits = Limits(app.config.max_payload)
        self._lifetime: InlineLifetime | None = None

    def run(self, orders: Sequence[Order]) -> list[Handle[Any]]:
        """Run `orders` for sync callers. A coroutine gets an event loop of its own."""
        prepared = self._prepared(orders)
        for run, call in self._calls(prepared):
            with self._recording(run):
                value = call()
                self._keep(run, self._complete(value) if inspect.iscoroutine(value) else value)
        return [handle_by(self._app, item.new.id, True) for item in prepared]

    async def arun(self, orders: Sequence[Order]) -> list[Handle[Any]]:
        prepared = self._prepared(orders)
        for run, call in self._calls(prepared):
            with self._recording(run):
                value = call()
                self._keep(run, await self._acomplete(value) if inspect.iscoroutine(value) else value)
        return [handle_by(self._app, item.new.id, True) for item in prepared]

    def as_stored(self, run_id: str) -> Run:
        """Return a run as a client would read it."""
        run = next((run for run in self.runs if run.id == run_id), None)
        if run is None:
            raise Unavailable("there is no database inside inline()")
        now = HostClock().micros()
        return msgspec.structs.replace(
            built(run.made, now, now),
            state=run.state,
            reason=run.skipped,
            attempt=0 if run.skipped else 1,
            result=run.result,
            error=None if run.error is None else error_of(run.error),
        )

    def _prepared(self, orders: Sequence[Order]) -> list[_Prepared]:
        """Validate the orders as the real enqueue does."""
        handlers = [self._app.registry.newest[order.job] for order in orders]
        runs: list[NewRun] = []
        for handler, order in zip(handlers, orders, strict=True):
            payload = handler.payload.without(pending_of(order.options))
            text = payload.encode(payload.bind((), order.arguments), self._limits)
            runs.append(new_run(handler.definition, new_id(), text, order.options))
        if any(run.after for run in runs):
            runs = drive(linked(self._find, [order.options for order in orders], runs))
            known = {run.id for run in self.runs} | {run.id for run in runs}
            for dependency in (dependency for run in runs for dependency in run.after if dependency.run not in known):
                raise UnknownRun(dependency.run)
        return [_Prepared(*parts) for parts in zip(orders, handlers, runs, strict=True)]

    async def _find(self, parts: Sequence[str]) -> dict[str, str]:
        return {part: self._whole(part) for part in parts}

    def _whole(self, part: str) -> str:
        matches = [run.id for run in self.runs if run.id.startswith(part) or run.id.endswith(part)]
        if not matches:
            raise UnknownRun(part)
        return matches[0]

    def _calls(self, prepared: Sequence[_Prepared]) -> Iterator[tuple[InlineRun, Callable[[], Any]]]:
        states = self._states
        follow = any(prepared_run.new.after for prepared_run in prepared)
        for prepared_run in sorted(prepared, key=lambda prepared_run: prepared_run.new.id) if follow else prepared:
            new = prepared_run.new
            run = InlineRun(new.id, new.job, msgspec.json.decode(new.payload), dict(prepared_run.order.options), new)
            self.runs.append(run)
            earlier = {known.id: known for known in self.runs} if new.after else {}
            failed = [(new.id, n.run, n.kind) for n in new.after if not is_met(n.kind, earlier[n.run].state)]
            for vain in in_vain(failed, {id: known.state for id, known in earlier.items()}, ()):
                run.skipped = vain.reason
            if run.skipped is None:
                parents = [_related(earlier[n.run], n) for n in new.after]
                taking = _taking(prepared_run, parents)
                run.made, run.payload = taking.new, msgspec.json.decode(taking.new.payload)
                yield run, partial(self._call, taking, parents, states)

    def _call(self, prepared: _Prepared, parents: Sequence[RelatedRun], states: States) -> Any:
        payload = prepared.handler.payload
        arguments = payload.arguments(prepared.new.payload)
        claim = _claim(prepared.new)
        if payload.wants_context:
            backend = InlineBackend(prepared.handler.definition.steps, self._limits, parents, states)
            arguments[payload.wants_context] = context_for(prepared.handler.is_async)(
                claim, "inline", Standing(), backend
            )
        if payload.injects:
            arguments |= states.arguments(payload.injects)
        current_run.set(claim)
        return prepared.handler.call(**arguments)

    @property
    def _states(self) -> States:
        """States of the app's lifespans, which are entered at the first use."""
        if self._lifetime is None and self._app.registry.lifespans:
            self._lifetime = InlineLifetime(self._app.registry)
        return NO_STATES if self._lifetime is None else self._lifetime.states

    def _leave(self) -> None:
        if self._lifetime is not None:
            self._lifetime.leave()
            self._lifetime = None

    def _complete(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._lifetime is None or self._lifetime.is_here():
            return _complete(coroutine)
        return self._lifetime.thread.call(coroutine)

    async def _acomplete(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._lifetime is None or self._lifetime.is_here():
            return await coroutine
        return await self._lifetime.thread.acall(coroutine)

    def _keep(self, run: InlineRun, value: object) -> None:
        run.result = msgspec.json.decode(json.encode(value, self._limits))

    @contextmanager
    def _recording(self, run: InlineRun) -> Iterator[None]:
        """Record the handler's exception: as with a real enqueue, the caller does not see it."""
        outer = current_run.set(current_run.get())
        try:
            yield
        except HandedOver as handed_over:
            run.waits = handed_over
        except (Exception, Cancelled) as error:
            run.error = error
        finally:
            current_run.reset(outer)


class _Prepared(msgspec.Struct, frozen=True):
    order: Order
    handler: Handler
    new: NewRun


def _taking(prepared: _Prepared, parents: Sequence[RelatedRun]) -> _Prepared:
    """Fill the arguments that are results of parents."""
    taken = [
        (places, msgspec.json.encode(parent.result).decode())
        for dependency, parent in zip(prepared.new.after, parents, strict=True)
        if (places := written_places(dependency.inputs))
    ]
    if not taken:
        return prepared
    new = msgspec.structs.replace(prepared.new, payload=filled(prepared.new.payload, taken))
    return msgspec.structs.replace(prepared, new=new)


def _related(run: InlineRun, dependency: Dependency) -> RelatedRun:
    on, otherwise = written(dependency.kind)
    return RelatedRun(
        id=run.id,
        job=run.job,
        state=run.state,
        result=run.result,
        on=on,
        otherwise=otherwise,
        inputs=shown_places(written_places(dependency.inputs)),
    )


def _claim(run: NewRun) -> Claim:
    """Return the claim that a worker would hold at the first attempt."""
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
        super().__init__(Store(NoDatabase()), app.registry, app.config)
        self._inlined = inlined

    async def enqueue(self, order: Order) -> Handle[Any]:
        return (await self._inlined.arun([order]))[0]

    async def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Handle[Any]]:
        return await self._inlined.arun(list(orders))

    async def get(self, run_id: str, *, steps: bool = True) -> Run:
        return self._inlined.as_stored(run_id)

    async def wait(self, run_id: str, timeout: Duration | None = None) -> Run:
        """Return the run: its handler has returned already."""
        return self._inlined.as_stored(run_id)


class _InlineBlockingClient(BlockingClient):
    def __init__(self, client: _InlineClient, inlined: Inlined) -> None:
        self.is_open = True
        self._client = client
        self._inlined = inlined

    def _call(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        answer: T = drive(verb(self._client))
        return answer

    def _wait_for(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        return self._call(verb)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def enqueue(self, order: Order) -> Handle[Any]:
        return self._inlined.run([order])[0]

    def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Handle[Any]]:
        return self._inlined.run(list(orders))


_active: WeakKeyDictionary[Rota, Inlined] = WeakKeyDictionary()


def inlined_of(app: Rota) -> Inlined | None:
    return _active.get(app)


@contextmanager
def inline(app: Rota) -> Iterator[Inlined]:
    """Call handlers at once: `job.enqueue(...)` and `await job.aenqueue(...)` run them, once each.

        with inline(app) as inlined:
            sign_up("ada@example.com")           # enqueues `welcome`
        assert inlined.runs[0].result == "sent"

    Runs that depend on others (`after`) are called after them, or not at all. Delays, priorities and unique keys are
    validated and recorded, but have no effect; failures are recorded and not retried. What a handler enqueues runs
    inside it. With lifespans, coroutines run on the event loop of a thread that enters them.
    """
    inlined = Inlined(app)

    async def opener() -> Client:
        return _InlineClient(app, inlined)

    outer = _active.get(app)
    _active[app] = inlined
    try:
        with app.diverted(opener, blocking=_InlineBlockingClient(_InlineClient(app, inlined), inlined)):
            try:
                yield inlined
            finally:
                inlined._leave()  # here: a lifespan that uses the app must not reach its database
    finally:
        if outer is None:
            del _active[app]
        else:
            _active[app] = outer
