"""`/api/v1/overview`, `series`, `timeline`: data for dashboards. No query here scans all runs."""

from rota.api.operations.verb_operation import routes_of
from rota.client.monitoring.attention import AttentionClient

ROUTES = routes_of(AttentionClient, "attention")
