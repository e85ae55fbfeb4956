"""An app with a job or two on a fresh SQLite file."""

from collections.abc import Iterator

import pytest

from rota import Context, Job, Rota


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Rota]:
    made = Rota(sqlite_url)
    yield made
    made.close()


@pytest.fixture
def crawl(app: Rota) -> Job[[str, int], str]:
    @app.job(tags=["net"], max_attempts=5)
    def crawl(ctx: Context, url: str, depth: int = 1) -> str:
        """Fetch a page."""
        return f"{url} to {depth} for {ctx}"

    return crawl
