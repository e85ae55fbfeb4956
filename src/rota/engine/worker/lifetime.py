"""Enter the lifespans of an application before a worker claims, and leave them after its last handler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from rota.errors import RotaError, Unavailable
from rota.registry.hooks.lifespan import NO_STATES, Lifespan, States
from rota.registry.jobs import Registry

log = logging.getLogger("rota.worker")

_Entered = list[tuple[Lifespan, AbstractAsyncContextManager[object]]]


class Lifetime:
    """Lifespans of one worker or child process.

    One task enters and leaves them: a task group or a timeout inside a lifespan belongs to the task that opened it,
    while a worker is started in one task and stopped in another.
    """

    def __init__(self, registry: Registry, on_crash: Callable[[], None] = lambda: None) -> None:
        self._registry = registry
        self._on_crash = on_crash
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def enter(self) -> States:
        """Enter all lifespans, and check that they yield what handlers ask for."""
        if not self._registry.lifespans:
            _check_injection(self._registry, NO_STATES)
            return NO_STATES
        entered: asyncio.Future[States] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(entered))
        try:
            return await entered
        except BaseException:  # also a start that is cancelled: leave what has been entered so far
            await self._cut_short(self._task)
            raise

    async def leave(self) -> None:
        """Leave all lifespans in reverse order. Errors are logged: the others are left all the same."""
        self._leaving.set()
        if self._task is not None:
            try:
                await asyncio.shield(self._task)
            except asyncio.CancelledError:
                await self._cut_short(self._task)
                raise

    async def _cut_short(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait([task])

    async def _live(self, entered: asyncio.Future[States]) -> None:
        managers: _Entered = []
        try:
            states = States([await _enter(lifespan, managers) for lifespan in self._registry.lifespans])
            _check_injection(self._registry, states)
        except BaseException as error:
            await _leave(managers, None)
            if not entered.done():
                entered.set_exception(error)
            return
        entered.set_result(states)
        try:
            await self._leaving.wait()
        except asyncio.CancelledError as cancelled:  # by a task group inside a lifespan, or by a stop that is cut short
            await _leave(managers, cancelled)
            if not self._leaving.is_set():
                log.error("a lifespan ended before its worker, which stops")
                self._on_crash()
        else:
            await _leave(managers, None)


async def _enter(lifespan: Lifespan, managers: _Entered) -> object:
    try:
        manager = lifespan.enter()
        state = await manager.__aenter__()
    except Exception as error:
        log.exception("the lifespan %s could not be entered", lifespan.name)
        if isinstance(error, RotaError):
            raise
        problem = f"the lifespan {lifespan.name} could not be entered: {type(error).__name__}: {error}"
        raise Unavailable(problem) from error
    managers.append((lifespan, manager))
    return state


async def _leave(managers: _Entered, cause: BaseException | None) -> None:
    for lifespan, manager in reversed(managers):
        try:
            await manager.__aexit__(type(cause) if cause else None, cause, cause.__traceback__ if cause else None)
        except asyncio.CancelledError as cancelled:
            cause = cancelled
        except Exception:
            log.exception("the lifespan %s could not be left", lifespan.name)
            cause = None


def _check_injection(registry: Registry, states: States) -> None:
    """Refuse to start a worker whose handlers ask for a state that nobody yields."""
    for handler in registry.handlers():
        if handler.payload.injects:
            try:
                states.arguments(handler.payload.injects)
            except RotaError as error:
                raise error.within(f"job {handler.definition.name!r}") from None
