"""What stands in front of the server: proxies whose word is taken for who calls, how and by which address.

A header is only what somebody wrote. It counts if whoever sent the request is trusted, and then from the right: each
proxy appends what it saw itself, and whatever stands left of the first address that is not trusted, a caller may have
invented.
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
"""In the scope of a request that came through proxies: the address of the nearest, which is not its caller's."""

_FOR, _PROTO, _HOST, _PREFIX = b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-prefix"
_NAMES = frozenset({_FOR, _PROTO, _HOST, _PREFIX})
_CALLERS = frozenset({_FOR, b"x-real-ip", b"forwarded"})
_SAID_FOR = re.compile(r"for=\"?([^;,\"]*)", re.IGNORECASE)
_SCHEMES = ("http", "https")
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5}", re.ASCII)

Networks = tuple[IPv4Network | IPv6Network, ...]
Given = Mapping[bytes, bytes]


class _Told(msgspec.Struct, frozen=True):
    """What trusted proxies say of a request; None: nothing that could be used."""

    caller: str | None = None
    scheme: str | None = None
    host: str | None = None
    prefix: str | None = None


_NOTHING = _Told()


class ProxyHeaders:
    def __init__(self, config: Config, own: Collection[str] = ()) -> None:
        """`own`: what the addresses of the server itself begin with."""
        self._trusted = networks_of(config.trusted_proxies)
        self._base = config.base_path.rstrip("/")
        self._own = frozenset(own)
        if self._base and self._is_own(self._base):
            hint = "choose another, such as /rota, or one more segment: /tools/jobs"
            raise BadConfig(f"base_path {self._base!r} begins as addresses of the server itself do", hint=hint)

    def seen(self, scope: Scope, headers: Given) -> tuple[Scope, str | None]:
        """The request as its caller made it, and the host that they called, if a proxy says so.

        `headers` by their names: enough to see that there is nothing to look at, as for most requests.
        """
        told = _NOTHING if _NAMES.isdisjoint(headers) else self._told(scope)
        base = self._base or told.prefix
        if not base and told is _NOTHING:
            return scope, None
        inner = _below(scope, base, passed_on=bool(self._base)) if base else {**scope}
        if told.scheme is not None:
            inner["scheme"] = told.scheme
        if told.caller is not None:
            inner[THROUGH] = address_of(scope.get("client")) or ""
            inner["client"] = (told.caller, 0)
        return inner, told.host

    def _is_own(self, path: str) -> bool:
        return path.split("/", 2)[1] in self._own

    def _told(self, scope: Scope) -> _Told:
        if not _is_within(address_of(scope.get("client")), self._trusted):
            return _NOTHING
        named = _values(scope, _FOR)
        caller, hops = self._caller(named)
        scheme, host, prefix = (_nth(_values(scope, name), hops) for name in (_PROTO, _HOST, _PREFIX))
        return _Told(
            caller,
            scheme.lower() if scheme is not None and scheme.lower() in _SCHEMES else None,
            host,
            prefix.rstrip("/") if prefix is not None and is_base_path(prefix) else None,
        )

    def _caller(self, named: list[str]) -> tuple[str | None, int]:
        """The right-most address that is not trusted, and how many trusted ones stand between it and us.

        What is no address says nothing, and what stands left of it neither: then it is the last one that is known.
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
    """Whoever any header names as the caller; None for what is no address. It may only be held against a request."""
    found: list[str | None] = []
    for name in _CALLERS & headers.keys():
        for text in _values(scope, name):
            found += [_address(one) for one in (_SAID_FOR.findall(text) if name == b"forwarded" else [text])]
    return found


def address_of(client: tuple[str, int] | None) -> str | None:
    """None: it has none, as on a socket in the file system."""
    if not client or not client[0]:
        return None
    return _address(client[0]) or client[0]


def _below(scope: Scope, base: str, *, passed_on: bool) -> Scope:
    """Shown below `base`: its path has it, whether the proxy passed it on or took it away.

    `passed_on`: it may have. A header names a path that was taken away, and proxies pass it on from anybody: if it were
    taken off the path here, a caller could spell any address so that a proxy's rules for that address miss it.
    """
    mount = scope.get("root_path", "").rstrip("/")
    if mount == base or mount.startswith(f"{base}/"):  # whoever mounted us knows of it
        return {**scope}
    path = _without(scope["path"], mount)
    if passed_on and not mount:
        path = _without(path, base)
    return {**scope, "root_path": base + mount, "path": base + mount + (path or "/")}


def _without(path: str, start: str) -> str:
    return path[len(start) :] if path == start or path.startswith(f"{start}/") else path


def _values(scope: Scope, name: bytes) -> list[str]:
    """Of all headers of that name, as if it were one."""
    given = b",".join(value for key, value in scope["headers"] if key == name)
    return [word.strip() for word in given.decode("latin-1").split(",")] if given else []


def _nth(values: list[str], hops: int) -> str | None:
    """The one that the outermost trusted proxy said; a proxy may also have replaced all before it by its own."""
    return values[max(0, len(values) - 1 - hops)] if values else None


@lru_cache(10_000)
def _address(text: str) -> str | None:
    """Without a port, brackets, zone, or the IPv6 around an IPv4 address. None: it is no address."""
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
    """Who has no address is on this machine, as loopback is."""
    if host is None:
        return any(network.is_loopback for network in networks)
    address = _address(host)
    return address is not None and any(ip_address(address) in network for network in networks)
