"""Database outage: callers get 503 with `Retry-After`; afterwards everything works as before."""

import socket
from typing import Any

import httpx2

from rota.app import Rota
from rota.server import asgi
from rota.store import Store, open_database
from tests.support.databases.network_proxy import proxy_to

ASKED: list[tuple[str, str, Any]] = [
    ("GET", "/runs", None), ("POST", "/runs", {"job": "hello"}), ("GET", "/jobs", None), ("GET", "/schedules", None),
    ("POST", "/schedules", {"name": "s", "job": "hello", "every": "1h"}), ("GET", "/workers", None),
    ("POST", "/jobs", {"name": "ping", "url": "https://example.com"}), ("GET", "/quotas", None),
    ("POST", "/worker/claim", {"worker": "a", "wait": "1s"}), ("GET", "/expectations", None), ("GET", "/time", None),
    ("POST", "/worker/runs/01a1e113-637e-7384-aa02-a556abf37a46/complete", {"fence": 1}),
]  # fmt: skip


async def test_it_is_told_with_a_time_to_come_back(postgres_url: str) -> None:
    store = Store(open_database(postgres_url))
    await store.migrate()
    await store.close()
    with proxy_to(postgres_url) as proxy:
        app = Rota(proxy.url, deadline="1s")

        @app.job
        def hello() -> None: ...

        client = await app.connect()
        await client.store.save_jobs(app.registry.definitions())
        transport = httpx2.ASGITransport(app=asgi(app))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682", timeout=30) as http:
            assert (await http.get("/api/v1/runs")).status_code == 200
            proxy.refusing = True
            proxy.cut()
            for method, path, body in ASKED:
                away = await http.request(method, f"/api/v1{path}", json=body)
                assert away.status_code == 503, (path, away.text)
                assert away.json()["code"] in ("unavailable", "deadline"), path
                assert int(away.headers["retry-after"]) > 0
            assert (await http.get("/healthz")).status_code == 200
            assert (await http.get("/readyz")).status_code == 503
            proxy.refusing = False
            assert (await http.post("/api/v1/runs", json={"job": "hello"})).status_code == 201
            assert len((await http.get("/api/v1/runs")).json()["items"]) == 1
        await app.aclose()


async def test_a_database_that_was_never_there(sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    app = Rota(f"postgresql://nobody@127.0.0.1:{port}/nothing", deadline="1s")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi(app)), base_url="http://127.0.0.1") as http:
        for _ in range(2):
            away = await http.get("/api/v1/runs")
            assert (away.status_code, away.headers["retry-after"]) == (503, "2")
        assert (await http.get("/healthz")).status_code == 200
