"""Test the page of one run: state, progress, result and actions."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, Route, expect

from rota import RunFilter, RunState
from tests.browser.conftest import Dashboard, NewPage
from tests.browser.page_checks import hurdles, sticking_out

NOBODY = {
    "state": "queued", "queue": "default", "scope": {"kind": "global", "id": "global"}, "schedule": None, "attempt": 0,
    "worker_id": None, "created_at": "2026-01-31T08:00:00Z", "run_at": "2026-01-31T08:00:00Z", "started_at": None,
    "finished_at": None, "percentage": None, "more": False,
}  # fmt: skip


async def test_one_that_succeeded(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.done("index", {"tags": ["night"], "scope": ("account", "42")}, pages=3)
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.locator("h1 [data-state]")).to_have_attribute("data-state", "succeeded")
    steps = page.get_by_role("table", name="Steps").locator("[data-step]")
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
    for address in (
        f"/runs/{good}",
        f"/runs/{bad}",
        f"/runs/{bad}?tab=attempts",
        f"/runs/{bad}?tab=events",
        f"/runs/{good}?tab=compare",
    ):
        await page.goto(dashboard.url + address)
        await expect(page.get_by_role("tab", name="Overview")).to_be_visible()
        await expect(page.locator("main .skeleton")).to_have_count(0)
        assert await hurdles(page) == [], address
        assert await sticking_out(page) == [], address


async def test_it_is_measured_against_the_usual(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.done("hello")

    async def answer(route: Route) -> None:
        stats = {"succeeded": 900, "p50_duration_ms": 60_000, "p95_duration_ms": 120_000}
        await route.fulfill(json={"job": "endless", "total": 900, **stats})

    await page.route("**/api/v1/jobs/*/stats", answer)
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.locator(".run-usual")).to_contain_text("much shorter than usual")
    await expect(page.locator(".run-usual")).to_contain_text("1m 00s (p50) to 2m 00s (p95)")

    async def late(route: Route) -> None:
        run = await (await route.fetch()).json()
        begun = (datetime.now(UTC) - timedelta(minutes=4, seconds=36)).isoformat()
        await route.fulfill(json={**run, "state": "running", "finished_at": None, "started_at": begun})

    await page.route(f"**/api/v1/runs/{run_id}", late)
    await page.reload()
    await expect(page.locator(".run-usual")).to_contain_text("already 4.6 × longer than usual")
    await page.unroute_all(behavior="ignoreErrors")


async def test_steps_are_a_waterfall_with_the_waits_before_them(dashboard: Dashboard, page: Page) -> None:
    """Also of steps that an earlier attempt took: what came before the last attempt was not all spent in the queue."""
    await dashboard.work()
    run_id = await dashboard.done("index")

    def at(second: float) -> str:
        return f"2026-01-31T08:00:{second:09.6f}Z"

    async def answer(route: Route) -> None:
        response = await route.fetch()
        run = await response.json()
        times = [(1, 3), (5, 6), (11, 20)]  # 2s of waiting within the first attempt, 1s after the second began at 10
        for step, (begins, ends) in zip(run["progress"]["steps"], times, strict=True):
            step.update(started_at=at(begins), finished_at=at(ends))
        run.update(created_at=at(0), run_at=at(0), started_at=at(10), finished_at=at(20), attempt=2)
        await route.fulfill(response=response, json=run)

    await page.route(f"**/api/v1/runs/{run_id}", answer)
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    rows = page.get_by_role("table", name="Steps").locator("tbody tr")
    await expect(rows).to_have_count(4)
    await expect(rows.nth(0)).to_contain_text(re.compile("1 earlier attempt.*10s", re.DOTALL))
    told = [await rows.nth(place).locator(".run-wide").inner_text() for place in (1, 2, 3)]
    assert [text.strip() for text in told] == ["page 2", "after 2.0s of waiting", "after 1.0s of waiting"]
    bar = rows.nth(3).locator(".run-track i:last-child")
    assert await bar.evaluate("bar => bar.style.left") == "55%"


async def test_it_is_compared_with_the_last_good_one(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    good = await dashboard.done("index", pages=1)
    await dashboard.done("hello")
    run_id = await dashboard.done("index", {"priority": 7}, pages=4)
    await page.goto(f"{dashboard.url}/runs/{run_id}?tab=compare")
    await expect(page.get_by_role("link", name=f"…{good[-12:]}")).to_be_visible()
    facts = page.get_by_role("table", name="Comparison")
    await expect(facts.get_by_role("row", name="Priority")).to_contain_text("7")
    await expect(facts.locator("[data-differs]").filter(has_text="Priority")).to_have_count(1)
    payload = page.get_by_role("table", name="Payload").locator("tbody tr")
    await expect(payload).to_have_count(1)
    await expect(payload).to_contain_text("pages")
    await expect(page.get_by_role("region", name="Log").locator('[data-kind="after"]')).to_have_count(3)
    assert await hurdles(page) == []
    await page.goto(f"{dashboard.url}/runs/{good}?tab=compare")
    await expect(page.get_by_text("No good run before this one")).to_be_visible()
    await page.get_by_label("Id of another run").fill(run_id)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("table", name="Comparison")).to_be_visible()


async def test_a_retry_with_another_payload(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.done("crawl", url="https://example.com", token="hush-hush")
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await page.get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("alertdialog")
    await dialog.get_by_label("Edit the payload").check()
    await dialog.get_by_label("url").fill("https://example.org")
    changes = dialog.get_by_role("table", name="Changes").locator("tbody tr")
    await expect(changes).to_have_count(1)
    await expect(changes).to_contain_text("https://example.org")
    assert await hurdles(page) == []
    await dialog.get_by_role("button", name="Retry").click()
    await expect(page).not_to_have_url(re.compile(run_id))
    newest = (await dashboard.client.list(RunFilter(job="crawl")))[0]
    assert (newest.retry_of, newest.payload) == (run_id, {"url": "https://example.org", "token": "hush-hush"})


async def test_the_log_is_searched_filtered_and_saved(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.done("index", pages=12)
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await page.get_by_label("Search the log").fill("PAGE 1")
    await expect(page.locator(".run-logline")).to_have_count(3)
    await expect(page.locator(".run-log mark").first).to_have_text("page 1")
    await expect(page.get_by_text("3 of 12 lines")).to_be_visible()
    await page.get_by_label("Level").select_option("error")
    await expect(page.get_by_text("No line matches")).to_be_visible()
    async with page.expect_download() as saving:
        await page.get_by_role("button", name="Download the whole log").click()
    saved = await saving.value
    assert saved.suggested_filename == f"index-{run_id[-12:]}.log"
    assert (await saved.path()).read_text().count("is here") == 12


async def test_its_family_as_graph_gantt_and_table(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    first = await dashboard.done("hello")
    second = await dashboard.enqueue("hello", {"after": [first]})
    third = await dashboard.enqueue("index", {"after": [first]}, pages=1)
    last = await dashboard.done("crawl", {"after": [second, third]}, url="x")
    again = (await dashboard.client.retry(last)).id
    await dashboard.client.wait(again)
    await page.goto(f"{dashboard.url}/runs/{third}?tab=graph")
    plot = page.get_by_role("application", name="Graph of 5 runs and 7 links")
    await expect(plot.locator("[data-run]")).to_have_count(5)
    await expect(page.get_by_text("Critical path:")).to_be_visible()
    await plot.focus()
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("ArrowLeft")
    await expect(plot.get_by_role("status")).to_contain_text("hello, succeeded")
    await page.keyboard.press("+")
    await page.keyboard.press("Shift+ArrowRight")
    await page.keyboard.press("0")
    assert await hurdles(page) == []
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(first))
    await page.get_by_role("button", name="Gantt").click()
    await expect(page.get_by_role("table", name="Gantt").locator("tbody tr")).to_have_count(5)
    assert await hurdles(page) == []
    await page.get_by_role("button", name="Table").click()
    rows = page.get_by_role("table", name="Graph").locator("tbody tr")
    await expect(rows).to_have_count(5)
    assert await hurdles(page) == []
    await page.get_by_role("tab", name="Overview").click()
    await expect(page.get_by_role("heading", name="Followed by")).to_be_visible()
    await page.goto(f"{dashboard.url}/runs/{again}")
    await expect(page.get_by_role("heading", name="Retry of")).to_be_visible()


async def test_a_replica_names_its_parent_right(dashboard: Dashboard, page: Page) -> None:
    run_id = await dashboard.enqueue("hello")
    parent = "01a1e462-2641-73e0-be10-000000000000"

    async def answer(route: Route) -> None:
        items = [{**NOBODY, "id": run_id, "job": "hello"}, {**NOBODY, "id": parent, "job": "hello"}]
        links = [{"from": parent, "to": run_id, "kind": "replica", "on": None}]
        await route.fulfill(json={"items": items, "links": links, "truncated": False})

    await page.route("**/api/v1/runs/*/family*", answer)
    await page.goto(f"{dashboard.url}/runs/{run_id}")
    await expect(page.get_by_role("heading", name="Replica of").locator("..")).to_contain_text(f"…{parent[-12:]}")
    await expect(page.get_by_role("heading", name="Replicas")).to_have_count(0)
