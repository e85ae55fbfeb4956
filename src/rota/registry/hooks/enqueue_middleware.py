"""Middleware around enqueues: it sees each run that is to be, may add to its options, and learns its id or error."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from rota.core.runs.options import Order
from rota.core.runs.run import Enqueued
from rota.errors import Invalid
from rota.registry.hooks.middleware import refuse_coroutine_function


class Enqueue:
    """Enqueue of one run, for middleware: `def tag(enqueue: Enqueue)`.

    Before the `yield`, `options` may be changed: those of a run, such as `metadata` and `tags`. After it, `run_id` and
    `created` are known. What is raised by the enqueue, the `yield` raises.
    """

    __slots__ = ("arguments", "created", "job", "options", "run_id")

    def __init__(self, order: Order) -> None:
        self.job = order.job
        self.arguments: Mapping[str, Any] = order.arguments
        """Arguments as they were given. Changes do not reach the run."""
        self.options = dict(order.options)
        self.run_id: str | None = None
        self.created: bool | None = None

    @property
    def order(self) -> Order:
        return Order(self.job, dict(self.arguments), self.options)


Around = Callable[[Enqueue], AbstractContextManager[object] | AbstractAsyncContextManager[object]]


class EnqueueMiddleware:
    """Context managers around enqueues, the first declared outermost."""

    def __init__(self) -> None:
        self._around: list[Around] = []

    def add(self, around: Callable[..., Any]) -> None:
        """Add a generator function with one `yield`, plain or async, or what returns a context manager."""
        try:
            inspect.signature(around).bind(None)
        except TypeError as problem:
            name = getattr(around, "__name__", repr(around))
            raise Invalid(f"the middleware {name} cannot be called with the enqueue: {problem}") from None
        refuse_coroutine_function(around)
        if inspect.isasyncgenfunction(around):
            around = contextlib.asynccontextmanager(around)
        elif inspect.isgeneratorfunction(around):
            around = contextlib.contextmanager(around)
        self._around.append(around)

    @contextlib.asynccontextmanager
    async def entered(self, orders: Sequence[Order], *, suspends: bool = True) -> AsyncIterator[list[Enqueue]]:
        """Enter all middleware for each order. Unless the caller can suspend, refuse asynchronous ones.

        What the enqueue raises, middleware may replace, but not swallow: there is no answer to return instead.
        """
        enqueues = [Enqueue(order) for order in orders]
        failure: Exception | None = None
        async with contextlib.AsyncExitStack() as stack:
            for enqueue in enqueues:
                for around in self._around:
                    manager = around(enqueue)
                    if suspends and isinstance(manager, AbstractAsyncContextManager):
                        await stack.enter_async_context(manager)
                    elif isinstance(manager, AbstractContextManager):
                        stack.enter_context(manager)
                    else:
                        raise _unusable(around, manager)
            try:
                yield enqueues
            except Exception as error:
                failure = error
                raise
        if failure is not None:
            raise failure

    @staticmethod
    def note(enqueues: Sequence[Enqueue], answers: Sequence[Enqueued]) -> None:
        """Tell middleware which runs there are."""
        for enqueue, answer in zip(enqueues, answers, strict=True):
            enqueue.run_id, enqueue.created = answer.id, answer.created


def _unusable(around: Callable[..., Any], manager: object) -> Invalid:
    name = getattr(around, "__name__", repr(around))
    if isinstance(manager, AbstractAsyncContextManager):
        return Invalid(
            f"the middleware {name} is asynchronous, and the enqueue is not",
            hint="use `await job.aenqueue_in(connection, …)`, or make it a plain generator",
        )
    return Invalid(
        f"the middleware {name} returned {manager!r:.80}, which is no context manager",
        hint="let it `yield` once, where the enqueue happens",
    )
