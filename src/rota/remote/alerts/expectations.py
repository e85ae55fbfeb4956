"""`client.expectations` over HTTP."""

from rota.client.alerts.expectations import ExpectationsClient
from rota.remote.verbs import Remote, local


class RemoteExpectations(Remote, ExpectationsClient):
    """Expectations of jobs and schedules: `kind` is "job" or "schedule", and `name` the name of one."""

    find = local(ExpectationsClient.find)
