"""Test rota behind real proxies, with the files of deploy/proxies: whichever of them are installed here."""

from __future__ import annotations

import asyncio
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
import pytest

from rota.core.access.roles import Role
from tests.support.servers.ports import free_port
from tests.support.wait import wait_for
from tests.system.site import APP, Site

FILES = Path(__file__).parents[2] / "deploy" / "proxies"
COMMANDS = {
    "nginx": ("nginx.conf", ["nginx", "-e", "{folder}/errors", "-p", "{folder}", "-c", "{file}"]),
    "caddy": ("Caddyfile", ["caddy", "run", "--adapter", "caddyfile", "--config", "{file}"]),
    "haproxy": ("haproxy.cfg", ["haproxy", "-db", "-f", "{file}"]),
}
INSTALLED = [name for name in COMMANDS if shutil.which(name) and shutil.which("openssl")]
AROUND = {
    "nginx": "daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}\nhttp {{\n{text}\n}}\n",
    "caddy": "{{\n admin off\n auto_https disable_redirects\n https_port {port}\n}}\n{text}",
    "haproxy": "{text}",
}
SITES = {"root": ("rota.example.com", ""), "below": ("tools.example.com", "/rota")}
CALLER = "127.0.0.9"


@contextmanager
def behind(name: str, ports: dict[str, int], folder: Path) -> Iterator[int]:
    """Start a proxy with its file from deploy/, at a free port and with a certificate of its own."""
    port = free_port()
    subject = ["-subj", "/CN=rota", "-addext", "subjectAltName=DNS:rota.example.com,DNS:tools.example.com"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    source, command = COMMANDS[name]
    text = (FILES / source).read_text().replace("/etc/ssl/rota", str(folder))
    text = text.replace("127.0.0.1:7682", f"127.0.0.1:{ports['root']}").replace(
        "127.0.0.1:7683", f"127.0.0.1:{ports['below']}"
    )
    text = re.sub(r"(listen |bind :)443", rf"\g<1>{port}", text)
    file = folder / source
    file.write_text(AROUND[name].format(folder=folder, text=text, port=port))
    filled = [part.format(folder=folder, file=file) for part in command]
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(
            filled, stdout=log, stderr=log, cwd=folder, env={"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin:/bin"}
        )
    try:
        wait_for(lambda: _listens(port), 30, (folder / "proxy.log").read_text)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def browser(folder: Path, port: int, caller: str = CALLER) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client that trusts the certificate, connects to the proxy, and comes from an address of its own."""
    context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    transport = httpx2.AsyncHTTPTransport(verify=context, local_address=caller)
    async with httpx2.AsyncClient(transport=transport, timeout=30) as client:
        yield client


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="none of nginx, caddy and haproxy is installed")
@pytest.mark.parametrize("name", INSTALLED)
async def test_the_dashboard_works_behind_it(name: str, sqlite_site: Site, tmp_path: Path) -> None:
    """At the root and below a path: sign-in, a Secure cookie, changes, the live stream, who is locked out."""
    ports = {"root": free_port(), "below": free_port()}
    settings = {"ROTA_AUTH": "on", "ROTA_ALLOWED_HOSTS": "rota.example.com,tools.example.com"}
    # Only the proxy's own address: the callers of this test are on the same machine.
    environment = sqlite_site.environment(**settings, ROTA_TRUSTED_PROXIES="127.0.0.1/32")
    for place, (_, prefix) in SITES.items():
        flags = ["--port", str(ports[place]), *(["--base-path", prefix] if prefix else [])]
        sqlite_site.processes.rota("server", *flags, APP, environment=environment).until_said("http://")
    secret = (await sqlite_site.client.tokens.create("ann", Role.OPERATOR)).secret
    folder = tmp_path / "proxy"
    folder.mkdir()
    with behind(name, ports, folder) as port:
        for host, prefix in SITES.values():
            await _visit(folder, port, host, prefix, secret)


async def _visit(folder: Path, port: int, host: str, prefix: str, secret: str) -> None:
    at = f"https://127.0.0.1:{port}{prefix}"
    named = {"host": host}
    extensions = {"sni_hostname": host}
    async with browser(folder, port) as client:
        page = await client.get(f"{at}/", headers=named, extensions=extensions)
        assert page.status_code == 200
        assert f'<base href="{prefix}/"' in page.text, "the page finds its files below the path"
        own = {**named, "origin": f"https://{host}"}
        signed = await client.post(f"{at}/api/v1/session", json={"token": secret}, headers=own, extensions=extensions)
        assert signed.status_code == 201, signed.text
        cookie = signed.headers["set-cookie"]
        assert "secure" in cookie.lower()
        assert f"path={prefix or '/'}" in cookie.lower()
        own["cookie"] = cookie.split(";")[0]
        made = await client.post(f"{at}/api/v1/runs", json={"job": "quick"}, headers=own, extensions=extensions)
        assert made.status_code == 201, made.text
        assert made.headers["location"].startswith(f"{prefix}/api/v1/runs/")
        elsewhere = {**own, "origin": "https://evil.example.com"}
        refused = await client.post(
            f"{at}/api/v1/runs", json={"job": "quick"}, headers=elsewhere, extensions=extensions
        )
        assert refused.status_code == 403
        await _hears(client, at, own, extensions)
    async with browser(folder, port, "127.0.0.10") as attacker:
        wrong = {**named, "authorization": "Bearer rota_000000000000_wrong", "x-forwarded-for": CALLER}
        codes = [
            (await attacker.get(f"{at}/api/v1/runs", headers=wrong, extensions=extensions)).status_code
            for _ in range(11)
        ]
        assert codes[-1] == 429, "it is locked out, whatever address it claims"
    async with browser(folder, port) as client:
        right = {**named, "authorization": f"Bearer {secret}"}
        assert (await client.get(f"{at}/api/v1/runs", headers=right, extensions=extensions)).status_code == 200, (
            "others are not"
        )


async def _hears(client: httpx2.AsyncClient, at: str, own: dict[str, str], extensions: dict[str, str]) -> None:
    """Wait for the event of a run that is enqueued meanwhile: a proxy that gathers would hold it back."""
    async with client.stream("GET", f"{at}/api/v1/stream?topics=runs", headers=own, extensions=extensions) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.aiter_lines()
        async with asyncio.timeout(20):
            await client.post(f"{at}/api/v1/runs", json={"job": "quick"}, headers=own, extensions=extensions)
            async for line in lines:
                if line.startswith("data:"):
                    return
    raise AssertionError("the stream ended")
