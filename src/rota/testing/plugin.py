"""The pytest plugin: fixtures for your app, each test with its own database and clock.

Nothing of rota is imported before a fixture is requested, so that installing the plugin costs nothing.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.core.runs.run import Run
    from rota.testing.clock import ManualClock
    from rota.testing.databases import Copies
    from rota.testing.harness.blocking_harness import BlockingHarness
    from rota.testing.harness.harness import Harness
    from rota.testing.inline_mode.inline import Inlined

_MARKER = (
    "rota(start=None, zone='UTC', leaves=False, **settings): start of the harness's clock, whether runs may stay"
    " active at the end, and settings such as lease='1m'"
)
_NO_APP = """which app is tested? Say so in your pytest configuration:

    [tool.pytest.ini_options]
    rota_app = "shop:app"

or give the fixture `rota_app` yourself, in conftest.py:

    @pytest.fixture
    def rota_app():
        return app
"""
_opened = pytest.StashKey["Harness"]()
_passed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "PostgreSQL server on which tests create databases; by default SQLite files"
    parser.getgroup("rota").addoption("--rota-database", metavar="URL", help=help_text)
    parser.addini("rota_database", help_text)
    parser.addini("rota_app", "the app that is tested: MODULE:APP")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run an async test inside its harness, on whatever event loop the async plugin provides."""
    harness, test = item.stash.get(_opened, None), getattr(item, "obj", None)
    if harness is None or not inspect.iscoroutinefunction(test):
        result = yield
    else:
        item.obj = _inside(harness, test, _marked(item))  # type: ignore[attr-defined]
        try:
            result = yield
        finally:
            item.obj = test  # type: ignore[attr-defined]
    item.stash[_passed] = True
    return result


def _inside(harness: Harness, test: Callable[..., Any], marked: dict[str, Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    async def inside(*args: Any, **kwargs: Any) -> None:
        try:
            async with harness:
                await test(*args, **kwargs)
        finally:
            await harness.app.aclose()  # a client that an async fixture opened before
        _complain(harness.left_over, marked)

    return inside


def _complain(left_over: Sequence[str], marked: dict[str, Any]) -> None:
    if left_over and not marked["leaves"]:
        lines = "\n".join(f"  {entry}" for entry in left_over)
        hint = "Wait for it, or cancel it; if it is meant, mark the test: @pytest.mark.rota(leaves=True)"
        pytest.fail(f"the test left something running:\n{lines}\n{hint}", pytrace=False)


def _marked(item: pytest.Item) -> dict[str, Any]:
    """Return the values of all `rota` marks of the test; the nearest mark wins."""
    values: dict[str, Any] = {"start": None, "zone": "UTC", "leaves": False}
    for mark in reversed(list(item.iter_markers("rota"))):
        if mark.args:
            pytest.fail("pytest.mark.rota takes its values by name: start=…, zone=…", pytrace=False)
        values |= mark.kwargs
    return values


def _settings(item: pytest.Item) -> dict[str, Any]:
    return {name: value for name, value in _marked(item).items() if name not in ("start", "zone", "leaves")}


@pytest.fixture(scope="session")
def rota_app(request: pytest.FixtureRequest) -> Rota:
    """The app under test, from the setting `rota_app`. Override this fixture to provide one yourself."""
    return load_app(str(request.config.getini("rota_app") or ""))


def load_app(target: str) -> Rota:
    from rota.app import Rota

    if not target:
        pytest.fail(_NO_APP, pytrace=False)
    module, _, name = target.partition(":")
    try:
        app = getattr(importlib.import_module(module), name or "app", None)
    except ModuleNotFoundError as error:
        pytest.fail(f"rota_app = {target!r}: {error}; is its folder in pytest's `pythonpath`?", pytrace=False)
    if not isinstance(app, Rota):
        pytest.fail(f"rota_app = {target!r} is not a Rota app but {app!r:.80}", pytrace=False)
    return app


@pytest.fixture(scope="session")
def _rota_copies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    from rota.testing.databases import copies

    url = request.config.getoption("--rota-database") or request.config.getini("rota_database") or None
    with copies(url, tmp_path_factory.mktemp("rota")) as factory:
        yield factory


@pytest.fixture
def rota_database_url(_rota_copies: Copies, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty, migrated database for this test."""
    folder = tmp_path / "rota-database"  # tests may count what is in `tmp_path` itself
    folder.mkdir()
    with _rota_copies(folder) as url:
        yield url


@pytest.fixture
def rota_clock(request: pytest.FixtureRequest) -> ManualClock:
    """The clock of the test's harness; `@pytest.mark.rota(start="2030-03-31 01:59", zone="Europe/Berlin")` sets it."""
    from rota.testing.clock import ManualClock

    marked = _marked(request.node)
    return ManualClock() if marked["start"] is None else ManualClock(marked["start"], zone=marked["zone"])


@pytest.fixture
def rota_harness(
    request: pytest.FixtureRequest, rota_app: Rota, rota_database_url: str, rota_clock: ManualClock
) -> Iterator[Harness]:
    """Harness for async tests, which run inside it. In other tests, open it yourself."""
    from rota.testing.harness.harness import Harness

    harness = Harness(rota_app, rota_database_url, rota_clock, **_settings(request.node))
    request.node.stash[_opened] = harness
    with harness.diverting(rota_database_url):  # other fixtures may enqueue before the test begins
        yield harness


@pytest.fixture
def rota_blocking_harness(
    request: pytest.FixtureRequest, rota_app: Rota, rota_database_url: str, rota_clock: ManualClock
) -> Iterator[BlockingHarness]:
    """Harness for tests without an event loop."""
    from rota.testing.harness.harness import Harness

    with Harness.blocking(rota_app, rota_database_url, rota_clock, **_settings(request.node)) as harness:
        yield harness
    if request.node.stash.get(_passed, False):  # a failed test has more important things to report
        _complain(harness.left_over, _marked(request.node))


@pytest.fixture
def rota_drain(rota_blocking_harness: BlockingHarness) -> Callable[[], Sequence[Run]]:
    """Function that runs everything that is due and returns the runs."""
    return rota_blocking_harness.drain


@pytest.fixture
def rota_inline(rota_app: Rota) -> Iterator[Inlined]:
    """Inline mode for the whole test: an enqueue calls the handler, without a database."""
    from rota.testing.inline_mode.inline import inline

    with inline(rota_app) as inlined:
        yield inlined
