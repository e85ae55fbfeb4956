"""A dashboard that is really served, and a page in a browser that lets no error of its own pass.

Everything of one test lives in one loop: server, worker, and the test itself. The loop is that of the session, because
the browser is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvicorn
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect
from starlette.applications import Starlette
from starlette.routing import Mount

from rota import Client, Order, Rota
from rota.server import asgi
from tests.browser import browsers, jobs
from tests.support.servers.reverse_proxy import spki
from tests.support.wait import PATIENCE

HERE = Path(__file__).parent
PATIENT = 1_000 * PATIENCE  # in milliseconds; what is asserted about time is measured
expect.set_options(timeout=PATIENT)
LOOP = pytest.mark.asyncio(loop_scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(LOOP, append=False)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Dashboard:
    """`await dashboard.enqueue("hello", name="Ada")`; nothing is done before `await dashboard.work()`."""

    def __init__(self, url: str, app: Rota, client: Client) -> None:
        self.url = url
        self.app = app
        self.client = client

    async def enqueue(self, job: str, options: dict[str, Any] | None = None, /, **payload: Any) -> str:
        return (await self.client.enqueue(Order(job, payload, options or {}))).id

    async def done(self, job: str, options: dict[str, Any] | None = None, /, **payload: Any) -> str:
        """Enqueued, and waited for."""
        run_id = await self.enqueue(job, options, **payload)
        await self.client.wait(run_id, f"{PATIENCE:g}s")
        return run_id

    async def work(self) -> None:
        await self.app.start()


@contextlib.asynccontextmanager
async def served(app: Rota, below: str = "") -> AsyncIterator[Dashboard]:
    """`below`: where another application has mounted it."""
    jobs.declare(app)
    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    application = Starlette(routes=[Mount(below, asgi(app))]) if below else asgi(app)
    config = uvicorn.Config(application, lifespan="off", log_config=None, access_log=False, ws="none")
    config.timeout_graceful_shutdown = 1
    server, listener = _Server(config), socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield Dashboard(f"http://127.0.0.1:{listener.getsockname()[1]}{below}", app, client)
    finally:
        server.should_exit = server.force_exit = True
        await serving
        listener.close()
        await app.stop(timedelta(0))  # some jobs never end
        await app.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def dashboard(sqlite_url: str) -> AsyncIterator[Dashboard]:
    async with served(Rota(sqlite_url, lease="3s", heartbeat="1s", poll="200ms")) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    program, found = browsers.browser()
    environment: dict[str, str | float | bool] = {**os.environ, **found}
    async with async_playwright() as playwright:
        flags = [*browsers.FLAGS, f"--ignore-certificate-errors-spki-list={spki()}"]
        started = await playwright.chromium.launch(executable_path=program, args=flags, env=environment)
        yield started
        await started.close()


class Watched:
    """What a page complained about, but for refusals of the API, and code that a stopped server no longer sends.

    A test may end its server while a page loads code, also that of other pages. A file that is missing is a 404.
    """

    def __init__(self, page: Page) -> None:
        self.complaints: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._told(str(error)))

    def _said(self, message: ConsoleMessage) -> None:
        refused = message.text.startswith("Failed to load resource") and "/api/v1/" in message.location["url"]
        refused = refused or ("net::ERR_" in message.text and "/assets/" in message.location["url"])
        if message.type in ("error", "warning") and not refused:
            self._told(message.text)

    def _told(self, complaint: str) -> None:
        if "Failed to fetch dynamically imported module" not in complaint:
            self.complaints.append(complaint)


NewPage = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def new_page(browser: Browser) -> AsyncIterator[NewPage]:
    """`await new_page(color_scheme="dark", viewport={…})`: whatever Playwright's contexts take."""
    contexts: list[BrowserContext] = []
    watched: list[Watched] = []

    async def open_page(**options: Any) -> Page:
        given = {"locale": "en-GB", "timezone_id": "Europe/Berlin", "viewport": {"width": 1280, "height": 800}}
        context = await browser.new_context(**{**given, **options})
        context.set_default_timeout(PATIENT)
        contexts.append(context)
        page = await context.new_page()
        watched.append(Watched(page))
        return page

    yield open_page
    for context in contexts:
        await context.close()
    assert [complaint for one in watched for complaint in one.complaints] == []


@pytest_asyncio.fixture(loop_scope="session")
async def page(new_page: NewPage) -> Page:
    return await new_page()
