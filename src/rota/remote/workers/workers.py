"""`client.workers` over HTTP."""

from rota.client.workers.workers import WorkersClient
from rota.remote.verbs import Remote, local


class RemoteWorkers(Remote, WorkersClient):
    """Workers, by id, the unique beginning of one, or name; a name stands for all workers of that name."""

    find = local(WorkersClient.find)
