"""Store operations on tokens and sessions. The database holds digests of their secrets only."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from rota.core.access.roles import Credential, NewToken, Role, Token
from rota.errors import Conflict, UnknownToken
from rota.store.databases.database import Database, Tx
from rota.store.ledger import audit
from rota.values.instants import instant, maybe_instant
from rota.values.scope import Scope

_STALE = 60_000_000
"""Microseconds. `used_at` is written at most this often, so that reading a token rarely causes a write."""


class TokenRow(msgspec.Struct, frozen=True):
    """A token that is valid now. `stale`: `used_at` is due to be written again."""

    token: Token
    stale: bool


class _Columns(NamedTuple):
    """The columns of `tokens`, and those that `token_of` and `token_of_session` add, in their order."""

    id: str
    name: str
    role: str
    scope_kind: str | None
    scope_id: str
    created_at: int
    created_by: str | None
    expires_at: int | None
    revoked_at: int | None
    revoked_by: str | None
    used_at: int | None
    digest: str = ""
    valid: int = 0
    stale: int = 0


class TokenStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewToken, actor: str | None) -> Token:
        async def body(tx: Tx) -> Token:
            holders = [id for (id,) in await tx.fetch("active_token_named", name=new.name)]
            # A repetition after an unknown commit finds its own token, and changes nothing.
            if holders and new.id not in holders:
                hint = "revoke it, or choose another name"
                raise Conflict(f"token {new.name!r} already exists", hint=hint)
            if not holders:
                scope_kind, scope_id = (new.scope.kind, new.scope.id) if new.scope else (None, None)
                await tx.fetch(
                    "insert_token",
                    id=new.id,
                    name=new.name,
                    digest=new.digest,
                    role=new.role.value,
                    scope_kind=scope_kind,
                    scope_id=scope_id,
                    actor=actor,
                    life=new.life,
                )
                details = {"role": new.role.value, "token": new.id}
                await audit.note(tx, "token", new.name, "created", actor, details)
            return await _get(tx, new.id)

        return await self._database.transact(body)

    async def list(self) -> list[Token]:
        async def body(tx: Tx) -> list[Token]:
            return [_token(_Columns(*row)) for row in await tx.fetch("tokens")]

        return await self._database.read(body)

    async def revoke(self, id_or_name: str, actor: str | None) -> Token:
        """Revoke a token by id or name, and end its sessions.

        Idempotent: a token that is revoked already stays as it was. An id wins over a name, an active token over
        revoked ones of the same name, and of several revoked ones the newest.
        """

        async def body(tx: Tx) -> Token:
            tokens = [_token(_Columns(*row)) for row in await tx.fetch("tokens")]
            matches = [token for token in tokens if token.id == id_or_name]
            matches = matches or [token for token in tokens if token.name == id_or_name and token.revoked_at is None]
            matches = matches or [token for token in tokens if token.name == id_or_name][-1:]
            if not matches:
                raise UnknownToken(id_or_name, [token.name for token in tokens if token.revoked_at is None])
            token = matches[0]
            # Only the transaction that revokes it gets a row back: a repetition notes nothing.
            if await tx.fetch("revoke_token", id=token.id, actor=actor):
                await tx.fetch("drop_sessions_of", id=token.id)
                await audit.note(tx, "token", token.name, "revoked", actor, {"token": token.id})
            return await _get(tx, token.id)

        return await self._database.transact(body)

    async def find(self, credential: Credential) -> TokenRow | None:
        """Return the token of a credential, or None if it is unknown, expired or revoked, or the secret is wrong."""

        async def body(tx: Tx) -> TokenRow | None:
            for row in await tx.fetch("token_of", id=credential.id, stale=_STALE):
                columns = _Columns(*row)
                return _valid(columns) if credential.fits(columns.digest) else None
            return None

        return await self._database.read(body)

    async def find_session(self, digest: str) -> TokenRow | None:
        async def body(tx: Tx) -> TokenRow | None:
            for row in await tx.fetch("token_of_session", digest=digest, stale=_STALE):
                return _valid(_Columns(*row))
            return None

        return await self._database.read(body)

    async def used(self, id: str) -> None:
        await self._database.transact(lambda tx: tx.fetch("token_used", id=id))

    async def open_session(self, token: Token, digest: str, life: int, most: int) -> bool:
        """Open a session of a token; return False if `most` are open already."""

        async def body(tx: Tx) -> bool:
            await tx.fetch("drop_old_sessions")
            if len(await tx.fetch("sessions_of", id=token.id, most=most)) >= most:
                return False
            await tx.fetch("insert_session", digest=digest, id=token.id, life=life)
            await audit.note(tx, "token", token.name, "signed_in", f"token:{token.name}", {"token": token.id})
            return True

        return await self._database.transact(body)

    async def close_session(self, digest: str) -> None:
        async def body(tx: Tx) -> None:
            for (name,) in await tx.fetch("drop_session", digest=digest):
                await audit.note(tx, "token", name, "signed_out", f"token:{name}", {})

        await self._database.transact(body)

    async def note_refused(self, address: str, through: str | None) -> None:
        """Note that this address sent a wrong credential, by way of a proxy."""

        async def body(tx: Tx) -> None:
            await audit.note(tx, "token", address, "refused", None, {"through": through})

        await self._database.transact(body)


async def _get(tx: Tx, id: str) -> Token:
    (row,) = await tx.fetch("token_of", id=id, stale=_STALE)
    return _token(_Columns(*row))


def _valid(row: _Columns) -> TokenRow | None:
    return TokenRow(_token(row), bool(row.stale)) if row.valid else None


def _token(row: _Columns) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        scope=None if row.scope_kind is None else Scope(row.scope_kind, row.scope_id),
        created_at=instant(row.created_at),
        created_by=row.created_by,
        expires_at=maybe_instant(row.expires_at),
        revoked_at=maybe_instant(row.revoked_at),
        revoked_by=row.revoked_by,
        used_at=maybe_instant(row.used_at),
    )
