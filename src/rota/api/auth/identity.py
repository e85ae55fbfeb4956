"""Identify callers by a bearer token (rota's own or a JWT) or a session cookie. Without `auth`, every caller is an
admin."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from starlette.requests import Request

from rota.api.auth.jwt import JwtVerifier, looks_like_jwt
from rota.api.http.proxies import THROUGH
from rota.api.http.rejection import WrongOrigin
from rota.api.operations.request import ASKS, client_of
from rota.client.client import Client
from rota.core.access.roles import Identity, Role
from rota.errors import Denied, NotSignedIn, TooManyTries, Unavailable

COOKIE = "rota_session"
ANYBODY = Identity("api", Role.ADMIN)
_KNOWN_FOR = 2.0
_MOST_KNOWN = 10_000
_WINDOW = 60.0
_TRIES = 10
_TRIES_THROUGH = 100
_MOST_ADDRESSES = 50_000
_MOST_NOTED = 60


SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


async def identify(request: Request) -> Identity:
    """Identify the caller, once per request; `identity_of` returns it later. Raise if there are no or wrong
    credentials."""
    if not request.app.state.rota.config.auth:
        identity: Identity | None = getattr(request.app.state, "caller", ANYBODY)
    else:
        authenticator: Authenticator = request.app.state.authenticator
        credential = _credential(request)
        if credential is not None and credential[0] == "cookie":
            _require_own_page(request)
        identity = (
            None
            if credential is None
            else await authenticator.identify(credential, caller_of(request), await client_of(request))
        )
    if identity is None:
        raise NotSignedIn
    request.scope[ASKS] = identity
    return identity


def asked_by(scope: Mapping[str, Any]) -> Identity | None:
    """Return the caller's identity, or None if the request was not authenticated."""
    return scope.get(ASKS)


def identity_of(request: Request) -> Identity:
    """Return the caller's identity, found by `identify`."""
    identity: Identity = request.scope[ASKS]
    return identity


def _require_own_page(request: Request) -> None:
    """Require proof that a page of ours sent the request: browsers send cookies with requests of any page (CSRF)."""
    if request.method in SAFE_METHODS or request.headers.get("sec-fetch-site") == "same-origin":
        return
    if "origin" not in request.headers:  # the guard has refused other origins
        raise WrongOrigin("an unknown origin")


class Caller(msgspec.Struct, frozen=True):
    """A caller's address; `through` is the address of the proxy that named it."""

    address: str
    through: str | None = None


def caller_of(request: Request) -> Caller:
    return Caller(request.client.host if request.client else "", request.scope.get(THROUGH))


class FailedTries:
    """Rate limit for wrong tokens, per address: after ten within a minute, the address is refused until the first is a
    minute old."""

    def __init__(self, monotonic: Callable[[], float], most: int = _TRIES) -> None:
        self._now = monotonic
        self._most = most
        self._failed: dict[str, deque[float]] = {}

    def require_patience(self, address: str) -> None:
        """Raise `TooManyTries` if the address has failed too often."""
        if self.is_at_limit(address):
            raise TooManyTries(_WINDOW - (self._now() - self._recent(address)[0]))

    def is_at_limit(self, address: str) -> bool:
        """Return whether the address has failed too often."""
        return len(self._recent(address)) >= self._most

    def failed(self, address: str) -> None:
        """Count a failure."""
        if len(self._failed) >= _MOST_ADDRESSES:  # bounds memory; the oldest entry goes first
            self._failed.pop(next(iter(self._failed)))
        self._failed.setdefault(address, deque(maxlen=self._most)).append(self._now())

    def _recent(self, address: str) -> deque[float]:
        failed = self._failed.get(address)
        if failed is None:
            return deque()
        while failed and self._now() - failed[0] >= _WINDOW:
            failed.popleft()
        if not failed:
            del self._failed[address]
        return failed


class Authenticator:
    """Identifies callers, with a cache of two seconds so that tokens are not looked up for every request."""

    def __init__(self, monotonic: Callable[[], float], jwt_verifier: JwtVerifier | None = None) -> None:
        """Take `jwt_verifier`, which verifies JWTs, if those are accepted."""
        self._now = monotonic
        self._jwt_verifier = jwt_verifier
        self._known: dict[tuple[str, str], tuple[float, Identity]] = {}
        self._tries = FailedTries(monotonic)
        # Behind a proxy, an attacker may claim a new address each time, so failures also count per proxy, with a higher
        # limit because a proxy has many callers.
        self._through = FailedTries(monotonic, _TRIES_THROUGH)
        # The audit trail gets one line per address and minute, and a bounded number in all: nobody may fill the table.
        self._noted = FailedTries(monotonic, 1)
        self._noted_in_all = FailedTries(monotonic, _MOST_NOTED)

    async def identify(self, credential: tuple[str, str], caller: Caller, client: Client) -> Identity | None:
        """Return the identity for a credential, or None for a session that has ended; raise `Denied` for a wrong
        one."""
        cached = self._known.get(credential)
        if cached is not None and self._now() - cached[0] < _KNOWN_FOR:
            return cached[1]
        self._tries.require_patience(caller.address)
        if caller.through is not None and credential[0] != "cookie" and cached is None:
            # Only unknown bearer tokens count here. Attackers behind the same proxy, who send wrong tokens from ever
            # new addresses, must not lock out callers that are signed in.
            self._through.require_patience(caller.through)
        try:
            identity = await self._look_up(credential, client)
        except Denied:
            # Only now: until the lookup has failed, concurrent requests with the same credential count as known.
            self._known.pop(credential, None)
            self._tries.failed(caller.address)
            if caller.through is not None:
                self._through.failed(caller.through)
            await self._note(caller, client)
            raise
        if identity is None:
            self._known.pop(credential, None)
            return None
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[credential] = (self._now(), identity)
        return identity

    async def _note(self, caller: Caller, client: Client) -> None:
        """Note a refused credential in the audit trail, unless this address or all together were noted too often."""
        if self._noted.is_at_limit(caller.address) or self._noted_in_all.is_at_limit(""):
            return
        self._noted.failed(caller.address)
        self._noted_in_all.failed("")
        with suppress(Unavailable):  # the caller is refused all the same
            await client.tokens.note_refused(caller.address, caller.through)

    async def _look_up(self, credential: tuple[str, str], client: Client) -> Identity | None:
        kind, text = credential
        if kind == "cookie":  # an ended session is no failed try: cookies cannot be guessed
            session = await client.tokens.check_session(text)
            return None if session is None else session.identity
        if self._jwt_verifier is not None and looks_like_jwt(text):
            return self._jwt_verifier.identity(text, await client.time())
        token = await client.tokens.check(text)
        if token is None:
            raise NotSignedIn("this token is unknown, revoked or expired")
        return token.identity

    def forget(self, session: str) -> None:
        """Remove a session from the cache."""
        self._known.pop(("cookie", session), None)


def _credential(request: Request) -> tuple[str, str] | None:
    """Return the credential of a request. The header has precedence: it is deliberate, while a cookie is sent
    automatically."""
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise NotSignedIn("the Authorization header must be Bearer and a token")
        return ("bearer", text.strip())
    session = session_of(request)
    return ("cookie", session) if session else None


def session_of(request: Request) -> str | None:
    """Return the first session cookie. Browsers send the one with the longest path first, so other mounts' cookies come
    later."""
    for part in ";".join(request.headers.getlist("cookie")).split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return None
