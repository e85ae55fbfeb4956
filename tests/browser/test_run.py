"""Test the page of one run: state, progress, result and actions."""

import re

import pytest
from playwright.async_api import Page, expect

from rota import RunFilter, RunState
from tests.browser.conftest import Dashboard, NewPage
from tests.browser.page_checks import hurdles, sticking_out


async def test_one_that_succeeded(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.done("index", {"tags": ["night"], "scope": ("account", "42")}, pages=3)
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.locator("h1 [data-state]")).to_have_attribute("data-state", "succeeded")
    steps = page.get_by_role("table", name="Steps").locator("tbody tr")
    await expect(steps).to_have_count(3)
    await expect(steps.first).to_contain_text("succeeded")
    await expect(page.get_by_role("log")).to_contain_text("page 2 is here")
    await expect(page.get_by_role("group", name="Result")).to_contain_text("12345678901234567890")
    await expect(page.get_by_role("heading", name="Explain").locator("../..")).to_contain_text("It succeeded at")
    await page.get_by_role("tab", name="Events").click()
    await expect(page.get_by_role("table", name="Events").locator("tbody tr")).to_have_count(3)
    await page.get_by_role("tab", name="Attempts").click()
    await expect(page.get_by_role("table", name="Attempts").locator("tbody tr")).to_have_count(1)
    await page.reload()
    await expect(page.get_by_role("tab", name="Attempts")).to_have_attribute("aria-selected", "true")
    await page.get_by_role("tab", name="Overview").click()
    await page.get_by_role("link", name="account/42").click()
    await expect(page).to_have_url(re.compile(r"/runs\?q=scope%3Aaccount%2F42"))


async def test_one_that_failed_shows_own_code_first(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.done("crawl", url="nowhere")
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.get_by_role("list", name="Your code").get_by_role("listitem").first).to_contain_text(
        "crawl browser/jobs.py"
    )
    await page.get_by_text("Full traceback").click()
    await expect(page.get_by_text("Traceback (most recent call last)")).to_be_visible()
    await page.get_by_role("link", name="Runs with this error").click()
    await expect(page.get_by_role("table", name="Runs").locator(f'tr[data-key="{run_id}"]')).to_be_visible()


async def test_it_is_followed_while_it_runs_and_cancelled(dashboard: Dashboard, page: Page) -> None:
    run_id = await dashboard.enqueue("endless")
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.locator("h1 [data-state]")).to_have_attribute("data-state", "queued")
    await dashboard.work()
    await expect(page.locator("h1 [data-state]")).to_have_attribute("data-state", "running")
    await page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("alertdialog", name="Cancel this run of endless?")
    await dialog.get_by_label("Reason").fill("enough")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(page.locator("h1 [data-state]")).to_have_attribute("data-state", "cancelled")
    run = await dashboard.client.get(run_id)
    assert (run.state, run.reason) == (RunState.CANCELLED, "enough")


async def test_a_cancel_says_how_far_it_is(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.enqueue("stubborn")
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.locator("h1 [data-state]")).to_have_attribute("data-state", "running")
    await dashboard.client.cancel(run_id, reason="now", actor="cli:ann")
    phase = page.get_by_role("status").filter(has_text="Stop requested")
    await expect(phase).to_contain_text("cli:ann")
    await expect(phase).to_contain_text("If it does not stop, it is ended at")
    await expect(page.get_by_role("button", name="Cancel")).to_be_disabled()


async def test_the_log_grows_by_itself(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.enqueue("index", pages=60)
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.get_by_role("log")).to_contain_text("page 59 is here")
    await expect(page.locator("h1 [data-state]")).to_have_attribute("data-state", "succeeded")
    assert await page.locator(".run-logline").count() == 60


async def test_a_retry_is_a_new_run_that_may_keep_steps(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.done("index", pages=1)
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.get_by_role("button", name="Retry")).to_be_visible()
    await page.keyboard.press("r")
    dialog = page.get_by_role("alertdialog", name="Retry this run of index?")
    assert await hurdles(page) == []
    await dialog.get_by_label("Keep results of finished steps").check()
    await dialog.get_by_role("button", name="Retry").click()
    await expect(page).not_to_have_url(f"{dashboard.url}/runs/{run_id}")
    await expect(page.get_by_role("link", name=f"…{run_id[-12:]}").first).to_be_visible()
    newest = (await dashboard.client.list(RunFilter(job="index")))[0]
    assert newest.retry_of == run_id


async def test_those_around_it(dashboard: Dashboard, page: Page) -> None:
    first = await dashboard.enqueue("hello")
    second = await dashboard.enqueue("hello", {"after": [first]})
    await page.goto(f"{dashboard.url}/runs/{second[-12:]}")  # shortened ids are fine
    await expect(page).to_have_url(f"{dashboard.url}/runs/{second}")
    await page.get_by_role("heading", name="Follows").locator("..").get_by_role("link").click()
    await expect(page).to_have_url(f"{dashboard.url}/runs/{first}")
    await expect(page.get_by_role("heading", name="Followed by")).to_be_visible()


async def test_one_that_is_not_there(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/runs/01a1e462-2641-73e0-be10-000000000000")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Run not found")
    await expect(page.get_by_role("alert")).to_contain_text("there is no run")


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 360)])
async def test_anybody_can_use_it(dashboard: Dashboard, new_page: NewPage, scheme: str, width: int) -> None:
    await dashboard.work()
    good = await dashboard.done("index", {"tags": ["x" * 200]}, pages=2)
    bad = await dashboard.done("crawl", url="http://example.com/" + "x" * 300)
    page = await new_page(color_scheme=scheme, viewport={"width": width, "height": 740})
    for address in (f"/runs/{good}", f"/runs/{bad}", f"/runs/{bad}?tab=attempts", f"/runs/{bad}?tab=events"):
        await page.goto(dashboard.url + address)
        await expect(page.get_by_role("tab", name="Overview")).to_be_visible()
        await expect(page.locator("main .skeleton")).to_have_count(0)
        assert await hurdles(page) == [], address
        assert await sticking_out(page) == [], address
