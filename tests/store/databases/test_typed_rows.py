"""Rows are taken apart by names: the number of a column says nothing, and is wrong as soon as another one comes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import rota.store

STORE = Path(rota.store.__file__).parent
FOLDERS = ("databases", "runs", "limits", "workers", "external", "planning")


def modules() -> Iterator[Path]:
    yield from (STORE / "store.py", STORE / "janitor.py")
    for folder in FOLDERS:
        yield from sorted((STORE / folder).rglob("*.py"))


def is_number(place: ast.expr) -> bool:
    """Whether it is a number, or a slice between numbers."""
    parts = [place.lower, place.upper] if isinstance(place, ast.Slice) else [place]
    values = [part.operand if isinstance(part, ast.UnaryOp) else part for part in parts if part is not None]
    return bool(values) and all(isinstance(part, ast.Constant) and isinstance(part.value, int) for part in values)


def columns_by_number(text: str) -> Iterator[str]:
    """Yield `row[3]`, `row[1:4]` and `rows[0][2]`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Subscript) and is_number(node.slice):
            of_rows = isinstance(node.value, ast.Subscript) and is_number(node.value.slice)
            of_row = isinstance(node.value, ast.Name) and node.value.id == "row"
            if of_rows or of_row:
                yield ast.unparse(node)


def test_columns_have_names() -> None:
    numbered = {path.relative_to(STORE).as_posix(): list(columns_by_number(path.read_text())) for path in modules()}
    assert {name: found for name, found in numbered.items() if found} == {}


def test_what_is_looked_for() -> None:
    text = "row[3]; row[1:4]; rows[0][2]; row[-1]; rows[0]; table[1]; row['a']"
    assert sorted(columns_by_number(text)) == ["row[-1]", "row[1:4]", "row[3]", "rows[0][2]"]
