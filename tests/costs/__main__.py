"""Write `budgets.py` as the operations cost now: `python -m tests.costs`. Read the difference before you commit it."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.conftest import migrated
from tests.costs.measure import Cost
from tests.costs.trial import postgres_costs, sqlite_costs

TABLE = Path(__file__).with_name("budgets.py")
HEAD = '''"""Budgets: what each operation may cost. `python -m tests.costs` writes this table.

A number that grows needs a reason. Each operation is about a hundred runs or schedules, unless its name says "one".
"""

from tests.costs.measure import Cost

# fmt: off
# ruff: noqa: E501
'''


def table(name: str, costs: dict[str, Cost]) -> str:
    """Return the costs as a Python literal, a line for each operation."""
    width = max(len(operation) for operation in costs) + 3
    rows = []
    for operation, cost in costs.items():
        facts = ", ".join(f"{field}={getattr(cost, field)}" for field in _fields(costs))
        rows.append(f"    {f'{operation!r}:'.replace(chr(39), chr(34)):{width}} Cost({facts}),")
    return "\n".join([f"{name} = {{", *rows, "}"])


def _fields(costs: dict[str, Cost]) -> list[str]:
    return [field for field in Cost.__struct_fields__ if any(getattr(cost, field) for cost in costs.values())]


def main() -> None:
    with pytest.MonkeyPatch.context() as patch:
        on_postgres = postgres_costs(patch)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/rota.db"
        asyncio.run(migrated(url))
        on_sqlite = sqlite_costs(url, patch)
    TABLE.write_text("\n".join([HEAD + table("POSTGRES", on_postgres), table("SQLITE", on_sqlite), ""]))


if __name__ == "__main__":
    main()
