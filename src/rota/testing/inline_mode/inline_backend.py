"""Backend of a handler's context in inline mode: steps, progress and logs, checked but not stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar

import msgspec

from rota.core.progress.steps import StepDefinition, definition_of
from rota.core.runs.dependencies import RelatedRun
from rota.engine.handlers.context import Opened, stored
from rota.engine.handlers.transaction import SyncTransaction, Transaction
from rota.errors import Invalid, StepTwice, Unavailable
from rota.registry.hooks.lifespan import NO_STATES, States
from rota.store.databases.database import drive
from rota.values.json import Limits

T = TypeVar("T")


class InlineBackend:
    """Backend as strict as the worker's."""

    stops_threads = False

    def __init__(
        self,
        declared: Sequence[StepDefinition],
        limits: Limits,
        parents: Sequence[RelatedRun] = (),
        states: States = NO_STATES,
    ) -> None:
        self.states = states
        self._declared = declared
        self._parents = parents
        self._limits = limits
        self._seen: set[str] = set()
        self._open: set[str] = set()

    def progress(self, done: int | None, summary: str | None, step: str | None) -> None:
        if step is not None and step not in self._open:
            raise Invalid(f"step {step!r} is not open", hint="progress of a step is told while it runs")

    def skip_step(self, id: str, reason: str | None) -> None:
        self._first_time(id)

    async def open_step(self, id: str, *, interruptible: bool) -> Opened:
        definition = self._first_time(id)
        self._open.add(id)
        return Opened(False, timeout=definition.timeout)

    def _first_time(self, id: str) -> StepDefinition:
        definition = definition_of(self._declared, id)
        if id in self._seen:
            raise StepTwice(id)
        self._seen.add(id)
        return definition

    async def close_step(self, id: str, result: object) -> Any:
        self._open.discard(id)
        return msgspec.json.decode(stored(id, result, self._limits))

    async def leave_step(self, id: str, error: BaseException | None) -> None:
        self.give_up_step(id)

    def give_up_step(self, id: str) -> None:
        self._open.discard(id)
        self._seen.discard(id)

    async def parents(self) -> Sequence[RelatedRun]:
        return self._parents

    async def in_thread(self, call: Callable[[], Any]) -> Any:
        return await asyncio.to_thread(call)

    def wait(self, act: Coroutine[Any, Any, T]) -> T:
        result: T = drive(act)
        return result

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        raise Unavailable("there is no database inside inline()")

    def sync_transaction(self) -> AbstractContextManager[SyncTransaction]:
        raise Unavailable("there is no database inside inline()")
