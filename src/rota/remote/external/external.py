"""`client.external` over HTTP."""

from __future__ import annotations

import secrets
from typing import Any

from rota.client.external.external import ExternalClient
from rota.core.external.external import identity_of
from rota.remote.transport import Transport
from rota.remote.verbs import Remote


class RemoteExternal(Remote, ExternalClient):
    """Worker protocol for external jobs. Every verb but `claim` acts on one run under its fence. A stale fence raises
    `LeaseLost` and changes nothing.

    Reports under a fence are idempotent, and are repeated if the server is briefly unavailable.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._boot = secrets.token_hex(6)

    def _completed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Tell this client's workers from those of others with the same names."""
        if "worker" not in arguments:
            return arguments
        return {**arguments, "worker": identity_of(arguments["worker"], self._boot).id}
