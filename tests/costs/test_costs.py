"""What operations cost is what `budgets.py` says, on both databases."""

from __future__ import annotations

import msgspec
import pytest

from tests.costs.budgets import POSTGRES, SQLITE
from tests.costs.measure import Cost
from tests.costs.trial import ALL, postgres_costs, sqlite_costs
from tests.support.databases.postgres import all_binaries

EXACT = ("transactions", "statements")
FOR_ALL = ("transactions", "statements", "calls", "read")
SPREAD = {"wal": 1_000}  # of other things that the server notes meanwhile
VERSIONS = all_binaries()
NAMES = [operation.name for operation in ALL]


def deviations(costs: dict[str, Cost], budgets: dict[str, Cost], *, exact: bool = True) -> list[str]:
    """Return where costs are not those of the budgets.

    Transactions and statements are exact. Others may be a sixth higher, because page splits, the length of numbers and
    newer Pythons matter. If they are a quarter lower, the budget is to be lowered, or the next loss would not be seen.
    An older version of the database (`exact` is false) may cost less, and has other pages and another log.
    """
    lines = []
    for name, budget in budgets.items():
        for field in Cost.__struct_fields__ if exact else FOR_ALL:
            cost, limit = getattr(costs[name], field), getattr(budget, field)
            if field in EXACT and cost != limit:
                lines.append(f"{name}: {cost} {field}, not {limit}")
            elif cost > 1.17 * limit + SPREAD.get(field, 20):
                lines.append(f"{name}: {field} {cost}, budget {limit}")
            elif exact and cost < 0.75 * limit - SPREAD.get(field, 20):
                lines.append(f"{name}: {field} {cost}, and the budget is still {limit}")
    return lines


def test_costs_on_sqlite(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert deviations(sqlite_costs(sqlite_url, monkeypatch), SQLITE) == []


@pytest.mark.postgres
@pytest.mark.parametrize("version", sorted({min(VERSIONS), max(VERSIONS)}))
def test_costs_on_postgres(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = postgres_costs(monkeypatch, VERSIONS[version])
    assert deviations(costs, POSTGRES, exact=version == max(VERSIONS)) == []


@pytest.mark.parametrize("budgets", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
def test_every_operation_has_a_budget(budgets: dict[str, Cost]) -> None:
    assert [*budgets] == NAMES


def test_what_an_operation_costs_more_is_seen() -> None:
    usual = Cost(transactions=1, statements=2, calls=100, read=500)
    budgets = {"act": usual}
    assert deviations({"act": usual}, budgets) == []
    for field, more in (("transactions", 2), ("statements", 102), ("calls", 200), ("read", 700), ("scanned", 100)):
        costs = {"act": msgspec.structs.replace(usual, **{field: more})}
        assert [line for line in deviations(costs, budgets) if field in line], field
    assert deviations({"act": msgspec.structs.replace(usual, read=50)}, budgets) != []
