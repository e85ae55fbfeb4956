"""The test kit: what `rota.testing` offers is listed, meant, importable without the rest, and documented."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from rota import testing
from rota.testing import plugin
from rota.testing.harness.blocking_harness import BlockingHarness
from rota.testing.harness.harness import Harness

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text()

PUBLIC = {
    "BlockingHandWorker", "BlockingHarness", "HandWorker", "Harness", "InlineRun", "Inlined", "ManualClock", "adrain",
    "assert_enqueued", "assert_fires", "assert_not_enqueued", "drain", "inline",
}  # fmt: skip
FIXTURES = {
    "rota_app", "rota_blocking_harness", "rota_clock", "rota_database_url", "rota_drain", "rota_harness", "rota_inline",
}  # fmt: skip


def test_the_list_is_what_was_meant_and_sorted() -> None:
    assert testing.__all__ == sorted(PUBLIC)
    assert dir(testing) == sorted(PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'fake'"):
        testing.fake  # noqa: B018


def test_type_checkers_and_programs_find_the_same_things() -> None:
    tree = ast.parse(Path(testing.__file__).read_text(encoding="utf-8"))
    checked = {
        alias.name: str(statement.module)
        for node in tree.body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert set(checked) == PUBLIC
    for name, module in checked.items():
        assert getattr(importlib.import_module(module), name) is getattr(testing, name)


@pytest.mark.parametrize("first", ["inline", "Harness", "assert_enqueued"])
def test_a_name_is_what_it_is_whatever_was_imported_first(first: str) -> None:
    """A module of the same name would hide it."""
    program = f"import rota.testing as t; t.{first}; print(*[n for n in t.__all__ if not callable(getattr(t, n))])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == ""


def test_pytest_finds_the_plugin() -> None:
    (found,) = entry_points(group="pytest11", name="rota")
    assert found.value == plugin.__name__


def test_every_name_is_documented() -> None:
    assert [name for name in PUBLIC if not re.search(rf"`{name}\b", PAGE)] == []


def test_every_fixture_is_documented() -> None:
    made = {name for name, value in vars(plugin).items() if type(value).__name__ == "FixtureFunctionDefinition"}
    assert {name for name in made if not name.startswith("_")} == FIXTURES
    assert [name for name in FIXTURES if f"| `{name}` |" not in PAGE] == []


def test_every_verb_of_a_harness_is_documented_and_has_its_blocking_form() -> None:
    verbs = {name for name in vars(Harness) if not name.startswith("_")} - {"blocking", "diverting"}
    assert [name for name in verbs if not re.search(rf"`{name}\b", PAGE)] == []
    echoed = {name for name in vars(BlockingHarness) if not name.startswith("_")}
    assert verbs - echoed == set()
    for name in verbs & {name for name, _ in inspect.getmembers(Harness, inspect.iscoroutinefunction)}:
        assert inspect.signature(getattr(Harness, name)) == inspect.signature(getattr(BlockingHarness, name))
