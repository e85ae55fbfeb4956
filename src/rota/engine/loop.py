"""Repeat a step for ever, with a rest between steps, through outages of the database."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Protocol

from rota.engine.observability.meters import Meters
from rota.engine.observability.repeated_errors import RepeatedErrors
from rota.engine.rest import Rest
from rota.errors import DatabaseCopied
from rota.values.clock import Clock, HostClock

log = logging.getLogger("rota.engine")

_TROUBLE = timedelta(seconds=1)


class Steppable(Protocol):
    """Something that a `Loop` drives."""

    async def step(self) -> timedelta:
        """Do what is due now; return how long to rest."""

    def on_error(self) -> None:
        """Handle a failed step: forget what may be wrong after an outage of the database."""


class Loop:
    """Task that calls `step`, rests, and can be woken early."""

    def __init__(
        self, name: str, steppable: Steppable, meters: Meters | None = None, clock: Clock | None = None
    ) -> None:
        self._name = name
        self._steppable = steppable
        self._meters = meters or Meters()
        self._clock = clock or HostClock()
        self._errors = RepeatedErrors(log, name, self._clock)
        self.rest = Rest()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"rota-{self._name}")

    def wake(self, _queue: str | None = None) -> None:
        self.rest.wake()

    def note_step(self) -> None:
        """Note that the loop is in step with the database: it has looked, or another look found nothing for it."""
        self._meters.last_step(self._name).set(self._clock.micros() / 1_000_000)

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            rest = await self._step()
            await self.rest.take(rest.total_seconds())

    async def _step(self) -> timedelta:
        try:
            rest = await self._steppable.step()
            self.note_step()
            self._errors.recovered()
            return rest
        except DatabaseCopied:  # not an error of this loop, and logged once for the process
            self.note_step()
            self._steppable.on_error()
            return _TROUBLE
        except Exception as error:
            self._errors.failed(error)
        self._meters.loop_errors(self._name).add()
        self._steppable.on_error()
        return _TROUBLE
