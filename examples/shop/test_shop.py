"""Test the shop on a database of its own: `pytest --rota-database postgresql://localhost/shop`."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import shop
from fastapi.testclient import TestClient

from rota import Run, cron
from rota.testing import assert_fires


def test_an_order_is_charged_shipped_and_thanked_for(rota_drain: Callable[[], Sequence[Run]]) -> None:
    with TestClient(shop.web) as web:
        order = web.post("/orders", json={"email": "ada@example.com", "total": "12.50"}).json()["order"]
        refused = web.post("/orders", json={"email": "bob@example.com", "total": "2000"}).json()["order"]
        assert web.get(f"/orders/{order}").json() == {"state": "new", "work": "scheduled"}
        runs = {run.job: run.result for run in rota_drain() if run.result is not None}
        assert runs["thank"] == f"ada@example.com: order {order}: 12.50 EUR, thank you"
        assert web.get(f"/orders/{order}").json() == {"state": "shipped", "work": "succeeded"}
        assert web.get(f"/orders/{refused}").json() == {"state": "refused", "work": "skipped"}


def test_an_order_that_is_not_committed_has_no_work(rota_drain: Callable[[], Sequence[Run]]) -> None:
    with TestClient(shop.web) as web:
        assert web.post("/orders", json={"email": "ada@example.com", "total": "-1"}).status_code == 422
        assert web.get("/orders/1").status_code == 404
    assert rota_drain() == []


def test_the_report_is_made_at_six_in_berlin_in_summer_too() -> None:
    six = [datetime(2030, 7, 1, 4, tzinfo=UTC), datetime(2030, 7, 2, 4, tzinfo=UTC)]
    assert_fires(cron("0 6 * * *", tz="Europe/Berlin"), six, start="2030-07-01", until="2030-07-03")
