"""What `from rota import …` offers: exactly what is listed, sorted, importable, and meant."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import rota

ROOT = Path(__file__).parents[2]

PUBLIC = {
    "AsyncJob", "chain", "group",
    "Attempt", "BadPayload", "BlockingClient", "Call", "Cancelled", "Client", "Config", "Conflict", "Context",
    "Enqueue", "Enqueued",
    "Exponential",
    "Fail", "Follows", "Handle", "Invalid", "Job", "JobDefinition", "JobState", "JobStats", "JobStatus", "LeaseLost",
    "NotFound",
    "Order", "Outcome", "Replica", "Replicas", "Retry", "Rota",
    "RotaError", "Run", "RunError", "RunFailed", "RunFilter", "RunState", "Schedule", "Scope", "Snooze", "SyncContext",
    "Unavailable", "Unique",
    "__version__", "after", "cron", "every", "following", "injected", "once",
}  # fmt: skip


def test_the_list_is_what_was_meant_and_sorted() -> None:
    """A name added or lost is a change of the public contract: say so here."""
    assert set(rota.__all__) == PUBLIC
    assert rota.__all__ == sorted(PUBLIC)
    assert dir(rota) == sorted(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(rota, name) is not None


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Scheduler'"):
        rota.Scheduler  # noqa: B018
    with pytest.raises(ImportError):
        exec("from rota import Scheduler")


def test_type_checkers_and_programs_find_the_same_things() -> None:
    """The imports for type checkers, and the homes from which names are loaded at their first use."""
    tree = ast.parse(Path(rota.__file__).read_text(encoding="utf-8"))
    checked = {
        alias.name: statement.module
        for node in tree.body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert set(checked) | {"__version__"} == PUBLIC
    for name, module in checked.items():
        assert getattr(importlib.import_module(str(module)), name) is getattr(rota, name)


def test_star_imports_give_the_same() -> None:
    found: dict[str, object] = {}
    exec("from rota import *", found)
    assert found.keys() - {"__builtins__"} == PUBLIC


def test_every_class_says_what_it_is() -> None:
    """In its own words, or in those of the module that owns it."""
    for name in PUBLIC - {"__version__"}:
        kind = getattr(rota, name)
        assert kind.__doc__ or sys.modules[kind.__module__].__doc__, name


def test_importing_rota_loads_no_driver() -> None:
    program = "import sys, rota; print(sorted({'apsw', 'asyncpg', 'starlette', 'uvicorn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
