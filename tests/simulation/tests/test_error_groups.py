"""What did not succeed is found as a fault; and a database that forgets one is found out."""

from collections.abc import Iterator

import msgspec
import pytest

from tests.simulation.script.entries import Enqueue
from tests.simulation.script.generator import draw
from tests.simulation.script.themes import ATTEMPTS
from tests.simulation.world.backends import Backend, open_backend
from tests.simulation.world.world import World

FAILING = msgspec.structs.replace(
    draw(1, ATTEMPTS), entries=[Enqueue(1.0, "client-1", "plain", ["fail:0.1"])], span=4.0, engines=1
)


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Backend]:
    backend = open_backend(postgres_url)
    yield backend
    backend.close()


def disable(backend: Backend, trigger: str) -> None:
    backend.do("transact", lambda tx: tx.script(f"alter table rota_run disable trigger {trigger}"))


def test_a_failed_run_is_found(postgres: Backend) -> None:
    assert World(FAILING, postgres).run().violation is None
    disable(postgres, "rota_fault_ended")
    violation = World(FAILING, postgres).run().violation
    assert violation is not None
    assert violation.promise == "P17"
    assert "is found as None" in violation.message
