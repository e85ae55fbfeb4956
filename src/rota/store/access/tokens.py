"""Store operations on tokens and sessions. The database holds digests of their secrets only."""

from __future__ import annotations

import msgspec

from rota.core.access.roles import Credential, Role, Token
from rota.errors import Conflict, UnknownToken
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.values.instants import instant, maybe_instant
from rota.values.scope import Scope

_STALE = 60_000_000
"""Microseconds. `used_at` is written at most this often, so that reading a token rarely causes a write."""


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    digest: str
    role: Role
    scope: Scope | None
    life: int | None  # microseconds


class TokenRow(msgspec.Struct, frozen=True):
    """A token that is valid now. `stale`: `used_at` is due to be written again."""

    token: Token
    stale: bool


class TokenStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewToken, actor: str | None) -> Token:
        async def body(tx: Tx) -> Token:
            taken = await tx.fetch("active_token_named", name=new.name)
            if taken and taken[0][0] != new.id:
                hint = "revoke it, or choose another name"
                raise Conflict(f"there is a token called {new.name!r} already", hint=hint)
            if not taken:
                scope = (new.scope.kind, new.scope.id) if new.scope else (None, None)
                await tx.fetch(
                    "insert_token",
                    id=new.id,
                    name=new.name,
                    digest=new.digest,
                    role=new.role.value,
                    scope_kind=scope[0],
                    scope_id=scope[1],
                    actor=actor,
                    life=new.life,
                )
                told = {"role": new.role.value, "token": new.id}
                await audit.note(tx, "token", new.name, "created", actor, told)
            return _token((await tx.fetch("token_of", id=new.id, stale=_STALE))[0])

        return await self._database.transact(body)

    async def list(self) -> list[Token]:
        async def body(tx: Tx) -> list[Token]:
            return [_token(row) for row in await tx.fetch("tokens")]

        return await self._database.read(body)

    async def revoke(self, who: str, actor: str | None) -> Token:
        """Revoke a token by id or name, and end its sessions.

        Idempotent: a token that is revoked already stays as it was. An id wins over a name, an active token over
        revoked ones of the same name, and of several revoked ones the newest.
        """

        async def body(tx: Tx) -> Token:
            known = [_token(row) for row in await tx.fetch("tokens")]
            meant = [token for token in known if token.id == who]
            meant = meant or [token for token in known if token.name == who and token.revoked_at is None]
            meant = meant or [token for token in known if token.name == who][-1:]
            if not meant:
                raise UnknownToken(who, [token.name for token in known if token.revoked_at is None])
            id = meant[0].id
            if await tx.fetch("revoke_token", id=id, actor=actor):
                await tx.fetch("drop_sessions_of", id=id)
                await audit.note(tx, "token", meant[0].name, "revoked", actor, {"token": id})
            return _token((await tx.fetch("token_of", id=id, stale=_STALE))[0])

        return await self._database.transact(body)

    async def find(self, credential: Credential) -> TokenRow | None:
        """Return the token of a credential, or None if it is unknown, expired or revoked, or the secret is wrong."""

        async def body(tx: Tx) -> TokenRow | None:
            rows = await tx.fetch("token_of", id=credential.id, stale=_STALE)
            return _found(rows[0]) if rows and credential.fits(rows[0][11]) else None

        return await self._database.read(body)

    async def find_session(self, digest: str) -> TokenRow | None:
        async def body(tx: Tx) -> TokenRow | None:
            rows = await tx.fetch("token_of_session", digest=digest, stale=_STALE)
            return _found(rows[0]) if rows else None

        return await self._database.read(body)

    async def used(self, id: str) -> None:
        await self._database.transact(lambda tx: tx.fetch("token_used", id=id))

    async def open_session(self, id: str, digest: str, life: int) -> None:
        async def body(tx: Tx) -> None:
            await tx.fetch("drop_old_sessions")
            await tx.fetch("insert_session", digest=digest, id=id, life=life)

        await self._database.transact(body)

    async def close_session(self, digest: str) -> None:
        await self._database.transact(lambda tx: tx.fetch("drop_session", digest=digest))


def _found(row: Row) -> TokenRow | None:
    good, stale = row[12:14]
    return TokenRow(_token(row), bool(stale)) if good else None


def _token(row: Row) -> Token:
    id, name, role, kind, scope_id, created_at, created_by, expires_at, revoked_at, revoked_by, used_at = row[:11]
    return Token(
        id=id,
        name=name,
        role=Role(role),
        scope=None if kind is None else Scope(kind, scope_id),
        created_at=instant(created_at),
        created_by=created_by,
        expires_at=maybe_instant(expires_at),
        revoked_at=maybe_instant(revoked_at),
        revoked_by=revoked_by,
        used_at=maybe_instant(used_at),
    )
