"""`/api/v1/jobs`: list jobs with their status, and control a job as a whole."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import all_shown, created
from rota.api.jobs.data_jobs import create_job, delete_job, document, job_response, replace_job, update_job
from rota.api.operations.cursors import cursor_below, run_before
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of, json_body, key_of, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.api.operations.run_filter import RunListQuery, filter_of
from rota.core.access.roles import Role
from rota.core.jobs.status import JobStatus
from rota.core.monitoring.statistics import JobStats
from rota.core.runs.run import Run
from rota.errors import Invalid
from rota.verbs.examples import JOB, JOB_STATUS, RUN

Reason = Annotated[str, msgspec.Meta(max_length=1_000)]


class JobReasonBody(msgspec.Struct, forbid_unknown_fields=True):
    """An optional reason, for the audit log."""

    reason: Reason | None = None


class JobResumeBody(msgspec.Struct, forbid_unknown_fields=True):
    """`catch_up` says which plan times of the pause still run: none (`skip`), the `latest`, or `all`."""

    catch_up: str = "skip"


class CancelledJob(msgspec.Struct):
    """`cancelled` is the number of runs that ended or were asked to stop."""

    job: str
    cancelled: int
    status: JobStatus
    """State and counts of the job."""


@operation(Role.VIEWER, answers=dict[str, Any], lists=True, gives=JOB)
async def list_jobs(request: Request) -> Response:
    """List jobs by name.

    Each with its definition, the JSON Schema of its payload, and its `status`.
    """
    client = await client_of(request)
    definitions = {definition.name: definition for definition in await client.jobs()}
    statuses = {status.job: status for status in await client.job_statuses()}
    return answer(page([document(definitions[name], statuses[name]) for name in definitions if name in statuses]))


@operation(Role.VIEWER, answers=dict[str, Any], gives=JOB)
async def get_job(request: Request) -> Response:
    """Get a job: its definition and its `status`."""
    client = await client_of(request)
    return await job_response(client, await client.job(request.path_params["name"]))


@operation(
    Role.OPERATOR,
    body=JobReasonBody,
    body_optional=True,
    answers=JobStatus,
    takes={"reason": "the site is down"},
    gives={**JOB_STATUS, "state": "paused"},
)
async def pause_job(request: Request) -> Response:
    """Pause a job.

    No run of it starts and its schedules do not fire until it is resumed. Running runs continue.
    """
    body = shaped(await json_body(request, default={}), JobReasonBody)
    client = await client_of(request)
    actor = identity_of(request).actor
    return answer(await client.pause_job(request.path_params["name"], reason=body.reason, actor=actor))


@operation(
    Role.OPERATOR,
    body=JobResumeBody,
    body_optional=True,
    answers=JobStatus,
    takes={"catch_up": "latest"},
    gives=JOB_STATUS,
)
async def resume_job(request: Request) -> Response:
    """Resume a job.

    Plan times during the pause are skipped, unless `catch_up` is `latest` or `all`.
    """
    body = shaped(await json_body(request, default={}), JobResumeBody)
    client = await client_of(request)
    actor = identity_of(request).actor
    return answer(await client.resume_job(request.path_params["name"], catch_up=body.catch_up, actor=actor))


@operation(
    Role.OPERATOR, body=JobReasonBody, body_optional=True, answers=CancelledJob, takes={"reason": "no longer needed"}
)
async def cancel_job(request: Request) -> Response:
    """Disable a job's schedules and cancel its live runs."""
    body = shaped(await json_body(request, default={}), JobReasonBody)
    client = await client_of(request)
    name = request.path_params["name"]
    count = await client.cancel_job(name, reason=body.reason, actor=identity_of(request).actor)
    return answer(CancelledJob(name, count, await client.job_status(name)))


@operation(Role.OPERATOR, answers=Run, status=201, also=(200,), keyed=True, gives=RUN)
async def retry_job(request: Request) -> Response:
    """Retry the newest run of a job, if it did not succeed.

    With an `Idempotency-Key`, a repeated request is job_response with the run created the first time (200).
    """
    client = await client_of(request)
    name, actor = request.path_params["name"], identity_of(request).actor
    enqueued = await client.retry_job(name, actor=actor, idempotency_key=key_of(request))
    return created(request, await client.get(enqueued.id), new=enqueued.created)


@operation(Role.VIEWER, query=RunListQuery, answers=Run, lists=True, gives=RUN)
async def list_job_runs(request: Request) -> Response:
    """List the runs of a job, newest first."""
    query = checked_query(request, RunListQuery)
    name = request.path_params["name"]
    if query.job not in (None, name):
        raise Invalid(f"job is {query.job!r:.80}, but the path says {name!r:.80}")
    client = await client_of(request)
    await client.job(name)
    run_filter = msgspec.structs.replace(filter_of(request, query, query.scope_wanted), job=name)
    runs = await client.page(run_filter, limit=query.limit, before=run_before(query.cursor))
    return answer(page(all_shown(request, runs.runs), cursor_below(runs.next)))


@operation(Role.VIEWER, answers=JobStats)
async def get_job_stats(request: Request) -> Response:
    """Get statistics over all runs of a job that have ended, including pruned ones."""
    client = await client_of(request)
    return answer(await client.job_stats(request.path_params["name"]))


ROUTES = [
    declared("/jobs", GET=list_jobs, POST=create_job),
    declared("/jobs/{name}", GET=get_job, PUT=replace_job, PATCH=update_job, DELETE=delete_job),
    declared("/jobs/{name}/pause", POST=pause_job),
    declared("/jobs/{name}/resume", POST=resume_job),
    declared("/jobs/{name}/cancel", POST=cancel_job),
    declared("/jobs/{name}/retry", POST=retry_job),
    declared("/jobs/{name}/runs", GET=list_job_runs),
    declared("/jobs/{name}/stats", GET=get_job_stats),
]
