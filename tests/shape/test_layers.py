"""Imports point down, as the contracts in pyproject.toml say."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rota"


def test_imports_point_down() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_climbs_through_the_package_itself() -> None:
    """`from rota import …` would reach the top layer from any other without the contract seeing it."""
    climbing = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "rota" and reaches_exports(node)
    ]
    assert climbing == []


def reaches_exports(node: ast.ImportFrom) -> bool:
    """Whether a name comes from `rota/__init__.py`, and not from a module beside it."""
    return any(not (PACKAGE / name.name).exists() and not (PACKAGE / f"{name.name}.py").exists() for name in node.names)
