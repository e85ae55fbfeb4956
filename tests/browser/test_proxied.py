"""Test the dashboard behind a TLS proxy and below a path."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import expect

from rota import Rota
from tests.browser.conftest import NewPage, served
from tests.support.servers.reverse_proxy import Manner, certified, in_front_of


async def test_signed_in_and_live_below_a_path(sqlite_url: str, new_page: NewPage, tmp_path: Path) -> None:
    tls, _ = certified(tmp_path)
    app = Rota(sqlite_url, auth=True, base_path="/rota", lease="3s", heartbeat="1s", poll="200ms")
    async with served(app) as dashboard:
        port = urlsplit(dashboard.url).port
        assert port is not None
        async with in_front_of(port, Manner("/rota"), tls=tls) as proxy:
            page = await new_page()
            token = await dashboard.client.tokens.create("ada", "operator")
            await page.goto(proxy.url)
            await page.get_by_label("Token").fill(token.secret)
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_role("button", name="Signed in: ada · operator")).to_be_visible()
            (cookie,) = await page.context.cookies()
            assert (cookie.get("secure"), cookie.get("httpOnly"), cookie.get("path")) == (True, True, "/rota")
            await page.get_by_role("link", name="Runs", exact=True).click()
            await expect(page).to_have_url(f"{proxy.url}/runs")
            await expect(page.locator(".live")).to_have_text("live")
            run_id = await dashboard.enqueue("hello", name="Ada")
            await page.locator(f'tr[data-key="{run_id}"]').get_by_role("link").first.click()
            await expect(page).to_have_url(re.compile(f"^{proxy.url}/runs/{run_id}"))
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
