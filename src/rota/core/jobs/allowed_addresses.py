"""Allowlist of addresses for outgoing requests: public ones, and those that the operator allows."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from rota.errors import Invalid

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_PUBLIC_IPV6 = IPv6Network("2000::/3")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # bits 64 to 95; the last 32 bits are the IPv4 address

# Our own list, from IANA's registries of special-purpose addresses and the clouds' documentation: what the standard
# library calls private differs between versions of Python. A longer prefix stands before one that contains it.
_SPECIAL: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/32", "unspecified"),
    ("0.0.0.0/8", "an address of this network"),
    ("10.0.0.0/8", "private"),
    ("100.100.100.200/32", "a cloud's metadata service"),
    ("100.64.0.0/10", "shared by a carrier (CGNAT)"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "a cloud's metadata service"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "reserved (6to4 relays)"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("fd00:ec2::254/128", "a cloud's metadata service"),
    ("fd20:ce::254/128", "a cloud's metadata service"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private (site-local)"),
    ("ff00::/8", "multicast"),
    ("2001:db8::/32", "for documentation"),
    ("2001::/23", "reserved for protocols"),
    ("3fff::/20", "for documentation"),
)
_KINDS: tuple[tuple[Network, str], ...] = tuple((ip_network(text), kind) for text, kind in _SPECIAL)

# Prefixes under which the last 32 bits, shifted by the second number, are the IPv4 address that a packet reaches.
_EMBEDDED: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
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

    An IPv6 address that embeds an IPv4 address is judged as that one, and a tunnel's (ISATAP) as both.
    """
    address = ip_address(text)
    for form in (_embedded(address) or address, _tunnel_end(address)):
        kind = None if form is None else _kind(form)
        if kind is not None and not any(one in network for one in (address, form) for network in allowed):
            return f"{text} is {kind}" if form is address else f"{text} is {form}, which is {kind}"
    return None


def _embedded(address: Address) -> IPv4Address | None:
    """Return the IPv4 address at which a packet to this IPv6 address would arrive."""
    if isinstance(address, IPv4Address):
        return None
    bits = (int(address) >> shift for network, shift in _EMBEDDED if address in network)
    return next((IPv4Address(value & 0xFFFF_FFFF) for value in bits), None)


def _tunnel_end(address: Address) -> IPv4Address | None:
    """Return the end of an ISATAP tunnel, which may stand under any prefix."""
    if isinstance(address, IPv4Address) or (int(address) >> 32) & 0xFFFF_FFFF not in _ISATAP:
        return None
    return IPv4Address(int(address) & 0xFFFF_FFFF)


def _kind(address: Address) -> str | None:
    for network, kind in _KINDS:
        if address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _PUBLIC_IPV6:
        return "not public"
    return None
