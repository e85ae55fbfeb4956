"""`client.monitoring` over HTTP."""

from rota.client.monitoring.monitoring import MonitoringClient
from rota.remote.verbs import Remote


class RemoteMonitoring(Remote, MonitoringClient):
    """Data for dashboards: overview, charts and timeline."""
