"""`client.database` over HTTP."""

from rota.client.monitoring.database import DatabaseClient
from rota.remote.verbs import Remote


class RemoteDatabase(Remote, DatabaseClient):
    """The database as such: its standing, and its acceptance as the original."""
