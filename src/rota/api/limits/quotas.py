"""`/api/v1/quotas`: limits of a scope, or of each scope of a kind, over all jobs."""

from rota.api.operations.verb_operation import routes_of
from rota.client.limits.quotas import QuotasClient

ROUTES = routes_of(QuotasClient, "quotas")
