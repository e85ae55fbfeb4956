"""`client.schedules` over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rota.client.schedules.definition import DefinitionVerbs
from rota.client.schedules.history import Occurrences
from rota.client.schedules.schedules import SchedulesClient
from rota.core.jobs.job import JobDefinition
from rota.core.ledger.occurrences import Occurrence, PagePosition, written_place
from rota.errors import Invalid
from rota.registry.jobs import Registry
from rota.remote.decode import items
from rota.remote.encode import cursor_of_name
from rota.remote.transport import Transport, path_of
from rota.remote.verbs import Remote, local
from rota.values.instants import micros_at
from rota.values.json import Limits
from rota.verbs.wire import encode


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

    async def _jobs_and_time(self, names: Sequence[str]) -> tuple[Mapping[str, JobDefinition], int]:
        return {name: await self._job(name) for name in names}, micros_at(await self._time())

    async def occurrences(
        self,
        name: str,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        *,
        limit: Occurrences = 100,
        after: PagePosition | None = None,
    ) -> Sequence[Occurrence]:
        """List what happened to each plan time, oldest first; by default over the last day.

        A range of plan times that overlaps the window is returned whole. `after` is where the previous page with the
        same `from_at` and `to_at` ended.
        """
        window = {"from": encode(from_at, datetime, "from"), "to": encode(to_at, datetime, "to")}
        query: dict[str, Any] = {**window, "limit": limit}
        if after is not None:
            if from_at is None or to_at is None:
                raise Invalid("after needs from_at and to_at", hint="pass those of the previous page")
            query["cursor"] = cursor_of_name(written_place(from_at, to_at, after))
        return items(
            (await self._transport.ask("GET", path_of("schedules", name, "occurrences"), query)).body, Occurrence
        )
