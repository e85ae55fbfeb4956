"""Test that the first paint is quick with many runs; `python -m benchmarks paint` uses a million."""

from pathlib import Path

from playwright.async_api import Browser

from benchmarks.measures import paint
from rota import Rota
from tests.browser.conftest import served

MANY = 20_000


async def test_the_first_look_with_many_runs(browser: Browser, sqlite_url: str) -> None:
    await paint.sow(sqlite_url)
    paint.fill(Path(sqlite_url.removeprefix("sqlite:///")), MANY)
    async with served(Rota(sqlite_url)) as dashboard:
        selector = paint.PAGES["/runs"]
        visits = [await paint.visit(browser, f"{dashboard.url}/runs", selector) for _ in range(3)]
    assert sorted(first for first, _ in visits)[1] < paint.GOAL, visits
    assert sorted(rows for _, rows in visits)[1] < 2 * paint.GOAL, visits
