"""Allowlist of addresses for outgoing requests: public ones, and those that the operator allows."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from rota.errors import Invalid

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
_SHARED = IPv4Network("100.64.0.0/10")
_KINDS = (
    ("unspecified", "is_unspecified"),
    ("loopback", "is_loopback"),
    ("link-local", "is_link_local"),
    ("multicast", "is_multicast"),
    ("private", "is_private"),
    ("private", "is_site_local"),
    ("reserved", "is_reserved"),
)


def networks_of(text: str) -> tuple[Network, ...]:
    """Parse networks and single addresses, separated by commas: `10.0.0.0/8, ::1`."""
    networks = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        try:
            networks.append(ip_network(part))
        except ValueError as error:
            raise Invalid(f"{part!r} is not a network: {error}", hint="write 10.0.0.0/8, or 127.0.0.1") from None
    return tuple(networks)


def refusal(text: str, allowed: Iterable[Network]) -> str | None:
    """Return why nothing may be sent to this address; None if it is allowed.

    An IPv6 address that embeds an IPv4 address is judged as that one.
    """
    address = ip_address(text)
    meant = _inside(address) or address
    if any(form in network for form in (address, meant) for network in allowed):
        return None
    kind = _kind(meant)
    if kind is None:
        return None
    return f"{text} is {kind}" if meant is address else f"{text} is {meant}, which is {kind}"


def _inside(address: Address) -> IPv4Address | None:
    """Return the IPv4 address at which a packet to this IPv6 address would arrive."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _kind(address: Address) -> str | None:
    for kind, attribute in _KINDS:
        if getattr(address, attribute, False):
            return kind
    if isinstance(address, IPv4Address) and address in _SHARED:
        return "shared by a carrier (CGNAT)"
    return None if address.is_global else "not public"
