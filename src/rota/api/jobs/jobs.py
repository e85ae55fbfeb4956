"""`/api/v1/jobs` and `/api/v1/queues`: list them with their status, and control them as a whole."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.redaction import all_shown
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared, joined
from rota.api.operations.run_filter import RunListQuery, filter_of
from rota.api.operations.verb_operation import routes_of
from rota.client.jobs.data_jobs import DataJobsClient
from rota.client.jobs.jobs import JobVerbs
from rota.client.own_verbs import OwnVerbs
from rota.client.runs.pages import cursor_below, run_before
from rota.core.access.roles import Role
from rota.core.runs.run import Run
from rota.errors import Invalid
from rota.verbs.examples import RUN


@operation(Role.VIEWER, query=RunListQuery, answers=Run, lists=True, gives=RUN)
async def list_job_runs(request: Request) -> Response:
    """List the runs of a job, newest first."""
    query = checked_query(request, RunListQuery)
    name = request.path_params["name"]
    run_filter = filter_of(request, query)
    if run_filter.job not in (None, name):
        raise Invalid(f"job is {run_filter.job!r:.80}, but the path says {name!r:.80}")
    client = await client_of(request)
    runs = await client.page(
        msgspec.structs.replace(run_filter, job=name), limit=query.limit, before=run_before(query.cursor)
    )
    if not runs.runs:
        await client.job_status(name)  # raises if there is no such job
    return answer(page(all_shown(request, runs.runs), cursor_below(runs.next)))


ROUTES = joined(
    [
        *routes_of(JobVerbs),
        *routes_of(DataJobsClient, "data_jobs"),
        *routes_of(OwnVerbs, below="/jobs/{name}/retry"),
        declared("/jobs/{name}/runs", GET=list_job_runs),
    ]
)
