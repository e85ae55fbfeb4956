"""Check schedules before they are written, and update them without losing concurrent changes. Shared with the remote
client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from rota.core.calendar.triggers import Trigger
from rota.core.jobs.job import JobDefinition
from rota.core.schedules.schedule import Schedule, ScheduleDefinition, define, options_of, sample
from rota.errors import ChangedMeanwhile, Conflict, Invalid, NotFound, Unavailable
from rota.registry.jobs import Registry
from rota.registry.signature import check_schema
from rota.values.json import Limits, encode
from rota.values.names import checked_name

MOST_LISTED = 1_000
MOST_PREVIEWED = 1_000
_TRIES = 5


class DefinitionVerbs(ABC):
    """Verbs that check and update definitions. Payloads are checked by the job's code if this process has it, otherwise
    by its schema."""

    def __init__(
        self,
        job: Callable[[str], Awaitable[JobDefinition]],
        now: Callable[[], Awaitable[int]],
        limits: Limits,
        registry: Registry | None = None,
    ) -> None:
        self._job = job
        self._now = now
        self._limits = limits
        self._registry = registry or Registry()

    @abstractmethod
    async def get(self, name: str) -> Schedule: ...

    @abstractmethod
    async def _replace(self, old: Schedule, definition: ScheduleDefinition, actor: str | None) -> Schedule | None:
        """Store the definition; return None if the schedule has changed since `old` was read."""

    async def define(
        self,
        name: str,
        job: str,
        trigger: Trigger,
        options: dict[str, Any],
        *,
        new_job: JobDefinition | None = None,
    ) -> ScheduleDefinition:
        """Build and check a definition; write nothing. `new_job` is the schedule's job if it is created in the same
        transaction."""
        checked_name(name, "schedule name")
        try:
            declared = new_job or await self._job(job)
            definition = define(declared, trigger, options, name=name, now=await self._now())
            if definition.awaited is not None and definition.awaited.job != declared.name:
                await self._job(definition.awaited.job)
            payload = sample(definition, name)
            if payload is None:
                return definition
            if job in self._registry.newest:
                self._registry.newest[job].payload.encode(payload, self._limits)
            else:
                check_schema(declared.payload_schema, encode(payload, self._limits), self._limits)
        except (Conflict, Invalid, NotFound) as error:
            raise error.within(f"schedule {name!r}") from None
        return definition

    async def update(
        self,
        name: str,
        *,
        job: str | None = None,
        trigger: Trigger | None = None,
        actor: str | None = None,
        expected: ScheduleDefinition | None = None,
        **options: Any,
    ) -> Schedule:
        """Change the given parts of a schedule; an option that is None goes back to its default.

        With `expected`, raise `ChangedMeanwhile` unless the schedule still has that definition.
        """
        # Optimistic locking: two people may change different options at the same time, and both changes count.
        for _ in range(_TRIES):
            old = await self.get(name)
            if expected is not None and old.definition != expected:
                raise ChangedMeanwhile(f"schedule {name!r}")
            if changed := await self._replace(old, await self._changed(old, job, trigger, options), actor):
                return changed
        raise Unavailable(f"schedule {name!r} kept changing while it was being edited", hint="try again")

    async def _changed(
        self, schedule: Schedule, job: str | None, trigger: Trigger | None, options: dict[str, Any]
    ) -> ScheduleDefinition:
        old = schedule.definition
        merged = {option: value for option, value in {**options_of(old), **options}.items() if value is not None}
        return await self.define(schedule.name, job or old.job, trigger or old.rule.trigger, merged)


def require_limit(limit: int, most: int, name: str = "limit") -> None:
    """Raise `Invalid` unless `limit` is from 1 to `most`."""
    if not 1 <= limit <= most:
        raise Invalid(f"{name} must be 1 to {most}, not {limit}")
