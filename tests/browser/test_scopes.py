"""Test scopes: quotas, pauses, and the page of a tenant."""

import re

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import Dashboard

TENANT = {"scope": ("tenant", "42")}


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name="Quotas").locator(f'tr[data-key="{name}"]')


async def test_a_quota_is_set_and_its_effect_is_said_first(dashboard: Dashboard, page: Page) -> None:
    for _ in range(3):
        await dashboard.enqueue("hello", TENANT)
    await page.goto(f"{dashboard.url}/scopes")
    await page.get_by_role("button", name="New quota").click()
    dialog = page.get_by_role("dialog", name="New quota")
    await dialog.get_by_label("Kind").fill("tenant")
    await dialog.get_by_label("Id").fill("42")
    await dialog.get_by_label("Runs at a time").fill("many")
    await expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    await dialog.get_by_label("Runs at a time").fill("2")
    await dialog.get_by_role("button", name="Save").click()
    await expect(row(page, "tenant/42")).to_contain_text("2 at once")
    await row(page, "tenant/42").get_by_role("button", name="Edit tenant/42").click()
    dialog = page.get_by_role("dialog", name="Quota of tenant/42")
    await expect(dialog.get_by_role("status")).to_contain_text("2 more may start at once.")
    await dialog.get_by_label("Runs at a time").fill("")
    await dialog.get_by_label("Runs that may wait").fill("1")
    await expect(dialog.get_by_role("status")).to_contain_text("More wait already than may")
    await dialog.get_by_role("button", name="Go back").click()
    await row(page, "tenant/42").get_by_role("button", name="Delete tenant/42").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No quotas, and nobody is paused")).to_be_visible()
    assert await dashboard.client.quotas.list() == []


async def test_the_page_of_a_tenant(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    await dashboard.done("hello", TENANT)
    await dashboard.client.quotas.pause("tenant", "42", reason="unpaid", actor="ann")
    await dashboard.enqueue("hello", TENANT)
    await page.goto(f"{dashboard.url}/scopes")
    await page.get_by_role("searchbox", name="Open a scope").fill("tenant/42")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("tenant/42")
    await expect(page.get_by_text("Paused by ann", exact=True)).to_be_visible()
    await expect(page.locator("section", has_text="Why its oldest run waits").get_by_text("unpaid")).to_be_visible()
    await expect(page.get_by_role("link", name="Queued 1")).to_be_visible()
    await expect(page.get_by_role("link", name="Succeeded 1")).to_be_visible()
    await expect(page.get_by_role("link", name=re.compile(r"Run time (0|\d+ms)"))).to_be_visible()
    await expect(page.get_by_role("table", name="Newest runs").locator("tbody tr")).to_have_count(2)
    await page.get_by_role("button", name="Resume tenant/42").click()
    await expect(page.get_by_role("link", name="Succeeded 2")).to_be_visible()
    await expect(page.get_by_text("Paused by ann", exact=True)).to_have_count(0)
