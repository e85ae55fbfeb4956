"""`client.quotas` over HTTP."""

from rota.client.limits.quotas import QuotasClient
from rota.remote.verbs import Remote


class RemoteQuotas(Remote, QuotasClient):
    """Quotas of scopes."""
