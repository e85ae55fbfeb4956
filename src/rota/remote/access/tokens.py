"""`client.tokens` over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from rota.core.access.roles import Issued, Role, Token, role_of
from rota.core.runs.options import scope_of
from rota.remote.decode import items, read
from rota.remote.encode import duration
from rota.remote.transport import Transport, path_of
from rota.values.durations import Duration
from rota.values.scope import Scope

_LIFE = timedelta(days=90)
_NEVER = "never"


class _Secret(msgspec.Struct):
    secret: str


class RemoteTokens:
    """API tokens of a server. Checking them is the server's own business."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self,
        name: str,
        role: str | Role,
        *,
        expires: Duration | None = _LIFE,
        scope: Scope | tuple[str, str] | None = None,
        actor: str | None = None,
    ) -> Issued:
        """Create a token and return it with its secret, which is not stored and cannot be read again.

        The token expires after `expires` (None: never). With a `scope`, it only gives access to runs of that scope.
        """
        only_scope = None if scope is None else scope_of(scope)
        body = {
            "name": name,
            "role": role_of(role).value,
            "expires": _NEVER if expires is None else duration(expires),
            "scope": None if only_scope is None else {"kind": only_scope.kind, "id": only_scope.id},
        }
        issued = (await self._transport.ask("POST", path_of("tokens"), body=body)).body
        return Issued(read(issued, Token), read(issued, _Secret).secret)

    async def list(self) -> Sequence[Token]:
        """List all tokens, oldest first, including revoked and expired ones."""
        return items((await self._transport.ask("GET", path_of("tokens"))).body, Token)

    async def revoke(self, id_or_name: str, *, actor: str | None = None) -> Token:
        """Revoke a token by id or name. Servers cache tokens, so it takes effect within seconds."""
        return read((await self._transport.ask("POST", path_of("tokens", id_or_name, "revoke"))).body, Token)
