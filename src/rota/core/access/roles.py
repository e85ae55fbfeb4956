"""Who may do what: roles, identities, and tokens as text that is shown once."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from enum import StrEnum

import msgspec

from rota.errors import Forbidden, Invalid, did_you_mean
from rota.values.scope import Scope

_MARK = "rota"  # before every token, so that it is recognized wherever it turns up


class Role(StrEnum):
    """`viewer` < `operator` < `admin`; `worker` and `enqueue` may do their one thing only."""

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
    """Who asks, as it is kept with what they change; with a scope, only for runs of it."""

    actor: str
    role: Role
    scope: Scope | None = None

    def may(self, needed: Role) -> bool:
        return needed in _MAY[self.role]

    def require(self, needed: Role) -> None:
        if not self.may(needed):
            raise Forbidden(f"{self.actor} is {self.role.value}, which may not do this", f"it needs {needed.value}")


class Token(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    role: Role
    scope: Scope | None
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
    """`secret` is the token's whole text, told this once: only its digest is kept."""

    token: Token
    secret: str


class Credential(msgspec.Struct, frozen=True):
    """A token's text taken apart: whose it claims to be, and the digest that has to fit."""

    id: str
    digest: str

    def fits(self, digest: str) -> bool:
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
    """Plain SHA-256 is enough: the secret is random and long, nobody has to guess a word."""
    return hashlib.sha256(secret.encode()).hexdigest()


def credential_of(text: str) -> Credential | None:
    """None if it is no token of ours at all."""
    prefix, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    if prefix != _MARK or not id or not secret or len(text) > 200 or not text.isascii():
        return None
    return Credential(id, digest_of(secret))
