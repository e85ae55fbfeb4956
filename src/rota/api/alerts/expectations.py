"""`/api/v1/expectations`: what is expected of jobs and schedules, and which expectations are breached."""

from rota.api.operations.verb_operation import routes_of
from rota.client.alerts.expectations import ExpectationsClient

ROUTES = routes_of(ExpectationsClient, "expectations")
