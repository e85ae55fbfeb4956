"""`client.tokens` of a server."""

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
    """Who a token is good for is checked by the server itself."""

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
        """It ends after `expires`; None: never. With a `scope` it is only good for runs of that."""
        of = None if scope is None else scope_of(scope)
        body = {
            "name": name,
            "role": role_of(role).value,
            "expires": _NEVER if expires is None else duration(expires),
            "scope": None if of is None else {"kind": of.kind, "id": of.id},
        }
        made = (await self._transport.ask("POST", path_of("tokens"), body=body)).body
        return Issued(read(made, Token), read(made, _Secret).secret)

    async def list(self) -> Sequence[Token]:
        """All that ever were, oldest first."""
        return items((await self._transport.ask("GET", path_of("tokens"))).body, Token)

    async def revoke(self, who: str, *, actor: str | None = None) -> Token:
        """By id or name. Servers know of it within seconds."""
        return read((await self._transport.ask("POST", path_of("tokens", who, "revoke"))).body, Token)
