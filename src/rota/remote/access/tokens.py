"""`client.tokens` over HTTP."""

from rota.client.access.tokens import TokensClient
from rota.remote.verbs import Remote


class RemoteTokens(Remote, TokensClient):
    """API tokens of a server. Checking them is the server's own business."""
