"""Test how far one walks through the code: an `enqueue`, and a due schedule that becomes a run."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.shape.walks import WALKS

ROOT = Path(__file__).parents[2]


class Budget(NamedTuple):
    """Files in all, those without SQLite's driver, and functions."""

    files: int
    without_driver: int
    functions: int


BUDGETS = {"enqueue": Budget(19, 12, 70), "planning": Budget(23, 15, 106)}
"""Lower a number when a walk gets shorter. One that grows needs a hop less elsewhere."""


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_as_short_as_it_was(name: str, tmp_path: Path) -> None:
    walk, budget = WALKS[name](tmp_path), BUDGETS[name]
    assert (len(walk.files), len(walk.without_driver)) == (budget.files, budget.without_driver), walk.files
    # Not equal: which thread sees to what is done after the answer differs from time to time.
    assert len(walk.hops) <= budget.functions, list(walk.hops)


@pytest.mark.parametrize(("name", "title"), [("enqueue", "`crawl.enqueue"), ("planning", "A due schedule")])
def test_the_walks_are_described_as_they_are(name: str, title: str, tmp_path: Path) -> None:
    hops = [file.removesuffix(".py") for file in WALKS[name](tmp_path).without_driver]
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Two walks")[2].partition("\n## ")[0]
    described = page.partition(f"\n{title}")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert re.findall(r"^\d+\. `([^`]+)`: ", described, re.MULTILINE) == hops
