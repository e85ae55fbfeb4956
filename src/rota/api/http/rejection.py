"""Errors for requests that are refused before their content is considered."""

from __future__ import annotations

import math

from rota.errors import Invalid


class WrongHost(Invalid):
    """The `Host` header names another server. A web page may let its own name resolve to this machine."""

    status, code = 421, "wrong-host"

    def __init__(self, host: str) -> None:
        hint = "use the address that rota listens on, or add this host to ROTA_ALLOWED_HOSTS"
        super().__init__(f"this server does not answer for host {host!r:.100}", hint=hint)


class WrongOrigin(Invalid):
    """A page of another origin tries to change something."""

    status, code = 403, "wrong-origin"

    def __init__(self, origin: str) -> None:
        super().__init__(f"pages of {origin!r:.100} may not change anything here")


class NotLocal(Invalid):
    """The caller is on another machine, and `auth` is off. Without authentication only local callers are answered,
    whatever host they name."""

    status, code = 403, "not-local"

    def __init__(self) -> None:
        hint = "set ROTA_AUTH=on and use a token, or app.asgi(trusted=True) behind your own authentication"
        super().__init__("without auth, only callers on this machine are answered", hint=hint)


class TooManyStreams(Invalid):
    """The caller has 500 open streams and waiting claims."""

    status, code = 429, "too-many-streams"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most} streams and claims are already open", hint="close one, or watch several topics with one stream"
        )


class ServerFull(Invalid):
    """All callers together have too many open streams and waiting claims."""

    status, code = 429, "server-full"

    def __init__(self, most: int) -> None:
        hint = "try again later, or another server; the limit is half of the files that it may open (ulimit -n)"
        super().__init__(f"this server has {most} open streams and claims", hint=hint)


class EnqueuesTooFast(Invalid):
    """A token that may only enqueue did so more often than `enqueue_rate` allows."""

    status, code = 429, "enqueues-too-fast"

    def __init__(self, words: str, seconds: float) -> None:
        hint = f"try again in {math.ceil(seconds)}s, or raise ROTA_ENQUEUE_RATE of the server"
        super().__init__(f"this token may enqueue {words}", hint=hint)
        self.seconds = seconds


class BodyTooLarge(Invalid):
    """The body is larger than 1 MB."""

    status, code = 413, "body-too-large"

    def __init__(self, limit: int) -> None:
        hint = "store the data in a file or bucket and pass its address; split many runs over several requests"
        super().__init__(f"the body is larger than {limit} bytes", hint=hint)


class BodyTooSlow(Invalid):
    """The body did not arrive within 30 seconds."""

    status, code = 408, "body-too-slow"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the body did not arrive within {seconds:.0f}s")


class NotJson(Invalid):
    """The request has a body without `Content-Type: application/json`."""

    status, code = 415, "json-required"

    def __init__(self, content_type: str) -> None:
        hint = "send JSON with Content-Type: application/json"
        super().__init__(f"the body has the content type {content_type!r:.100}", hint=hint)


class UnreadableBody(Invalid):
    """The body is not JSON, or is nested too deeply."""

    status, code = 400, "unreadable-body"


class BadBody(Invalid):
    """A value in the body is invalid; `path` leads to it: `$.runs[3].queue`."""

    code = "bad-body"

    def __init__(self, path: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"body at {path}: {problem}", hint=hint)
        self.path = path
