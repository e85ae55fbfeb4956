"""Test the timeline: attempts, overlaps and planned runs."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from rota import every
from tests.browser.conftest import Dashboard, NewPage
from tests.browser.page_checks import hurdles, sticking_out
from tests.browser.schedule_history import HOSTILE


async def test_where_nothing_ran_it_says_what_to_do(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/timeline")
    await expect(page.get_by_role("heading", name="No attempts in this time range")).to_be_visible()
    await page.get_by_role("button", name="Group by job").click()
    await expect(page).to_have_url(re.compile("by=job"))
    await expect(page.locator(".command code")).to_have_text("rota run enqueue hello")


async def test_attempts_appear_as_they_happen_and_lead_to_their_runs(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    failed = await dashboard.done("crawl", url="https://example.com")
    await dashboard.client.schedules.create("often", "hello", every("3m"))
    await page.goto(f"{dashboard.url}/timeline?by=job")
    await expect(page.locator(f'[data-run="{failed}"]')).to_have_attribute("data-state", "failed")
    await expect(page.locator("[data-coming]").first).to_be_attached()
    took, endless = [], []
    for _ in range(3):
        since = time.perf_counter()
        endless.append(await dashboard.enqueue("endless"))
        await expect(page.locator(f'[data-run="{endless[-1]}"]')).to_have_attribute("data-state", "running")
        took.append(time.perf_counter() - since)
    assert min(took) < 1, took  # alone less than 0.2; other tests run beside it
    await page.locator(f'[data-run="{failed}"] path').hover(force=True)
    await expect(page.locator(".timeline-details")).to_contain_text("attempt 1")
    assert await page.locator(".timeline-bar.here").count() == 1
    await page.locator(f'[data-run="{failed}"] path').click(force=True)
    await expect(page).to_have_url(re.compile(f"/runs/{failed}$"))
    for run_id in endless:
        await dashboard.client.cancel(run_id)


async def test_it_is_walked_and_moved_with_keys(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    first = await dashboard.done("hello", name="Ada")
    await dashboard.done("crawl", url="https://example.com")
    await page.goto(f"{dashboard.url}/timeline?by=job")
    plot = page.get_by_role("application")
    await expect(plot.locator("[data-run]")).to_have_count(2)
    await plot.focus()
    await page.keyboard.press("ArrowDown")
    await expect(plot.get_by_role("status")).to_contain_text("crawl, failed")
    await page.keyboard.press("ArrowDown")
    await expect(plot.get_by_role("status")).to_contain_text("hello, succeeded")
    await page.keyboard.press("-")
    await expect(page).to_have_url(re.compile("span=7200"))
    await page.keyboard.press("+")
    await page.keyboard.press("+")
    await expect(page).to_have_url(re.compile("span=1800"))
    await page.keyboard.press("Shift+ArrowLeft")
    await expect(page).to_have_url(re.compile("to=20"))
    await page.keyboard.press("0")
    await expect(page).not_to_have_url(re.compile("to="))
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/runs/{first}$"))
    await page.go_back()
    await expect(page.get_by_role("application").locator("[data-run]")).to_have_count(2)


async def test_it_is_moved_with_wheel_pointer_and_buttons(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    await dashboard.done("hello")
    await page.goto(f"{dashboard.url}/timeline?by=queue")
    plot = page.get_by_role("application")
    box = await plot.bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await page.mouse.move(*middle)
    await page.keyboard.down("Control")
    await page.mouse.wheel(0, 300)
    await page.keyboard.up("Control")
    await expect(page).to_have_url(re.compile("span=97.."))
    await page.get_by_role("group", name="Time range").get_by_role("button", name="15 min").click()
    await expect(page).to_have_url(re.compile("span=900"))
    await page.get_by_role("button", name="Now").click()
    await expect(page.get_by_role("button", name="Now")).to_be_disabled()
    await page.mouse.move(*middle)
    await page.mouse.down()
    await page.mouse.move(middle[0] + 200, middle[1], steps=4)
    await page.mouse.up()
    await expect(page).to_have_url(re.compile("to=20"))
    moved = page.url
    await page.get_by_role("button", name="Earlier").click()
    await page.get_by_role("button", name="Zoom in").click()
    await expect(page).to_have_url(re.compile("span=450"))
    assert page.url != moved


async def test_the_same_as_a_table(dashboard: Dashboard, page: Page) -> None:
    await dashboard.work()
    run_id = await dashboard.done("crawl", url=HOSTILE)
    await page.goto(f"{dashboard.url}/timeline?by=queue")
    await page.get_by_role("button", name="Show as table").click()
    row = page.get_by_role("row", name=re.compile("crawl"))
    await expect(row).to_contain_text("failed")
    await page.get_by_role("group", name="Group by").get_by_role("button", name="Worker").click()
    await expect(page).to_have_url(re.compile("by=worker"))
    await row.get_by_role("link").first.click()
    await expect(page).to_have_url(re.compile(f"/runs/{run_id}$"))


def many(attempts: int) -> dict[str, Any]:
    """As the API would tell them: in two hundred lanes, every seventh failed, some at once."""
    now = datetime.now(UTC)
    lanes: list[dict[str, Any]] = [
        {"name": f"lane-{number:03}", "attempts": [], "coming": [], "overlaps": False} for number in range(200)
    ]
    for number in range(attempts):
        start = now - timedelta(seconds=0.7 * number)
        lanes[number % 200]["attempts"].append(
            {
                "run_id": f"01a1e467-0000-7000-8000-{number:012}",
                "no": 1,
                "job": "crawl",
                "state": "failed" if number % 7 == 0 else "succeeded",
                "worker_id": "web-1",
                "started_at": start.isoformat(),
                "ended_at": (start + timedelta(seconds=number % 400)).isoformat(),
            }
        )
    return {"from": now.isoformat(), "to": now.isoformat(), "by": "job", "lanes": lanes, "truncated": True}


async def test_five_thousand_attempts_of_which_those_in_sight_are_drawn(dashboard: Dashboard, page: Page) -> None:
    body = json.dumps(many(5_000))

    async def answer(route: Route) -> None:
        await route.fulfill(body=body, content_type="application/json")

    await page.route("**/api/v1/timeline*", answer)
    await page.goto(f"{dashboard.url}/timeline?by=job")
    bars = page.locator("[data-run]")
    await expect(bars.first).to_be_attached()
    assert 0 < await bars.count() < 1_500
    await expect(page.get_by_text("There are too many attempts")).to_be_visible()
    await page.get_by_role("application").focus()
    took = await page.evaluate("""async () => {
        const plot = document.activeElement, begun = performance.now();
        for (let turn = 0; turn < 10; turn++) {
            plot.dispatchEvent(new WheelEvent("wheel", {deltaX: 40, bubbles: true, cancelable: true}));
            await new Promise(requestAnimationFrame);
        }
        return performance.now() - begun;
    }""")
    assert took < 2_000
    await page.evaluate("window.scrollTo(0, 4000)")
    await expect(page.locator('[data-lane="lane-110"] [data-run]').first).to_be_attached()
    await expect(page.locator('[data-lane="lane-000"]')).to_have_count(0)


@pytest.mark.parametrize(("scheme", "width", "language"), [("light", 1280, "en-GB"), ("dark", 360, "zh-CN")])
async def test_anybody_can_use_it(
    dashboard: Dashboard, new_page: NewPage, scheme: str, width: int, language: str
) -> None:
    await dashboard.client.schedules.create(HOSTILE * 4, "hello", every("1m"))
    await dashboard.work()
    await dashboard.client.schedules.trigger(HOSTILE * 4)
    page = await new_page(color_scheme=scheme, viewport={"width": width, "height": 740}, locale=language)
    await page.goto(f"{dashboard.url}/timeline?span=900")
    await expect(page.locator("[data-run]").first).to_be_attached()
    await page.get_by_role("application").focus()
    await page.keyboard.press("ArrowDown")
    await expect(page.locator(".timeline-details")).to_be_visible()
    assert await page.locator("img").count() == 0
    assert await hurdles(page) == []
    assert await sticking_out(page) == []


async def test_what_is_left_out_is_shaded_and_counted(dashboard: Dashboard, page: Page) -> None:
    now = datetime.now(UTC)
    body = {**many(300), "complete_from": (now - timedelta(minutes=20)).isoformat()}
    minutes = [now.replace(second=0, microsecond=0) - timedelta(minutes=ago) for ago in range(60)]
    nothing = dict.fromkeys(["duration_p50_ms", "duration_p95_ms", "lag_p50_ms", "lag_p95_ms", "queued", "running"])
    buckets = [{"at": at.isoformat(), "runs": {"succeeded": 90, "failed": 10}, **nothing} for at in minutes]

    async def answer(route: Route) -> None:
        counted = {"from": now.isoformat(), "to": now.isoformat(), "step": "1m", "buckets": buckets}
        await route.fulfill(json=counted if "/series" in route.request.url else body)

    await page.route(re.compile("/api/v1/(timeline|series)"), answer)
    await page.goto(f"{dashboard.url}/timeline?by=job")
    counts = page.get_by_role("img", name="runs finished in the part that is not shown in full")
    await expect(counts.locator("rect.timeline-count")).to_have_count(120)
    await expect(page.locator(".timeline-plot .timeline-shade")).to_have_count(1)
    await expect(page.get_by_text("in the shaded part, some are left out")).to_be_visible()
    assert await hurdles(page) == []


async def test_plan_times_that_did_not_run_are_drawn(dashboard: Dashboard, page: Page) -> None:
    await dashboard.client.schedules.create("busy", "endless", every("1m"), overlap="skip")
    await dashboard.work()
    now = datetime.now(UTC).replace(microsecond=0)
    run_id = await dashboard.enqueue("hello")
    skipped = {"kind": "skipped", "count": 1, "reason": "overlap", "run_id": run_id}
    missed = {"kind": "missed", "count": 12, "reason": "catch_up", "run_id": None}
    lane = {
        "name": "busy",
        "attempts": [],
        "coming": [],
        "overlaps": False,
        "gaps": [
            {**missed, "from": str(now - timedelta(minutes=40)), "to": str(now - timedelta(minutes=28))},
            {**skipped, "from": str(now - timedelta(minutes=9)), "to": str(now - timedelta(minutes=9))},
        ],
    }
    times = {"from": now.isoformat(), "to": now.isoformat(), "by": "schedule", "truncated": False}

    async def answer(route: Route) -> None:
        await route.fulfill(json={**times, "complete_from": None, "lanes": [lane]})

    await page.route("**/api/v1/timeline*", answer)
    await page.goto(f"{dashboard.url}/timeline")
    plot = page.get_by_role("application")
    await expect(plot.locator('[data-gap="missed"] line')).to_have_count(1)
    await plot.focus()
    await page.keyboard.press("ArrowDown")
    await expect(plot.get_by_role("status")).to_contain_text("plan time skipped")
    await page.keyboard.press("ArrowLeft")
    await expect(plot.get_by_role("status")).to_contain_text("12 plan times missed")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/runs/{run_id}$"))
    await page.goto(f"{dashboard.url}/timeline?as=table")
    rows = page.get_by_role("table", name="Plan times that did not run").locator("tbody tr")
    await expect(rows).to_have_count(2)
    assert await hurdles(page) == []
