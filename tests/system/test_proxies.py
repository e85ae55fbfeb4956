"""Test rota behind real proxies, with the files of deploy/proxies: whichever of them are installed here."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from rota.core.access.roles import Role
from tests.support.servers.ports import free_port
from tests.support.servers.real_proxies import INSTALLED, behind
from tests.system.site import APP, Site

SITES = {"root": ("rota.example.com", ""), "below": ("tools.example.com", "/rota")}
CALLER = "127.0.0.9"


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
        if prefix:
            bare = await client.get(at, headers=named, extensions=extensions)
            assert (bare.status_code, bare.headers["location"].endswith("/rota/")) == (301, True)
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
