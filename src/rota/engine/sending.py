"""Requests to addresses that people name: only where they may go, looked at when the connection is made."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_TIMEOUT = 20.0
_MOST_READ = 2_048


class Request(msgspec.Struct, frozen=True):
    """`allow`: networks, as CIDR, that may be reached though they are private."""

    url: str
    body: bytes
    headers: dict[str, str] = {}
    allow: tuple[str, ...] = ()


class Response(msgspec.Struct, frozen=True):
    status: int
    text: str


class NotSent(Exception):
    """It never says more of the URL than its host: the rest may be a secret."""


async def send(request: Request) -> Response:
    """A POST, without redirects, proxies or cookies."""
    import aiohttp

    host = urlsplit(request.url).hostname or ""
    networks = tuple(ipaddress.ip_network(network, strict=False) for network in request.allow)
    _check_literal(host, networks)
    connector = aiohttp.TCPConnector(resolver=_resolver(networks), use_dns_cache=False, force_close=True)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.post(request.url, data=request.body, headers=request.headers, allow_redirects=False) as answer,
        ):
            read = await answer.content.read(_MOST_READ)
            return Response(answer.status, read.decode(errors="replace"))
    except TimeoutError:
        raise NotSent(f"{host} did not answer within {_TIMEOUT:g}s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise NotSent(f"{host}: {_said(error)}") from None


def _said(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or error
    return str(inner.strerror) if isinstance(inner, OSError) and inner.strerror else type(error).__name__


def _check_literal(host: str, networks: Sequence[Network]) -> None:
    """An address in the URL itself is resolved by nobody."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    if not is_allowed(address, networks):
        raise NotSent(f"{host} is a private address, and ROTA_HTTP_ALLOW does not name it")


def is_allowed(address: Address, networks: Sequence[Network]) -> bool:
    """Public addresses are, others if they are in one of the networks; one inside another counts as itself."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_allowed(inner, networks)
    if any(address.version == network.version and address in network for network in networks):
        return True
    return address.is_global and not address.is_multicast


def _resolver(networks: Sequence[Network]) -> AbstractResolver:
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Checked(AbstractResolver):
        """What it answers is what the connection is made to: nobody resolves the name a second time."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
            usable = [place for place in found if is_allowed(ipaddress.ip_address(place[4][0]), networks)]
            if not usable:
                raise NotSent(f"{host} has a private address, and ROTA_HTTP_ALLOW does not name it")
            return [
                ResolveResult(
                    hostname=host, host=str(place[4][0]), port=int(place[4][1]), family=place[0], proto=place[2],
                    flags=socket.AI_NUMERICHOST,
                )
                for place in usable
            ]  # fmt: skip

        async def close(self) -> None:
            """Nothing is kept."""

    return Checked()


def signed(secret: str | None, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Headers: `webhook-signature` is that of `id.timestamp.body`."""
    headers = {"webhook-id": id, "webhook-timestamp": str(timestamp)}
    if secret is not None:
        content = f"{id}.{timestamp}.".encode() + body
        digest = hmac.new(secret.encode(), content, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers
