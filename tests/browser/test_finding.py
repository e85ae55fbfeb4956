"""Test how things are found: completions, saved searches, columns, totals, the palette and keys that lead to pages."""

import re

from playwright.async_api import Page, expect

from tests.browser.conftest import Dashboard
from tests.browser.page_checks import hurdles, sticking_out


async def test_filters_and_values_are_completed(dashboard: Dashboard, page: Page) -> None:
    await dashboard.enqueue("hello")
    await dashboard.enqueue("crawl", url="x")
    await page.goto(f"{dashboard.url}/runs")
    box = page.get_by_role("searchbox", name="Search")
    await box.fill("sta")
    options = page.get_by_role("listbox", name="Completions").get_by_role("option")
    await expect(options).to_have_count(1)
    await page.keyboard.press("Tab")
    await expect(box).to_have_value("state:")
    await page.keyboard.type("q")
    await page.keyboard.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    assert await hurdles(page) == []
    await page.keyboard.press("Enter")
    await expect(box).to_have_value("state:queued ")
    await page.keyboard.type("job:cr")
    await options.filter(has_text="job:crawl").click()
    await expect(page.get_by_role("table", name="Runs").locator("tbody tr[data-key]")).to_have_count(1)
    await expect(page).to_have_url(re.compile("state%3Aqueued\\+job%3Acrawl"))
    await page.keyboard.type("wor")
    await page.keyboard.press("Escape")
    await expect(options).to_have_count(0)


async def test_searches_are_saved_and_forgotten(dashboard: Dashboard, page: Page) -> None:
    await dashboard.enqueue("hello", {"tags": ["night"]})
    await page.goto(f"{dashboard.url}/runs?q=tag:night")
    await page.get_by_role("button", name="Views").click()
    await page.get_by_role("menuitem", name="Save this search").click()
    await page.get_by_role("dialog").get_by_label("Name").fill("By night")
    await page.get_by_role("dialog").get_by_role("button", name="Save this search").click()
    await page.goto(f"{dashboard.url}/runs")
    await page.get_by_role("button", name="Views").click()
    await page.get_by_role("menuitem", name="By night").click()
    await expect(page).to_have_url(re.compile("tag%3Anight"))
    await page.get_by_role("button", name="Views").click()
    await page.get_by_role("menuitem", name="Remove a saved view").click()
    await page.get_by_role("button", name="Remove By night").click()
    await expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_count(0)


async def test_columns_are_chosen_and_remembered(dashboard: Dashboard, page: Page) -> None:
    await dashboard.enqueue("hello", {"scope": ("tenant", "42"), "queue": "slow", "key": "once"})
    await page.set_viewport_size({"width": 1500, "height": 800})
    await page.goto(f"{dashboard.url}/runs")
    row = page.get_by_role("table", name="Runs").locator("tbody tr[data-key]")
    await expect(row).to_contain_text("tenant/42")
    await expect(row).to_contain_text("slow")
    await expect(page.get_by_text("Newest first · 1 run")).to_be_visible()
    await page.get_by_role("button", name="Columns").click()
    await page.get_by_role("dialog").get_by_label("Key").check()
    await page.get_by_role("dialog").get_by_label("Queue").uncheck()
    assert await hurdles(page) == []
    await page.get_by_role("dialog").get_by_role("button", name="Close").click()
    await page.reload()
    await expect(page.get_by_role("columnheader", name="Key")).to_be_visible()
    await expect(page.get_by_role("columnheader", name="Queue")).to_have_count(0)
    await expect(row).to_contain_text("once")


async def test_the_palette_leads_anywhere(dashboard: Dashboard, page: Page) -> None:
    run_id = await dashboard.enqueue("hello")
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.goto(dashboard.url)
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Go to anything")
    await expect(box).to_be_focused()
    await page.keyboard.type("craw")
    options = page.get_by_role("listbox", name="Results").get_by_role("option")
    await expect(options.first).to_contain_text("crawl")
    assert await hurdles(page) == []
    assert await sticking_out(page) == []
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/jobs/crawl$"))
    await page.keyboard.press("Control+k")
    await page.keyboard.type(run_id)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/runs/{run_id}$"))
    await page.keyboard.press("Control+k")
    await page.keyboard.type("no such page")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/runs\\?q=no\\+such\\+page"))


async def test_g_and_a_letter_lead_to_a_page(dashboard: Dashboard, page: Page) -> None:
    run_id = await dashboard.enqueue("endless")
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.get_by_role("tab", name="Overview")).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("e")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Errors")
    await page.go_back()
    await expect(page.get_by_role("tab", name="Overview")).to_be_visible()
    await page.keyboard.press("c")
    await expect(page.get_by_role("alertdialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("g u Upcoming")
    assert await hurdles(page) == []
