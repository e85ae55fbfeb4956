"""Fixtures: a harness and a site with real processes, each on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rota.testing import Harness
from tests.acceptance.api import Api, serving
from tests.system.site import Site, opened


@pytest.fixture
async def harness(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=database_url) as harness:
        yield harness


@pytest.fixture
def api(database_url: str, tmp_path: Path) -> Iterator[Api]:
    with serving(database_url, tmp_path) as api:
        yield api


@pytest.fixture
async def site(database_url: str, tmp_path: Path) -> AsyncIterator[Site]:
    async with opened(database_url, tmp_path) as site:
        yield site
