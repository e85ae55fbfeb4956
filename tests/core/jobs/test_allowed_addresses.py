"""Allowlist of addresses for outgoing requests."""

import pytest

from rota.core.jobs.allowed_addresses import networks_of, refusal
from rota.errors import Invalid

PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
    "2606:4700::5efe:808:808",
]

REFUSED = {
    "0.0.0.0": "unspecified",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "10.1.2.3": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.0.1": "private",
    "169.254.169.254": "link-local",
    "100.64.0.1": "CGNAT",
    "100.127.255.255": "CGNAT",
    "192.0.2.1": "documentation",
    "198.18.0.1": "benchmarks",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "fe80::1": "link-local",
    "fe80::1%lo": "link-local",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fec0::1": "private",
    "ff02::1": "multicast",
    "2001:db8::1": "documentation",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "protocols",
    "::7f00:1": "not public",
    "::ffff:127.0.0.1": "127.0.0.1, which is loopback",
    "::ffff:169.254.169.254": "which is link-local",
    "::ffff:100.64.0.1": "CGNAT",
    "0.1.2.3": "this network",
    "192.0.0.8": "protocols",
    "192.0.0.192": "protocols",
    "192.88.99.1": "6to4",
    "198.19.255.255": "benchmarks",
    "198.51.100.7": "documentation",
    "203.0.113.7": "documentation",
    "168.63.129.16": "metadata",
    "100.100.100.200": "metadata",
    "fd00:ec2::254": "metadata",
    "fd20:ce::254": "metadata",
    "100::1": "not public",
    "64:ff9b:1::808:808": "not public",
    "5f00::1": "not public",
    "4000::1": "not public",
    "3fff:123::1": "documentation",
    "2001:2::1": "protocols",
    "2001:20::1": "protocols",
    "::ffff:0:7f00:1": "127.0.0.1, which is loopback",
    "::ffff:168.63.129.16": "which is a cloud's metadata",
    "2606:4700::5efe:7f00:1": "127.0.0.1, which is loopback",
    "2606:4700::200:5efe:a00:1": "10.0.0.1, which is private",
    "fe80::5efe:808:808": "link-local",
    "fe80::5efe:7f00:1": "link-local",
    "64:ff9b::7f00:1": "127.0.0.1, which is loopback",
    "64:ff9b::a00:1": "10.0.0.1, which is private",
    "2002:7f00:1::": "127.0.0.1, which is loopback",
    "2002:a9fe:a9fe::1": "which is link-local",
}


@pytest.mark.parametrize("address", PUBLIC)
def test_public_ones_are_fine(address: str) -> None:
    assert refusal(address, ()) is None


@pytest.mark.parametrize(("address", "kind"), REFUSED.items())
def test_others_are_refused(address: str, kind: str) -> None:
    why = refusal(address, ())
    assert why is not None
    assert why.startswith(address)
    assert kind in why


def test_unless_they_are_on_the_list() -> None:
    allowed = networks_of("10.0.0.0/8, 127.0.0.1,::1")
    assert [address for address in REFUSED if refusal(address, allowed) is None] == [
        "127.0.0.1",
        "10.1.2.3",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:0:7f00:1",
        "2606:4700::5efe:7f00:1",
        "2606:4700::200:5efe:a00:1",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
    ]


@pytest.mark.parametrize("text", ["localhost", "10.0.0.1/8", "10.0.0.0/99", "*"])
def test_what_is_no_network(text: str) -> None:
    with pytest.raises(Invalid):
        networks_of(text)


def test_an_empty_list() -> None:
    assert networks_of("") == networks_of(" , ") == ()
