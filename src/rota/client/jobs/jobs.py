"""Verbs about jobs and queues as a whole; part of `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, assert_never

from msgspec import Meta

from rota.client.limits.live import LiveLimitVerbs
from rota.core.access.roles import Role
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Queue, ResumedQueue
from rota.core.jobs.secrets import masked
from rota.core.jobs.status import (
    CancelledJob,
    JobAction,
    JobFilter,
    JobStatus,
    JobView,
    checked_filter,
    job_action,
    resume_mode,
    status_of,
)
from rota.core.monitoring.executions import SchedulerMetrics, metrics_of
from rota.core.monitoring.statistics import JobStats
from rota.core.runs.bulk import BulkResult
from rota.core.states import RunState
from rota.errors import BulkMismatch, RotaError, Unavailable, UnknownQueue
from rota.registry.jobs import Registry
from rota.values.actor import checked_actor
from rota.values.names import checked_name
from rota.verbs.examples import CANCELLED_STATUS, JOB, JOB_STATS, JOB_STATUS, QUEUE
from rota.verbs.pages import LongLimit, Page
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.engine.observability.meters import Meters
    from rota.store import Store

_BITE = 500

Reason = Annotated[str, Meta(max_length=1_000, description="Why, for the audit log")] | None
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
CatchUp = Annotated[str, Meta(description="Plan times of the pause that still run: `skip`, `latest` or `all`")]


class JobVerbs(LiveLimitVerbs):
    """Verbs about a job or a queue, by name."""

    store: Store
    registry: Registry
    meters: Meters

    if TYPE_CHECKING:  # it is among the verbs about runs

        async def retry_job(self, name: str, *, actor: str | None = None) -> object: ...

    @verb("GET", "/jobs/{name}", Role.VIEWER, gives=JOB, etag="version", operation="get_job")
    async def job(self, name: str) -> JobView:
        """Return a job: its definition, with secrets masked, and its `status`."""
        return await self.store.job_views.get(name, self._declared())

    async def _definition(self, name: str) -> JobDefinition:
        """Return a job's definition alone, with secrets masked: without its status, which takes longer."""
        if name in self.registry.newest:
            return masked(self.registry.newest[name].definition)
        return masked(await self.store.job_views.definition(name, self.registry.names()))

    def _declared(self) -> dict[str, JobDefinition]:
        return {name: self.registry.newest[name].definition for name in self.registry.names()}

    @verb("GET", "/jobs", Role.VIEWER, page=Page(lambda job: job.name, after="after"), gives=JOB, operation="list_jobs")
    async def jobs(
        self,
        *,
        name: Annotated[str, Meta(max_length=200, description="Name, or a pattern: `import-*`")] | None = None,
        text: Annotated[str, Meta(max_length=200, description="Part of the name, in any case")] | None = None,
        kind: Annotated[str, Meta(description="python, http, command, external or pipeline")] | None = None,
        queue: Annotated[str, Meta(description="Queue of its runs")] | None = None,
        tag: Annotated[str, Meta(description="One of its tags")] | None = None,
        state: Annotated[str, Meta(description="State of the job, such as paused or failed")] | None = None,
        limit: LongLimit = 100,
        after: str | None = None,
    ) -> Sequence[JobView]:
        """List jobs by name: those declared in this process and those stored by others. All conditions must hold.

        Each with its definition, secrets masked, the JSON Schema of its payload, and its `status`. `after` is the last
        name of the previous page.
        """
        chosen = JobFilter(name=name, text=text, kind=kind, queue=queue, tag=tag, state=state).checked()
        return await self.store.job_views.page(chosen, self._declared(), limit, after)

    @verb("GET", "/jobs/{name}/status", Role.VIEWER, gives=JOB_STATUS, operation="get_job_status")
    async def job_status(self, name: str) -> JobStatus:
        """Return the current status of a job."""
        return await self.store.job_views.status(name, declared=self.registry.newest)

    @verb("GET", "/jobs/{name}/stats", Role.VIEWER, operation="get_job_stats")
    async def job_stats(self, name: str) -> JobStats:
        """Return statistics over all runs of a job that have ended, including pruned ones."""
        return await self.store.job_stats(name, declared=self.registry.newest)

    @verb(
        "GET",
        "/jobs:stats",
        Role.VIEWER,
        page=Page(lambda stats: stats.job, after="after"),
        gives=JOB_STATS,
        operation="list_job_stats",
    )
    async def stats_of_jobs(
        self,
        *,
        name: Annotated[str, Meta(max_length=200, description="Name, or a pattern: `import-*`")] | None = None,
        text: Annotated[str, Meta(max_length=200, description="Part of the name, in any case")] | None = None,
        kind: Annotated[str, Meta(description="python, http, command, external or pipeline")] | None = None,
        queue: Annotated[str, Meta(description="Queue of its runs")] | None = None,
        tag: Annotated[str, Meta(description="One of its tags")] | None = None,
        state: Annotated[str, Meta(description="State of the job, such as paused or failed")] | None = None,
        limit: LongLimit = 100,
        after: str | None = None,
    ) -> Sequence[JobStats]:
        """List the statistics of the jobs that `jobs` lists with the same conditions, in the same order."""
        chosen = JobFilter(name=name, text=text, kind=kind, queue=queue, tag=tag, state=state).checked()
        return await self.store.job_views.stats(chosen, self._declared(), limit, after)

    @verb(
        "POST",
        "/jobs/{name}/pause",
        Role.OPERATOR,
        optional_body=True,
        takes={"reason": "the site is down"},
        gives={**JOB_STATUS, "state": "paused"},
    )
    async def pause_job(self, name: str, *, reason: Reason = None, actor: str | None = None) -> JobStatus:
        """Pause a job: no run of it starts and its schedules do not fire until it is resumed. Running runs continue. A
        cancelled job refuses it."""
        await self.store.pause_job(name, reason, checked_actor(actor), declared=self.registry.newest)
        return await self.job_status(name)

    @verb(
        "POST",
        "/jobs/{name}/resume",
        Role.OPERATOR,
        optional_body=True,
        takes={"catch_up": "latest"},
        gives=JOB_STATUS,
    )
    async def resume_job(self, name: str, *, catch_up: CatchUp = "skip", actor: str | None = None) -> JobStatus:
        """Resume a job that is paused or cancelled, with its schedules. `catch_up` says which plan times that passed
        meanwhile still run: none (`skip`), the `latest`, or `all`."""
        mode = resume_mode(catch_up)
        await self.store.resume_job(name, mode, checked_actor(actor), declared=self.registry.newest)
        return await self.job_status(name)

    @verb(
        "POST",
        "/jobs/{name}/cancel",
        Role.OPERATOR,
        optional_body=True,
        takes={"reason": "no longer needed"},
        gives={"job": "crawl", "cancelled": 3, "status": CANCELLED_STATUS, "schedules": ["nightly"]},
    )
    async def cancel_job(self, name: str, *, reason: Reason = None, actor: str | None = None) -> CancelledJob:
        """Cancel a job: its live runs end, and until it is resumed its schedules rest and none of its runs begins.

        Raise `JobRefuses` if nothing of it is live or planned, or it is cancelled already.
        """
        done = await self.store.cancel_job(name, reason, checked_actor(actor), declared=self.registry.newest)
        counters = self.meters.of[name, (await self._definition(name)).queue]
        counters.cancels.add(done.total)
        counters.runs[RunState.CANCELLED].add(done.ended)
        assert done.facts is not None
        return CancelledJob(name, done.total, status_of(done.facts), done.schedules)

    @verb(
        "GET",
        "/queues",
        Role.VIEWER,
        page=Page(lambda queue: queue.queue, after="after"),
        gives=QUEUE,
        operation="list_queues",
    )
    async def queues(self, *, limit: LongLimit = 100, after: str | None = None) -> Sequence[Queue]:
        """List queues by name, with their running, queued and scheduled runs; empty ones that jobs name, too. `after`
        is the last name of the previous page."""
        return await self.store.job_views.queues(self._declared(), limit, after)

    @verb(
        "POST",
        "/queues/{name}/pause",
        Role.OPERATOR,
        names={"queue": "name"},
        optional_body=True,
        takes={"reason": "the relay is down"},
        gives=QUEUE,
    )
    async def pause_queue(
        self,
        queue: str,
        *,
        reason: Reason = None,
        force: Annotated[bool, Meta(description="Also one that no job names, and that has no runs")] = False,
        actor: str | None = None,
    ) -> Queue:
        """Pause a queue: nothing is claimed from it until it is resumed. Running runs continue.

        Raise `UnknownQueue` for one that no job names and that has no runs, unless `force` is given.
        """
        if not force:
            known = await self.store.job_views.queue_names(self._declared())
            if queue not in known:
                raise UnknownQueue(checked_name(queue, "queue"), known)
        return await self.store.pause_queue(checked_name(queue, "queue"), reason, checked_actor(actor))

    @verb(
        "POST",
        "/queues/{name}/resume",
        Role.OPERATOR,
        names={"queue": "name"},
        gives={**QUEUE, "was_paused": True},
    )
    async def resume_queue(self, queue: str, *, actor: str | None = None) -> ResumedQueue:
        """Resume a queue."""
        was_paused = await self.store.resume_queue(checked_name(queue, "queue"), checked_actor(actor))
        state = await self.store.queue(queue)
        return ResumedQueue(
            state.queue,
            state.running,
            state.queued,
            state.scheduled,
            None,
            state.oldest_at,
            state.live_limit,
            was_paused=was_paused,
        )

    @verb("GET", "/scheduler/metrics", Role.VIEWER, operation="get_scheduler_metrics")
    async def scheduler_metrics(self) -> SchedulerMetrics:
        """Return totals over all jobs and executions, which are the same from every server. They are counted at most
        every 30 seconds."""
        return metrics_of(await self.store.executions.scheduler())

    @verb(
        "POST",
        "/jobs:bulk",
        Role.OPERATOR,
        names={"job_filter": "filter"},
        takes={"action": "pause", "filter": {"tag": "billing"}, "reason": "maintenance", "expected": 12},
        gives={"matched": 3, "done": 3, "refused": []},
        operation="bulk_jobs",
    )
    async def change_jobs(
        self,
        action: Annotated[str, Meta(extra_json_schema={"enum": list(JobAction)})],
        job_filter: JobFilter | None = None,
        *,
        expected: Count | None = None,
        everything: bool = False,
        reason: Reason = None,
        catch_up: CatchUp = "skip",
        dry_run: bool = False,
        actor: str | None = None,
    ) -> BulkResult:
        """Pause, resume, cancel or retry all jobs that match a filter. If more than `expected` match, raise
        `BulkMismatch` and change nothing.

        An empty filter needs `everything`. With `dry_run`, only count. `reason` is for pause and cancel, `catch_up` for
        resume. Jobs that refuse it are counted in the result, such as those that have nothing to retry.
        """
        act = job_action(action)
        resume_mode(catch_up)
        checked_actor(actor)
        names = await self._matching(checked_filter(job_filter, act, everything=everything))
        if expected is not None and len(names) > expected:
            raise BulkMismatch(expected, "jobs")
        result = BulkResult(len(names))
        for name in () if dry_run else names:
            try:
                await self._act_on(act, name, reason, catch_up, actor)
            except Unavailable:  # the others would fail as well
                raise
            except RotaError as error:
                result = result.after(1, {name: error})
            else:
                result = result.after(1, {})
        return result

    async def _matching(self, job_filter: JobFilter) -> list[str]:
        names: list[str] = []
        while page := await self.store.job_views.page(
            job_filter, self._declared(), _BITE, names[-1] if names else None
        ):
            names += [job.name for job in page]
            if len(page) < _BITE:
                break
        return names

    async def _act_on(
        self, action: JobAction, name: str, reason: str | None, catch_up: str, actor: str | None
    ) -> object:
        match action:
            case JobAction.PAUSE:
                return await self.pause_job(name, reason=reason, actor=actor)
            case JobAction.RESUME:
                return await self.resume_job(name, catch_up=catch_up, actor=actor)
            case JobAction.CANCEL:
                return await self.cancel_job(name, reason=reason, actor=actor)
            case JobAction.RETRY:
                return await self.retry_job(name, actor=actor)
            case _:
                assert_never(action)
