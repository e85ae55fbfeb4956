"""Errors of authentication and authorization."""

from __future__ import annotations

from collections.abc import Iterable

from rota.errors.families import Denied, NotFound, did_you_mean


class UnknownToken(NotFound):
    """No token has this id or name."""

    code = "unknown-token"

    def __init__(self, who: str, known: Iterable[str]) -> None:
        hint = did_you_mean(who, known) or "`rota token ls` lists them"
        super().__init__(f"no token is called {who!r:.80}", hint=hint)


class Forbidden(Denied):
    """The token's role or scope does not allow it."""

    code = "forbidden"

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem, hint=hint)


class NotSignedIn(Denied):
    """No token was given, or the token is unknown, revoked or expired."""

    status, code = 401, "not-signed-in"

    def __init__(self, problem: str = "no token was given") -> None:
        hint = "`rota token create` creates one; set ROTA_TOKEN for commands, or send Authorization: Bearer rota_…"
        super().__init__(problem, hint=hint)


class TooManyTries(Denied):
    """Too many requests with a wrong token came from this address."""

    status, code = 429, "too-many-tries"

    def __init__(self, seconds: float) -> None:
        super().__init__("too many wrong tokens came from this address", hint=f"try again in {seconds:.0f}s")
        self.seconds = seconds


class TooManySessions(Denied):
    """The token has 100 open sessions."""

    status, code = 429, "too-many-sessions"

    def __init__(self, most: int) -> None:
        hint = "sign out elsewhere, or give each person a token of their own; a session ends by itself after 12 hours"
        super().__init__(f"{most} sessions of this token are open", hint=hint)
