"""Makes the pictures of README and docs: starts `rota dev` with its example, lets it live for a while, and looks.

`python tools/screenshots.py [name …]`, in the environment of the tests. A day of counts is written beforehand, so that
the charts have a past.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, ViewportSize, async_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from rota import Order, Rota  # noqa: E402
from rota.client.client import Client  # noqa: E402
from rota.core.monitoring.counters import SPANS, Counted, Rows  # noqa: E402
from rota.core.monitoring.statistics import bucket  # noqa: E402
from tests.browser import browsers  # noqa: E402

Scheme = Literal["light", "dark"]
SHOTS: dict[str, tuple[str, Scheme]] = {
    "overview": ("/", "light"),
    "overview-dark": ("/", "dark"),
    "schedules": ("/schedules", "light"),
    "runs": ("/runs", "light"),
    "run": ("/runs/{run}", "dark"),
    "timeline": ("/timeline?by=job&span=75", "light"),
    "errors": ("/error-groups", "light"),
    "jobs": ("/jobs", "dark"),
    "workers": ("/workers", "light"),
    "system": ("/system", "light"),
    "overview-phone": ("/", "dark"),
}
SIZE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)


async def main(names: list[str], patience: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/rota.db"
        async with example(url) as address, started_browser() as browser:
            app = Rota(url)
            client = await app.connect()
            await record_past(client)
            await enqueue_life(client)
            await asyncio.sleep(patience)
            for name in names:
                path, scheme = SHOTS[name]
                await _shot(browser, address + await _meant(client, path), scheme, IMAGES / f"{name}.png")
            await app.aclose()


async def _meant(client: Client, path: str) -> str:
    """With a run that is in the middle of something, if it is about one."""
    if "{run}" not in path:
        return path
    run = await client.enqueue(Order("import_catalog", {"pages": 30}))
    await asyncio.sleep(3)
    return path.format(run=run.id)


async def _shot(browser: Browser, address: str, scheme: Scheme, target: Path) -> None:
    size = PHONE if target.stem.endswith("-phone") else SIZE
    context = await browser.new_context(viewport=size, color_scheme=scheme, locale="en-GB", timezone_id="Europe/Berlin")
    page: Page = await context.new_page()
    await page.goto(address)
    await page.locator("main h1").wait_for()
    await page.wait_for_function("() => !document.querySelector('.skeleton')")
    await page.wait_for_timeout(1_200)
    await page.screenshot(path=target)
    await context.close()


async def record_past(client: Client) -> None:
    """What processes would have counted since yesterday."""
    now = client.store.clock.micros()
    rows: Rows = {}
    for span, length in SPANS.items():
        for back in range(1, 86_400 // span + 1):
            rows[span, now // length * length - back * length] = _counted(back * span / 14_400, span // 60)
    await client.store.monitoring.record("past", rows)


def _counted(phase: float, minutes: int) -> Counted:
    dice = random.Random(phase)  # the same picture every time
    good, bad = int((40 + 30 * math.sin(phase) + dice.random() * 12) * minutes), int(dice.random() ** 9 * 5 * minutes)
    usual = 180_000 + int(120_000 * abs(math.sin(phase)))
    return Counted(
        runs={"succeeded": good, "failed": bad, "skipped": minutes},
        durations={bucket(usual): good, bucket(2_400_000): max(1, good // 15)},
        lag={bucket(9_000): good, bucket(60_000 + int(90_000 * dice.random())): max(1, good // 12)},
        levels={"default": (good // minutes // 4, good // minutes // 10, 0)},
    )


async def enqueue_life(client: Client) -> None:
    """More than the example does by itself: failures, a cancelled run, a paused queue, tags and scopes."""
    orders = [
        Order("flaky_upload", {"file": f"backup-{n}.zip"}, {"max_attempts": 1, "tags": ["nightly"]}) for n in range(14)
    ]
    orders += [Order("report", {"month": n}, {"scope": ("account", str(40 + n))}) for n in range(1, 7)]
    orders += [Order("resize_image", {"file": f"holiday-{n}.jpg"}) for n in range(20)]
    await client.enqueue_many(orders)
    await client.pause_queue("mail", reason="the relay is down until 15:00", actor="cli:ann", force=True)
    await client.enqueue_many([Order("hello", {"name": name}, {"queue": "mail"}) for name in ("Ada", "Grace")])
    late = await client.enqueue(Order("cleanup", {}, {"delay": "1h"}))
    await client.cancel(late.id, reason="done by hand", actor="cli:ann")


@asynccontextmanager
async def example(url: str) -> AsyncIterator[str]:
    command = ["-m", "rota", "dev", "--port", "0", "--database", url, "--json", "--log-level", "error"]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield json.loads(await asyncio.wait_for(process.stdout.readline(), 60))["url"]
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def started_browser() -> AsyncIterator[Browser]:
    program, found = browsers.browser()
    environment: dict[str, str | float | bool] = {**os.environ, **found}
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=program, args=browsers.FLAGS, env=environment)
        yield started
        await started.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*SHOTS, []], help="of the pictures; all, unless told otherwise")
    parser.add_argument("--patience", type=float, default=40, help="seconds that the example lives beforehand")
    options = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    asyncio.run(main(options.names or list(SHOTS), options.patience))
