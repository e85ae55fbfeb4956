"""Whatever operation is struck, in every scenario, every promise is kept; and a store that broke one would be found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from rota.core.progress.notes import Notes
from rota.core.runs.outcome import Report
from rota.engine.handlers.context_backend import WorkerBackend
from rota.engine.worker.operator_settings import OperatorSettings
from rota.engine.worker.reporter import Reporter
from rota.errors import RotaError
from rota.store.databases import held_transaction, statements
from rota.store.databases.database import Database, Tx, Work
from rota.store.ledger import backfill
from rota.store.runs import enqueue
from rota.store.schedules.schedule_operations import ScheduleStore
from tests.simulation.crashes import points
from tests.simulation.crashes.catalogue import SCENARIOS
from tests.simulation.crashes.points import LOOKING, WRITING, Result, enumerate_points, points_of
from tests.simulation.crashes.world import Operation
from tests.simulation.world.backends import Backend, open_backend
from tests.simulation.world.gate import BLOWS

ON_POSTGRES = {
    "claim": 7,
    "heartbeat": 9,
    "retry": 9,
    "enqueue-idempotency-key": 4,
    "unique-replace": 5,
    "limit-of-key": 7,
    "reap": 11,
    "plan": 9,
    "pause-and-catch-up": 9,
    "backfill": 9,
    "prune": 9,
    "step-end": 9,
    "hand-over": 11,
    "shield-and-cancel": 9,
    "transaction-with-the-end": 5,
    "transaction-without-the-end": 7,
    "retry-keeping-steps": 11,
    "retry-many": 13,
    "drain": 17,
}
"""A sample, because a world is many times slower there: of these scenarios each so many-th point."""


@pytest.fixture(scope="module")
def sqlite() -> Iterator[Backend]:
    backend = open_backend(None)
    yield backend
    backend.close()


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Backend]:
    backend = open_backend(postgres_url)
    yield backend
    backend.close()


def told(result: Result) -> list[str]:
    return [f"{trial.point}: {trial.violation}" for trial in result.violations]


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_blow_breaks_a_promise(sqlite: Backend, name: str) -> None:
    """At every third point; `simulate crashes` tries them all."""
    result = enumerate_points(SCENARIOS[name], sqlite, 3)
    assert told(result) == []
    assert result.missing == [], "what it is about was struck"
    assert result.writes_struck >= len(WRITING) // 2


@pytest.mark.parametrize("name", ON_POSTGRES)
def test_nor_on_postgres(postgres: Backend, name: str) -> None:
    result = enumerate_points(SCENARIOS[name], postgres, ON_POSTGRES[name])
    assert told(result) == []
    assert result.writes_struck > 0


def test_every_blow_befalls_every_write() -> None:
    """A look that writes nothing is struck once for each process; what may not be repeated is not."""
    write = Operation("engine-1", 0, "Store.report", 0.0, 0, wrote=True)
    claim = Operation("engine-1", 1, "Store.claim", 0.0, 0, wrote=True, repeatable=False)
    looks = [Operation("engine-1", number, "Store.reap", 0.0, 0) for number in (2, 3)]
    befalls: dict[int, set[str]] = {}
    for point, operation in points_of([write, claim, *looks]):
        assert point.number == operation.number
        befalls.setdefault(point.number, set()).add(point.befalls)
    assert befalls == {0: set(WRITING), 1: set(WRITING) - {"repeated"}, 2: set(LOOKING)}
    assert set(WRITING) == set(BLOWS), "all that the gate can do"


def test_a_scenario_that_misses_its_subject_is_found_out(sqlite: Backend) -> None:
    vacuous = msgspec.structs.replace(SCENARIOS["trigger"], subjects=("client-1 ScheduleStore.trigger",))
    result = enumerate_points(vacuous, sqlite)
    assert result.missing == ["client-1 ScheduleStore.trigger"]
    assert not result.passed


def without_fences(patch: pytest.MonkeyPatch) -> None:
    """A zombie's success is taken for that of whoever holds the lease."""
    broken = {
        name: text.replace("and l.fence = rows.fence", "") if name in ("current_leases", "end_successes") else text
        for name, text in statements.blocks("sqlite").items()
    }
    patch.setattr(statements, "blocks", lambda _: broken)


def reports_once(patch: pytest.MonkeyPatch) -> None:
    """A report that the database did not take is forgotten."""
    step = Reporter.step

    async def forgetting(self: Reporter) -> None:
        try:
            await step(self)
        except RotaError:
            self.pending.clear()
            raise

    patch.setattr(Reporter, "step", forgetting)


def backfills_again(patch: pytest.MonkeyPatch) -> None:
    """A repeated backfill does not look for what it did."""

    async def never(*_: object) -> bool:
        return False

    patch.setattr(backfill, "is_done", never)


def triggers_again(patch: pytest.MonkeyPatch) -> None:
    """A trigger is repeated like everything else."""
    init = ScheduleStore.__init__

    def careless(self: ScheduleStore, database: Database, new_id: Any) -> None:
        init(self, _Repeating(database), new_id)

    patch.setattr(ScheduleStore, "__init__", careless)


class _Repeating:
    def __init__(self, database: Database) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def transact(self, work: Work[Any], **_: object) -> Any:
        return await self._database.transact(work)


def forgets_keys(patch: pytest.MonkeyPatch) -> None:
    """A key is free to whoever asks."""

    async def nobody(*_: object) -> None:
        return None

    patch.setattr(enqueue, "_take_key", nobody)


def does_steps_again(patch: pytest.MonkeyPatch) -> None:
    """An attempt does not ask what earlier ones have done."""

    async def nothing(_: WorkerBackend) -> dict[str, str | None]:
        return {}

    patch.setattr(WorkerBackend, "_results_before", nothing)


def ends_later(patch: pytest.MonkeyPatch) -> None:
    """The end of a run is told by itself, after the transaction that it belongs to."""

    sealed = held_transaction.seal

    async def seal(tx: Tx, lease: tuple[str, int], _: Report | None, notes: Notes | None) -> None:
        await sealed(tx, lease, None, notes)

    patch.setattr(held_transaction, "seal", seal)


def never_drains(patch: pytest.MonkeyPatch) -> None:
    """A worker claims whatever it was asked."""
    patch.setattr(OperatorSettings, "may_claim", True)


PLANTED = {
    "drain": (never_drains, "drain"),
    "step-end": (does_steps_again, "P16"),
    "transaction-with-the-end": (ends_later, "P10"),
    "zombie": (without_fences, "P10"),
    "finish": (reports_once, "P12"),
    "backfill": (backfills_again, "backfill"),
    "trigger": (triggers_again, "trigger"),
    "enqueue-idempotency-key": (forgets_keys, "P8"),
}
"""Scenario to what is broken, and the promise that is found broken."""


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, promise = PLANTED[name]
    plant(monkeypatch)
    statements.compile_statement.cache_clear()
    backend = open_backend(None)  # made after the plant, and used by nobody else
    found = enumerate_points(SCENARIOS[name], backend).violations
    backend.close()
    statements.compile_statement.cache_clear()
    assert {trial.violation.promise for trial in found if trial.violation} == {promise}


def test_the_table_tells_and_says_how_to_see_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert points.main(["trigger"]) == 0
    assert "trigger" in capsys.readouterr().out
    triggers_again(monkeypatch)
    assert points.main(["trigger"]) == 1
    again = [line for line in capsys.readouterr().out.splitlines() if line.startswith("again: ")]
    words = again[0].removeprefix("again: python -m tests.simulation.crashes ").split()
    assert points.main(words) == 1
    assert "2 runs were made" in capsys.readouterr().out
