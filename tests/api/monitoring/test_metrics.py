"""`/metrics`: valid Prometheus text, also in processes that serve nothing else."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rota import Order
from rota.api import asgi, probes
from rota.app import Rota


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    app = Rota(sqlite_url)

    @app.job
    async def work() -> None: ...

    yield app
    await app.aclose()


@pytest.mark.parametrize("serves", [asgi, probes])
async def test_what_was_counted_and_how_full_it_is(app: Rota, serves: type) -> None:
    await (await app.connect()).enqueue(Order("work", {}))
    transport = httpx2.ASGITransport(app=serves(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682") as http:
        answer = await http.get("/metrics")
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.get("/metrics", headers={"Host": "evil.example"})).status_code == 421
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = {s.name: s.value for family in text_string_to_metric_families(answer.text) for s in family.samples}
    assert samples["rota_runs_enqueued_total"] == 1
    assert samples["rota_queue_runs"] == 1


async def test_a_worker_alone_serves_nothing_else(app: Rota) -> None:
    transport = httpx2.ASGITransport(app=probes(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682") as http:
        assert (await http.get("/api/v1/runs")).status_code == 404


async def test_an_app_tells_the_same(app: Rota) -> None:
    assert "# TYPE rota_runs_enqueued_total counter\n" in await app.metrics()


def test_without_an_event_loop(sqlite_url: str) -> None:
    app = Rota(sqlite_url)
    assert "rota_database_up 1\n" in app.blocking.metrics()
    app.close()
