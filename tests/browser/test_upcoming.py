"""Test the page of what is to begin soon: sorting, searching, links and time ranges."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, expect

from rota import every, once
from tests.browser.conftest import Dashboard, NewPage
from tests.browser.page_checks import hurdles, sticking_out
from tests.browser.schedule_history import HOSTILE


async def test_what_runs_in_the_next_hour(dashboard: Dashboard, page: Page) -> None:
    await dashboard.client.schedules.create("often", "hello", every("10m"))
    await dashboard.client.schedules.create("rarely", "crawl", every("1h"), payload={"url": "x"})
    late = await dashboard.enqueue("index", {"delay": "30m", "queue": "slow"})
    await page.goto(f"{dashboard.url}/upcoming")
    rows = page.get_by_role("table").locator("tbody tr")
    await expect(rows).to_have_count(8)
    await expect(page.locator(".page-head")).to_contain_text("8 to begin in the next 1 h")
    await expect(rows.filter(has_text="delayed run")).to_contain_text("slow")
    await page.get_by_role("button", name="Schedule or job").click()
    await expect(rows.first).to_contain_text("index")
    await page.get_by_role("button", name="Schedule or job").click()
    await expect(rows.first).to_contain_text("rarely")
    await page.get_by_role("searchbox", name="Find a schedule").fill("SLOW")
    await expect(rows).to_have_count(1)
    await rows.get_by_role("link", name=f"…{late[-12:]}").click()
    await expect(page).to_have_url(re.compile(f"/runs/{late}$"))
    await page.goto(f"{dashboard.url}/upcoming?q=nothing-like-it")
    await expect(page.get_by_text("Nothing matches")).to_be_visible()
    await page.get_by_role("button", name="Show all").click()
    await expect(rows).to_have_count(8)


async def test_where_nothing_is_planned_it_says_so(dashboard: Dashboard, page: Page) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=5)
    await dashboard.client.schedules.create("rarely", "hello", once(at))
    await page.goto(f"{dashboard.url}/upcoming")
    await expect(page.get_by_text("Nothing is planned in this time range")).to_be_visible()
    await page.get_by_role("button", name="24 h").click()
    await expect(page.get_by_role("table").locator("tbody tr").first).to_contain_text("rarely")
    await expect(page).to_have_url(re.compile("within=1d"))


@pytest.mark.parametrize(("scheme", "width", "language"), [("light", 1280, "en-GB"), ("dark", 360, "zh-CN")])
async def test_anybody_can_use_it(
    dashboard: Dashboard, new_page: NewPage, scheme: str, width: int, language: str
) -> None:
    await dashboard.client.schedules.create(HOSTILE * 4, "hello", every("1m"))
    page = await new_page(color_scheme=scheme, viewport={"width": width, "height": 740}, locale=language)
    await page.goto(f"{dashboard.url}/upcoming")
    rule = "every minute" if language == "en-GB" else "每分钟"
    await expect(page.get_by_role("table").locator("tbody tr").first).to_contain_text(rule)
    assert await hurdles(page) == []
    assert await sticking_out(page) == []
