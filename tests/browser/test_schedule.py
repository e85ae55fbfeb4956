"""Test the page of one schedule: next runs, ledger, simulation, events and actions."""

import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest_asyncio
from playwright.async_api import Page, expect

from rota import Rota, RunFilter, every
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from tests.browser.conftest import Dashboard, NewPage, served
from tests.browser.page_checks import hurdles, sticking_out
from tests.browser.schedule_history import HOSTILE, Past, coming_summer_time, lived_once
from tests.support.runs.runs import claim, claim_limited, tell
from tests.support.schedules.schedules import plan

NOTE_DRAWN_TEXTS = """
window.drawn = [];
const draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.drawn.push(String(text));
  return draw.call(this, text, ...rest);
};
"""


@pytest_asyncio.fixture(loop_scope="session")
async def old(sqlite_url: str) -> AsyncIterator[Dashboard]:
    await lived_once(sqlite_url)
    async with served(Rota(sqlite_url)) as found:
        yield found


async def test_it_tells_all_about_it(old: Dashboard, page: Page) -> None:
    await page.goto(f"{old.url}/schedules/news")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("news")
    await expect(page.get_by_text("What is new, four times a day.")).to_be_visible()
    await expect(page.get_by_role("table", name="Next runs").locator("tbody tr")).to_have_count(20)
    await expect(page.get_by_text("A plan time that is more than 8h late is missed.")).to_be_visible()
    calendar = page.get_by_role("img", name="Outcomes of the last 91 days")
    assert "succeeded" in str(await calendar.get_attribute("aria-label"))
    assert "missed" in str(await calendar.get_attribute("aria-label"))
    await page.get_by_role("button", name="Show as table").first.click()
    days = page.get_by_role("table", name="Outcomes of the last 91 days").locator("tbody tr")
    assert 10 <= await days.count() <= 14
    await page.get_by_role("figure", name="Duration").get_by_role("button", name="Show as table").click()
    await expect(page.get_by_role("table", name="Duration")).to_contain_text("s")


async def test_jumps_of_the_clocks_are_marked(old: Dashboard, page: Page) -> None:
    await page.goto(f"{old.url}/schedules/spring")
    jump = page.get_by_role("table", name="Next runs").locator("tr", has_text=f"{coming_summer_time():%d %b}")
    await expect(jump).to_contain_text("time skipped")
    await expect(jump).to_contain_text("03:00 CEST")


async def test_one_zone_on_the_page(old: Dashboard, new_page: NewPage) -> None:
    """The selected one, also for a schedule of another zone; or the schedule's, if that is selected."""
    page = await new_page(timezone_id="Asia/Tokyo")
    await page.goto(f"{old.url}/schedules/morning-report")
    first = page.get_by_role("table", name="Next runs").locator("tbody tr").first
    await expect(first).to_contain_text(re.compile(r"1[67]:00 GMT\+9"))
    await expect(page.locator(".schedules-when")).to_contain_text(re.compile(r"1[67]:00 GMT\+9"))
    await page.get_by_role("button", name="Local time").click()
    await page.get_by_role("menuitemradio", name=re.compile("chedule")).click()
    await expect(first).to_contain_text(re.compile("09:00 CES?T"))
    await expect(page.locator(".schedules-when")).to_contain_text(re.compile("09:00 CES?T"))


async def test_the_ledger_has_one_line_for_all_scopes_of_a_plan_time(sqlite_url: str, page: Page) -> None:
    past = Past(sqlite_url, timedelta(hours=5))
    await past.begin()
    tenants = [("tenant", str(number)) for number in range(40)]
    await past.make("payroll", "hello", every("4h"), scopes=tenants)
    past.clock.at += 4 * 3_600_000_000
    await plan(past.store)
    held = await claim_limited(past.store, 40, known={"hello": 1}) + await claim(past.store, 40, known={"hello": 1})
    outcomes = [Outcome.FAILED] * 2 + [Outcome.CANCELLED] + [Outcome.SUCCEEDED] * 37
    for run, outcome in zip(held, outcomes, strict=True):
        await tell(past.store, run, outcome)
    await past.store.close()
    async with served(Rota(sqlite_url)) as dashboard:
        await page.add_init_script(NOTE_DRAWN_TEXTS)
        await page.goto(f"{dashboard.url}/schedules/payroll?tab=ledger&span=1")
        rows = page.get_by_role("table", name="Ledger").locator("tbody tr[data-key]")
        first = rows.filter(has_text="37 succeeded, 2 failed, 1 cancelled")
        await expect(first).to_contain_text("40 scopes")
        await expect(rows.filter(has_text="tenant/")).to_have_count(3)
        await first.get_by_role("button", name="List all 40").click()
        await expect(rows.filter(has_text="tenant/")).to_have_count(40)
        await first.get_by_role("button", name="List fewer").click()
        await expect(rows.filter(has_text="tenant/")).to_have_count(3)
        await page.goto(f"{dashboard.url}/schedules/payroll")
        cell = page.locator(".schedules-cell[data-outcome=bad]")
        await expect(cell).to_have_attribute("title", re.compile("37 succeeded"))
        assert await cell.evaluate("cell => getComputedStyle(cell).getPropertyValue('--share')") == "20%"  # 2 of 40
        await expect(page.get_by_role("figure", name="Duration").locator("canvas")).to_be_visible()
        drawn = await page.evaluate("window.drawn")
        assert any(re.fullmatch(r"\d\d:\d\d", text) for text in drawn), drawn  # the axis of a chart with one point
        assert "1 Jan" not in drawn


async def test_one_that_fails_says_so_since_when_and_why(sqlite_url: str, new_page: NewPage) -> None:
    past = Past(sqlite_url, timedelta(hours=5, minutes=20))
    await past.begin()
    await past.make("backup", "crawl", every("1h"), payload={"url": "x"}, max_attempts=1, overlap="parallel")
    for _ in range(4):
        past.clock.at += 3_600_000_000
        await plan(past.store)
        (held,) = await claim(past.store, known={"crawl": 1})
        await tell(past.store, held, Outcome.FAILED, error=stored_error(RunError("Full", "no space left")))
    past.clock.at += 3_600_000_000
    await plan(past.store)
    await past.store.close()
    async with served(Rota(sqlite_url)) as dashboard:
        page = await new_page()
        await page.goto(f"{dashboard.url}/schedules/backup")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("failing")
        item = page.get_by_role("list", name="Needs attention").locator("[data-kind=schedule_failing]")
        await expect(item).to_contain_text("the last 4 runs of schedule backup failed: Full: no space left")
        await expect(item).to_contain_text("for 4h 2")
        assert await hurdles(page) == []
        await item.get_by_role("link", name="Failing schedule").click()
        await expect(page.get_by_role("table", name="Runs").locator("tbody tr[data-key]")).to_have_count(4)
        await page.go_back()
        await item.get_by_role("button", name=re.compile("^Snooze")).click()
        await page.get_by_role("dialog").get_by_label("Reason").fill("the disk is being replaced")
        await page.get_by_role("dialog").get_by_role("button", name="Snooze").click()
        await expect(item).to_have_count(0)
        await dashboard.client.attention.unsnooze("schedule_failing", "backup")
        await page.reload()
        await item.get_by_role("button", name=re.compile("^Run now")).click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Run now").click()
        await expect(page.get_by_role("alertdialog")).to_have_count(0)
        assert (await dashboard.client.count(RunFilter(schedule="backup"))).count == 6
        chinese = await new_page(locale="zh-CN", viewport={"width": 390, "height": 844}, color_scheme="dark")
        await chinese.goto(f"{dashboard.url}/schedules/backup")
        await expect(chinese.get_by_text("计划 backup 最近 4 次运行均失败：Full: no space left")).to_be_visible()
        assert await sticking_out(chinese) == []
        assert await hurdles(chinese) == []


async def test_the_ledger_tells_what_had_no_run_and_why(old: Dashboard, page: Page) -> None:
    await page.goto(f"{old.url}/schedules/news?tab=ledger&span=30")
    ledger = page.get_by_role("table", name="Ledger")
    await expect(ledger.locator("tbody tr[data-key]").first).to_be_visible()
    await page.get_by_role("button", name="missed", exact=True).click()
    await expect(page).to_have_url(f"{old.url}/schedules/news?tab=ledger&span=30&kind=missed")
    await expect(ledger).to_contain_text("plan times")
    await ledger.get_by_role("button", name="Explain").first.click()
    await expect(page.get_by_role("dialog")).to_contain_text("missed")
    await page.keyboard.press("Escape")
    await page.goto(f"{old.url}/schedules/rests?tab=ledger&span=30&kind=paused")
    await expect(ledger).to_contain_text("passed while paused")
    await page.goto(f"{old.url}/schedules/rests?tab=events")
    await expect(page.get_by_role("table", name="Events")).to_contain_text("paused")
    await expect(page.get_by_text("the other side is being moved").first).to_be_visible()


async def test_longer_runs_are_simulated(old: Dashboard, page: Page) -> None:
    await page.goto(f"{old.url}/schedules/news?tab=simulate")
    await page.get_by_label("Simulated time").select_option("7d")
    await page.get_by_label("Run duration").fill("9h")
    await page.get_by_label("Overlap").select_option("allow")
    await page.get_by_role("button", name="Simulate").click()
    result = page.get_by_role("table", name="Result")
    await expect(result.locator("tr", has_text="runs")).to_have_text("runs1428")
    await expect(result.locator("tr", has_text="skipped")).to_have_text("skipped140")
    await page.get_by_label("Run duration").fill("soon")
    await page.get_by_role("button", name="Simulate").click()
    await expect(page.get_by_role("alert")).to_contain_text("is not a duration")


async def test_it_is_switched_off_and_on_and_deleted(dashboard: Dashboard, page: Page) -> None:
    schedules = dashboard.client.schedules
    await schedules.create(HOSTILE, "hello", every("1h"), description=HOSTILE)
    await page.goto(f"{dashboard.url}/schedules")
    await page.get_by_role("link", name=HOSTILE, exact=True).click()
    more = page.get_by_role("button", name=f"More actions for {HOSTILE}")
    await more.click()
    await page.get_by_role("menuitem", name="Disable").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Disable").click()
    await expect(page.locator("h1")).to_contain_text("disabled")
    assert (await schedules.get(HOSTILE)).state == "disabled"
    await more.click()
    await page.get_by_role("menuitem", name="Enable").click()
    await expect(page.locator("h1")).to_contain_text("active")
    await page.get_by_role("button", name="Run now").click()
    await expect(page.get_by_text(f"{HOSTILE} started")).to_be_visible()
    await more.click()
    await page.get_by_role("menuitem", name="Delete…").click()
    dialog = page.get_by_role("alertdialog", name=f"Delete {HOSTILE}?")
    await expect(dialog).to_contain_text("Its runs stay")
    await dialog.get_by_role("button", name="Delete schedule").click()
    await expect(page.get_by_text("No schedules yet")).to_be_visible()
    assert await schedules.list() == []
    assert len(await dashboard.client.list(RunFilter())) == 1
    await page.go_back()
    await expect(page.get_by_text("Schedule not found")).to_be_visible()


async def test_a_backfill_counts_before_it_makes_runs(sqlite_url: str, page: Page) -> None:
    past = Past(sqlite_url, timedelta(hours=10))
    await past.begin()
    await past.make("news", "hello", every("1h"), catch_up="none")
    await past.live(timedelta(hours=20))
    await past.store.close()
    async with served(Rota(sqlite_url)) as dashboard:
        await page.goto(f"{dashboard.url}/schedules/news")
        await page.get_by_role("button", name="More actions for news").click()
        await page.get_by_role("menuitem", name="Backfill…").click()
        dialog = page.get_by_role("dialog", name="Backfill news")
        before = await dashboard.client.list(RunFilter(schedule="news"))
        start = datetime.now(ZoneInfo("Europe/Berlin")) - timedelta(hours=5)  # the browser's zone
        await dialog.get_by_label("From").fill(f"{start:%Y-%m-%dT%H:%M}")
        await dialog.get_by_role("button", name="Count").click()
        await expect(dialog.get_by_role("status")).to_contain_text("runs would be created")
        assert await dashboard.client.list(RunFilter(schedule="news")) == before
        await dialog.get_by_role("button", name="Create").click()
        await expect(dialog.get_by_role("status")).to_contain_text("runs created")
        made = len(await dashboard.client.list(RunFilter(schedule="news"))) - len(before)
        assert 4 <= made <= 6
        await expect(dialog.get_by_role("status")).to_contain_text(f"{made} runs created")
