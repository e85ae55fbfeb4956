"""Verbs about what a schedule would do: preview its plan times, simulate it. Part of `client.schedules`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from rota.client.schedules import forms
from rota.client.schedules.definition import MOST_PREVIEWED, DefinitionVerbs, jobs_of, require_limit
from rota.client.schedules.simulate import beginning_now, simulate_from, state_at, state_now
from rota.core.access.roles import Role
from rota.core.calendar.triggers import Trigger
from rota.core.jobs.job import JobDefinition
from rota.core.planning.simulation_report import SimulationOptions, SimulationReport
from rota.core.schedules.documents import Parsed, changes_of, document_of, merged, parse
from rota.core.schedules.preview import DocumentPreview, Fire, foresee, named, upcoming, wrong
from rota.core.schedules.schedule import Schedule, ScheduleDefinition
from rota.errors import Conflict, Invalid, NotFound, UnknownSchedule
from rota.values.durations import Duration
from rota.values.instants import micros_at
from rota.verbs import examples
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.store import Store
    from rota.store.schedules.schedule_operations import Surroundings

PreviewCount = Annotated[int, Meta(ge=1, le=MOST_PREVIEWED, description="Number of plan times")]


class OutlookVerbs(DefinitionVerbs):
    """Verbs about the future of a schedule, by name. They store nothing."""

    _store: Store

    @verb(
        "GET",
        "/schedules/{name}/preview",
        Role.VIEWER,
        names={"count": "n"},
        answer=forms.FIRE,
        gives=examples.FIRE,
        operation="preview_schedule",
    )
    async def preview(
        self,
        name: str,
        count: PreviewCount = 10,
        *,
        after: Annotated[datetime | None, Meta(description="Only plan times after this; by default now")] = None,
    ) -> Sequence[Fire]:
        """Return the next plan times, with the effects of daylight saving time."""
        require_limit(count, MOST_PREVIEWED, "count")
        found = await self._surroundings(name, lambda _: None)
        schedule = await self._known(name, found)
        return upcoming(schedule.definition, name, found.now if after is None else micros_at(after), count)

    @verb(
        "POST",
        "/schedules:preview",
        Role.VIEWER,
        query=("count", "after"),
        names={"count": "n"},
        body=forms.ANY_DOCUMENT,
        answer=forms.DOCUMENT_PREVIEW,
        takes={"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"},
        gives={
            "rule": "weekdays at 09:00, Europe/Berlin",
            "timezone": "Europe/Berlin",
            "fires": [examples.FIRE],
            "problems": [],
        },
        operation="preview_document",
    )
    async def preview_document(
        self,
        document: Mapping[str, Any],
        count: PreviewCount = 10,
        *,
        after: Annotated[datetime | None, Meta(description="Only plan times after this; by default now")] = None,
    ) -> DocumentPreview:
        """Return when a schedule document would fire and what is wrong with it; store nothing. Without `job`, only the
        keys that decide when it fires are checked."""
        require_limit(count, MOST_PREVIEWED, "count")
        complete = named(document)
        job = complete.get("job")
        jobs, now = await self._jobs_and_time([job] if isinstance(job, str) else [])
        preview = foresee(document, now if after is None else micros_at(after), count)
        if preview.problems or job is None:
            return preview
        try:
            await self._checked(parse(complete), jobs, now)
        except (Conflict, Invalid, NotFound) as error:
            return replace(preview, problems=(wrong(error, complete),))
        return preview

    @verb(
        "POST",
        "/schedules/{name}/simulate",
        Role.VIEWER,
        optional_body=True,
        body=forms.SIMULATION,
        payload_at="$.changes.payload",
        takes={"span": "1d", "duration": "20m", "changes": {"overlap": "queue_all"}},
        operation="simulate_schedule",
    )
    async def simulate(
        self,
        name: str,
        span: Duration = "1d",
        assumptions: SimulationOptions | None = None,
        *,
        start: datetime | None = None,
        trigger: Trigger | None = None,
        **changes: Any,
    ) -> SimulationReport:
        """Simulate a schedule for `span`, optionally with another trigger or other options; store nothing.

        From now on, with the runs that are live, what limits and keys they hold, and pauses; or from `start`, as if
        there were nothing yet.
        """
        document = changes_of(name, None, trigger, changes)
        schedule, definition, found = await self._foreseen(name, document)
        job = found.jobs.get(definition.job) or await self._job(definition.job)
        options = assumptions or SimulationOptions()
        if start is not None:
            return simulate_from(state_at(schedule, definition, micros_at(start), now=False), job, span, options)
        present = await self._store.planning.present(name, definition, job)
        state = state_now(schedule, definition, present)
        beginning = beginning_now(schedule, definition, present)
        return simulate_from(state, job, span, options, start=present.now, beginning=beginning, quotas=present.quotas)

    async def _foreseen(
        self, name: str, changes: Mapping[str, Any]
    ) -> tuple[Schedule, ScheduleDefinition, Surroundings]:
        """Return a schedule, its definition after the changes, and what that was checked against."""
        found = await self._surroundings(name, lambda old: None if old is None else _changed(old, changes))
        schedule = await self._known(name, found)
        return schedule, await self._checked(_changed(schedule, changes), found.jobs, found.now), found

    async def _surroundings(self, name: str, parsed: Callable[[Schedule | None], Parsed | None]) -> Surroundings:
        """Read a schedule and the jobs that its new definition mentions, except those of this process's code."""

        def jobs(schedules: Mapping[str, Schedule]) -> list[str]:
            definition = parsed(schedules.get(name))
            return [] if definition is None else self._not_in_code(jobs_of(definition))

        return await self._store.schedules.surroundings([name], jobs)

    async def _jobs_and_time(self, names: Sequence[str]) -> tuple[Mapping[str, JobDefinition], int]:
        found = await self._store.schedules.surroundings([], lambda _: self._not_in_code(names))
        return found.jobs, found.now

    def _not_in_code(self, jobs: Iterable[str]) -> list[str]:
        return [job for job in jobs if job not in self._registry.newest]

    async def _known(self, name: str, found: Surroundings) -> Schedule:
        if name not in found.schedules:
            raise UnknownSchedule(name, await self._store.schedules.names())
        return found.schedules[name]


def _changed(schedule: Schedule, changes: Mapping[str, Any]) -> Parsed:
    return parse(merged(document_of(schedule.name, schedule.definition), changes))
