"""The checker finds what it is for in trails, and in what becomes of lost runs: each broken by hand."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from tests.simulation.checks.audit_trail import trails_are_true
from tests.simulation.checks.suspects import SuspectChecks
from tests.simulation.script.generator import draw
from tests.simulation.script.themes import EVERYTHING
from tests.simulation.tests.test_checker import NOW, held, seen, waiting
from tests.simulation.world.backends import SqliteBackend
from tests.simulation.world.history import Deed
from tests.simulation.world.observer import Change, Seen
from tests.simulation.world.world import World

_COLUMNS = "at, kind, subject, type, actor, fence, details"


@pytest.fixture
def world() -> Iterator[World]:
    """One in which much is cancelled, lost and tried again."""
    backend = SqliteBackend()
    one = World(draw(6, EVERYTHING), backend)
    assert one.run().violation is None
    yield one
    backend.close()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("delete from rota_event where type = 'cancel_asked'", "cancelling"),
        ("update rota_event set at = at + 1 where type = 'cancel_asked'", "cancelling"),
        ("update rota_event set actor = 'somebody' where type = 'cancel_asked'", "not by somebody"),
        (f"insert into rota_event ({_COLUMNS}) select {_COLUMNS} from rota_event where type = 'paused'", "2 times"),
        ("delete from rota_attempt", "told is"),
        ("update rota_attempt set left_as = 'failed'", "told is"),
        ("update rota_attempt set worker_id = 'somebody'", "told is"),
        ("update rota_attempt set left_as = 'scheduled', due_at = ended_at where left_as = 'queued'", "due already"),
        ("update rota_run set created_at = created_at - 1", "told is"),
    ],
)
def test_a_trail_that_is_not_what_happened(world: World, damage: str, told: str) -> None:
    world.backend.look(damage)
    findings = list(trails_are_true(world))
    assert {promise for promise, _ in findings} == {"P17"}
    assert any(told in message for _, message in findings)


def suspects(*runs: Seen) -> SuspectChecks:
    return SuspectChecks(cast("World", SimpleNamespace(observer=SimpleNamespace(runs={run.id: run for run in runs}))))


def change(op: str, before: Seen, after: Seen) -> Change:
    return Change(10.0, NOW, "a", "a@1", op, before, after)


def test_a_lost_run_is_a_suspect_and_no_other_is() -> None:
    def promises(op: str, solo: int) -> list[str]:
        """After the second time; the first makes no suspect."""
        checks = suspects()
        assert list(checks.lost_is_suspect(change(op, held(), waiting(solo=0)))) == []
        return [promise for promise, _ in checks.lost_is_suspect(change(op, held(), waiting(solo=solo)))]

    assert promises("Store.reap", 2) == []
    assert promises("Store.reap", 0) == ["P12"]
    assert promises("Store.report", 0) == []
    assert promises("Store.report", 2) == ["P12"]


@pytest.mark.parametrize(("solo", "promises"), [(2, ["P12"]), (0, [])])
def test_two_suspects_on_one_worker(solo: int, promises: list[str]) -> None:
    other = seen(id="run-000002", lease=held().lease)
    checks = suspects(held(), other)
    for run in (held(), other):
        place = waiting(solo=solo).place
        list(checks.lost_is_suspect(change("Store.claim", seen(id=run.id, place=place), run)))
    began = Deed(10.0, "a", "a@1", "began", "run-000001", 1, 1)
    assert [promise for promise, _ in checks.began(began)] == promises
    assert list(checks.began(Deed(10.0, "b", "b@1", "began", "run-000001", 1, 1))) == []
