"""The verb that answers what schedules would do. Part of `client.schedules`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

from msgspec import Meta
from msgspec.structs import replace

from rota.client.schedules import forms
from rota.client.schedules.definition import DefinitionVerbs, jobs_of
from rota.core.access.roles import Role
from rota.core.calendar.describe import describe
from rota.core.jobs.job import JobDefinition
from rota.core.planning.question import MOST_LISTED, Moment, SimulationReport, Subject, answer, question_of
from rota.core.schedules.diff import (
    CREATE,
    UNNAMED,
    Difference,
    check_names,
    checked_owner,
    difference,
    differences,
    named,
    timing_of,
    wrong,
)
from rota.core.schedules.documents import Parsed, document_of, merged, parse
from rota.core.schedules.plan_times import zone_of
from rota.core.schedules.schedule import Schedule, ScheduleDefinition
from rota.errors import Conflict, Invalid, NotFound, RotaError, UnknownSchedule
from rota.values.durations import Duration
from rota.verbs import examples
from rota.verbs.verb import verb
from rota.verbs.wire import Wired

if TYPE_CHECKING:
    from rota.store import Store
    from rota.store.schedules.schedule_operations import Surroundings

_MOST_DOCUMENTS = 10_000

Documents = Annotated[list[dict[str, Any]], Meta(max_length=_MOST_DOCUMENTS)]
Outage = Annotated[list[str], Meta(min_length=2, max_length=2)]
_TAKES = {"span": "1d", "duration": "20m", "changes": {"overlap": "queue_all"}}
_OF_DOCUMENTS = {"documents": [{"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"}], "span": "0s", "limit": 3}


class SimulationOptions(TypedDict, total=False):
    """Assumptions of a simulation, and how much of it to list."""

    start: Annotated[datetime | None, Meta(description="When it begins, as if there were no runs; by default now")]
    duration: Annotated[
        Duration | None, Meta(description="How long each run takes; by default the median of its job's last 20")
    ]
    fail_every: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Every Nth run fails, with all its attempts")
    ]
    outages: Annotated[
        Sequence[tuple[Moment, Moment]],
        Wired(list[Outage], forms.written_outages),
        Meta(description="When no planner works, from and to: times with a zone, or from the beginning on (`+1h`)"),
    ]
    workers: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)] | None, Meta(description="Runs at a time; by default any number")
    ]
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_LISTED)] | None, Meta(description="Most plan times to list; by default 20")
    ]


class SimulateVerbs(DefinitionVerbs):
    """The verb about the future of schedules. It stores nothing."""

    _store: Store

    @verb(
        "POST",
        "/schedules/{name}/simulate",
        Role.VIEWER,
        optional_body=True,
        payload_at="$.changes.payload",
        answer=forms.SIMULATION,
        takes=_TAKES,
        gives=examples.SIMULATION,
    )
    @verb(
        "POST",
        "/schedules:simulate",
        Role.VIEWER,
        fixed={"name": None},
        payload_at="$.changes.payload",
        answer=forms.SIMULATION,
        takes=_OF_DOCUMENTS,
        gives=examples.SIMULATION,
        operation="simulate_documents",
    )
    async def simulate(
        self,
        name: str | None = None,
        span: Annotated[Duration, Meta(description='How long to simulate; `"0s"`: only list next plan times')] = "1d",
        *,
        changes: Annotated[
            Mapping[str, Any] | None,
            Wired(dict[str, Any] | None, forms.written_changes),
            Meta(description="Another trigger or other options, as in a document"),
        ] = None,
        documents: Annotated[
            Iterable[Mapping[str, Any]] | None,
            Wired(Documents | None, list),
            Meta(description="Schedules as in `schedules.toml`, instead of one that exists; they may be unfinished"),
        ] = None,
        owner: Annotated[
            str | None, Meta(description="Owner of the documents; its schedules that none of them names are deleted")
        ] = None,
        **options: Unpack[SimulationOptions],
    ) -> SimulationReport:
        """Return what a schedule would do, optionally with changes, or what documents would change; store nothing.

        It begins now, with the runs that are live, what limits and keys they hold, and pauses; or at `start`, as if
        there were nothing yet. What is wrong with a document is among its `problems`. Documents of an `owner` are to be
        applied: unfinished ones are refused.
        """
        question = question_of(span, options)
        if (name is None) == (documents is None) or (documents is not None and changes):
            raise Invalid("simulate one schedule, or documents", hint="a name with `changes`, or `documents`")
        if documents is None:
            assert name is not None
            subjects, now = await self._subject(name, forms.written_changes(changes or {}, name))
        else:
            subjects, now = await self._drafts([*documents], owner)
        if question.length:
            subjects, now = await self._with_present(subjects, now)
        # In a thread: it may decide a hundred thousand plan times, and a server has others to answer.
        return await asyncio.to_thread(answer, question, subjects, now)

    async def _subject(self, name: str, changes: Mapping[str, Any]) -> tuple[list[Subject], int]:
        """Return a schedule that exists, as it would be after the changes."""
        old, definition, found = await self._foreseen(name, changes)
        job = await self._job_of(definition.job, found.jobs)
        compared = difference(name, definition, old, found.now)
        return [Subject(difference=compared, schedule=old, definition=definition, job=job)], found.now

    async def _drafts(
        self, documents: Sequence[Mapping[str, Any]], owner: str | None, *, lenient: bool = True
    ) -> tuple[list[Subject], int]:
        """Return documents as schedules, and what would be deleted. `lenient`: a document may be unfinished, and what
        is wrong with it is among its problems."""
        owner = None if owner is None else checked_owner(owner)
        if owner is not None:  # they are to be applied: none may be unfinished, as somebody's draft may
            for document in documents:
                parse(document)
        complete = [named(document) if lenient else document for document in documents]
        names = [str(document["name"]) if lenient else parse(document).name for document in complete]
        check_names([name for name in names if name != UNNAMED])
        jobs = dict.fromkeys(job for document in complete for job in _jobs_in(document))
        found = await self._store.schedules.surroundings(names, lambda _: self._not_in_code(jobs), owner=owner)
        drafts = [await self._draft(document, found, owner, lenient=lenient) for document in complete]
        others = [schedule for name, schedule in found.schedules.items() if name not in names]
        return [*drafts, *(Subject(difference=each) for each in differences({}, others, owner, found.now))], found.now

    async def _draft(
        self, document: Mapping[str, Any], found: Surroundings, owner: str | None, *, lenient: bool
    ) -> Subject:
        """Return a document as a schedule. Without `job`, only the keys that decide when it fires are checked."""
        name, timing = str(document["name"]), None
        old, problems = found.schedules.get(name), []
        try:
            timing = timing_of(document, found.now) if lenient else None
            if not lenient or "job" in document:
                definition = await self._checked(parse(document), found.jobs, found.now)
                (compared,) = differences({name: definition}, [old] if old else [], owner, found.now)
                job = await self._job_of(definition.job, found.jobs)
                return Subject(difference=compared, schedule=old, definition=definition, job=job)
        except (Conflict, Invalid, NotFound) as error:
            if not lenient:
                raise
            problems.append(wrong(error, document))
        unfinished = Difference(kind=CREATE, name=name, problems=tuple(problems))
        if timing is not None:
            rule = describe(timing.rule, None if name == UNNAMED else name)
            unfinished = replace(unfinished, rule=rule, timezone=zone_of(timing))
        return Subject(difference=unfinished, definition=timing)

    async def _with_present(self, subjects: Sequence[Subject], now: int) -> tuple[list[Subject], int]:
        wanted = {
            subject.difference.name: (subject.definition, subject.job)
            for subject in subjects
            if subject.definition is not None and subject.job is not None
        }
        present = await self._store.planning.present(wanted) if wanted else {}
        now = max((each.now for each in present.values()), default=now)
        return [replace(subject, present=present.get(subject.difference.name)) for subject in subjects], now

    async def _job_of(self, name: str, jobs: Mapping[str, JobDefinition]) -> JobDefinition:
        return jobs.get(name) or await self._job(name)

    async def _foreseen(
        self, name: str, changes: Mapping[str, Any]
    ) -> tuple[Schedule, ScheduleDefinition, Surroundings]:
        """Return a schedule, its definition after the changes, and what that was checked against."""
        found = await self._surroundings(name, lambda old: None if old is None else _changed(old, changes))
        if name not in found.schedules:
            raise UnknownSchedule(name, await self._store.schedules.names())
        schedule = found.schedules[name]
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


def _jobs_in(document: Mapping[str, Any]) -> list[str]:
    """Return the jobs that a document mentions, if it makes sense."""
    try:
        return jobs_of(parse(document))
    except RotaError:
        return [job] if isinstance(job := document.get("job"), str) else []


def _changed(schedule: Schedule, changes: Mapping[str, Any]) -> Parsed:
    return parse(merged(document_of(schedule.name, schedule.definition), changes))
