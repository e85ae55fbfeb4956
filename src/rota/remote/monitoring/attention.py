"""`client.attention` over HTTP."""

from rota.client.monitoring.attention import AttentionClient
from rota.remote.verbs import Remote


class RemoteAttention(Remote, AttentionClient):
    """Items that need attention, by rules that nobody has to set up."""
