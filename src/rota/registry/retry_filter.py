"""Exceptions that a job retries, and those that it does not: `retry_on` and `no_retry_on`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any

from rota.core.progress.control_flow import Signal, mark_final
from rota.errors import Invalid

Exceptions = type[Exception] | tuple[type[Exception], ...] | list[type[Exception]]


class RetryFilter:
    """Filter around a handler's function: exceptions that are not worth a retry leave it marked as final.

    It is entered where the function is called, in the worker or in a child process: only there are the classes known.
    """

    def __init__(self, retry_on: tuple[type[Exception], ...] | None, no_retry_on: tuple[type[Exception], ...]) -> None:
        self._retry_on = retry_on
        self._no_retry_on = no_retry_on

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> RetryFilter | None:
        """Read the options of a job; None if it retries every exception."""
        only, never = options.get("retry_on"), options.get("no_retry_on")
        if only is None and never is None:
            return None
        return cls(
            None if only is None else _classes(only, "retry_on"),
            () if never is None else _classes(never, "no_retry_on"),
        )

    def put_around(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(fn):

            @wraps(fn)
            async def filtered(**arguments: Any) -> Any:
                return await self._awaited(fn(**arguments))

            return filtered

        @wraps(fn)
        def called(**arguments: Any) -> Any:
            try:
                value = fn(**arguments)
            except Exception as error:
                self._mark(error)
                raise
            return self._awaited(value) if inspect.iscoroutine(value) else value

        return called

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await coroutine
        except Exception as error:
            self._mark(error)
            raise

    def _mark(self, error: Exception) -> None:
        if isinstance(error, Signal):  # the handler itself says what becomes of its run
            return
        if isinstance(error, self._no_retry_on) or (
            self._retry_on is not None and not isinstance(error, self._retry_on)
        ):
            mark_final(error)


def _classes(value: object, option: str) -> tuple[type[Exception], ...]:
    kinds = tuple(value) if isinstance(value, list | tuple) else (value,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise Invalid(
                f"{option} must be classes of exceptions, not {kind!r:.80}", hint=f"{option}=(ConnectionError,)"
            )
    return kinds
