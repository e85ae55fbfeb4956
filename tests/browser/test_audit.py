"""Test the audit log and its filters."""

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import Dashboard


def rows(page: Page) -> Locator:
    return page.get_by_role("table", name="Audit").locator("tbody tr")


async def test_it_tells_who_did_what_to_whom(dashboard: Dashboard, page: Page) -> None:
    run_id = await dashboard.enqueue("hello", {"delay": "1h"})
    await dashboard.client.cancel(run_id, reason="a mistake", actor="ann")
    await dashboard.client.pause_queue("mail", reason="the relay is down", force=True, actor="ben")
    await dashboard.client.pause_job("crawl", actor="ann")
    await page.goto(f"{dashboard.url}/audit")
    await expect(rows(page)).to_have_count(3)
    await expect(rows(page).first).to_contain_text("crawl")
    details = rows(page).nth(1).get_by_role("button", name="reason: the relay is down")
    await details.click()
    await expect(rows(page).nth(1).get_by_role("group", name="Details")).to_contain_text('reason: "the relay is down"')
    await rows(page).first.get_by_role("button", name="ann").click()
    await expect(rows(page)).to_have_count(2)
    await expect(page).to_have_url(f"{dashboard.url}/audit?actor=ann")
    await page.get_by_role("button", name="Kind: All kinds").click()
    await page.get_by_role("menuitemradio", name="run", exact=True).click()
    await expect(rows(page)).to_have_count(1)
    await page.get_by_role("button", name="Clear filters").click()
    await expect(rows(page)).to_have_count(3)
    await page.get_by_role("searchbox", name="Subject").fill("mail")
    await page.keyboard.press("Enter")
    await expect(rows(page)).to_have_count(1)
    await rows(page).first.get_by_role("link", name="mail").last.click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("mail")


async def test_it_comes_by_the_page_and_keeps_up(dashboard: Dashboard, page: Page) -> None:
    for number in range(60):
        await dashboard.client.pause_queue(f"q{number}", force=True)
    await page.goto(f"{dashboard.url}/audit")
    await expect(rows(page)).to_have_count(50)
    await page.get_by_role("button", name="Show more").click()
    await expect(rows(page)).to_have_count(60)
    await dashboard.client.pause_queue("q60", force=True)
    await expect(rows(page)).to_have_count(61)
    await expect(rows(page).first).to_contain_text("q60")


async def test_empty_it_says_why(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/audit")
    await expect(page.get_by_text("No actions yet")).to_be_visible()
    await page.goto(f"{dashboard.url}/audit?actor=nobody")
    await expect(page.get_by_text("No matching entries")).to_be_visible()
