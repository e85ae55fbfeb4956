"""Test the system page: the database's standing, the fleet, and what is wrong with it."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, expect

from rota import every
from tests.browser.conftest import Dashboard, NewPage
from tests.browser.page_checks import hurdles, sticking_out
from tests.browser.sample_data import MARKUP, beat
from tests.support.wait import until


async def lose(dashboard: Dashboard, worker: str) -> None:
    """Let a worker go silent, until it is missed."""
    await beat(dashboard, worker, gone=True)

    async def is_missed() -> bool:
        return bool(await dashboard.client.attention.list(kind="worker_gone"))

    await until(is_missed)


async def test_versions_settings_and_health_of_the_fleet(dashboard: Dashboard, page: Page) -> None:
    await beat(dashboard, "quiet-1", {"mail": 3})
    await dashboard.client.pause_queue("mail", force=True)
    await dashboard.enqueue("hello", {"queue": "mail"})
    await page.goto(f"{dashboard.url}/system")
    badge = page.locator(".rail .count")
    await expect(badge.first).to_have_class("count tone-warn")
    await expect(page.get_by_text("Nothing is wrong")).to_be_visible()
    await expect(page.get_by_text("rota doctor")).to_be_visible()
    await page.get_by_role("button", name="Check now").click()
    checks = page.get_by_role("table", name="Checks")
    await expect(checks.get_by_role("row", name="disk")).to_contain_text("disk space free")
    await expect(checks.get_by_role("row", name="ledger")).to_contain_text("plan times")
    row = page.get_by_role("table", name="Processes").get_by_role("row", name="quiet-1")
    for words in ("1.2.3", "shop 7", "5m", "gpu, eu"):
        await expect(row).to_contain_text(words)
    await expect(page.get_by_text("1.2.3 (1 process)")).to_be_visible()
    await expect(page.get_by_text("as this browser's")).to_be_visible()
    await lose(dashboard, "lost-1")
    await page.reload()
    await expect(page.locator('[data-kind="worker_gone"]')).to_contain_text("went silent without a shutdown")
    await dashboard.enqueue("hello", {"queue": "nobody"})
    await page.reload()
    await expect(badge.first).to_have_class("count tone-bad")
    await expect(page.get_by_role("link", name="Workers").locator(".count")).to_have_class("count tone-warn")


@pytest.mark.parametrize(("scheme", "width", "language"), [("light", 1280, "en-GB"), ("dark", 360, "zh-CN")])
async def test_anybody_can_use_it(
    dashboard: Dashboard, new_page: NewPage, scheme: str, width: int, language: str
) -> None:
    await lose(dashboard, MARKUP)
    page = await new_page(color_scheme=scheme, viewport={"width": width, "height": 740}, locale=language)
    await page.goto(f"{dashboard.url}/system")
    await expect(page.locator('[data-kind="worker_gone"]')).to_be_visible()
    assert await page.locator("img").count() == 0
    assert await hurdles(page) == []
    assert await sticking_out(page) == []


async def test_sentences_of_the_server_are_chinese_for_those_who_read_it(
    dashboard: Dashboard, new_page: NewPage
) -> None:
    await dashboard.client.schedules.create("often", "hello", every("1h"))
    await dashboard.client.pause_queue("mail", force=True)
    run_id = await dashboard.enqueue("hello", {"queue": "nobody", "run_at": datetime.now(UTC) - timedelta(minutes=5)})
    page = await new_page(locale="zh-CN")
    await page.goto(dashboard.url)
    await expect(page.locator('[data-kind="queue_unserved"]')).to_contain_text(
        "没有在线工作进程领取队列 nobody，其中 1 个运行在等待"
    )
    await expect(page.get_by_text("每小时")).to_be_visible()
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.locator(".run-why")).to_contain_text("没有在线工作进程：请用 `rota worker` 启动。")


async def test_the_doctor_speaks_chinese_to_those_who_read_it(dashboard: Dashboard, new_page: NewPage) -> None:
    await lose(dashboard, "lost-1")
    await dashboard.client.schedules.create("often", "hello", every("1h"))
    await dashboard.client.pause_queue("mail", reason="the relay is down", force=True)
    await dashboard.enqueue("hello", {"queue": "mail"})
    await dashboard.enqueue("hello", {"queue": "nobody"})
    page = await new_page(locale="zh-CN")
    await page.goto(f"{dashboard.url}/system")
    await page.get_by_role("button", name="立即检查").click()
    checks = page.get_by_role("table").filter(has=page.locator("tr", has_text="wal"))
    await expect(checks.locator("tbody tr").nth(10)).to_be_visible()
    words = await checks.locator("tbody tr td:last-child").all_inner_texts()
    left = [re.sub(r"the relay is down|`.*?`|rota .*", "", text) for text in words]
    assert [text for text in left if re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}", text)] == []


async def test_problems_of_requests_are_chinese_for_those_who_read_it(dashboard: Dashboard, new_page: NewPage) -> None:
    """Names and values in them stay as they are, whatever they look like."""
    page = await new_page(locale="zh-CN")
    await page.goto(f"{dashboard.url}/jobs/every day")
    await expect(page.get_by_role("alert")).to_contain_text("没有名为 'every day' 的任务")
    await expect(page.get_by_role("alert")).to_contain_text("已知：crawl, endless")
    await page.goto(f"{dashboard.url}/scopes")
    await page.get_by_role("button", name="新建配额").click()
    dialog = page.get_by_role("dialog", name="新建配额")
    await dialog.get_by_label("类别").fill("tenant")
    await dialog.get_by_label("时段内开始数").fill("100/60d")
    await dialog.get_by_role("button", name="保存").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("时段应大于 0s 且不超过 30d，而不是 60d")
