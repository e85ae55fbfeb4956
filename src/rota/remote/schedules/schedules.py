"""`client.schedules` over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rota.client.schedules.definition import MOST_LISTED, MOST_PREVIEWED, DefinitionVerbs, require_limit
from rota.core.calendar.notation import written_instant
from rota.core.calendar.triggers import Trigger
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import resume_mode
from rota.core.planning.simulation_report import SimulationOptions, SimulationReport
from rota.core.runs.bulk import BulkResult
from rota.core.runs.options import scope_of
from rota.core.runs.run import Run
from rota.core.schedules.diff import Difference
from rota.core.schedules.documents import document_of
from rota.core.schedules.preview import DocumentPreview, Fire, zone_of
from rota.core.schedules.schedule import SCHEDULE_OPTIONS, Schedule, ScheduleDefinition, checked_state
from rota.errors import ChangedMeanwhile, Invalid
from rota.remote.decode import items, localized, read, schedule_of
from rota.remote.encode import cursor_of_name, duration
from rota.remote.problems import Problem, raised
from rota.remote.schedules.history import RemoteHistory
from rota.remote.transport import Transport, once, path_of
from rota.values.durations import Duration
from rota.values.instants import micros_at
from rota.values.json import Limits
from rota.values.scope import Scope

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rota.core.schedules.schedule import ScheduleOptions

_PAGE = 500


class RemoteSchedules(RemoteHistory, DefinitionVerbs):
    """Schedules, by name. Changes take effect within a second, on every planner."""

    def __init__(
        self,
        transport: Transport,
        limits: Limits,
        job: Callable[[str], Awaitable[JobDefinition]],
        time: Callable[[], Awaitable[datetime]],
    ) -> None:
        async def now() -> int:
            return micros_at(await time())

        super().__init__(job, now, limits)
        self._transport = transport

    async def create(
        self,
        name: str,
        job: str,
        trigger: Trigger,
        *,
        owner: str = "api",
        actor: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Create a schedule."""
        definition = await self.define(name, job, trigger, dict(options))
        document = document_of(name, definition)
        return _read(await self._send("POST", path_of("schedules"), document, query={"owner": owner}))

    async def _replace(self, old: Schedule, definition: ScheduleDefinition, actor: str | None) -> Schedule | None:
        document, condition = document_of(old.name, definition), {"If-Match": f'"{old.revision}"'}
        try:
            return _read(await self._send("PUT", path_of("schedules", old.name), document, headers=condition))
        except ChangedMeanwhile:
            return None

    async def _send(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        return (await self._transport.ask(method, path, query, body, headers)).body

    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a schedule; its runs stay."""
        await self._transport.ask("DELETE", path_of("schedules", name))

    async def get(self, name: str) -> Schedule:
        """Return a schedule by name."""
        return _read((await self._transport.ask("GET", path_of("schedules", name))).body)

    async def list(
        self,
        *,
        job: str | None = None,
        owner: str | None = None,
        text: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Sequence[Schedule]:
        """List schedules by name. `text` matches a part of the name; `after` is the last name of the previous page."""
        require_limit(limit, MOST_LISTED)
        filters = {"job": job, "owner": owner, "text": text, "state": checked_state(state)}
        schedules: list[Schedule] = []
        cursor = cursor_of_name(after)
        while len(schedules) < limit:
            size = min(_PAGE, limit - len(schedules))
            query = {**filters, "limit": size, "cursor": cursor}
            body = (await self._transport.ask("GET", path_of("schedules"), query)).body
            page = [schedule_of(item) for item in items(body, dict[str, Any])]
            schedules += page
            if len(page) < size:
                break
            cursor = cursor_of_name(page[-1].name)
        return schedules

    async def pause(
        self,
        name: str,
        *,
        reason: str | None = None,
        actor: str | None = None,
        until: datetime | Duration | None = None,
    ) -> Schedule:
        """Pause a schedule. `until` is a datetime, or a duration from now; without it, until it is resumed."""
        body = {"reason": reason, "until": _until(until)}
        return _read(await self._send("POST", path_of("schedules", name, "pause"), body))

    async def resume(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> Schedule:
        """Resume a schedule. Plan times during the pause are skipped, unless `catch_up` is `latest` or `all`."""
        body = {"catch_up": resume_mode(catch_up)}
        return _read(await self._send("POST", path_of("schedules", name, "resume"), body))

    async def enable(self, name: str, *, actor: str | None = None) -> Schedule:
        """Enable a schedule."""
        return await self._switch(name, "enable")

    async def disable(self, name: str, *, actor: str | None = None) -> Schedule:
        """Disable a schedule: it does not fire until it is enabled."""
        return await self._switch(name, "disable")

    async def _switch(self, name: str, action: str) -> Schedule:
        """Enable or disable a schedule. The bulk route lets operators do so, who may not change a schedule
        otherwise."""
        body = {"action": action, "names": [name]}
        result = read(await self._send("POST", path_of("schedules:bulk"), body), BulkResult)
        schedule = await self.get(name)
        for refused in result.refused:
            raise raised(Problem(refused.code, Invalid.status, refused.message))
        return schedule

    async def trigger(
        self,
        name: str,
        *,
        scope: Scope | tuple[str, str] | None = None,
        force: bool = False,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sequence[str]:
        """Run a schedule now, for each of its scopes or only for `scope`. Raise `Overlapping` if its overlap policy
        forbids that, unless `force` is set.

        Return the ids of the runs. They belong to the schedule, but to no plan time. With an `idempotency_key` the call
        is safe to repeat: it returns the runs created the first time.
        """
        only_scope = None if scope is None else scope_of(scope)
        body = {"scope": None if only_scope is None else f"{only_scope.kind}/{only_scope.id}", "force": force}
        created = await self._send("POST", path_of("schedules", name, "trigger"), body, headers=once(idempotency_key))
        return [run.id for run in items(created, Run)]

    async def preview(self, name: str, count: int = 10, *, after: datetime | None = None) -> Sequence[Fire]:
        """Return the next plan times, with the effects of daylight saving time."""
        require_limit(count, MOST_PREVIEWED, "count")
        fires = items(await self._get_part(name, "preview", n=count, after=after), Fire)
        zone = zone_of((await self.get(name)).definition)
        return [localized(fire, zone) for fire in fires]

    async def preview_document(
        self, document: Mapping[str, Any], count: int = 10, *, after: datetime | None = None
    ) -> DocumentPreview:
        """Return when a schedule document would fire and what is wrong with it; store nothing."""
        require_limit(count, MOST_PREVIEWED, "count")
        query = {"n": count, "after": after}
        preview = read(await self._send("POST", path_of("schedules:preview"), document, query), DocumentPreview)
        return replace(preview, fires=tuple(localized(fire, preview.timezone) for fire in preview.fires))

    async def simulate(
        self,
        name: str,
        span: Duration = "1d",
        assumptions: SimulationOptions | None = None,
        *,
        start: datetime | None = None,
        trigger: Trigger | None = None,
        **options: Any,
    ) -> SimulationReport:
        """Simulate a schedule for `span` from `start` (default: now), optionally with another trigger or other options;
        store nothing."""
        changed = await self._changed(await self.get(name), None, trigger, options)
        document = document_of(name, changed)
        assumed = assumptions or SimulationOptions()
        body = {
            "span": duration(span),
            "start": start,
            "duration": duration(assumed.duration),
            "fail_every": assumed.fail_every,
            "outages": assumed.outages,
            "workers": assumed.workers,
            "changes": {**dict.fromkeys(SCHEDULE_OPTIONS), **document},
        }
        return read(await self._send("POST", path_of("schedules", name, "simulate"), body), SimulationReport)

    async def plan_documents(self, documents: Iterable[Mapping[str, Any]], owner: str) -> Sequence[Difference]:
        """Return what `apply_documents` would change: schedules to create, to update, and to delete because this owner
        no longer lists them."""
        return await self._apply(documents, owner, dry_run=True)

    async def apply_documents(
        self, documents: Iterable[Mapping[str, Any]], owner: str, *, actor: str | None = None
    ) -> Sequence[Difference]:
        """Create and update schedules from documents, under `owner`. Raise `Conflict` for a schedule of another owner.

        Schedules of this owner that no document names are deleted. Pauses are kept.
        """
        return await self._apply(documents, owner, dry_run=False)

    async def _apply(
        self, documents: Iterable[Mapping[str, Any]], owner: str, *, dry_run: bool
    ) -> Sequence[Difference]:
        body = {"owner": owner, "documents": list(documents), "dry_run": dry_run}
        return items(await self._send("POST", path_of("schedules:apply"), body), Difference)


def _read(body: bytes) -> Schedule:
    return schedule_of(read(body, dict[str, Any]))


def _until(until: datetime | Duration | None) -> str | None:
    if not isinstance(until, datetime):
        return None if until is None else duration(until)
    if until.tzinfo is None:
        raise Invalid("until must be a datetime with a zone")
    return written_instant(until)
