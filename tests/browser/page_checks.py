"""Checks for every page: accessibility, and nothing that overflows."""

from __future__ import annotations

from functools import cache
from typing import Any

from playwright.async_api import Page

from tests.browser.browsers import axe_source

_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}, resultTypes: ['violations']})"

_WIDER = """() => document.documentElement.scrollWidth <= window.innerWidth ? [] :
    [...document.querySelectorAll('body *')]
        .filter(each => each.getBoundingClientRect().right > window.innerWidth + 1)
        .map(each => each.outerHTML.slice(0, 120))"""

_RESTS = """rest => performance.now() - rest >
    Math.max(0, ...performance.getEntriesByType('resource').map(each => each.responseEnd))"""


@cache
def _axe() -> str:
    return axe_source()


async def hurdles(page: Page) -> list[str]:
    """What axe finds; `evaluate` is not under the page's policy, so nothing has to be switched off for it."""
    await page.evaluate(_axe())
    found: dict[str, Any] = await page.evaluate(_RUN, _TAGS)
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found["violations"]
    ]


async def sticking_out(page: Page) -> list[str]:
    """Elements that make the page wider than the window."""
    found: list[str] = await page.evaluate(_WIDER)
    return found


async def rests(page: Page, milliseconds: int = 400) -> None:
    """Wait until the page has asked for nothing for so long, as it does after each look."""
    await page.wait_for_function(_RESTS, arg=milliseconds)
