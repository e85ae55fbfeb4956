"""Give each test the shop's tables beside rota's: `aenqueue_in` needs both in one database."""

from collections.abc import Iterator

import pytest
import shop
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import create_async_engine

from rota import Rota
from rota.testing import BlockingHarness


@pytest.fixture
def rota_app() -> Rota:
    return shop.jobs


@pytest.fixture(autouse=True)
def own_database(
    rota_blocking_harness: BlockingHarness, rota_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    engine = create_async_engine(shop.for_sqlalchemy(rota_database_url), poolclass=NullPool)
    monkeypatch.setattr(shop, "engine", engine)
    shop.sessions.configure(bind=engine)
    yield
    monkeypatch.undo()
    shop.sessions.configure(bind=shop.engine)
