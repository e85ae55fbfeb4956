"""`client.schedules` of a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rota.core.applying import Difference
from rota.core.bulking import BulkResult
from rota.core.documents import document_of, written_instant
from rota.core.foreseeing import Foreseen
from rota.core.jobstatus import resume_mode
from rota.core.jsonvalue import Limits, encode
from rota.core.model import JobDefinition, Run
from rota.core.names import checked_name
from rota.core.preview import Fire, zone_of
from rota.core.publishing import scope_of
from rota.core.schedules import (
    SCHEDULE_OPTIONS,
    Schedule,
    ScheduleDefinition,
    checked_state,
    define,
    options_of,
    sample,
)
from rota.core.scope import Scope
from rota.core.triggers import Trigger
from rota.core.whatif import Simulated, WhatIf
from rota.durations import Duration
from rota.errors import ChangedMeanwhile, Conflict, Invalid, NotFound, Unavailable
from rota.instants import micros_at
from rota.registry.signature import check_schema
from rota.remote.accounts import RemoteAccounts
from rota.remote.problems import Problem, raised
from rota.remote.transport import Transport, path_of
from rota.remote.values import items, localized, read, schedule_of
from rota.remote.writing import cursor_of_name, duration

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rota.core.schedules import ScheduleOptions

_MOST_LISTED = 1_000
_MOST_PREVIEWED = 1_000
_PAGE = 500
_TRIES = 5


class RemoteSchedules(RemoteAccounts):
    """Schedules by name; what is changed here takes effect within a second, on every planner."""

    def __init__(
        self,
        transport: Transport,
        limits: Limits,
        job: Callable[[str], Awaitable[JobDefinition]],
        time: Callable[[], Awaitable[datetime]],
    ) -> None:
        self._transport = transport
        self._limits = limits
        self._job = job
        self._time = time

    async def define(self, name: str, job: str, trigger: Trigger, options: dict[str, Any]) -> ScheduleDefinition:
        """Checked completely; nothing is written."""
        checked_name(name, "schedule name")
        try:
            declared = await self._job(job)
            now = micros_at(await self._time())
            definition = define(declared, trigger, options, name=name, now=now)
            if definition.awaited is not None:
                await self._job(definition.awaited.job)
            payload = sample(definition, name)
            if payload is not None:
                check_schema(declared.payload_schema, encode(payload, self._limits), self._limits)
        except (Conflict, Invalid, NotFound) as error:
            raise error.within(f"schedule {name!r}") from None
        return definition

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
        definition = await self.define(name, job, trigger, dict(options))
        document = document_of(name, definition)
        return _read(await self._send("POST", path_of("schedules"), document, query={"owner": owner}))

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
        """Only what is given changes; an option that is None goes back to its default.

        `expected`: it must still be like this, or it is a `ChangedMeanwhile`.
        """
        for _ in range(_TRIES):  # two people may change different things at once, and both changes count
            old = await self.get(name)
            if expected is not None and old.definition != expected:
                raise ChangedMeanwhile(f"schedule {name!r}")
            document = document_of(name, await self._changed(old, job, trigger, options))
            seen = {"If-Match": f'"{old.revision}"'}
            try:
                return _read(await self._send("PUT", path_of("schedules", name), document, headers=seen))
            except ChangedMeanwhile:
                if expected is not None:
                    raise
        raise Unavailable(f"schedule {name!r} kept changing while it was being edited", hint="try again")

    async def _changed(
        self, schedule: Schedule, job: str | None, trigger: Trigger | None, options: dict[str, Any]
    ) -> ScheduleDefinition:
        old = schedule.definition
        given = {option: value for option, value in {**options_of(old), **options}.items() if value is not None}
        return await self.define(schedule.name, job or old.job, trigger or old.rule.trigger, given)

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
        await self._transport.ask("DELETE", path_of("schedules", name))

    async def get(self, name: str) -> Schedule:
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
        """By name; `text` is a part of it, `after` the last name of the page before."""
        if not 1 <= limit <= _MOST_LISTED:
            raise Invalid(f"limit must be 1 to {_MOST_LISTED}, not {limit}")
        chosen = {"job": job, "owner": owner, "text": text, "state": checked_state(state)}
        found: list[Schedule] = []
        cursor = cursor_of_name(after)
        while len(found) < limit:
            wanted = min(_PAGE, limit - len(found))
            query = {**chosen, "limit": wanted, "cursor": cursor}
            body = (await self._transport.ask("GET", path_of("schedules"), query)).body
            page = [schedule_of(one) for one in items(body, dict[str, Any])]
            found += page
            if len(page) < wanted:
                break
            cursor = cursor_of_name(page[-1].name)
        return found

    async def pause(
        self,
        name: str,
        *,
        reason: str | None = None,
        actor: str | None = None,
        until: datetime | Duration | None = None,
    ) -> Schedule:
        """`until` is an instant, or how long from now."""
        body = {"reason": reason, "until": _until(until)}
        return _read(await self._send("POST", path_of("schedules", name, "pause"), body))

    async def resume(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> Schedule:
        """What passed during the pause is skipped, unless `catch_up` is `latest` or `all`."""
        body = {"catch_up": resume_mode(catch_up)}
        return _read(await self._send("POST", path_of("schedules", name, "resume"), body))

    async def enable(self, name: str, *, actor: str | None = None) -> Schedule:
        return await self._switched(name, "enable")

    async def disable(self, name: str, *, actor: str | None = None) -> Schedule:
        return await self._switched(name, "disable")

    async def _switched(self, name: str, action: str) -> Schedule:
        """An operator may do that, who may not change it otherwise."""
        body = {"action": action, "names": [name]}
        result = read(await self._send("POST", path_of("schedules:bulk"), body), BulkResult)
        found = await self.get(name)
        for refused in result.refused:
            raise raised(Problem(refused.code, Invalid.status, refused.message))
        return found

    async def trigger(
        self,
        name: str,
        *,
        scope: Scope | tuple[str, str] | None = None,
        force: bool = False,
        actor: str | None = None,
    ) -> Sequence[str]:
        """Run it now, for each of its scopes or for one; `Overlapping` if its policy forbids that, unless forced.

        Returns the ids of the runs. They belong to the schedule, but to no plan time.
        """
        wanted = None if scope is None else scope_of(scope)
        body = {"scope": None if wanted is None else f"{wanted.kind}/{wanted.id}", "force": force}
        made = await self._send("POST", path_of("schedules", name, "trigger"), body)
        return [run.id for run in items(made, Run)]

    async def preview(self, name: str, count: int = 10, *, after: datetime | None = None) -> Sequence[Fire]:
        """The next plan times, with what daylight saving does to them."""
        if not 1 <= count <= _MOST_PREVIEWED:
            raise Invalid(f"count must be 1 to {_MOST_PREVIEWED}, not {count}")
        fires = items(await self._told(name, "preview", n=count, after=after), Fire)
        zone = zone_of((await self.get(name)).definition)
        return [localized(fire, zone) for fire in fires]

    async def preview_document(
        self, document: Mapping[str, Any], count: int = 10, *, after: datetime | None = None
    ) -> Foreseen:
        """When a schedule that is still being written would fire, and what is wrong with it; nothing is stored."""
        if not 1 <= count <= _MOST_PREVIEWED:
            raise Invalid(f"count must be 1 to {_MOST_PREVIEWED}, not {count}")
        query = {"n": count, "after": after}
        seen = read(await self._send("POST", path_of("schedules:preview"), document, query), Foreseen)
        return replace(seen, fires=tuple(localized(fire, seen.timezone) for fire in seen.fires))

    async def simulate(
        self,
        name: str,
        span: Duration = "1d",
        what_if: WhatIf | None = None,
        *,
        start: datetime | None = None,
        trigger: Trigger | None = None,
        **options: Any,
    ) -> Simulated:
        """What it would do in `span` from `start` (now), with another trigger or other options; nothing is stored."""
        changed = await self._changed(await self.get(name), None, trigger, options)
        document = document_of(name, changed)
        assumed = what_if or WhatIf()
        body = {
            "span": duration(span),
            "start": start,
            "duration": duration(assumed.duration),
            "fail_every": assumed.fail_every,
            "outages": assumed.outages,
            "workers": assumed.workers,
            "changes": {**dict.fromkeys(SCHEDULE_OPTIONS), **document},
        }
        return read(await self._send("POST", path_of("schedules", name, "simulate"), body), Simulated)

    async def plan_documents(self, documents: Iterable[Mapping[str, Any]], owner: str) -> Sequence[Difference]:
        """What `apply_documents` would change: schedules made, changed, and those of this owner that are gone."""
        return await self._applied(documents, owner, dry_run=True)

    async def apply_documents(
        self, documents: Iterable[Mapping[str, Any]], owner: str, *, actor: str | None = None
    ) -> Sequence[Difference]:
        """Schedules as these documents say, each kept under `owner`; those of other owners are a Conflict.

        Schedules of this owner that no document names are deleted. Pauses stay as they are.
        """
        return await self._applied(documents, owner, dry_run=False)

    async def _applied(
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
