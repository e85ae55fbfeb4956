"""Every question and command about tokens: `client.tokens`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta

from rota.core.access.roles import Issued, Role, Token, credential_of, digest_of, role_of, token_text
from rota.core.runs.options import scope_of
from rota.errors import Invalid
from rota.store import Store
from rota.store.access.tokens import NewToken, TokenRow
from rota.values.actor import checked_actor
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.names import checked_name
from rota.values.scope import Scope

_LIFE = timedelta(days=90)
_SESSION = timedelta(hours=12)


class TokensClient:
    def __init__(self, store: Store) -> None:
        self._store = store

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
        life = None if expires is None else parse_duration(expires)
        if life is not None and life <= timedelta(0):
            raise Invalid("a token must live longer than nothing", hint="expires=None lets it live for ever")
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        new = NewToken(
            id=id,
            name=checked_name(name, "token name"),
            digest=digest_of(secret),
            role=role_of(role),
            scope=None if scope is None else scope_of(scope),
            life=None if life is None else in_micros(life),
        )
        return Issued(await self._store.tokens.create(new, checked_actor(actor)), token_text(id, secret))

    async def list(self) -> Sequence[Token]:
        """All that ever were, oldest first."""
        return await self._store.tokens.list()

    async def revoke(self, who: str, *, actor: str | None = None) -> Token:
        """By id or name. Servers know of it within seconds."""
        return await self._store.tokens.revoke(who, checked_actor(actor))

    async def check(self, text: str) -> Token | None:
        """The token that this text is, if it is good now."""
        credential = credential_of(text)
        return None if credential is None else await self._noted(await self._store.tokens.find(credential))

    async def check_session(self, text: str) -> Token | None:
        """Whose session a cookie is; None if it is over."""
        return await self._noted(await self._store.tokens.find_session(digest_of(text)))

    async def open_session(self, token: Token) -> str:
        """What the browser keeps of it: good for half a day, or until the token is not."""
        text = secrets.token_urlsafe(32)
        await self._store.tokens.open_session(token.id, digest_of(text), in_micros(_SESSION))
        return text

    async def close_session(self, text: str) -> None:
        """End a session."""
        await self._store.tokens.close_session(digest_of(text))

    async def _noted(self, found: TokenRow | None) -> Token | None:
        if found is None:
            return None
        if found.stale:
            await self._store.tokens.used(found.token.id)
        return found.token
