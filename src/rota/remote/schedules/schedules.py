"""`client.schedules` over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from rota.client.schedules.definition import DefinitionVerbs
from rota.client.schedules.history import HistoryVerbs
from rota.client.schedules.schedules import SchedulesClient
from rota.core.jobs.job import JobDefinition
from rota.registry.jobs import Registry
from rota.remote.transport import Transport
from rota.remote.verbs import Remote, local
from rota.values.instants import micros_at
from rota.values.json import Limits


class RemoteSchedules(Remote, SchedulesClient):
    """Schedules, by name. Changes take effect within a second, on every planner."""

    def __init__(
        self,
        transport: Transport,
        limits: Limits,
        job: Callable[[str], Awaitable[JobDefinition]],
        time: Callable[[], Awaitable[datetime]],
    ) -> None:
        super().__init__(transport)
        self._job = job
        self._time = time
        self._limits = limits
        self._registry = Registry()

    define = local(DefinitionVerbs.define)
    occurrences = local(HistoryVerbs.occurrences)

    async def _jobs_and_time(self, names: Sequence[str]) -> tuple[Mapping[str, JobDefinition], int]:
        return {name: await self._job(name) for name in names}, micros_at(await self._time())
