"""Databases for tests: a fresh SQLite file, or a fresh database on a real PostgreSQL.

Those that tests get have their tables already, copied from one that was migrated once: that is many times faster. Who
wants none asks for a new one.

Two options choose what runs: `--database sqlite` leaves out every test that needs PostgreSQL, which is then not even
started (`--database postgres`: the other way round); `--long` adds the long forms, marked `long`.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from rota import Context, Job, Rota
from rota.store import Store, open_database
from rota.testing.databases import forget_place
from rota.testing.harness.temporary_database import folder_in_memory
from tests.support.databases.database_pool import Lending
from tests.support.databases.postgres import PostgresCluster, PostgresServer

# What runs in the background of a shell may ignore Ctrl-C, and with it all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes are started: each would compile all of it anew

# No property is about time, and 200 ms for an example are too few on a busy machine.
hypothesis.settings.register_profile("rota", deadline=None)
hypothesis.settings.load_profile("rota")

# SQLite waits for the disk at every commit: two thirds of the time of a test on a file. In memory nothing waits.
if folder := folder_in_memory(free=4 * 1024**3):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)  # where pytest makes the folders of `tmp_path`

HERE = Path(__file__).parent

# A test needs a database if it asks for one of these fixtures, or if a parameter or a mark names it.
NEEDS = {
    "sqlite": {"sqlite_url", "new_sqlite_url", "sqlite"},
    "postgres": {"postgres_cluster", "own_postgres_cluster", "postgres"},
}

# What depends on real processes, browsers and sockets may fail because something else has the machine. Such a test is
# tried once more, and named at the end. All others hold time in their hands: they pass at once.
REAL = ("system", "browser", "examples", "acceptance", "openapi", "shape/test_snippets.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", choices=sorted(NEEDS), help="leave out tests that need the other database")
    parser.addoption("--long", action="store_true", help="run the long forms, too: more seeds, more repetitions")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = {item: _is_chosen(item, config) for item in items}
    items[:] = [item for item in items if chosen[item]]
    for item in items:
        if any(item.path.is_relative_to(HERE / name) for name in REAL):
            item.add_marker(pytest.mark.flaky(reruns=1))
    if left_out := [item for item in chosen if not chosen[item]]:
        config.hook.pytest_deselected(items=left_out)


def _is_chosen(item: pytest.Item, config: pytest.Config) -> bool:
    if item.get_closest_marker("long") and not config.getoption("--long"):
        return False
    chosen = config.getoption("--database")
    return chosen is None or all(_needs(item).isdisjoint(NEEDS[other]) for other in NEEDS if other != chosen)


def _needs(item: pytest.Item) -> set[str]:
    if not isinstance(item, pytest.Function):
        return set()
    callspec = getattr(item, "callspec", None)
    named = callspec.params.values() if callspec else ()
    marks = (mark.name for mark in item.iter_markers())
    return {*item.fixturenames, *marks, *(value for value in named if isinstance(value, str))}


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[PostgresServer]:
    """The server that tests share (one per test process): take databases from it, leave it running."""
    url = os.environ.get("ROTA_TEST_POSTGRES_URL")
    if url:
        yield PostgresServer(url)
        return
    with PostgresCluster() as cluster:
        yield cluster


@pytest.fixture
def own_postgres_cluster() -> Iterator[PostgresCluster]:
    """A server of one's own, to stop, restart and kill; as durable as in production."""
    with PostgresCluster(fsync=True) as cluster:
        yield cluster


async def migrated(url: str) -> None:
    store = Store(open_database(url))
    await store.migrate()
    await forget_place(store)
    await store.close()


@pytest.fixture(scope="session")
def postgres_template(postgres_cluster: PostgresServer) -> Iterator[str]:
    url = postgres_cluster.create_database()
    asyncio.run(migrated(url))
    yield url
    postgres_cluster.drop_database(url)


@pytest.fixture(scope="session")
def postgres_lending(postgres_cluster: PostgresServer, postgres_template: str) -> Iterator[Lending]:
    lending = Lending(postgres_cluster, postgres_template)
    yield lending
    lending.close()


@pytest.fixture
def postgres_url(postgres_lending: Lending) -> Iterator[str]:
    """A database of one's own, with its tables, empty."""
    url = postgres_lending.lend()
    yield url
    postgres_lending.take_back(url)


@pytest.fixture
def new_postgres_url(postgres_cluster: PostgresServer) -> Iterator[str]:
    """An empty database."""
    url = postgres_cluster.create_database()
    yield url
    postgres_cluster.drop_database(url)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "rota.db"
    asyncio.run(migrated(f"sqlite:///{path}"))
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    """A database file of one's own, with its tables."""
    shutil.copy(sqlite_template, tmp_path / "rota.db")
    return f"sqlite:///{tmp_path / 'rota.db'}"


@pytest.fixture
def new_sqlite_url(tmp_path: Path) -> str:
    """A database file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'rota.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Each test that asks for it runs once on SQLite and once on PostgreSQL."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def new_database_url(request: pytest.FixtureRequest) -> str:
    """The same without tables."""
    url: str = request.getfixturevalue(f"new_{request.param}_url")
    return url


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Rota]:
    """An app on a fresh SQLite file."""
    made = Rota(sqlite_url)
    yield made
    made.close()


@pytest.fixture
def crawl(app: Rota) -> Job[[str, int], str]:
    """A job of that app."""

    @app.job(tags=["net"], max_attempts=5)
    def crawl(ctx: Context, url: str, depth: int = 1) -> str:
        """Fetch a page."""
        return f"{url} to {depth} for {ctx}"

    return crawl
