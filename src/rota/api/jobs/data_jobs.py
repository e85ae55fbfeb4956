"""`/api/v1/jobs`: create, change and delete data jobs while workers run."""

from __future__ import annotations

from typing import Any, assert_never
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.http.problems import payload_at
from rota.api.jobs.bodies import JobBody, NewJobBody, all_options, kind_of, options_in, runs_at_once, schedule_in
from rota.api.operations.operation import operation
from rota.api.operations.query import OwnerQuery, checked_query
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, at, require_revision
from rota.client.client import Client
from rota.core.access.roles import Role
from rota.core.jobs.job import JobDefinition, JobKind
from rota.core.jobs.job import kind_of as stored_kind
from rota.core.jobs.status import JobStatus
from rota.core.schedules.documents import parse
from rota.core.schedules.view import view
from rota.errors import Conflict, UnknownJob
from rota.values.durations import worded
from rota.verbs.examples import JOB, SCHEDULE
from rota.verbs.revisions import etag


class DeleteJobQuery(msgspec.Struct):
    """`force` deletes the job even while it is used: its schedules are disabled and its runs cancelled."""

    force: bool = False


def document(definition: JobDefinition, status: JobStatus) -> dict[str, Any]:
    """Return a job with its status, as JSON."""
    return {**worded(definition), "status": worded(status)}


async def job_response(client: Client, definition: JobDefinition, status: int = 200, **more: object) -> Response:
    """Build the response for a job, with its version as `ETag` for optimistic locking."""
    headers = {"etag": etag(definition.version)}
    if status == 201:
        headers["location"] = at(f"/api/v1/jobs/{quote(definition.name, safe='')}")
    return answer({**document(definition, await client.job_status(definition.name)), **more}, status, headers)


@operation(
    Role.ADMIN,
    query=OwnerQuery,
    body=NewJobBody,
    answers=dict[str, Any],
    status=201,
    also=(200,),
    takes={
        "name": "ping",
        "url": "https://example.com/health",
        "max_retries": 3,
        "interval_minutes": 30,
        "interval_type": "minutes",
        "schedule_enabled": True,
    },
    gives={**JOB, "schedule": SCHEDULE, "run": None},
)
async def create_job(request: Request) -> Response:
    """Create a data job: an HTTP request, a command, or an external job; optionally with a schedule.

    All or nothing. Repeating the identical request creates nothing (200). The answer's `schedule` and `run` are those
    created with the job. The schedule is deleted with the job.
    """
    body = shaped(await json_body(request), NewJobBody)
    kind, options, document_of_schedule = kind_of(body), options_in(body), schedule_in(body)
    parsed = None if document_of_schedule is None else parse(document_of_schedule)
    client, actor = await client_of(request), identity_of(request).actor
    owner = checked_query(request, OwnerQuery).owner
    run = (body.payload or {}) if runs_at_once(body) else None
    with payload_at("$.schedule.payload" if parsed is not None and body.payload is None else "$.payload"):
        created = await client.data_jobs.create_with(
            body.name, kind, options, schedule=parsed, run=run, owner=owner, actor=actor
        )
    schedule = None if parsed is None else view(await client.schedules.get(parsed.name), now=await client.time())
    first = None if created.run is None else await client.get(created.run.id)
    return await job_response(client, created.job, 201 if created.new else 200, schedule=schedule, run=first)


async def _exists(client: Client, name: str) -> bool:
    try:
        await client.job(name)
    except UnknownJob:
        return False
    return True


@operation(
    Role.ADMIN,
    body=JobBody,
    answers=dict[str, Any],
    also=(201,),
    takes={"url": "https://example.com/health", "timeout": "3s"},
    gives=JOB,
)
async def replace_job(request: Request) -> Response:
    """Create or replace a data job.

    Options that the body does not name have their defaults. With `If-Match`, only if the job still has that `ETag`;
    with `If-None-Match: *`, only if there is none.
    """
    body, name = shaped(await json_body(request), JobBody), request.path_params["name"]
    kind, options = kind_of(body), options_in(body)
    client, actor = await client_of(request), identity_of(request).actor
    if not await _exists(client, name):
        require_revision(request, None)
        return await job_response(client, await client.data_jobs.create(name, kind, actor=actor, **options), 201)
    old = await client.job(name)
    require_revision(request, old.version)
    if request.headers.get("if-none-match") == "*":
        raise Conflict(f"there is a job {name!r} already")
    _require_kind(old, kind)
    all_given = {**all_options(kind), **options}
    changed = await client.data_jobs.update(name, actor=actor, expected=_expected(request, old), **all_given)
    return await job_response(client, changed)


@operation(Role.ADMIN, body=JobBody, answers=dict[str, Any], takes={"timeout": None, "enabled": False}, gives=JOB)
async def update_job(request: Request) -> Response:
    """Update some options of a data job.

    Runs that are already enqueued keep their version. With `If-Match`, only if the job still has that `ETag`.
    """
    body, name = shaped(await json_body(request), JobBody), request.path_params["name"]
    client = await client_of(request)
    old = await client.job(name)
    require_revision(request, old.version)
    if body.kind is not msgspec.UNSET:
        _require_kind(old, body.kind)
    changed = await client.data_jobs.update(
        name, actor=identity_of(request).actor, expected=_expected(request, old), **options_in(body)
    )
    return await job_response(client, changed)


def _require_kind(old: JobDefinition, kind: str) -> None:
    stored = stored_kind(old.kind)
    match stored:
        case JobKind.PYTHON:  # a job in code is refused later, with a better message
            pass
        case JobKind.HTTP | JobKind.COMMAND | JobKind.EXTERNAL | JobKind.PIPELINE | None:
            if old.kind != kind:
                raise Conflict(f"job {old.name!r} is of kind {old.kind}", hint="delete it, or choose another name")
        case _:
            assert_never(stored)


def _expected(request: Request, old: JobDefinition) -> int | None:
    return old.version if "if-match" in request.headers else None


@operation(Role.ADMIN, query=DeleteJobQuery, status=204)
async def delete_job(request: Request) -> Response:
    """Delete a data job and the schedule created with it.

    Its runs are kept. A conflict while another schedule or a live run uses it, unless `force` is set.
    """
    name = request.path_params["name"]
    client = await client_of(request)
    require_revision(request, (await client.job(name)).version)
    await client.data_jobs.delete(
        name, force=checked_query(request, DeleteJobQuery).force, actor=identity_of(request).actor
    )
    return Response(status_code=204)
