"""Test what holds for every view: themes, languages, widths, keyboard and names that contain markup."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from rota import RunFilter
from tests.browser import routes, sample_data
from tests.browser.conftest import Dashboard, NewPage
from tests.browser.page_checks import hurdles, sticking_out

# Any two of theme, width and language come together in one of these.
LOOKS = [("light", 1280, "en"), ("dark", 360, "en"), ("light", 360, "zh"), ("dark", 1280, "zh")]
_GO = "path => { history.pushState(null, '', path); window.dispatchEvent(new PopStateEvent('popstate')) }"
_TOLD = "() => document.body.innerText"
_NO_WORDS = re.compile(r"\bundefined\b|\bNaN\b|\[object |Invalid Date|function\s*\(")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


async def things(dashboard: Dashboard) -> dict[str, str]:
    """One of each kind, by view; where it can, it is called by markup."""
    run = (await dashboard.client.list(RunFilter(job="hostile")))[0]
    worker = next(one for one in await dashboard.client.workers.list() if one.name == sample_data.MARKUP)
    error = getattr(run.error, "fingerprint", None) or "nothing"
    names = {
        "runs": run.id,
        "workers": worker.id,
        "queues": sample_data.MARKUP,
        "jobs": "hostile",
        "schedules": sample_data.MARKUP,
    }
    return {**names, "errors": error}


async def ready(page: Page) -> None:
    await expect(page.get_by_role("heading", level=1)).to_have_count(1)
    await expect(page.locator('.skeleton, [aria-busy="true"]')).to_have_count(0)


async def look(page: Page, address: str, language: str, *, closely: bool) -> list[str]:
    """What is wrong with it."""
    await page.evaluate(_GO, address)
    await ready(page)
    told, title = await page.evaluate(_TOLD), await page.title()
    wrong = [f"says {found[0]}" for found in [_NO_WORDS.search(told)] if found]
    wrong += [] if title.endswith(" · rota") else [f"title {title}"]
    wrong += ["an image"] if await page.locator("img").count() else []
    wrong += ["Chinese"] if language == "en" and _CHINESE.search(told.replace("中文", "")) else []
    wrong += [f"sticks out: {one}" for one in await sticking_out(page)]
    wrong += await hurdles(page) if closely else []
    return [f"{address}: {one}" for one in wrong]


@pytest.mark.parametrize(("scheme", "width", "language"), LOOKS)
async def test_every_view(dashboard: Dashboard, new_page: NewPage, scheme: str, width: int, language: str) -> None:
    await sample_data.begin(dashboard)
    names = await things(dashboard)
    locale = "zh-CN" if language == "zh" else "en-GB"
    page = await new_page(color_scheme=scheme, viewport={"width": width, "height": 800}, locale=locale)
    await page.goto(dashboard.url)
    await expect(page.locator(".live")).to_be_visible()
    wrong, closely = [], language == "en"
    for view in routes.ids():
        wrong += await look(page, routes.patterns(view)[0], language, closely=closely)
        heading = await page.get_by_role("heading", level=1).inner_text()
        if language == "zh" and not _CHINESE.search(heading):
            wrong.append(f"{view}: {heading} is no Chinese")
        for address in routes.filled(view, names) if closely else []:
            wrong += await look(page, address, language, closely=closely)
    assert not wrong, "\n".join(wrong)


async def test_nothing_there_yet(dashboard: Dashboard, page: Page) -> None:
    await page.goto(dashboard.url)
    wrong = []
    for view in routes.ids():
        wrong += await look(page, routes.patterns(view)[0], "en", closely=False)
    assert not wrong, "\n".join(wrong)


async def test_the_shell_by_keyboard_alone(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/jobs")
    await ready(page)
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport()
    seen = []
    for _ in range(len(routes.ids()) + 1):
        await page.keyboard.press("Tab")
        seen.append(await page.evaluate("document.activeElement.innerText.trim()"))
        assert await page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", seen
    names = await page.get_by_role("navigation").get_by_role("listitem").all_inner_texts()
    assert seen[1:] == [name.strip() for name in names]
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text(seen[-1])
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.evaluate(_GO, "/jobs")
    await page.keyboard.press("/")
    await expect(page.get_by_role("searchbox", name="Find a job")).to_be_focused()
    await page.keyboard.type("hello")
    await expect(page.get_by_role("table", name="Jobs").locator("tbody tr")).to_have_count(1)
    await page.keyboard.press("Tab")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/jobs/hello$"))


async def test_the_skip_link_leads_past_the_rail(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/runs")
    await ready(page)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.activeElement.id") == "main"
