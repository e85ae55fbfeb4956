"""`/api/v1/jobs` and `/api/v1/queues`: list them with their status, and control them as a whole."""

from __future__ import annotations

from rota.api.operations.routing import joined
from rota.api.operations.verb_operation import routes_of
from rota.client.jobs.data_jobs import DataJobsClient
from rota.client.jobs.jobs import JobVerbs
from rota.client.own_verbs import OwnVerbs

ROUTES = joined(
    [
        *routes_of(JobVerbs),
        *routes_of(DataJobsClient, "data_jobs"),
        *routes_of(OwnVerbs, below="/jobs/{name}/retry"),
        *routes_of(OwnVerbs, below="/jobs/{name}/runs"),
    ]
)
