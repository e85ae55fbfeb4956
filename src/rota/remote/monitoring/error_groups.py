"""`client.error_groups` over HTTP."""

from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.remote.verbs import Remote


class RemoteErrorGroups(Remote, ErrorGroupsClient):
    """Failed runs grouped by error."""
