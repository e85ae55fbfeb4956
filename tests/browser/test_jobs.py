"""Test jobs: state, statistics, definition and actions."""

import re

from playwright.async_api import Locator, Page, expect

from rota import RunFilter, every
from tests.browser.conftest import Dashboard


def row(page: Page, job: str) -> Locator:
    return page.get_by_role("table", name="Jobs").locator(f'tr[data-key="{job}"]')


async def test_they_say_how_they_stand_and_how_it_went(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    await dashboard.done("hello")
    await dashboard.done("crawl", url="nowhere")
    await page.goto(f"{dashboard.url}/jobs")
    await expect(row(page, "hello")).to_contain_text("completed")
    await expect(row(page, "hello")).to_contain_text("100%")
    await expect(row(page, "crawl")).to_contain_text("0.0%")
    await expect(row(page, "stubborn")).to_contain_text("never ran")
    await page.get_by_role("searchbox", name="Find a job").fill("ell")
    await expect(page.get_by_role("table", name="Jobs").locator("tbody tr")).to_have_count(1)
    await row(page, "hello").get_by_role("link", name="hello").click()
    await expect(page.get_by_role("table", name="Newest runs").locator("tbody tr")).to_have_count(1)
    await expect(page.get_by_role("table", name="Payload")).to_contain_text("times")
    await expect(page.get_by_text("Says hello")).to_be_visible()


async def test_statistics_of_all_rows_are_one_question(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    await dashboard.done("hello")
    await dashboard.done("crawl", url="nowhere")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/api/v1")[2]))
    await page.goto(f"{dashboard.url}/jobs")
    await expect(row(page, "hello")).to_contain_text("100%")
    await expect(row(page, "crawl")).to_contain_text("0.0%")
    assert [path for path in asked if "stats" in path] == ["/jobs:stats?limit=100"]


async def test_one_is_paused_and_resumed(dashboard: Dashboard, page: Page) -> None:
    await dashboard.client.schedules.create("hourly", "hello", every("1h"))
    await page.goto(f"{dashboard.url}/jobs/hello")
    await expect(page.get_by_role("link", name="hourly")).to_be_visible()
    await page.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("alertdialog", name="Pause hello?")
    await dialog.get_by_label("Reason").fill("the site is down")
    await dialog.get_by_role("button", name="Pause").click()
    await expect(page.get_by_text("the site is down")).to_be_visible()
    status = await dashboard.client.job_status("hello")
    assert (status.state, status.pause_reason, status.paused_by) == ("paused", "the site is down", "api")
    await page.get_by_role("button", name="Resume").click()
    dialog = page.get_by_role("alertdialog", name="Resume hello?")
    await dialog.get_by_label("Missed plan times").select_option("latest")
    await dialog.get_by_role("button", name="Resume").click()
    await expect(page.get_by_text("the site is down")).to_have_count(0)
    assert (await dashboard.client.job_status("hello")).state == "scheduled"


async def test_one_is_run_now_and_all_of_it_cancelled(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/jobs/hello")
    await page.get_by_role("button", name="Run now").click()
    dialog = page.get_by_role("dialog", name="Enqueue a run")
    await dialog.get_by_label("name", exact=True).fill("Ada")
    await dialog.get_by_role("button", name="Enqueue").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("queued")
    await page.goto(f"{dashboard.url}/jobs")
    await row(page, "hello").get_by_role("button", name="Actions: hello").click()
    await page.get_by_role("menuitem", name="Cancel all runs").click()
    dialog = page.get_by_role("alertdialog", name="Cancel all runs of hello?")
    await expect(dialog).to_contain_text("Its 1 active run is cancelled")
    await dialog.get_by_role("button", name="Cancel all").click()
    await expect(row(page, "hello")).to_contain_text("cancelled")
    (run,) = await dashboard.client.list(RunFilter(job="hello"))
    assert (run.state, run.payload) == ("cancelled", {"name": "Ada"})


async def test_the_newest_run_is_retried(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    failed = await dashboard.done("crawl", url="nowhere")
    await page.goto(f"{dashboard.url}/jobs/crawl")
    await page.get_by_role("button", name="Actions: crawl").click()
    await page.get_by_role("menuitem", name="Retry newest run").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Retry newest run").click()
    await expect(page).to_have_url(re.compile("/runs/"))
    newest = await dashboard.client.get(page.url.rpartition("/")[2])
    assert (newest.job, newest.retry_of) == ("crawl", failed)
    await page.goto(f"{dashboard.url}/jobs/hello")
    await page.get_by_role("button", name="Actions: hello").click()
    await page.get_by_role("menuitem", name="Retry newest run").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Retry newest run").click()
    await expect(page.get_by_role("alert")).to_contain_text("The request failed")
