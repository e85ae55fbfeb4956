"""Checks that every request passes (host, origin, locality), and the last handler for exceptions."""

from __future__ import annotations

import ipaddress
import logging
import random
import re
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.api.auth.identity import SAFE_METHODS, asked_by
from rota.api.http.headers import Answer
from rota.api.http.problems import http_problem, problem, unexpected
from rota.api.http.proxies import ProxyHeaders, named_callers
from rota.api.http.rejection import NotLocal, WrongHost, WrongOrigin
from rota.api.operations.response import mounted_at
from rota.api.operations.routing import with_slashes_kept
from rota.config import Config
from rota.errors import RotaError

log = logging.getLogger("rota.api")
access = logging.getLogger("rota.access")

_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+))(?::\d{1,5})?", re.ASCII)
_REQUEST_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_LONGEST_HOST = 255

Given = Mapping[bytes, bytes]
"""Headers by lower-case name. Undecoded, because they are read for every request and decoding costs time."""


class Guard:
    """Outermost middleware."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], proxies: ProxyHeaders, *, local: bool = False) -> None:
        """Take `hosts`, the names this server answers to besides loopback names. `local`: refuse callers on other
        machines."""
        self._app = app
        self._hosts = hosts
        self._proxies = proxies
        self._local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        answer, begins = Answer(scope, send, request_id(headers)), time.perf_counter()
        inner, host = self._proxies.seen(with_slashes_kept(scope), headers)
        mounted_at(inner.get("root_path", ""))
        try:
            if self._local:
                check_local(scope, headers)
            check_host(scope["headers"], self._hosts)
            # In addition to `Host`, not instead: a page that rebinds its own name to us can send any forwarding header.
            if host is not None:
                check_forwarded_host(host, self._hosts)
            check_origin(scope["method"], headers, inner.get("scheme", "http"), host)
            await self._app(inner, receive, answer.send)
        except ClientDisconnect:
            pass
        except Exception as error:
            if answer.status is not None:
                raise
            if isinstance(error, RotaError):
                response = problem(error)
            elif isinstance(error, HTTPException):
                response = http_problem(scope, error)
            else:
                request = (scope["method"], scope["path"], answer.request_id)
                log.exception("%s %r failed (request %s)", *request, extra={"request_id": answer.request_id})
                response = unexpected(answer.request_id)
            await response(scope, receive, answer.send)
        finally:
            if access.isEnabledFor(logging.DEBUG):
                _log_access(inner, answer, time.perf_counter() - begins)


def _log_access(scope: Scope, answer: Answer, seconds: float) -> None:
    """Log the request without its query string, which may contain secrets."""
    identity = asked_by(scope)
    facts = {
        "request_id": answer.request_id,
        "method": scope["method"],
        "path": scope["path"],
        "status": answer.status,
        "duration_ms": round(seconds * 1000, 3),
        "actor": identity and identity.actor,
    }
    access.debug("%s %r %s (request %s)", facts["method"], facts["path"], answer.status, answer.request_id, extra=facts)


def request_id(headers: Given) -> str:
    """Return the caller's request id if it is well-formed, otherwise a new one."""
    header = headers.get(b"x-request-id")
    if header is not None and _REQUEST_ID.fullmatch(text := header.decode("latin-1")):
        return text
    return f"{random.getrandbits(64):016x}"


def own_hosts(config: Config) -> frozenset[str]:
    """Return the host names that the configuration allows."""
    named = (name.strip().lower() for name in config.allowed_hosts.split(","))
    return frozenset({config.host.lower(), *(name for name in named if name)})


def check_host(headers: Iterable[tuple[bytes, bytes]], allowed: frozenset[str]) -> None:
    """Refuse other `Host` headers (DNS rebinding)."""
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 or not _is_allowed(hosts[0], allowed):
        raise WrongHost(b", ".join(hosts).decode("latin-1"))


def _is_allowed(host: bytes, allowed: frozenset[str]) -> bool:
    return len(host) <= _LONGEST_HOST + len(":65535") and _is_allowed_name(host, allowed)


@lru_cache(1_000)
def _is_allowed_name(host: bytes, allowed: frozenset[str]) -> bool:
    name = host_name(host.decode("latin-1"))
    return name in allowed or is_loopback(name)


def check_forwarded_host(host: str, allowed: frozenset[str]) -> None:
    if not _is_allowed(host.encode("latin-1"), allowed):
        raise WrongHost(host)


def check_local(scope: Scope, headers: Given) -> None:
    """Refuse callers on other machines. One without an address (Unix socket, test) is on this machine.

    A local proxy may have remote callers. Whatever forwarding headers say can only refuse a request, never admit it, so
    they need not be trusted.
    """
    client = scope.get("client")
    if client and not _is_local(client[0]):
        raise NotLocal
    if not all(named is not None and _is_local(named) for named in named_callers(scope, headers)):
        raise NotLocal


@lru_cache(1_000)
def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return True
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def check_origin(method: str, headers: Given, scheme: str, host: str | None) -> None:
    """Refuse changes by pages of other origins (CSRF). Reads need no check: without CORS headers browsers hide the
    response from other origins.

    `scheme` and `host` are those the caller used. A server reached over HTTPS has no pages over HTTP; the reverse may
    be a proxy that does not report TLS.
    """
    if method in SAFE_METHODS:
        return
    origin = headers.get(b"origin")
    if origin is not None:
        own_host = headers[b"host"] if host is None else host.encode("latin-1")
        origin_scheme, _, name = origin.lower().partition(b"://")
        if name != own_host.lower() or (scheme == "https" and origin_scheme != b"https"):
            raise WrongOrigin(origin.decode("latin-1"))
    if headers.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none"):
        raise WrongOrigin("another origin" if origin is None else origin.decode("latin-1"))


def host_name(host: str) -> str:
    """Return the host without port and IPv6 brackets; empty if it is malformed, because pages show it."""
    parts = _HOST.fullmatch(host)
    return "" if parts is None else (parts[1] or parts[2]).lower()


def is_loopback(name: str) -> bool:
    """Return whether the name is a loopback name or address."""
    return len(name) <= _LONGEST_HOST and _is_loopback(name)


@lru_cache(1_000)
def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
