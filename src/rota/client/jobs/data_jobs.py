"""`client.data_jobs`: create, replace, update and delete data jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Unpack, assert_never

from msgspec import Meta
from msgspec.structs import asdict

from rota.client.jobs.job_body import CHANGES, NEW_JOB, implied_kind, payload_place
from rota.client.schedules.definition import DefinitionVerbs
from rota.core.access.roles import Role
from rota.core.jobs.job import JobDefinition, JobKind, kind_of, require_flat
from rota.core.jobs.secrets import require_unmasked
from rota.core.jobs.status import JobView, job_view
from rota.core.runs.options import Order
from rota.core.runs.run import CreatedJob, NewRun
from rota.core.schedules.documents import changes_of, document_of, merged, parse
from rota.core.schedules.schedule import NewSchedule, OwnSchedule, ScheduleMoved, own_owner
from rota.core.schedules.view import view
from rota.core.schedules.vocabulary import translated_changes, translated_job
from rota.errors import ChangedMeanwhile, Conflict, Invalid, Unavailable, UnknownJob
from rota.registry.data_jobs import (
    DATA_OPTIONS,
    JobChanges,
    changed_options,
    checked_data_job,
    checked_kind,
    kind_options,
)
from rota.registry.jobs import Registry
from rota.registry.scope_providers import require_answer
from rota.values.actor import checked_actor
from rota.values.names import checked_name
from rota.verbs.examples import JOB, SCHEDULE
from rota.verbs.revisions import Revisions, is_expected
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.engine.observability.meters import Meters
    from rota.store import Store
    from rota.store.jobs.data_jobs import MadeJob, Make

_DELETED = "the job was deleted"
_TRIES = 5

RunOf = Callable[[JobDefinition, Order, str], NewRun]
"""Builds a run of a stored job, under the given id."""


class DataJobsClient:
    """Jobs defined as data instead of code. Workers learn of changes at their next poll. Returned definitions have
    their secrets masked."""

    def __init__(
        self, store: Store, registry: Registry, schedules: DefinitionVerbs, run_of: RunOf, meters: Meters
    ) -> None:
        self._store = store
        self._registry = registry
        self._schedules = schedules
        self._run_of = run_of
        self._meters = meters

    @verb(
        "POST",
        "/jobs",
        Role.ADMIN,
        query=("owner",),
        repeatable=True,
        body=NEW_JOB,
        payload_at=payload_place,
        created=lambda job: job.created,
        location="/jobs/{name}",
        etag="version",
        takes={"name": "ping", "url": "https://example.com/health", "max_attempts": 4, "schedule": {"every": "30m"}},
        gives={**JOB, "created": True, "schedule": SCHEDULE, "run": None},
        operation="create_job",
    )
    async def create(
        self,
        name: str,
        kind: str | None = None,
        *,
        schedule: Mapping[str, Any] | None = None,
        run: Mapping[str, Any] | None = None,
        owner: Annotated[str, Meta(description="Who keeps it, such as a deployment")] = "api",
        actor: str | None = None,
        **options: Unpack[JobChanges],
    ) -> CreatedJob:
        """Create a data job: an HTTP request, a command, an external job or a pipeline; optionally with a schedule.

        `kind` is `http`, `command`, `external` or `pipeline`; a `url`, an `argv` or a `pipeline` imply it. `schedule`
        is the document of the job's own schedule, which is deleted with the job. `run` is the payload of a run that is
        enqueued with it. All or nothing. An identical call creates nothing: there is one such run per version of the
        job.
        """
        document = translated_job({**options, "schedule": schedule, "run": run})
        schedule, run = document.pop("schedule"), document.pop("run")
        require_unmasked(document)
        definition = checked_data_job(name, implied_kind(document) if kind is None else kind, document)
        if name in self._registry.newest:
            raise Conflict(f"job {name!r} is declared in code", hint="choose another name")
        require_flat(definition, self._registry.newest_definitions())
        checked_name(owner, "owner")
        new_schedule = None if schedule is None else await self._new_schedule(schedule, definition)
        build_run = None if run is None else partial(self._first_run, dict(run), self._store.new_id())
        made = await self._store.data_jobs.create_with(
            definition, owner, checked_actor(actor), schedule=new_schedule, run=build_run
        )
        if made.enqueued is not None:
            self._meters.of[name, definition.queue].enqueued.add(made.enqueued.created)
        return _created(made)

    async def _new_schedule(
        self, document: Mapping[str, Any], job: JobDefinition, answers: str | None = None
    ) -> NewSchedule:
        """Return the schedule that the document describes, checked; `answers` is a provider that need not be asked."""
        if document.get("job", job.name) != job.name:
            raise Invalid(f"the schedule of job {job.name!r} is for job {document['job']!r:.80}", hint="leave job out")
        parsed = parse({"name": job.name, "job": job.name, **document})
        definition = await self._schedules.define(*parsed, new_job=job)
        if definition.provider not in (None, answers):
            providers = self._registry.schedules.providers
            await require_answer(parsed.name, str(definition.provider), providers, self._store.now)
        return NewSchedule(parsed.name, definition)

    def _first_run(self, payload: dict[str, Any], id: str, job: JobDefinition) -> NewRun:
        """Build the run that comes with the job, idempotent per version. ␟ cannot come from a header, so no caller's
        key collides."""
        options = {"idempotency_key": f"␟job␟{job.name}␟{job.version}"}
        return self._run_of(job, Order(job.name, payload, options), id)

    @verb(
        "PUT",
        "/jobs/{name}",
        Role.ADMIN,
        repeatable=True,
        body=CHANGES,
        created=lambda job: job.created,
        location="/jobs/{name}",
        etag="version",
        takes={"url": "https://example.com/health", "timeout": "3s"},
        gives={**JOB, "created": False, "schedule": None, "run": None},
        operation="replace_job",
    )
    async def replace(
        self,
        name: str,
        kind: str | None = None,
        *,
        schedule: Mapping[str, Any] | None = None,
        expected_revision: Revisions | None = None,
        actor: str | None = None,
        **options: Unpack[JobChanges],
    ) -> CreatedJob:
        """Create or replace a data job. Options that are not given have their defaults. A body without a `kind`, `url`,
        `argv` and `pipeline` describes no job: it changes the one that there is, as `update` does.

        `schedule` changes the job's own schedule, or creates it; without it, that stays as it is. With
        `expected_revision`, raise `ChangedMeanwhile` unless the job still has that version; 0 means that there is none.
        """
        given, document = _changes(name, {**options, "schedule": schedule})
        word = _kind_in(given) if kind is None else kind
        if name in self._registry.newest:
            raise Conflict(f"job {name!r} is declared in code", hint="change it there")

        def make(old: JobDefinition | None) -> JobDefinition:
            made = described(old)
            require_flat(made, self._registry.newest_definitions())
            return made

        def described(old: JobDefinition | None) -> JobDefinition:
            if old is not None and expected_revision == 0:
                raise Conflict(f"there is a job {name!r} already")
            _require_version(name, old, expected_revision)
            if old is None:
                return checked_data_job(name, implied_kind(given) if word is None else word, given)
            if word is None:  # such a body describes no job: it changes the one that there is
                return checked_data_job(name, old.kind, changed_options(old, given), version=old.version)
            _require_kind(old, word)
            everything = {**dict.fromkeys((*kind_options(checked_kind(word)), *DATA_OPTIONS)), **given}
            return checked_data_job(name, word, changed_options(old, everything), version=old.version)

        return _created(await self._write(name, make, checked_actor(actor), document))

    @verb(
        "PATCH",
        "/jobs/{name}",
        Role.ADMIN,
        body=CHANGES,
        etag="version",
        takes={"timeout": None, "enabled": False},
        gives=JOB,
        operation="update_job",
    )
    async def update(
        self,
        name: str,
        *,
        kind: str | None = None,
        schedule: Mapping[str, Any] | None = None,
        expected_revision: Revisions | None = None,
        actor: str | None = None,
        **options: Unpack[JobChanges],
    ) -> JobView:
        """Update some options of a data job. None resets an option to its default; runs that are already enqueued keep
        their version.

        `schedule` has the parts of the job's own schedule that change; a job without one gets it. With
        `expected_revision`, raise `ChangedMeanwhile` unless the job still has that version.
        """
        given, document = _changes(name, {**options, "schedule": schedule})

        def make(old: JobDefinition | None) -> JobDefinition:
            assert old is not None
            _require_version(name, old, expected_revision)
            if kind is not None:
                _require_kind(old, kind)
            definition = checked_data_job(name, old.kind, changed_options(old, given), version=old.version)
            require_flat(definition, self._registry.newest_definitions())
            return definition

        made = await self._write(name, make, checked_actor(actor), document, create=False)
        return job_view(made.job, made.facts)

    async def _write(
        self, name: str, make: Make, actor: str | None, document: Mapping[str, Any] | None, *, create: bool = True
    ) -> MadeJob:
        # Race: somebody else may change the schedule between its read and the transaction. Both changes count.
        for _ in range(_TRIES):
            own = None if document is None else await self._own_schedule(name, make, document, create=create)
            try:
                return await self._store.data_jobs.write(name, make, "api", actor, create=create, schedule=own)
            except ScheduleMoved:
                continue
        raise Unavailable(f"the schedule of job {name!r} kept changing while it was being edited", hint="try again")

    async def _own_schedule(self, name: str, make: Make, changes: Mapping[str, Any], *, create: bool) -> OwnSchedule:
        """Return the job's own schedule with these changes of its document, or the new one that they describe."""
        try:
            job = make(await self._store.data_jobs.get(name))
        except UnknownJob:
            if not create:
                raise
            job = make(None)
        owned = await self._store.schedules.list(job=name, owner=own_owner(name), limit=1)
        if not owned:
            new = await self._new_schedule(changes, job)
            return OwnSchedule(new.name, new.definition, None)
        old = owned[0].definition
        document = document_of(owned[0].name, old)
        new = await self._new_schedule(merged(document, changes_of(owned[0].name, options=changes)), job, old.provider)
        return OwnSchedule(new.name, new.definition, old)

    @verb("DELETE", "/jobs/{name}", Role.ADMIN, operation="delete_job")
    async def delete(
        self,
        name: str,
        *,
        force: Annotated[bool, Meta(description="Even if it is used: disable its schedules, cancel its runs")] = False,
        expected_revision: Revisions | None = None,
        actor: str | None = None,
    ) -> None:
        """Delete a data job and the schedule created with it; its runs are kept.

        Raise `JobInUse` while another schedule, a live run or a pipeline uses it; with `force`, disable those schedules
        and cancel those runs, also runs of pipelines that have it before them.
        """
        checked_actor(actor)
        check = partial(_require_version, name, expected=expected_revision)
        # Raises if it is deleted already, which the delete itself cannot: it may be repeated after a lost answer.
        try:
            check(await self._store.data_jobs.get(name))
        except UnknownJob:
            if force:  # the answer of an earlier try may have got lost before it had cancelled all that it left
                await self._finish_delete(name, actor)
            raise
        if force:
            # Race: the job may have changed since; then nothing of it must be cancelled.
            await self._store.cancel_job(name, _DELETED, actor, guarded=False, check=check)
        # Race: runs may be enqueued between the cancel above and this delete. The delete ends them, or returns those
        # that somebody claimed; none can follow, because the job is gone.
        late_runs = await self._store.data_jobs.delete(name, actor, force=force, reason=_DELETED, check=check)
        if late_runs:
            await self._store.cancel_left(name, late_runs, _DELETED, actor)

    async def _finish_delete(self, name: str, actor: str | None) -> None:
        def gone(_: JobDefinition) -> None:
            raise UnknownJob(name)  # race: another one of this name was created since, which nobody asked to delete

        left = await self._store.data_jobs.delete(name, actor, force=True, reason=_DELETED, check=gone)
        if left:
            await self._store.cancel_left(name, left, _DELETED, actor)

    @verb("POST", "/jobs/{name}/restore", Role.ADMIN, etag="version", gives=JOB, operation="restore_job")
    async def restore(self, name: str, *, actor: str | None = None) -> JobView:
        """Restore a deleted data job as its next version, not paused. Raise `Conflict` if there is one of this name.

        Its schedules are not restored with it: restore the one that was deleted (`schedules.restore`), and enable those
        that were disabled.
        """
        if name in self._registry.newest:
            raise Conflict(f"job {name!r} is declared in code", hint="change it there")
        check = partial(require_flat, known=self._registry.newest_definitions())
        made = await self._store.data_jobs.restore(name, checked_actor(actor), check)
        return job_view(made.job, made.facts)


def _changes(name: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return changes of a job in rota's words, and those of its own schedule."""
    given = translated_changes(options)
    if given.pop("source_name", None) not in (None, name):
        raise Invalid("source_name is the job's name, which does not change", hint="create another job")
    document = given.pop("schedule", None)
    require_unmasked(given)
    return given, document


def _created(made: MadeJob) -> CreatedJob:
    schedule = None if made.schedule is None else view(made.schedule)
    return CreatedJob(**asdict(job_view(made.job, made.facts)), created=made.new, schedule=schedule, run=made.run)


def _kind_in(options: Mapping[str, Any]) -> str | None:
    """Return the kind that the options imply; None if they imply none."""
    implies = any(options.get(name) is not None for name in ("url", "argv", "pipeline"))
    return implied_kind(options) if implies else None


def _require_version(name: str, job: JobDefinition | None, expected: Revisions | None) -> None:
    if not is_expected(0 if job is None else job.version, expected):
        raise ChangedMeanwhile(f"job {name!r}")


def _require_kind(old: JobDefinition, kind: str) -> None:
    stored = kind_of(old.kind)
    match stored:
        case JobKind.PYTHON:  # a job in code is refused later, with a better message
            pass
        case JobKind.HTTP | JobKind.COMMAND | JobKind.EXTERNAL | JobKind.PIPELINE | None:
            if old.kind != kind:
                raise Conflict(f"job {old.name!r} is of kind {old.kind}", hint="delete it, or choose another name")
        case _:
            assert_never(stored)
