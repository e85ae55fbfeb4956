"""What every file keeps to: no trace of a registry or a machine, small modules, small functions, telling names."""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rota"

LONGEST_FILE = 500  # a file ends where its idea does; this only notices one that grew without a thought
LONGEST_FUNCTION = 60
EMPTY_NAMES = {"utils", "helpers", "common", "manager", "base"}

# Put together from pieces, so that this file does not contain what it looks for.
REGISTRY_HOSTS = ["py" + "pi.org", "python" + "hosted.org", "registry.npm" + "js.org", "registry.yarn" + "pkg.com"]
MACHINE_FOLDERS = ["wo" + "rk", "ro" + "ot", "ho" + "me", "Us" + "ers"]
MACHINE_PATH = re.compile(r"(?<![\w.:/~>})-])/(?:" + "|".join(MACHINE_FOLDERS) + r")/\w")

SKIPPED_FOLDERS = {".git", ".dev", "node_modules", "__pycache__", "build", "dist", ".hypothesis"}
SKIPPED_SUFFIXES = (".log", ".pyc", ".db", ".db-wal", ".db-shm")


def project_texts() -> Iterator[tuple[Path, str]]:
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS and not skipped(name)]
        for path in (Path(folder, name) for name in names if not name.endswith(SKIPPED_SUFFIXES) and name != ".git"):
            try:
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # an image or the like


def skipped(folder: str) -> bool:
    return folder.startswith(".venv") or folder.endswith(("_cache", ".egg-info"))


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_no_file_names_a_registry() -> None:
    assert [f"{path}: {host}" for path, text in project_texts() for host in REGISTRY_HOSTS if host in text] == []


def test_no_file_names_a_folder_of_one_machine() -> None:
    found = [f"{path}: {match[0]}…" for path, text in project_texts() for match in MACHINE_PATH.finditer(text)]
    assert found == []


def test_no_conflict_was_committed() -> None:
    marks = ("<" * 7 + " ", ">" * 7 + " ")
    found = [str(path) for path, text in project_texts() if any(line.startswith(marks) for line in text.splitlines())]
    assert found == []


def test_every_module_says_what_it_owns() -> None:
    assert [str(path) for path in modules() if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))] == []


def test_no_source_file_is_long() -> None:
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".sql"}]
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_function_is_long() -> None:
    assert [
        f"{path}:{node.lineno} {node.name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= LONGEST_FUNCTION
    ] == []


def test_no_module_has_an_empty_name() -> None:
    paths = [path.relative_to(PACKAGE) for path in modules()]
    assert [str(path) for path in paths if EMPTY_NAMES & set(path.with_suffix("").parts)] == []
