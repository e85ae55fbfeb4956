"""Test alerts: expectations and notifications are shown, set and switched."""

from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import Dashboard


def row(page: Page, table: str, name: str) -> Locator:
    return page.get_by_role("table", name=table).locator(f'tr[data-key="{name}"]')


async def test_an_expectation_is_set_changed_and_deleted(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/alerts")
    await expect(page.get_by_text("Nothing is expected")).to_be_visible()
    await page.get_by_role("button", name="Expect something").click()
    dialog = page.get_by_role("dialog", name="Expect something")
    await dialog.get_by_label("Of a").select_option("job")
    await dialog.get_by_label("Name").fill("nothing-of-that-name")
    await dialog.get_by_label("Succeeds every").fill("12h")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("nothing-of-that-name")
    await dialog.get_by_label("Name").fill("hello")
    await dialog.get_by_role("button", name="Save").click()
    mine = row(page, "Expectations", "job/hello")
    await expect(mine).to_contain_text("Succeeds every 12h")
    await mine.get_by_role("button", name="Edit hello").click()
    dialog = page.get_by_role("dialog", name="Expectations of hello")
    await dialog.get_by_label("Failures in a row, at most").fill("few")
    await expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    await dialog.get_by_label("Failures in a row, at most").fill("3")
    await dialog.get_by_label("Succeeds every").fill("")
    await dialog.get_by_role("button", name="Save").click()
    await expect(mine).to_contain_text("Failures in a row, at most 3")
    assert (await dashboard.client.expectations.get("job", "hello")).expect == {"max_consecutive_failures": 3}
    await mine.get_by_role("button", name="Delete hello").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="Nothing is expected")).to_be_visible()


async def test_a_notification_is_added_switched_off_and_deleted(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/alerts")
    await page.get_by_role("button", name="New notification").click()
    dialog = page.get_by_role("dialog", name="New notification")
    await dialog.get_by_label("Name").fill("ops")
    await dialog.get_by_label("To").fill("nowhere")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("must be a URL")
    await dialog.get_by_label("To").fill("mailto:ops@example.com")
    await dialog.get_by_role("button", name="met again").click()
    await dialog.get_by_label("Jobs").fill("hello crawl")
    await dialog.get_by_role("button", name="Create").click()
    ops = row(page, "Notifications", "ops")
    await expect(ops).to_contain_text("failure, breached")
    await expect(ops).to_contain_text("hello, crawl")
    await ops.get_by_role("button", name="Switch off ops").click()
    await expect(ops.get_by_role("button", name="Switch on ops")).to_be_visible()
    stored = await dashboard.client.notifications.get("ops")
    assert (list(stored.on), list(stored.jobs), stored.enabled) == (["failure", "breached"], ["hello", "crawl"], False)
    await ops.get_by_role("button", name="Delete ops").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Nobody is told")).to_be_visible()
