"""Test the schedule editor: preview, review and concurrent changes."""

from playwright.async_api import Page, expect

from rota import cron, every
from tests.browser.conftest import Dashboard


async def test_one_is_made(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/schedules")
    await page.get_by_role("link", name="New schedule").click()
    await page.get_by_label("Name", exact=True).fill("mine")
    await page.get_by_label("Job", exact=True).select_option("crawl")
    expression = page.get_by_label("Expression")
    await expression.fill("61 9 * * *")
    await expect(page.get_by_role("alert").filter(has_text="out of range")).to_be_visible()
    await expect(expression).to_have_attribute("aria-invalid", "true")
    await expression.fill("0 9 * * MON-FRI")
    await page.get_by_role("combobox", name="Time zone").fill("Europe/Berlin")
    await expect(page.get_by_text("weekdays at 09:00, Europe/Berlin")).to_be_visible()
    await expect(page.get_by_role("table", name="Next runs").locator("tbody tr")).to_have_count(10)
    url = page.get_by_label("url", exact=True)
    await expect(url).to_have_attribute("aria-invalid", "true")  # the job wants one
    await url.fill("https://example.com/<b>")
    await expect(url).not_to_have_attribute("aria-invalid", "true")
    await page.get_by_label("If the previous run is active").select_option("queue_one")
    await page.get_by_label("If runs are late").select_option("all")
    await page.get_by_label("Maximum runs").fill("5")
    await page.get_by_label("Jitter").fill("5m")
    await page.get_by_role("button", name="Review and create").click()
    dialog = page.get_by_role("alertdialog", name="Create mine?")
    await expect(dialog.locator("tr", has_text="overlap")).to_contain_text("+ queue_one")
    await dialog.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("mine")
    made = (await dashboard.client.schedules.get("mine")).definition
    assert made.rule.trigger == cron("0 9 * * MON-FRI", "Europe/Berlin")
    assert (made.payload, made.overlap.mode) == ({"url": "https://example.com/<b>"}, "queue_one")
    assert (made.catch_up.mode, made.catch_up.keep, made.jitter.total_seconds()) == ("all", 5, 300)


async def test_kinds_of_triggers_are_told_in_words(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/schedules:new")
    kind, said = page.get_by_label("Trigger type"), page.locator(".schedules-said")
    await kind.select_option("every")
    await page.get_by_label("Interval", exact=True).fill("90m")
    await expect(said).to_have_text("every 1 hour 30 minutes")
    await kind.select_option("after")
    await page.get_by_label("Delay after its last run").fill("5m")
    await expect(said).to_have_text("5 minutes after the last run ended")
    await expect(page.get_by_text("It has no plan times of its own.")).to_be_visible()
    await kind.select_option("following")
    await page.get_by_label("Job to follow").select_option("crawl")
    await page.get_by_label("Run after", exact=True).select_option("end")
    await expect(said).to_have_text("after each end of crawl")
    await kind.select_option("once")
    await page.get_by_label("Time", exact=True).fill("2030-01-31T09:00")
    await expect(said).to_have_text("once at 2030-01-31 08:00:00 UTC")
    await kind.select_option("either")
    await page.get_by_label("Triggers (JSON)").fill('[{"cron": "0 9 * * *"}, {"every": "6h"}]')
    await expect(said).to_have_text("every day at 09:00, UTC or every 6 hours")


async def test_a_name_that_is_taken_is_said_at_the_field(dashboard: Dashboard, page: Page) -> None:
    await dashboard.client.schedules.create("news", "hello", every("1h"))
    await page.goto(f"{dashboard.url}/schedules:new?job=hello")
    await page.get_by_label("Name", exact=True).fill("news")
    await page.get_by_label("Expression").fill("@daily")
    await page.get_by_role("button", name="Review and create").click()
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page.get_by_label("Name", exact=True)).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("Expression")).to_have_value("@daily")


async def test_what_somebody_else_changed_meanwhile_is_shown_and_kept(dashboard: Dashboard, page: Page) -> None:
    schedules = dashboard.client.schedules
    await schedules.create("news", "hello", every("1h"))
    await page.goto(f"{dashboard.url}/schedules/news/edit")
    await page.get_by_label("Interval", exact=True).fill("2h")
    await page.get_by_label("Description").fill("mine")
    await schedules.update("news", description="theirs", jitter="5m")
    await page.get_by_role("button", name="Review and save").click()
    await page.get_by_role("button", name="Save", exact=True).click()
    notice = page.get_by_role("alert").filter(has_text="Somebody else has changed it")
    await expect(notice.locator("tr", has_text="jitter")).to_contain_text("+ 5m")
    await expect(notice.locator("tr", has_text="description")).to_contain_text("changed by you")
    assert (await schedules.get("news")).definition.rule.trigger == every("1h")
    await notice.get_by_role("button", name="Keep my changes").click()
    await page.get_by_role("button", name="Review and save").click()
    changes = page.get_by_role("alertdialog").locator("tbody tr")
    await expect(changes).to_have_count(2)
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("tab", name="Ledger")).to_be_visible()
    saved = (await schedules.get("news")).definition
    assert (saved.rule.trigger, saved.description, saved.jitter.total_seconds()) == (every("2h"), "mine", 300)


async def test_theirs_can_be_taken_instead(dashboard: Dashboard, page: Page) -> None:
    await dashboard.client.schedules.create("news", "hello", every("1h"))
    await page.goto(f"{dashboard.url}/schedules/news/edit")
    await page.get_by_label("Description").fill("mine")
    await dashboard.client.schedules.update("news", description="theirs")
    await page.get_by_role("button", name="Review and save").click()
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.get_by_role("button", name="Take their changes").click()
    await expect(page.get_by_label("Description")).to_have_value("theirs")
    await page.get_by_role("button", name="Review and save").click()
    await expect(page.get_by_text("Nothing has changed.")).to_be_visible()


async def test_the_whole_is_written_as_json(dashboard: Dashboard, page: Page) -> None:
    schedules = dashboard.client.schedules
    await schedules.create("news", "hello", every("1h"), payload={"times": 12345678901234567890})
    await page.goto(f"{dashboard.url}/schedules/news/edit")
    await page.get_by_role("button", name="Edit as JSON").first.click()
    box = page.get_by_label("JSON", exact=True)
    text = await box.input_value()
    await box.fill(text[:-1])
    await expect(page.get_by_text("This is not a JSON object")).to_be_visible()
    await expect(page.get_by_role("button", name="Review and save")).to_be_disabled()
    await box.fill(text.replace('"1h"', '"3h"'))
    await page.get_by_role("button", name="Review and save").click()
    await expect(page.get_by_role("alertdialog").locator("tbody tr")).to_have_count(1)
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("tab", name="Ledger")).to_be_visible()
    saved = (await schedules.get("news")).definition
    assert (saved.rule.trigger, saved.payload) == (every("3h"), {"times": 12345678901234567890})
