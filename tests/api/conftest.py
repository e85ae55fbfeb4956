"""HTTP client for the API of a test's own `app`, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from rota.app import Rota
from rota.server import asgi


@pytest.fixture
async def http(app: Rota, request: pytest.FixtureRequest) -> AsyncIterator[httpx2.AsyncClient]:
    """Paths are below the module's `API`, if it defines one."""
    base = f"http://127.0.0.1:7682{getattr(request.module, 'API', '')}"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url=base) as client:
        yield client
