"""A reverse proxy: with TLS, below a path, and with X-Forwarded headers."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Manner(msgspec.Struct, frozen=True):
    """`below`: the path that it shows the server at; `strips`: the server does not see it. `keeps_host`: else it calls
    the server by its own address, and says how it was called itself. `caller`: the address that it says it is asked
    from."""

    below: str = ""
    strips: bool = True
    keeps_host: bool = True
    caller: str = "203.0.113.9"


class ReverseProxy:
    """One request for each connection, so that nothing has to be known of answers: they may be streams."""

    def __init__(self, upstream: int, manner: Manner, tls: ssl.SSLContext | None) -> None:
        self._upstream = upstream
        self._manner = manner
        self._tls = tls
        self._links: set[asyncio.StreamWriter] = set()
        self.url = ""

    async def begin(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        port = server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}{self._manner.below}"
        return server

    def cut(self) -> None:
        for link in list(self._links):
            link.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._links.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            back, forth = await asyncio.open_connection("127.0.0.1", self._upstream)
            self._links.add(forth)
            forth.write(self._changed(head))
            up = asyncio.create_task(_copy(reader, forth))
            await _copy(back, writer)
            up.cancel()
            forth.close()
            self._links.discard(forth)
        writer.close()
        self._links.discard(writer)

    def _changed(self, head: bytes) -> bytes:
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, path, version = first.split(" ")
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        if self._manner.strips and self._manner.below:
            assert path.startswith(self._manner.below), "it shows nothing else"
            path = path.removeprefix(self._manner.below) or "/"
        named = [value for name, value in headers if name == "x-forwarded-for"]
        host = next(value for name, value in headers if name == "host")
        kept = [
            (name, value) for name, value in headers if not name.startswith("x-forwarded-") and name != "connection"
        ]
        said = {
            "x-forwarded-for": ", ".join([*named, self._manner.caller]),
            "x-forwarded-proto": "https" if self._tls else "http",
            "connection": "close",
        }
        if not self._manner.keeps_host:
            kept = [(name, f"127.0.0.1:{self._upstream}" if name == "host" else value) for name, value in kept]
            said["x-forwarded-host"] = host
        written = "\r\n".join(
            [f"{method} {path} {version}", *(f"{name}: {value}" for name, value in (*kept, *said.items()))]
        )
        return f"{written}\r\n\r\n".encode("latin-1")


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def in_front_of(
    upstream: int, manner: Manner | None = None, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ReverseProxy]:
    """Start a proxy before the server on that port of this machine."""
    proxy = ReverseProxy(upstream, manner or Manner(), tls)
    server = await proxy.begin()
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()


@functools.cache
def private_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def spki() -> str:
    """Return the hash of the public key of all certificates made here, as Chromium takes it to trust them.

    A browser that is told of the key before it connects does not begin each connection twice, as one does that first
    sees an error and then ignores it: on a busy machine it gave up (`ERR_TOO_MANY_RETRIES`).
    """
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = private_key().public_key().public_bytes(serialization.Encoding.DER, form)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


def certified(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Create TLS contexts for a server on this machine and for a client that trusts it."""
    key = private_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    today = datetime.now(UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(today - timedelta(days=1)).not_valid_after(today + timedelta(days=1))
    certificate = made.add_extension(here, critical=False).sign(key, hashes.SHA256())
    file, secret = folder / "certificate.pem", folder / "key.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file, secret)
    return server, ssl.create_default_context(cafile=str(file))
