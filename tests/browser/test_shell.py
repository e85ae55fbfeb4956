"""Test the frame around every view: navigation, preferences and roles."""

import re

import pytest
from playwright.async_api import Page, expect

from rota import Rota
from tests.browser.conftest import Dashboard, NewPage, served
from tests.browser.page_checks import hurdles, sticking_out

_LOOK = """hidden => {
    Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""
VIEWS = ["Overview", "Schedules", "Runs", "Timeline", "Errors", "Workers", "Queues", "Jobs", "Audit"]


async def test_every_view_is_one_click_away(dashboard: Dashboard, page: Page) -> None:
    await page.goto(dashboard.url)
    for name in VIEWS:
        await page.get_by_role("navigation").get_by_role("link", name=name).click()
        await expect(page.get_by_role("heading", level=1)).to_have_text(name)
        await expect(page).to_have_title(f"{name} · rota")
        await expect(page.locator('nav [aria-current="page"]')).to_have_text(name)
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text(VIEWS[-1])
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_have_text(VIEWS[-2])


async def test_it_is_live(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/runs")
    await expect(page.locator(".live")).to_have_text("live")


async def test_theme_language_and_zone_are_remembered(dashboard: Dashboard, page: Page) -> None:
    await page.goto(dashboard.url)
    await page.get_by_role("button", name="Theme: System").click()
    await page.get_by_role("menuitemradio", name="Dark").click()
    await page.get_by_role("button", name="Language: English").click()
    await page.get_by_role("menuitemradio", name="中文").click()
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("总览")
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 18, 20)"


async def test_a_browser_whose_language_is_no_tag(dashboard: Dashboard, page: Page) -> None:
    """So says Chromium where the system's locale is POSIX, as on many a bare machine."""
    for name, said in {"language": "'en-US@posix'", "languages": "['en-US@posix']"}.items():
        await page.add_init_script(
            f"Object.defineProperty(Navigator.prototype, '{name}', {{get: () => {said}, configurable: true}})"
        )
    await dashboard.enqueue("hello")
    for view in ("", "/runs"):
        await page.goto(dashboard.url + view)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()


async def test_keys_are_explained(dashboard: Dashboard, page: Page) -> None:
    await page.goto(dashboard.url)
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("/")
    await expect(page.get_by_role("searchbox")).to_be_focused()


async def test_an_address_that_is_none(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/schedules/a/edit")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Edit a")
    await expect(page.get_by_text("Schedule not found")).to_be_visible()
    assert (await page.request.get(f"{dashboard.url}/nothing")).status == 404


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
async def test_nothing_keeps_anybody_out(dashboard: Dashboard, new_page: NewPage, scheme: str, width: int) -> None:
    page = await new_page(color_scheme=scheme, viewport={"width": width, "height": 740})
    await page.goto(dashboard.url)
    await expect(page.locator(".live")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert await hurdles(page) == []
    assert await sticking_out(page) == []


async def test_whoever_is_not_known_signs_in(sqlite_url: str, page: Page) -> None:
    async with served(Rota(sqlite_url, auth=True)) as dashboard:
        token = (await dashboard.client.tokens.create("ada", "operator")).secret
        await page.goto(f"{dashboard.url}/workers")
        await page.get_by_label("Token").fill("rota_wrong_token")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_contain_text("unknown, revoked or expired")
        assert await hurdles(page) == []
        await page.get_by_label("Token").fill(token)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Workers")
        await page.get_by_role("button", name=re.compile("ada · operator")).click()
        await page.get_by_role("menuitem", name="Sign out").click()
        await expect(page.get_by_label("Token")).to_be_visible()


async def test_a_token_that_may_not_look_can_be_signed_out_of(sqlite_url: str, page: Page) -> None:
    async with served(Rota(sqlite_url, auth=True)) as dashboard:
        token = (await dashboard.client.tokens.create("box", "worker")).secret
        await page.goto(f"{dashboard.url}/runs")
        await page.get_by_label("Token").fill(token)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_contain_text("needs viewer")
        await page.get_by_role("button", name="Signed in").click()
        await page.get_by_role("menuitem", name="Sign out").click()
        await expect(page.get_by_label("Token")).to_be_visible()


async def test_on_postgresql(postgres_url: str, page: Page) -> None:
    async with served(Rota(postgres_url)) as dashboard:
        await page.goto(f"{dashboard.url}/runs")
        await expect(page.locator(".live")).to_have_text("live")


async def test_without_the_stream_it_asks_every_five_seconds(dashboard: Dashboard, page: Page) -> None:
    await page.route("**/api/v1/stream**", lambda route: route.abort())
    await page.goto(f"{dashboard.url}/runs")
    await expect(page.locator(".live")).to_have_text("every 5 s")
    run_id = await dashboard.enqueue("hello")
    await expect(page.locator(f'tr[data-key="{run_id}"]')).to_be_visible()


async def test_while_nobody_looks_nothing_is_asked(dashboard: Dashboard, page: Page, new_page: NewPage) -> None:
    other = await live_beside(dashboard, new_page)
    await page.goto(f"{dashboard.url}/runs")
    await expect(page.get_by_text("No runs yet")).to_be_visible()
    await expect(page.locator(".live")).to_have_text("live")
    await page.evaluate(_LOOK, True)
    await expect(page.locator(".live")).to_have_text("paused")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    run_id = await dashboard.enqueue("hello")
    await expect(other.locator(f'tr[data-key="{run_id}"]')).to_be_visible()
    assert asked == []
    await page.evaluate(_LOOK, False)
    await expect(page.locator(f'tr[data-key="{run_id}"]')).to_be_visible()


async def live_beside(dashboard: Dashboard, new_page: NewPage) -> Page:
    """Another page, which shows when a live one has heard of a change."""
    other = await new_page()
    await other.goto(f"{dashboard.url}/runs")
    await expect(other.locator(".live")).to_have_text("live")
    return other


async def test_it_can_be_stopped(dashboard: Dashboard, page: Page, new_page: NewPage) -> None:
    other = await live_beside(dashboard, new_page)
    await page.goto(f"{dashboard.url}/runs")
    await expect(page.get_by_text("No runs yet")).to_be_visible()
    await page.get_by_role("button", name="live").click()
    await expect(page.locator(".live")).to_have_text("off")
    await dashboard.enqueue("hello")
    await expect(other.locator("tr[data-key]")).to_have_count(1)
    await expect(page.locator("tr[data-key]")).to_have_count(0)
    await page.get_by_role("button", name="off").click()
    await expect(page.locator("tr[data-key]")).to_have_count(1)


async def test_below_the_path_of_another_application(sqlite_url: str, page: Page) -> None:
    async with served(Rota(sqlite_url), below="/tools/jobs") as dashboard:
        run_id = await dashboard.enqueue("hello")
        await page.goto(f"{dashboard.url}/runs")
        await page.get_by_role("link", name="hello").click()
        await expect(page).to_have_url(f"{dashboard.url}/runs/{run_id}")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("hello")
        await expect(page.locator(".live")).to_have_text("live")
