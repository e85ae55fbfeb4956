"""Fixtures: sites for system tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.site import Site, opened


@pytest.fixture
async def site(database_url: str, tmp_path: Path) -> AsyncIterator[Site]:
    """A site on SQLite and one on PostgreSQL."""
    async with opened(database_url, tmp_path) as site:
        yield site


@pytest.fixture
async def sqlite_site(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Site]:
    async with opened(sqlite_url, tmp_path) as site:
        yield site


@pytest.fixture
async def postgres_site(postgres_url: str, tmp_path: Path) -> AsyncIterator[Site]:
    async with opened(postgres_url, tmp_path) as site:
        yield site
