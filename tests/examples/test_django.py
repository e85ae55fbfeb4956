"""The shop in Django: started as its README says, and its own tests on both databases."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.documents.examples import Example


def shop_on(url: str) -> dict[str, str]:
    if url.startswith("sqlite"):
        return {}
    at = urlsplit(url)
    return {
        "SHOP_DATABASE": at.path.removeprefix("/"),
        "SHOP_USER": at.username or "",
        "SHOP_PASSWORD": at.password or "",
        "SHOP_HOST": at.hostname or "",
        "SHOP_PORT": str(at.port or ""),
    }


def test_an_order_is_answered_by_a_worker(new_postgres_url: str, tmp_path: Path) -> None:
    with Example("django", tmp_path, shop_on(new_postgres_url)) as shop:
        shop.run("manage.py migrate")
        shop.start("manage.py runserver", "--noreload")
        worker = shop.start("manage.py rota worker")
        assert shop.ask("POST", "/orders/", data={"item": "tea"}).json() == {"order": 1}
        assert shop.until_told("/orders/1/", "receipt_sent_at")
        assert shop.until_told("/orders/1/", "labelled_by") != worker.pid
        worker.terminate()
        assert worker.wait() == 0


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_its_own_tests_pass(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = "sqlite:" if database == "sqlite" else request.getfixturevalue("new_postgres_url")
    with Example("django", tmp_path, shop_on(url)) as shop:
        shop.run("manage.py test")
