"""Lifespans of a child process: entered before its first call, on an event loop that all its calls share."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any, TypeVar

from rota.engine.worker.lifetime import Lifetime
from rota.registry.hooks.lifespan import NO_STATES, States
from rota.registry.jobs import Registry

T = TypeVar("T")


class ChildLifetime:
    """Lifespans and event loop of this process. Between calls the loop stands still."""

    def __init__(self) -> None:
        self.states: States = NO_STATES
        self._lifetime: Lifetime | None = None
        self._runner: asyncio.Runner | None = None

    def enter(self, registry: Registry) -> None:
        """Enter the lifespans, unless a former call has. After an error the next call tries again."""
        if self._lifetime is not None:
            return
        self._runner = self._runner or asyncio.Runner()
        lifetime = Lifetime(registry, self._forget)
        self.states = self._runner.run(lifetime.enter())
        self._lifetime = lifetime

    def _forget(self) -> None:
        self.states, self._lifetime = NO_STATES, None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a handler's coroutine: what a lifespan opened works only on the loop that opened it."""
        if self._runner is None:
            return asyncio.run(coroutine)
        return self._runner.run(coroutine, context=contextvars.copy_context())

    def leave(self) -> None:
        if self._runner is not None and self._lifetime is not None:
            self._runner.run(self._lifetime.leave())
            self._runner.close()


lifetime = ChildLifetime()
