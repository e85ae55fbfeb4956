"""Trusted reverse proxies: who calls, over which scheme, host and path, as they report it.

Anyone can write a header. `X-Forwarded-*` counts only if the sender of the request is trusted, and is read from the
right: each proxy appends the address it saw, and whatever stands left of the first untrusted address may be made up by
the caller.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import msgspec
from starlette.types import Scope

from rota.config import Config, is_base_path, networks_of
from rota.errors import BadConfig

THROUGH = "rota.through"
"""Key in the scope of a proxied request: the address of the nearest proxy, as opposed to the caller's."""

_FOR, _PROTO, _HOST, _PREFIX = b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-prefix"
_NAMES = frozenset({_FOR, _PROTO, _HOST, _PREFIX})
_CALLERS = frozenset({_FOR, b"x-real-ip", b"forwarded"})
_SAID_FOR = re.compile(r"for=\"?([^;,\"]*)", re.IGNORECASE)
_SCHEMES = ("http", "https")
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5}", re.ASCII)

Networks = tuple[IPv4Network | IPv6Network, ...]
Given = Mapping[bytes, bytes]


class _Forwarded(msgspec.Struct, frozen=True):
    """Reports of trusted proxies about a request; None means nothing usable."""

    caller: str | None = None
    scheme: str | None = None
    host: str | None = None
    prefix: str | None = None


_NOTHING = _Forwarded()


class ProxyHeaders:
    """Reader of forwarding headers."""

    def __init__(self, config: Config, own: Collection[str] = ()) -> None:
        """Take `own`, the first segments of the server's own paths."""
        self._trusted = networks_of(config.trusted_proxies)
        self._base = config.base_path.rstrip("/")
        self._own = frozenset(own)
        if self._base and self._is_own(self._base):
            hint = "choose another path, such as /rota or /tools/jobs"
            raise BadConfig(f"base_path {self._base!r} collides with paths of the server itself", hint=hint)

    def seen(self, scope: Scope, headers: Given) -> tuple[Scope, str | None]:
        """Return the scope as the caller made the request, and the host it used if a proxy reports one.

        `headers` maps names to values: enough to see at once that there is nothing to read, as for most requests.
        """
        forwarded = _NOTHING if _NAMES.isdisjoint(headers) else self._forwarded(scope)
        base = self._base or forwarded.prefix
        if not base and forwarded is _NOTHING:
            return scope, None
        inner = _below(scope, base, passed_on=bool(self._base)) if base else {**scope}
        if forwarded.scheme is not None:
            inner["scheme"] = forwarded.scheme
        if forwarded.caller is not None:
            inner[THROUGH] = address_of(scope.get("client")) or ""
            inner["client"] = (forwarded.caller, 0)
        return inner, forwarded.host

    def _is_own(self, path: str) -> bool:
        return path.split("/", 2)[1] in self._own

    def _forwarded(self, scope: Scope) -> _Forwarded:
        if not _is_within(address_of(scope.get("client")), self._trusted):
            return _NOTHING
        named = _values(scope, _FOR)
        caller, hops = self._caller(named)
        scheme, host, prefix = (_nth(_values(scope, name), hops) for name in (_PROTO, _HOST, _PREFIX))
        return _Forwarded(
            caller,
            scheme.lower() if scheme is not None and scheme.lower() in _SCHEMES else None,
            host,
            prefix.rstrip("/") if prefix is not None and is_base_path(prefix) else None,
        )

    def _caller(self, named: list[str]) -> tuple[str | None, int]:
        """Return the right-most untrusted address, and the number of trusted ones between it and this server.

        Reading stops at text that is not an address, since nothing left of it can be trusted; the last known address is
        the caller.
        """
        caller, hops = None, 0
        for text in reversed(named):
            address = _address(text)
            if address is None:
                break
            if caller is not None:
                hops += 1
            caller = address
            if not _is_within(caller, self._trusted):
                break
        return caller, hops


def named_callers(scope: Scope, headers: Given) -> list[str | None]:
    """Return every caller that any header names; None for text that is not an address. Only use it to refuse a
    request."""
    callers: list[str | None] = []
    for name in _CALLERS & headers.keys():
        for text in _values(scope, name):
            callers += [_address(address) for address in (_SAID_FOR.findall(text) if name == b"forwarded" else [text])]
    return callers


def address_of(client: tuple[str, int] | None) -> str | None:
    """Return the peer's address, or None if it has none, as on a Unix socket."""
    if not client or not client[0]:
        return None
    return _address(client[0]) or client[0]


def _below(scope: Scope, base: str, *, passed_on: bool) -> Scope:
    """Return the scope mounted below `base`, whether or not the proxy has stripped that prefix.

    `passed_on`: the prefix may still be in the path. For a prefix from a header it is not stripped here: proxies pass
    that header on from anyone, and a caller could spell a path so that a proxy's rules for it do not match.
    """
    mount = scope.get("root_path", "").rstrip("/")
    if mount == base or mount.startswith(f"{base}/"):  # the mounting application already added it
        return {**scope}
    path = _without(scope["path"], mount)
    if passed_on and not mount:
        path = _without(path, base)
    return {**scope, "root_path": base + mount, "path": base + mount + (path or "/")}


def _without(path: str, start: str) -> str:
    return path[len(start) :] if path == start or path.startswith(f"{start}/") else path


def _values(scope: Scope, name: bytes) -> list[str]:
    """Return the values of all headers of that name, as if they were one."""
    joined = b",".join(value for key, value in scope["headers"] if key == name)
    return [value.strip() for value in joined.decode("latin-1").split(",")] if joined else []


def _nth(values: list[str], hops: int) -> str | None:
    """Return the value that the outermost trusted proxy set; a proxy may also have replaced all earlier ones."""
    return values[max(0, len(values) - 1 - hops)] if values else None


@lru_cache(10_000)
def _address(text: str) -> str | None:
    """Return the canonical address without port, brackets, zone or IPv4-mapped prefix; None if it is none."""
    if len(text) > 100:
        return None
    port = _WITH_PORT.fullmatch(text)
    try:
        address: IPv4Address | IPv6Address = ip_address(((port[1] or port[2]) if port else text).partition("%")[0])
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


@lru_cache(10_000)
def _is_within(host: str | None, networks: Networks) -> bool:
    """Return whether the host is in one of the networks. A peer without an address counts as loopback."""
    if host is None:
        return any(network.is_loopback for network in networks)
    address = _address(host)
    return address is not None and any(ip_address(address) in network for network in networks)
