"""Losses of speed that happened, or nearly did, planted: the cost tests catch each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rota.core.runs.run import Run
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.databases.pinned_plans import UNCOMPILED
from rota.store.databases.postgres import postgres
from rota.store.runs import read
from tests.costs.budgets import SQLITE
from tests.costs.growth import Grown, postgres_growth, sqlite_growth
from tests.costs.operations import OPERATIONS, Operation
from tests.costs.test_costs import deviations
from tests.costs.trial import sqlite_costs
from tests.support.databases.postgres import all_binaries

VERSIONS = all_binaries()
FACTOR = 20
NEWEST = VERSIONS[max(VERSIONS)] if VERSIONS else None
UNPINNED = {"extend", "GET /schedules"}
LIST, PARENTS = "list runs of a job", "GET /runs/{id}/parents"


def named(*names: str) -> list[Operation]:
    return [operation for operation in OPERATIONS if operation.name in names]


def caught(lines: Iterable[Grown]) -> set[str]:
    return {line.operation for line in lines}


def test_what_is_not_spoilt_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sqlite_growth(tmp_path, monkeypatch, FACTOR, named(LIST, PARENTS)) == []


def test_an_index_that_is_gone_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def drop(store: Store) -> None:
        await store.database.transact(lambda tx: tx.script("drop index rota_run_job"))

    assert caught(sqlite_growth(tmp_path, monkeypatch, FACTOR, named(LIST, PARENTS), drop)) == {LIST}


def test_a_query_for_each_row_is_noticed(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together = read.runs_by_id

    async def one_by_one(tx: Tx, run_ids: Sequence[str], *rest: Any) -> list[Run]:
        return [run for run_id in run_ids for run in await together(tx, [run_id], *rest)]

    monkeypatch.setattr(read, "runs_by_id", one_by_one)
    costs = sqlite_costs(sqlite_url, monkeypatch, named(LIST))
    assert [line for line in deviations(costs, {LIST: SQLITE[LIST]}) if "statements" in line]


def test_a_scan_of_all_runs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = read.runs_by_id

    async def after_a_scan(tx: Tx, run_ids: Sequence[str], *rest: Any) -> list[Run]:
        await tx.fetch_sql("select count(*) from rota_run where metadata = ''")
        return await together(tx, run_ids, *rest)

    monkeypatch.setattr(read, "runs_by_id", after_a_scan)
    lines = sqlite_growth(tmp_path, monkeypatch, FACTOR, named(LIST))
    assert {line.field for line in lines} >= {"read", "scanned"}


@pytest.mark.postgres
@pytest.mark.skipif(not VERSIONS, reason="no binaries of PostgreSQL")
def test_a_plan_that_is_not_pinned_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the plan is printed. As they are, these operations do not grow: `test_growth` has them all."""
    monkeypatch.setattr(postgres, "_READING", f"set transaction read only; {UNCOMPILED}")
    monkeypatch.setattr(postgres, "PINNED", UNCOMPILED)
    lines = postgres_growth(
        monkeypatch, FACTOR, named(*UNPINNED), statistics=["absent"], expected=lambda _: False, binaries=NEWEST
    )
    assert caught(lines) == UNPINNED
    assert all("Scan on rota_" in line.plans for line in lines)
