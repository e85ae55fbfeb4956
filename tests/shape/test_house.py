"""Test the rooms: few modules in a folder, names that are unique and plain, docstrings that are sentences."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rota"

MOST_MODULES = 12

NOUNS = {
    "blocking": "what asyncio calls code that does not await",
    "monitoring": "what operators call it",
    "routing": "what web frameworks call it",
    "tracing": "what OpenTelemetry calls it",
    "testing": "the public name of the test kit",
}
"""Words that end as gerunds do and are the terms that people know, each with its reason."""

FRAGMENT = re.compile(
    r"(Of|By|As|Those|Whether|What|Who|Whoever|Where|When|How|From|For|With|Without|To|In|On|At|And|But|Also|Not|Nor"
    r"|Which|Whose|That|If|Likewise|So|It|Its|They)(?![-\w])"
)


def modules() -> Iterator[Path]:
    return (path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py")


def layer_of(module: Path) -> str:
    return module.parts[0] if len(module.parts) > 1 else ""


def test_a_folder_has_few_modules() -> None:
    counts = Counter(str(module.parent) for module in modules())
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_a_name_stands_once_in_a_layer() -> None:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in modules():
        places[layer_of(module), module.stem].append(str(module))
    assert [paths for paths in places.values() if len(paths) > 1] == []


def test_no_module_is_named_with_a_gerund() -> None:
    named = {str(module): module.stem.split("_") for module in modules()}
    assert [name for name, words in named.items() if any(_is_gerund(word) for word in words)] == []


def _is_gerund(word: str) -> bool:
    return len(word) > 4 and word.endswith("ing") and word not in NOUNS


def test_every_folder_says_what_it_owns() -> None:
    rooms = [path for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    assert [str(path) for path in rooms if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))] == []


def test_docstrings_are_sentences() -> None:
    """A docstring begins with a verb in the imperative, or with a noun that says what the thing is."""
    assert list(_fragments()) == []


def _fragments() -> Iterator[str]:
    for module in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text and FRAGMENT.match(text):
                    yield f"{module.relative_to(ROOT)}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}"


def test_tests_stand_where_what_they_test_stands() -> None:
    """Each folder below `tests/<layer>` is one of `src/rota/<layer>`."""
    layers = [path for path in PACKAGE.iterdir() if path.is_dir() and (ROOT / "tests" / path.name).is_dir()]
    strangers = [
        str(folder.relative_to(ROOT))
        for layer in layers
        for folder in (ROOT / "tests" / layer.name).iterdir()
        if folder.is_dir() and folder.name != "__pycache__" and not (layer / folder.name).is_dir()
    ]
    assert strangers == []
