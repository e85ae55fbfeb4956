"""`client.schedules`: create, update, control and simulate schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from msgspec import Meta
from msgspec.structs import replace as changed

from rota.client.schedules import forms
from rota.client.schedules.control import ControlVerbs
from rota.client.schedules.definition import jobs_of, parsed_of
from rota.client.schedules.forms import schedule_verb
from rota.client.schedules.history import HistoryVerbs
from rota.client.schedules.simulate import Documents, SimulateVerbs
from rota.config import Config
from rota.core.access.roles import Role
from rota.core.calendar.triggers import Trigger
from rota.core.jobs.job import JobDefinition
from rota.core.schedules.backoff import cadence_warnings
from rota.core.schedules.diff import CHANGE, CREATE, DELETE, Difference
from rota.core.schedules.documents import changes_of
from rota.core.schedules.recent_runs import MOST_RECENT
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import LOOKED_FOR, Schedule, ScheduleDefinition, ScheduleOptions, checked_state
from rota.errors import (
    ChangedMeanwhile,
    DuplicateSchedule,
    Unavailable,
    UnknownSchedule,
)
from rota.registry.jobs import Registry
from rota.registry.scope_providers import require_answer
from rota.values.actor import checked_actor
from rota.values.json import Limits
from rota.verbs import examples
from rota.verbs.pages import LongLimit, Page
from rota.verbs.revisions import Revisions, is_expected
from rota.verbs.verb import verb
from rota.verbs.wire import Wired

if TYPE_CHECKING:
    from rota.store import Store

_TRIES = 5

SearchText = Annotated[str, Meta(max_length=200)]
RecentCount = Annotated[int, Meta(ge=1, le=MOST_RECENT)]


class SchedulesClient(HistoryVerbs, ControlVerbs, SimulateVerbs):
    """Schedules, by name. Changes take effect within a second, on every planner."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        config: Config,
        job: Callable[[str], Awaitable[JobDefinition]],
    ) -> None:
        self._job = job
        self._limits = Limits(config.max_payload)
        self._registry = registry
        self._store = store
        self._lease = config.lease

    @schedule_verb(
        "POST",
        "/schedules",
        Role.ADMIN,
        query=("owner",),
        status=201,
        body=forms.DOCUMENT,
        payload_at="$.payload",
        location="/schedules/{name}",
        takes=examples.SCHEDULE_BODY,
    )
    async def create(
        self,
        name: str,
        job: str,
        trigger: Trigger,
        *,
        owner: Annotated[str, Meta(description="Owner of what is created")] = "api",
        actor: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Create a schedule."""
        parsed = parsed_of(name, job, trigger, options)
        jobs, now = await self._jobs_and_time(jobs_of(parsed))
        definition = await self._checked(parsed, jobs, now)
        await self._require_provider(name, definition)
        schedule = await self._store.schedules.create(name, definition, owner, actor=checked_actor(actor))
        return await self._with_warnings(schedule, jobs, now)

    @schedule_verb(
        "PUT",
        "/schedules/{name}",
        Role.ADMIN,
        body=forms.DOCUMENT,
        payload_at="$.payload",
        created=lambda schedule: schedule.created,
        location="/schedules/{name}",
        takes={"job": "crawl", "every": "1h"},
    )
    async def replace(
        self,
        name: str,
        job: str,
        trigger: Trigger,
        *,
        actor: str | None = None,
        expected_revision: Revisions | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Create or replace a schedule. Options that are not given have their defaults.

        With `expected_revision` (`If-Match`), raise `ChangedMeanwhile` unless the schedule still has that revision; 0
        (`If-None-Match: *`) means that there must be none.
        """
        parsed = parsed_of(name, job, trigger, options)
        for _ in range(_TRIES):
            found = await self._surroundings(name, lambda _: parsed)
            definition = await self._checked(parsed, found.jobs, found.now)
            old = found.schedules.get(name)
            if old is not None and expected_revision == 0:
                raise DuplicateSchedule(name)
            if not is_expected(0 if old is None else old.revision, expected_revision):
                raise ChangedMeanwhile(f"schedule {name!r}")
            if stored := await self._stored(name, old, definition, actor):
                return await self._with_warnings(stored, found.jobs, found.now)
        raise Unavailable(f"schedule {name!r} kept changing while it was being replaced", hint="try again")

    async def _with_warnings(self, schedule: Schedule, jobs: Mapping[str, JobDefinition], now: int) -> Schedule:
        job = await self._job_of(schedule.job, jobs)
        return changed(schedule, warnings=tuple(cadence_warnings(schedule.definition, job, schedule.name, now)))

    async def _stored(
        self, name: str, old: Schedule | None, definition: ScheduleDefinition, actor: str | None
    ) -> Schedule | None:
        """Create or change a schedule; return None if another one was stored since `old` was read."""
        if old is None or definition.provider != old.definition.provider:
            await self._require_provider(name, definition)
        if old is not None:
            change = Change(note="edited", actor=checked_actor(actor))
            return await self._store.schedules.update(name, definition, change, expected=old.definition)
        try:
            schedule = await self._store.schedules.create(name, definition, "api", actor=checked_actor(actor))
            return changed(schedule, created=True)
        except DuplicateSchedule:
            return None

    @schedule_verb(
        "PATCH",
        "/schedules/{name}",
        Role.ADMIN,
        body=forms.CHANGES,
        payload_at="$.payload",
        takes={"overlap": "allow", "jitter": None},
    )
    async def update(
        self,
        name: str,
        *,
        job: str | None = None,
        trigger: Trigger | None = None,
        actor: str | None = None,
        expected_revision: Revisions | None = None,
        **changes: Any,
    ) -> Schedule:
        """Change the given parts of a schedule; an option that is None (`null`) goes back to its default. Another
        trigger is a `trigger`, or named as in a document: `every="5m"`.

        With `expected_revision` (`If-Match`), raise `ChangedMeanwhile` unless the schedule still has that revision.
        """
        document = changes_of(name, job, trigger, changes)
        # Optimistic locking: two people may change different options at the same time, and both changes count.
        for _ in range(_TRIES):
            old, definition, found = await self._foreseen(name, document)
            if not is_expected(old.revision, expected_revision):
                raise ChangedMeanwhile(f"schedule {name!r}")
            if stored := await self._stored(name, old, definition, actor):
                return await self._with_warnings(stored, found.jobs, found.now)
        raise Unavailable(f"schedule {name!r} kept changing while it was being edited", hint="try again")

    @schedule_verb("POST", "/schedules/{name}/enable", Role.OPERATOR)
    async def enable(self, name: str, *, actor: str | None = None) -> Schedule:
        """Enable a schedule."""
        return await self.update(name, enabled=True, actor=actor)

    @schedule_verb("POST", "/schedules/{name}/disable", Role.OPERATOR)
    async def disable(self, name: str, *, actor: str | None = None) -> Schedule:
        """Disable a schedule: it does not fire until it is enabled."""
        return await self.update(name, enabled=False, actor=actor)

    @verb("DELETE", "/schedules/{name}", Role.ADMIN)
    async def delete(self, name: str, *, actor: str | None = None, expected_revision: Revisions | None = None) -> None:
        """Delete a schedule; its runs stay. With `expected_revision` (`If-Match`), only if it still has that."""
        await self._store.schedules.delete(
            name, checked_actor(actor), lambda revision: is_expected(revision, expected_revision)
        )

    @schedule_verb("POST", "/schedules/{name}/restore", Role.ADMIN)
    async def restore(self, name: str, *, actor: str | None = None) -> Schedule:
        """Restore a deleted schedule, as it was deleted last. Raise `DuplicateSchedule` if there is one of this name.

        It goes on from now: nothing catches up with the time since it was deleted. If it was paused, it still is, and
        its runs count for `max_runs`. A deleted schedule is kept for 30 days, and longer while it has runs.
        """
        return await self._store.schedules.restore(name, checked_actor(actor))

    @schedule_verb("GET", "/schedules/{name}", Role.VIEWER)
    async def get(
        self,
        name: str,
        *,
        recent: Annotated[RecentCount | None, Meta(description="Number of its last runs to add")] = None,
    ) -> Schedule:
        """Return a schedule by name. `recent` adds its last runs, oldest first."""
        schedule = await self._store.schedules.get(name, recent)
        if schedule is None:
            raise UnknownSchedule(name, await self._store.schedules.names())
        return schedule

    @schedule_verb("GET", "/schedules", Role.VIEWER, page=Page(lambda schedule: schedule.name, after="after"))
    async def list(
        self,
        *,
        job: Annotated[str | None, Meta(description="Only schedules of this job")] = None,
        owner: Annotated[str | None, Meta(description="Only schedules of this owner")] = None,
        text: Annotated[SearchText | None, Meta(description="Part of the name")] = None,
        state: Annotated[str | None, Meta(description=f"Only schedules in this state: {', '.join(LOOKED_FOR)}")] = None,
        limit: LongLimit = 100,
        after: str | None = None,
        recent: Annotated[RecentCount | None, Meta(description="Number of last runs to add to each")] = None,
    ) -> Sequence[Schedule]:
        """List schedules by name. `text` matches a part of the name; `after` is the last name of the previous page.

        `recent` adds to each its last runs, oldest first, with percentiles of their durations. For a schedule with
        several scopes, only ten of them are considered.
        """
        return await self._store.schedules.list(
            job=job, owner=owner, text=text, state=checked_state(state), limit=limit, after=after, recent=recent
        )

    @verb(
        "POST",
        "/schedules:apply",
        Role.ADMIN,
        payload_at=forms.payload_of_document,
        takes={"owner": "team-a", "documents": [examples.SCHEDULE_BODY]},
        operation="apply_documents",
    )
    async def apply_documents(
        self,
        documents: Annotated[
            Iterable[Mapping[str, Any]],
            Wired(Documents, list),
            Meta(description="Schedules as in `schedules.toml`"),
        ],
        owner: Annotated[str, Meta(description="Owner of these schedules; those that no document names are deleted")],
        *,
        actor: str | None = None,
    ) -> Sequence[Difference]:
        """Create and update schedules from documents, under `owner`, and return what changed. Raise `Conflict` for a
        schedule of another owner. All of them are applied in one transaction, or none.

        Schedules of this owner that no document names are deleted. Pauses are kept. `simulate` tells beforehand what
        would change.
        """
        subjects, _ = await self._drafts([*documents], owner, lenient=False)
        changing = [subject for subject in subjects if subject.difference.kind in (CREATE, CHANGE)]
        wanted = {subject.difference.name: subject.definition for subject in changing if subject.definition}
        differences = [subject.difference for subject in subjects]
        gone = [difference.name for difference in differences if difference.kind == DELETE]
        for name, definition in wanted.items():
            await self._require_provider(name, definition)
        signed = checked_actor(actor)
        if wanted or gone:
            await self._store.schedules.apply(owner, wanted, gone, signed)
        return differences

    async def _require_provider(self, name: str, definition: ScheduleDefinition) -> None:
        if definition.provider is not None:
            await require_answer(name, definition.provider, self._registry.schedules.providers, self._store.now)
