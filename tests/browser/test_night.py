"""Eight questions of an on-call night, each from the overview: what they cost in clicks, with the keys that are typed.

A click is one press of the pointer, or one text typed. The budget is the shortest way that the page offers: it may
only fall.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from rota import every
from tests.browser.conftest import Dashboard

TENANT = ("tenant", "42")


class Hand:
    """Somebody at the page, whose clicks are counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    async def click(self, what: Locator) -> None:
        self.clicks += 1
        await what.click()

    async def type(self, where: Locator, text: str) -> None:
        self.clicks += 1
        await where.fill(text)
        await where.press("Enter")

    async def go(self, place: str) -> None:
        await self.click(
            self.page.get_by_role("navigation", name="Main").get_by_role("link", name=re.compile(f"^{place}"))
        )

    def run(self, run_id: str) -> Locator:
        return self.page.locator(f'tr[data-key="{run_id}"]').get_by_role("link").first

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name)

    def dialog(self, button: str) -> Locator:
        return self.page.locator(".dialog").get_by_role("button", name=button).last


@pytest_asyncio.fixture(loop_scope="session")
async def hand(dashboard: Dashboard, page: Page) -> AsyncIterator[Hand]:
    hand = Hand(page)
    await page.goto(dashboard.url)
    await page.get_by_role("heading", level=1).wait_for()
    began = time.perf_counter()
    yield hand
    print(f"{hand.clicks} clicks, {time.perf_counter() - began:.1f} s")  # pytest -rP shows it


async def test_why_did_it_not_run(dashboard: Dashboard, hand: Hand) -> None:
    await dashboard.client.schedules.create("nightly", "endless", every("1s"), overlap="skip")
    await dashboard.work()
    await hand.go("Schedules")
    await hand.click(hand.page.get_by_role("link", name="nightly", exact=True))
    await hand.click(hand.page.get_by_role("tab", name="Ledger"))
    skipped = hand.page.get_by_role("row").filter(has_text="skipped").first
    await hand.click(skipped.get_by_role("button", name=re.compile("^Explain")))
    await expect(hand.page.get_by_role("dialog")).to_contain_text(re.compile("It was skipped.*overlap", re.DOTALL))
    assert hand.clicks <= 4


async def test_retry_all_of_one_error(dashboard: Dashboard, hand: Hand) -> None:
    await dashboard.work()
    for number in range(3):
        await dashboard.done("crawl", url=f"https://example.com/{number}")
    await hand.go("Errors")
    await hand.click(hand.button("Retry all: NoSuchPage"))
    await hand.click(hand.dialog("Retry 3"))
    await expect(hand.page.get_by_role("dialog").get_by_text("3 runs retried")).to_be_visible()
    assert hand.clicks <= 3


async def test_cancel_a_runaway(dashboard: Dashboard, hand: Hand) -> None:
    await dashboard.work()
    run_id = await dashboard.enqueue("endless")
    await hand.click(hand.page.get_by_role("link", name=re.compile("^Running 1")))
    await hand.click(hand.run(run_id))
    await hand.click(hand.button("Cancel"))
    await hand.click(hand.dialog("Cancel"))
    await expect(hand.page.locator("[data-state=cancelled]").first).to_be_visible()
    assert hand.clicks <= 4


async def test_pause_a_tenant(dashboard: Dashboard, hand: Hand) -> None:
    await dashboard.enqueue("hello", {"scope": TENANT})
    await hand.go("Scopes")
    await hand.type(hand.page.get_by_role("searchbox", name="Open a scope"), "tenant/42")
    await hand.click(hand.button("Pause tenant/42"))
    await hand.click(hand.dialog("Pause"))
    await expect(hand.page.get_by_text(re.compile("^Paused by"))).to_be_visible()
    assert hand.clicks <= 4


async def test_find_by_payload_value(dashboard: Dashboard, hand: Hand) -> None:
    _, run_id = [await dashboard.enqueue("hello", name=name) for name in ("Ada", "Grace")]
    await hand.type(hand.page.get_by_role("searchbox", name="Search runs"), "payload.name:Grace")
    rows = hand.page.get_by_role("table").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(hand.run(run_id)).to_be_visible()
    assert hand.clicks <= 1


async def test_what_runs_in_the_next_hour(dashboard: Dashboard, hand: Hand) -> None:
    await dashboard.client.schedules.create("often", "hello", every("20m"))
    await hand.go("Upcoming")
    await expect(hand.page.get_by_role("table").locator("tbody tr")).to_have_count(3)
    assert hand.clicks <= 1


async def test_this_run_against_the_usual(dashboard: Dashboard, hand: Hand) -> None:
    await dashboard.work()
    run_id = await dashboard.done("hello")
    stats = {"job": "hello", "total": 900, "succeeded": 900, "p50_duration_ms": 60_000, "p95_duration_ms": 120_000}
    await hand.page.route("**/api/v1/jobs/*/stats", lambda route: route.fulfill(json=stats))
    await hand.go("Runs")
    await hand.click(hand.run(run_id))
    await expect(hand.page.locator(".run-usual")).to_contain_text(re.compile("usual"))
    assert hand.clicks <= 2


async def test_who_paused_this(dashboard: Dashboard, hand: Hand) -> None:
    await dashboard.enqueue("hello", {"queue": "mail", "run_at": datetime.now(UTC) - timedelta(minutes=5)})
    await dashboard.client.pause_queue("mail", reason="the relay is down", actor="cli:ann")
    item = hand.page.locator('[data-kind="queue_paused"]')
    await expect(item).to_contain_text("paused by cli:ann (the relay is down)")
    assert hand.clicks == 0
