"""How soon the dashboard shows something with so many runs in the database: first paint, and the first rows."""

import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
from playwright.async_api import Browser, Page, async_playwright

from benchmarks.harness.process import ROOT
from benchmarks.reports.report import table
from rota import Order, Rota
from tests.browser import browsers

GOAL = 1_000.0
PAGES = {
    "/": ".tile, main .card",
    "/runs": "main tbody tr[data-key]",
    "/runs?q=state%3Afailed": "main tbody tr[data-key]",
}
"""Each with what has to be there to count as shown."""
_PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_SHOWN = "selector => document.querySelector(selector) && performance.now()"
_BITE = 100_000


@dataclass(frozen=True)
class Plan:
    rows: int
    repeat: int


def main(plan: Plan, figures: Path | None) -> None:
    taken = asyncio.run(_measured(plan))
    rows = [
        [path, what, f"{statistics.median(values):.0f} ms", f"{max(values):.0f} ms"]
        for path, found in taken.items()
        for what, values in found.items()
    ]
    print(f"{plan.rows:,} runs on SQLite, {plan.repeat} visits each; the goal is a first paint within {GOAL:.0f} ms.\n")
    print(table(["page", "until", "median", "slowest"], rows))
    if figures:
        figures.write_text(json.dumps(taken, indent=2))


async def _measured(plan: Plan) -> dict[str, dict[str, list[float]]]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/rota.db"
        await sow(url)
        fill(Path(folder) / "rota.db", plan.rows)
        async with _server(url) as address, _browser() as browser:
            await visit(browser, address + "/runs", PAGES["/runs"])  # what is done once for all visitors
            taken: dict[str, dict[str, list[float]]] = {}
            for path, selector in PAGES.items():
                visits = [await visit(browser, address + path, selector) for _ in range(plan.repeat)]
                taken[path] = {"first paint": [one[0] for one in visits], "rows": [one[1] for one in visits]}
            return taken


async def sow(url: str) -> None:
    """One run that has ended, to be like it."""
    app = Rota(url)

    @app.job
    def hello(name: str = "world") -> str:
        return f"hello, {name}"

    await app.start()
    client = await app.connect()
    await client.wait((await client.enqueue(Order("hello", {"name": "Ada"}))).id, "20s")
    await app.stop()
    await app.aclose()


def fill(database: Path, rows: int) -> None:
    """So many runs like the newest that has ended, of the last hours; every hundredth failed."""
    connection = apsw.Connection(str(database))
    connection.set_busy_timeout(10_000)
    names = [row[1] for row in connection.execute("pragma table_info(rota_run)")]
    changed = {
        "id": "substr(id, 1, 13) || '-7000-8000-' || printf('%012x', n)",
        "state": "case when n % 100 = 0 then 'failed' else state end",
        "error": """case when n % 100 = 0 then '{"type":"Timeout","message":"no answer","fingerprint":"f00d"}' end""",
    }
    values = ", ".join(changed.get(name, name) for name in names)
    for first in range(1, rows + 1, _BITE):
        connection.execute(
            f"with recursive numbers(n) as (select {first} union all select n + 1 from numbers"
            f" where n < {min(first + _BITE, rows + 1) - 1}) insert into rota_run ({', '.join(names)})"
            f" select {values} from numbers, (select * from rota_run where state = 'succeeded' order by id limit 1)"
        )
    connection.execute("analyze")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()


async def visit(browser: Browser, address: str, selector: str) -> tuple[float, float]:
    """Until something is painted, and until what it is about is there; in milliseconds, with an empty cache."""
    context = await browser.new_context(locale="en-GB")
    try:
        page = await context.new_page()
        await page.goto(address, wait_until="commit")
        shown = await page.wait_for_function(_SHOWN, arg=selector, polling=10, timeout=60_000)
        return await _painted(page), float(await shown.json_value())
    finally:
        await context.close()


async def _painted(page: Page) -> float:
    found = await page.wait_for_function(_PAINTED, polling=10, timeout=60_000)
    return float(await found.json_value())


@asynccontextmanager
async def _server(url: str) -> AsyncIterator[str]:
    command = ["-m", "rota", "server", "--port", "0", "--database", url, "--json", "--log-level", "error"]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield json.loads(await asyncio.wait_for(process.stdout.readline(), 60))["url"]
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def _browser() -> AsyncIterator[Browser]:
    program, found = browsers.browser()
    environment: dict[str, str | float | bool] = {**os.environ, **found}
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=program, args=browsers.FLAGS, env=environment)
        yield started
        await started.close()
