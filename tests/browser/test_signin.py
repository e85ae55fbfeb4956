"""Test sign-in: with a token, after an expired session, and by role."""

import re

from playwright.async_api import Page, expect

from rota import Rota
from tests.browser import sample_data
from tests.browser.conftest import Dashboard, NewPage, served
from tests.browser.page_checks import hurdles, sticking_out
from tests.support.wait import until


async def sign_in(page: Page, dashboard: Dashboard, name: str, role: str, address: str = "/") -> None:
    token = await dashboard.client.tokens.create(name, role)
    await page.goto(dashboard.url + address)
    await page.get_by_label("Token").fill(token.secret)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name=f"Signed in: {name} · {role}")).to_be_visible()


async def test_a_session_that_ends_keeps_the_page(sqlite_url: str, page: Page) -> None:
    async with served(Rota(sqlite_url, auth=True)) as dashboard:
        await sign_in(page, dashboard, "ada", "operator", "/queues")
        await page.get_by_role("button", name="Pause default").click()
        pausing = page.get_by_role("alertdialog", name="Pause queue default?")
        await pausing.get_by_label("Reason").fill("the relay is down")
        await dashboard.client.tokens.revoke("ada")
        asked = page.get_by_role("alertdialog", name="Sign in again")

        async def is_refused() -> bool:
            """A server remembers for a while who was good."""
            return (await page.context.request.get(f"{dashboard.url}/api/v1/whoami")).status == 401

        await until(is_refused)
        await pausing.get_by_role("button", name="Pause").click()
        await expect(asked).to_be_visible()
        assert await hurdles(page) == []
        assert not any(queue.paused for queue in await dashboard.client.queues())
        again = await dashboard.client.tokens.create("ben", "operator")
        await asked.get_by_label("Token").fill(again.secret)
        await asked.get_by_role("button", name="Sign in").click()
        await expect(asked).to_have_count(0)
        await expect(pausing.get_by_label("Reason")).to_have_value("the relay is down")
        await pausing.get_by_role("button", name="Pause").click()
        await expect(page.get_by_text("Paused by token:ben: the relay is down")).to_be_visible()
        await expect(page.locator(".live")).to_have_text("live")
        await expect(page.get_by_role("button", name="Signed in: ben · operator")).to_be_visible()


async def test_whoever_guesses_has_to_wait(sqlite_url: str, new_page: NewPage) -> None:
    async with served(Rota(sqlite_url, auth=True)) as dashboard:
        page = await new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
        await page.goto(dashboard.url)
        await page.get_by_label("Token").fill("rota_wrong_token")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_have_text("This token is unknown, revoked or expired.")
        for _ in range(9):
            await page.request.post(f"{dashboard.url}/api/v1/session", data={"token": "rota_wrong_token"})
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_have_text(re.compile(r"Too many wrong tokens .* in \d+ s\."))
        await expect(page.get_by_role("button", name="Sign in")).to_be_disabled()
        assert await hurdles(page) == []
        assert await sticking_out(page) == []


async def test_a_viewer_sees_everything_and_no_action(sqlite_url: str, page: Page) -> None:
    async with served(Rota(sqlite_url, auth=True)) as dashboard:
        worker_id = await sample_data.beat(dashboard, "quiet-1")
        run_id = await dashboard.enqueue("hello")
        await sign_in(page, dashboard, "vera", "viewer", "/workers")
        addresses = ["/workers", f"/workers/{worker_id}", "/queues", "/queues/default", "/jobs", "/jobs/hello"]
        for address in [*addresses, "/runs", f"/runs/{run_id}", "/audit"]:
            await page.goto(dashboard.url + address)
            await expect(page.locator(".skeleton")).to_have_count(0)
            await expect(page.get_by_role("button", name="Signed in: vera")).to_be_visible()
            acts = page.locator("main").get_by_role(
                "button", name=re.compile("Pause|Drain|Stop|Run now|Enqueue|Cancel|Actions")
            )
            await expect(acts).to_have_count(0)
        await sign_out(page)


async def sign_out(page: Page) -> None:
    await page.get_by_role("button", name=re.compile("Signed in")).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Token")).to_be_visible()
