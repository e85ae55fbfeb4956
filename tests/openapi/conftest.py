"""A server on loopback with a worker and a token, and its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from rota import Rota
from rota.core.access.roles import Role
from rota.server import asgi
from tests.support.servers.http_server import serving

HERE = Path(__file__).parent


class Server(msgspec.Struct):
    """`document` is the file that users download, and `parsed` its content."""

    url: str
    token: str
    document: Path
    parsed: Any


@pytest.fixture
async def server(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Server]:
    app = Rota(sqlite_url, auth=True, poll="100ms")

    @app.job
    async def greet(name: str = "you") -> str:
        return f"hello, {name}"

    client = await app.connect()
    token = await client.tokens.create("generated", Role.ADMIN)
    with serving(asgi(app), app) as site:
        answer = httpx2.get(f"{site.url}/openapi.json")
        document = tmp_path / "openapi.json"
        document.write_bytes(answer.content)
        await app.start()
        yield Server(site.url, token.secret, document, json.loads(answer.content))
        await app.stop(timedelta(0))
    await app.aclose()
