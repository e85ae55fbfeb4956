"""`client.tokens`: create, list, revoke and check API tokens and browser sessions."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from rota.core.access.roles import Issued, NewToken, Role, Token, credential_of, digest_of, role_of, token_text
from rota.core.runs.options import scope_of
from rota.errors import Invalid, TooManySessions
from rota.values.actor import checked_actor
from rota.values.durations import Duration, format_duration, in_micros, parse_duration
from rota.values.names import checked_name
from rota.values.scope import Scope, scope_text
from rota.verbs.examples import TOKEN
from rota.verbs.pages import Page
from rota.verbs.verb import verb
from rota.verbs.wire import Answer, Wired, scope_in

if TYPE_CHECKING:
    from rota.store import Store
    from rota.store.access.tokens import TokenRow

_LIFE = timedelta(days=90)
_SESSION = timedelta(hours=12)
_MOST_SESSIONS = 100
_NEVER = "never"
_LONGEST_ADDRESS = 100


class IssuedToken(Token, frozen=True, kw_only=True):
    """A new token with its `secret`."""

    secret: str


def _written(issued: Issued) -> dict[str, Any]:
    return {**msgspec.to_builtins(issued.token), "secret": issued.secret}


def _read(plain: dict[str, Any]) -> Issued:
    return Issued(msgspec.convert(plain, Token), plain["secret"])


_ISSUED = Answer(IssuedToken, _written, _read)


def _life_text(expires: Duration | None) -> str:
    return _NEVER if expires is None else format_duration(parse_duration(expires, "expires"))


def _life_in(text: str) -> str | None:
    return None if text == _NEVER else text


class TokenScope(msgspec.Struct, forbid_unknown_fields=True):
    """Scope of a token."""

    kind: str
    """Kind of the scope, such as `account`."""
    id: str
    """Id of the scope."""


def _scope_in(scope: TokenScope | str) -> Scope:
    return scope_in(scope) if isinstance(scope, str) else Scope(scope.kind, scope.id)


def _scope_text(scope: Scope | tuple[str, str]) -> str:
    return scope_text(scope_of(scope))


class TokensClient:
    """API tokens, and the browser sessions opened with them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @verb(
        "POST",
        "/tokens",
        Role.ADMIN,
        status=201,
        answer=_ISSUED,
        takes={"name": "ci", "role": "enqueue", "expires": "30d"},
        gives={**TOKEN, "secret": "rota_5be1c0ffee00_…"},
    )
    async def create(
        self,
        name: Annotated[str, Meta(description="Name of the token, as the audit log shows it")],
        role: Annotated[str | Role, Meta(description="viewer, operator, admin, worker or enqueue")],
        *,
        expires: Annotated[
            Duration | None,
            Wired(str, _life_text, _life_in, absent=_NEVER),
            Meta(description="Time until it expires, or `never`"),
        ] = _LIFE,
        scope: Annotated[
            Scope | tuple[str, str] | None,
            Wired(TokenScope | str | None, _scope_text, _scope_in),
            Meta(description="It only gives access to runs of this scope"),
        ] = None,
        actor: str | None = None,
    ) -> Issued:
        """Create a token and return it with its secret, which is not stored and cannot be read again.

        The token expires after `expires` (None: never). With a `scope`, it only gives access to runs of that scope.
        """
        life = None if expires is None else parse_duration(expires, "expires")
        if life is not None and life <= timedelta(0):
            raise Invalid("expires must be positive", hint="expires=None creates a token that never expires")
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

    @verb("GET", "/tokens", Role.ADMIN, page=Page(lambda token: (token.created_at.isoformat(), token.id)), gives=TOKEN)
    async def list(self) -> Sequence[Token]:
        """List all tokens, oldest first, including revoked and expired ones."""
        return await self._store.tokens.list()

    @verb("POST", "/tokens/{id}/revoke", Role.ADMIN, gives=TOKEN)
    async def revoke(self, id_or_name: str, *, actor: str | None = None) -> Token:
        """Revoke a token by id or name. Servers cache tokens, so it takes effect within seconds."""
        return await self._store.tokens.revoke(id_or_name, checked_actor(actor))

    async def check(self, text: str) -> Token | None:
        """Return the token for a secret, or None if it is unknown, revoked or expired."""
        credential = credential_of(text)
        return None if credential is None else await self._record_use(await self._store.tokens.find(credential))

    async def check_session(self, text: str) -> Token | None:
        """Return the token that a session cookie belongs to, or None if the session has ended."""
        return await self._record_use(await self._store.tokens.find_session(digest_of(text)))

    async def open_session(self, token: Token) -> str:
        """Open a browser session and return its cookie value. It lasts 12 hours, and no longer than the token."""
        text = secrets.token_urlsafe(32)
        if not await self._store.tokens.open_session(token, digest_of(text), in_micros(_SESSION), _MOST_SESSIONS):
            raise TooManySessions(_MOST_SESSIONS)
        return text

    async def close_session(self, text: str) -> None:
        """End a session."""
        await self._store.tokens.close_session(digest_of(text))

    async def note_refused(self, address: str, through: str | None) -> None:
        """Note in the audit trail that an address sent a wrong token. The caller bounds how often."""
        await self._store.tokens.note_refused(address[:_LONGEST_ADDRESS] or "unknown", through)

    async def _record_use(self, row: TokenRow | None) -> Token | None:
        if row is None:
            return None
        if row.stale:
            await self._store.tokens.used(row.token.id)
        return row.token
