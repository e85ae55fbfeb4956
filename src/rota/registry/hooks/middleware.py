"""Middleware: context managers around handler calls, such as an application's context or a database session."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import wraps
from typing import Any

from rota.core.runs.claim import Claim
from rota.errors import Invalid


class Call:
    """The call of a handler, for middleware that takes it: `def log(call: Call)`.

    `result` is None until the handler has returned, and stays so if it raises: the `yield` raises then.
    """

    __slots__ = ("_claim", "arguments", "result")

    def __init__(self, claim: Claim, arguments: Mapping[str, Any]) -> None:
        self._claim = claim
        self.arguments = arguments
        """Typed arguments from the payload. Changes do not reach the handler."""
        self.result: Any = None

    @property
    def job(self) -> str:
        return self._claim.job

    @property
    def run_id(self) -> str:
        return self._claim.run_id

    @property
    def attempt(self) -> int:
        """Number of this attempt, counted from 1."""
        return self._claim.attempt

    @property
    def max_attempts(self) -> int:
        return self._claim.max_attempts


Around = Callable[[Call], AbstractContextManager[object]]
AsyncAround = Callable[[Call], AbstractAsyncContextManager[object]]


class Middleware:
    """Context managers around handlers.

    Those of functions are entered in the handler's thread or process; those of coroutines are asynchronous, and entered
    on the event loop.
    """

    def __init__(self) -> None:
        self._functions: list[Around] = []
        self._coroutines: list[AsyncAround] = []
        self._claim: Callable[[], Claim]

    def add(self, around: Callable[..., Any], claim: Callable[[], Claim]) -> None:
        """Add a generator function, or any callable that returns a context manager.

        `claim` returns the run whose handler is being called.
        """
        self._claim = claim
        factory = _taking_call(around)
        if inspect.isclass(around) and hasattr(around, "__aenter__"):
            self._coroutines.append(factory)
            if hasattr(around, "__enter__"):
                self._functions.append(factory)
        elif inspect.isasyncgenfunction(inspect.unwrap(around)):
            plain = inspect.isasyncgenfunction(around)
            self._coroutines.append(contextlib.asynccontextmanager(factory) if plain else factory)
        else:
            plain = inspect.isgeneratorfunction(around)
            self._functions.append(contextlib.contextmanager(factory) if plain else factory)

    def put_around(self, fn: Callable[..., Any], passed: Collection[str]) -> Callable[..., Any]:
        """Wrap a handler; without middleware, return the function itself.

        `passed` are the arguments that the worker passes.
        """
        if inspect.iscoroutinefunction(fn):
            return self._around_coroutine(fn, passed) if self._coroutines else fn
        return self._around_function(fn, passed) if self._functions else fn

    def _around_function(self, fn: Callable[..., Any], passed: Collection[str]) -> Callable[..., Any]:
        @wraps(fn)
        def surrounded(**arguments: Any) -> Any:
            call = Call(self._claim(), _without(arguments, passed))
            with contextlib.ExitStack() as stack:
                for around in self._functions:
                    stack.enter_context(around(call))
                call.result = fn(**arguments)
                return call.result

        return surrounded

    def _around_coroutine(self, fn: Callable[..., Any], passed: Collection[str]) -> Callable[..., Any]:
        @wraps(fn)
        async def surrounded(**arguments: Any) -> Any:
            call = Call(self._claim(), _without(arguments, passed))
            async with contextlib.AsyncExitStack() as stack:
                for around in self._coroutines:
                    await stack.enter_async_context(around(call))
                call.result = await fn(**arguments)
                return call.result

        return surrounded


def _without(arguments: Mapping[str, Any], passed: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in passed}


def _taking_call(around: Callable[..., Any]) -> Callable[..., Any]:
    """Return a factory that is given the call, also for middleware that takes nothing."""
    refuse_coroutine_function(around)
    try:
        parameters = inspect.signature(around).parameters.values()
    except (TypeError, ValueError):  # such as a class written in C
        parameters = {}.values()
    required = [parameter.name for parameter in parameters if _is_required(parameter)]
    if len(required) > 1:
        name = getattr(around, "__name__", repr(around))
        raise Invalid(f"the middleware {name} takes {', '.join(required)}", hint="it may take one argument, the call")
    return around if required else lambda _call: around()


def refuse_coroutine_function(around: Callable[..., Any]) -> None:
    """Refuse `async def` without a `yield`, as the middleware of other libraries is written."""
    if inspect.iscoroutinefunction(around):
        name = getattr(around, "__name__", repr(around))
        raise Invalid(f"the middleware {name} is a coroutine function", hint="let it `yield` once: before and after")


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    )
