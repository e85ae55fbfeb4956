"""Check definitions of schedules before they are written. Shared with the remote client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rota.core.calendar.triggers import Trigger
from rota.core.jobs.job import JobDefinition
from rota.core.schedules.documents import Parsed, changes_of, parse
from rota.core.schedules.schedule import ScheduleDefinition, define, sample
from rota.errors import Conflict, Invalid, NotFound
from rota.registry.jobs import Registry
from rota.registry.signature import check_schema
from rota.values.json import Limits, encode
from rota.values.names import checked_name


class DefinitionVerbs(ABC):
    """Verbs that check definitions. Payloads are checked by the job's code if this process has it, otherwise by its
    schema."""

    _job: Callable[[str], Awaitable[JobDefinition]]
    _limits: Limits
    _registry: Registry

    @abstractmethod
    async def _jobs_and_time(self, names: Sequence[str]) -> tuple[Mapping[str, JobDefinition], int]:
        """Return those of the jobs that exist, by name, and the time."""

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
        parsed = Parsed(name, job, trigger, options)
        jobs, now = await self._jobs_and_time(jobs_of(parsed))
        return await self._checked(parsed, jobs if new_job is None else {**jobs, job: new_job}, now)

    async def _checked(self, parsed: Parsed, jobs: Mapping[str, JobDefinition], now: int) -> ScheduleDefinition:
        """Return the definition, checked against the jobs, of which those of this process's code may be missing."""
        name = checked_name(parsed.name, "schedule name")
        try:
            job, *_ = [jobs.get(each) or await self._job(each) for each in jobs_of(parsed)]
            definition = define(job, parsed.trigger, parsed.options, name=name, now=now)
            payload = sample(definition, name)
            if payload is None:
                return definition
            if job.name in self._registry.newest:
                self._registry.newest[job.name].payload.encode(payload, self._limits)
            else:
                check_schema(job.payload_schema, encode(payload, self._limits), self._limits)
        except (Conflict, Invalid, NotFound) as error:
            raise error.within(f"schedule {name!r}") from None
        return definition


def jobs_of(parsed: Parsed) -> list[str]:
    """Return the names of the jobs that a definition mentions: its own, and the one whose ends it follows."""
    awaited = getattr(parsed.trigger, "awaited", None)
    return list(dict.fromkeys([parsed.job, *(() if awaited is None else [awaited.job])]))


def parsed_of(name: str, job: str, trigger: Trigger, options: Mapping[str, Any]) -> Parsed:
    """Read the arguments of a verb as a document, so that mistakes are told alike wherever they are made."""
    return parse({"name": name, **changes_of(name, job, trigger, options)})
