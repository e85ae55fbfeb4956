"""Test the dashboard behind a TLS proxy and below a path: an imitation, and the real ones that are installed."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import expect

from rota import Rota
from tests.browser.conftest import NewPage, served
from tests.support.servers.real_proxies import INSTALLED, behind
from tests.support.servers.reverse_proxy import Manner, certified, in_front_of

Proxy = Callable[[int, Path], AbstractAsyncContextManager[str]]
"""In front of the server at that port, with that folder; yields the URL at which a browser finds it."""


@asynccontextmanager
async def imitated(port: int, folder: Path) -> AsyncIterator[str]:
    tls, _ = certified(folder)
    async with in_front_of(port, Manner("/rota"), tls=tls) as proxy:
        yield proxy.url


@asynccontextmanager
async def real(port: int, folder: Path, *, name: str) -> AsyncIterator[str]:
    """Stand below a path under a name that the browser finds, with a key that it trusts."""

    def certify(place: Path) -> None:
        certified(place)
        (place / "certificate.pem").rename(place / "cert.pem")

    hosts = {"tools.example.com": "localhost"}
    with behind(name, {"root": port, "below": port}, folder, certify, hosts) as at:
        yield f"https://localhost:{at}/rota"


PROXIES: dict[str, Proxy] = {"imitated": imitated, **{name: partial(real, name=name) for name in INSTALLED}}


@pytest.mark.parametrize("proxy", PROXIES)
async def test_signed_in_and_live_below_a_path(sqlite_url: str, new_page: NewPage, tmp_path: Path, proxy: str) -> None:
    app = Rota(sqlite_url, auth=True, base_path="/rota", lease="3s", heartbeat="1s", poll="200ms")
    async with served(app) as dashboard:
        port = urlsplit(dashboard.url).port
        assert port is not None
        folder = tmp_path / "proxy"
        folder.mkdir()
        async with PROXIES[proxy](port, folder) as url:
            page = await new_page()
            token = await dashboard.client.tokens.create("ada", "operator")
            await page.goto(url)
            await page.get_by_label("Token").fill(token.secret)
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_role("button", name="Signed in: ada · operator")).to_be_visible()
            (cookie,) = await page.context.cookies()
            assert (cookie.get("secure"), cookie.get("httpOnly"), cookie.get("path")) == (True, True, "/rota")
            await page.get_by_role("link", name="Runs", exact=True).click()
            await expect(page).to_have_url(f"{url}/runs")
            await expect(page.locator(".live")).to_have_text("live")
            run_id = await dashboard.enqueue("hello", name="Ada")
            await page.locator(f'tr[data-key="{run_id}"]').get_by_role("link").first.click()
            await expect(page).to_have_url(re.compile(f"^{url}/runs/{run_id}"))
            await dashboard.work()
            state = page.locator("h1 [data-state]")
            await expect(state).to_have_attribute("data-state", "succeeded")
            await page.reload()
            await expect(state).to_have_attribute("data-state", "succeeded")
            await expect(page.locator(".live")).to_have_text("live")
            await page.get_by_role("button", name="Signed in: ada · operator").click()
            await page.get_by_role("menuitem", name="Sign out").click()
            await expect(page.get_by_label("Token")).to_be_visible()
            assert await page.context.cookies() == []
