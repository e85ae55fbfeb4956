"""Roles, identities and API tokens."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from enum import StrEnum

import msgspec

from rota.errors import Forbidden, Invalid, did_you_mean
from rota.values.scope import Scope

_MARK = "rota"  # prefix of every token, so that secret scanners recognize one


class Role(StrEnum):
    """Role of a token: `viewer` < `operator` < `admin`; `worker` and `enqueue` may do only that."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"
    ENQUEUE = "enqueue"


_MAY: dict[Role, frozenset[Role]] = {
    Role.VIEWER: frozenset({Role.VIEWER}),
    Role.OPERATOR: frozenset({Role.VIEWER, Role.OPERATOR, Role.ENQUEUE}),
    Role.ADMIN: frozenset(Role),
    Role.WORKER: frozenset({Role.WORKER}),
    Role.ENQUEUE: frozenset({Role.ENQUEUE}),
}


class Identity(msgspec.Struct, frozen=True):
    """Authenticated caller, as recorded with its changes; with a scope, restricted to runs of it."""

    actor: str
    """Name under which the caller's changes are recorded."""
    role: Role
    scope: Scope | None = None
    """Only runs of this scope may be accessed; null for all."""

    def may(self, needed: Role) -> bool:
        return needed in _MAY[self.role]

    def require(self, needed: Role) -> None:
        if not self.may(needed):
            raise Forbidden(
                f"{self.actor} has the role {self.role.value}, which may not do this", f"needs {needed.value}"
            )


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """Token of a caller, without its secret."""

    id: str
    name: str
    """Name of the token, as the audit log shows it."""
    role: Role
    scope: Scope | None
    """Only runs of this scope may be accessed; null for all."""
    created_at: datetime
    created_by: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    used_at: datetime | None

    @property
    def identity(self) -> Identity:
        return Identity(f"token:{self.name}", self.role, self.scope)


class Issued(msgspec.Struct, frozen=True):
    """Newly created token; `secret` is its whole text, shown only now: only its digest is stored."""

    token: Token
    secret: str


class Credential(msgspec.Struct, frozen=True):
    """Parsed text of a token: the id that it claims, and the digest to compare."""

    id: str
    digest: str

    def fits(self, digest: str) -> bool:
        # In constant time: the answer must not reveal how much of the digest matches.
        return hmac.compare_digest(self.digest, digest)


def role_of(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        hint = did_you_mean(text, [role.value for role in Role])
        raise Invalid(f"no role is called {text!r:.80}", hint=hint) from None


def token_text(id: str, secret: str) -> str:
    return f"{_MARK}_{id}_{secret}"


def digest_of(secret: str) -> str:
    """Hash a token's secret. Plain SHA-256 is enough: the secret is random and long, and cannot be guessed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def credential_of(text: str) -> Credential | None:
    """Parse a token; None if the text does not have its form."""
    prefix, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    if prefix != _MARK or not id or not secret or len(text) > 200 or not text.isascii():
        return None
    return Credential(id, digest_of(secret))


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    digest: str
    role: Role
    scope: Scope | None
    life: int | None  # microseconds
