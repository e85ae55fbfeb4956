"""`client.data_jobs` over HTTP."""

from __future__ import annotations

from rota.client.jobs.data_jobs import DataJobsClient
from rota.remote.verbs import Remote


class RemoteDataJobs(Remote, DataJobsClient):
    """Jobs defined as data instead of code, over HTTP."""
