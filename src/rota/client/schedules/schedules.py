"""`client.schedules`: create, update, control and preview schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack

from msgspec.structs import replace

from rota.client.schedules.definition import MOST_LISTED, MOST_PREVIEWED, DefinitionVerbs, require_limit
from rota.client.schedules.history import HistoryVerbs
from rota.client.schedules.simulate import apply_plan, compare_documents, simulate_from, state_at
from rota.config import Config
from rota.core.calendar.triggers import Trigger
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import resume_mode
from rota.core.planning.simulation_report import SimulationOptions, SimulationReport
from rota.core.runs.options import request_hold, scope_of
from rota.core.schedules.diff import Difference
from rota.core.schedules.documents import parse
from rota.core.schedules.preview import DocumentPreview, Fire, foresee, named, upcoming, wrong
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import Schedule, ScheduleDefinition, checked_state
from rota.errors import Conflict, Invalid, NotFound, UnknownSchedule
from rota.registry.jobs import Registry
from rota.registry.scope_providers import ask, require_answer, trouble_with
from rota.values.actor import checked_actor
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.instants import micros_at
from rota.values.json import Limits
from rota.values.scope import Scope

if TYPE_CHECKING:
    from rota.core.schedules.schedule import ScheduleOptions
    from rota.store import Store

_LONGEST_PAUSE = timedelta(days=36_525)


class SchedulesClient(HistoryVerbs, DefinitionVerbs):
    """Schedules, by name. Changes take effect within a second, on every planner."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        config: Config,
        job: Callable[[str], Awaitable[JobDefinition]],
    ) -> None:
        super().__init__(job, store.now, Limits(config.max_payload), registry)
        self._store = store
        self._lease = config.lease

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
        await self._require_provider(name, definition)
        await self._store.schedules.create(name, definition, owner, actor=checked_actor(actor))
        return await self.get(name)

    async def _replace(self, old: Schedule, definition: ScheduleDefinition, actor: str | None) -> Schedule | None:
        if definition.provider != old.definition.provider:
            await self._require_provider(old.name, definition)
        change = Change(note="edited", actor=checked_actor(actor))
        if not await self._store.schedules.update(old.name, definition, change, expected=old.definition):
            return None
        return await self.get(old.name)

    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a schedule; its runs stay."""
        await self._store.schedules.delete(name, checked_actor(actor))

    async def get(self, name: str) -> Schedule:
        """Return a schedule by name."""
        schedule = await self._store.schedules.get(name)
        if schedule is None:
            raise UnknownSchedule(name, await self._store.schedules.names())
        return schedule

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
        checked_state(state)
        return await self._store.schedules.list(job=job, owner=owner, text=text, state=state, limit=limit, after=after)

    async def pause(
        self,
        name: str,
        *,
        reason: str | None = None,
        actor: str | None = None,
        until: datetime | Duration | None = None,
    ) -> Schedule:
        """Pause a schedule. `until` is a datetime, or a duration from now; without it, until it is resumed."""
        await self._store.schedules.pause(name, reason, checked_actor(actor), await self._instant(until))
        return await self.get(name)

    async def resume(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> Schedule:
        """Resume a schedule. Plan times during the pause are skipped, unless `catch_up` is `latest` or `all`."""
        resume_mode(catch_up)
        await self._store.schedules.resume(name, catch_up, checked_actor(actor))
        return await self.get(name)

    async def enable(self, name: str, *, actor: str | None = None) -> Schedule:
        """Enable a schedule."""
        return await self.update(name, enabled=True, actor=actor)

    async def disable(self, name: str, *, actor: str | None = None) -> Schedule:
        """Disable a schedule: it does not fire until it is enabled."""
        return await self.update(name, enabled=False, actor=actor)

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
        request = None if idempotency_key is None else request_hold(idempotency_key, "trigger", name, only_scope, force)
        checked = checked_actor(actor)
        named = await self._provided_scopes(name) if only_scope is None else ()
        return await self._store.schedules.trigger(
            name, only_scope, named=named, force=force, actor=checked, request=request
        )

    async def preview(self, name: str, count: int = 10, *, after: datetime | None = None) -> Sequence[Fire]:
        """Return the next plan times, with the effects of daylight saving time."""
        require_limit(count, MOST_PREVIEWED, "count")
        schedule = await self.get(name)
        start = await self._store.now() if after is None else micros_at(after)
        return upcoming(schedule.definition, name, start, count)

    async def preview_document(
        self, document: Mapping[str, Any], count: int = 10, *, after: datetime | None = None
    ) -> DocumentPreview:
        """Return when a schedule document would fire and what is wrong with it; store nothing."""
        require_limit(count, MOST_PREVIEWED, "count")
        preview = foresee(document, await self._store.now() if after is None else micros_at(after), count)
        complete = named(document)
        if preview.problems or "job" not in complete:
            return preview
        try:
            await self.define(*parse(complete))
        except (Conflict, Invalid, NotFound) as error:
            return replace(preview, problems=(wrong(error, complete),))
        return preview

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
        schedule = await self.get(name)
        definition = await self._changed(schedule, None, trigger, options)
        at = await self._store.now() if start is None else micros_at(start)
        state = state_at(schedule, definition, at, now=start is None)
        return simulate_from(state, await self._job(definition.job), span, assumptions or SimulationOptions())

    async def plan_documents(self, documents: Iterable[Mapping[str, Any]], owner: str) -> Sequence[Difference]:
        """Return what `apply_documents` would change: schedules to create, to update, and to delete because this owner
        no longer lists them."""
        return (await compare_documents(self, self._store, documents, owner)).differences

    async def apply_documents(
        self, documents: Iterable[Mapping[str, Any]], owner: str, *, actor: str | None = None
    ) -> Sequence[Difference]:
        """Create and update schedules from documents, under `owner`. Raise `Conflict` for a schedule of another owner.

        Schedules of this owner that no document names are deleted. Pauses are kept.
        """
        plan = await compare_documents(self, self._store, documents, owner)
        for name in plan.changing:
            await self._require_provider(name, plan.definitions[name])
        await apply_plan(self._store, plan, checked_actor(actor))
        return plan.differences

    async def _require_provider(self, name: str, definition: ScheduleDefinition) -> None:
        if definition.provider is not None:
            await require_answer(name, definition.provider, self._registry.schedules.providers)

    async def _provided_scopes(self, name: str) -> Sequence[Scope]:
        """Return the scopes that the schedule's provider names now, if this process has it. Its errors are recorded
        where planning shows them."""
        provider = (await self.get(name)).definition.provider
        providers = self._registry.schedules.providers
        if provider is None or provider not in providers:
            return ()
        try:
            return await ask(providers[provider])
        except Exception as error:
            await self._store.planning.note_provider_trouble(provider, trouble_with(provider, error))
            return ()

    async def _instant(self, until: datetime | Duration | None) -> int | None:
        if until is None:
            return None
        now = await self._store.now()
        if isinstance(until, datetime):
            if until.tzinfo is None:
                raise Invalid("until must be a datetime with a zone")
            at = micros_at(until)
        else:
            at = now + in_micros(parse_duration(until))
        if at <= now:
            raise Invalid("until must be in the future")
        # A later instant may exceed what datetime can represent when it is read back.
        if at - now > in_micros(_LONGEST_PAUSE):
            raise Invalid("until must be within a hundred years")
        return at
