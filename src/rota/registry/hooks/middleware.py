"""Middleware: context managers around handler calls, such as an application's context or a database session."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import wraps
from typing import Any

Around = Callable[[], AbstractContextManager[object]]
AsyncAround = Callable[[], AbstractAsyncContextManager[object]]


class Middleware:
    """Context managers around handlers.

    Those of functions are entered in the handler's thread or process; those of coroutines are asynchronous, and entered
    on the event loop.
    """

    def __init__(self) -> None:
        self._functions: list[Around] = []
        self._coroutines: list[AsyncAround] = []

    def add(self, around: Callable[..., Any]) -> None:
        """Add a generator function, or any callable that returns a context manager."""
        factory: Any = around
        if inspect.isclass(around) and hasattr(around, "__aenter__"):
            self._coroutines.append(factory)
            if hasattr(around, "__enter__"):
                self._functions.append(factory)
        elif inspect.isasyncgenfunction(inspect.unwrap(around)):
            plain = inspect.isasyncgenfunction(around)
            self._coroutines.append(contextlib.asynccontextmanager(around) if plain else around)
        else:
            plain = inspect.isgeneratorfunction(around)
            self._functions.append(contextlib.contextmanager(around) if plain else around)

    def put_around(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a handler; without middleware, return the function itself."""
        if inspect.iscoroutinefunction(fn):
            return self._around_coroutine(fn) if self._coroutines else fn
        return self._around_function(fn) if self._functions else fn

    def _around_function(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fn)
        def surrounded(**arguments: Any) -> Any:
            with contextlib.ExitStack() as stack:
                for around in self._functions:
                    stack.enter_context(around())
                return fn(**arguments)

        return surrounded

    def _around_coroutine(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fn)
        async def surrounded(**arguments: Any) -> Any:
            async with contextlib.AsyncExitStack() as stack:
                for around in self._coroutines:
                    await stack.enter_async_context(around())
                return await fn(**arguments)

        return surrounded
