"""Parts of the client: the classes whose methods are its verbs, by the attribute of the client that holds each."""

from __future__ import annotations

from rota.client.access.tokens import TokensClient
from rota.client.alerts.expectations import ExpectationsClient
from rota.client.alerts.notifications import NotificationsClient
from rota.client.external.external import ExternalClient
from rota.client.jobs.data_jobs import DataJobsClient
from rota.client.limits.quotas import QuotasClient
from rota.client.monitoring.attention import AttentionClient
from rota.client.monitoring.database import DatabaseClient
from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.client.monitoring.monitoring import MonitoringClient
from rota.client.own_verbs import OwnVerbs
from rota.client.schedules.schedules import SchedulesClient
from rota.client.workers.workers import WorkersClient
from rota.verbs.verb import Declared, verbs_of

PARTS: dict[str, type] = {
    "": OwnVerbs,
    "schedules": SchedulesClient,
    "workers": WorkersClient,
    "tokens": TokensClient,
    "quotas": QuotasClient,
    "external": ExternalClient,
    "expectations": ExpectationsClient,
    "notifications": NotificationsClient,
    "data_jobs": DataJobsClient,
    "monitoring": MonitoringClient,
    "attention": AttentionClient,
    "error_groups": ErrorGroupsClient,
    "database": DatabaseClient,
}
"""`""` is the client itself."""


def all_verbs() -> list[Declared]:
    """List every declared verb."""
    return [declared for part, kind in PARTS.items() for declared in verbs_of(kind, part)]
