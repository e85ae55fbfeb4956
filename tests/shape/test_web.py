"""The dashboard's sources: what is generated is current, what is pinned names no host, and files stay small."""

import gzip
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
LONGEST_FILE = 400
FIRST_VIEW = 200_000
PROJECTS = [WEB, ROOT / "tests" / "browser", ROOT / "tests" / "openapi"]


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_types_are_those_of_the_api() -> None:
    types = module("api_types")
    assert types.TARGET.read_text() == types.written(), "run `.venv/bin/python tools/api_types.py`"


def test_what_is_served_is_built_from_these_sources() -> None:
    build = module("dashboard")
    assert build.built() == build.stamp(), "run `python3 dev.py build`"


def test_the_first_view_is_small() -> None:
    """The page, and all that the overview's code imports, compressed as the server does."""
    app = ROOT / "src" / "rota" / "ui" / "app"
    waiting = re.findall(r"assets/([\w.-]+\.(?:js|css))", (app / "index.html").read_text(encoding="utf-8"))
    waiting += [path.name for path in (app / "assets").glob("OverviewPage-*.js")]
    loaded: dict[str, int] = {}
    while waiting:
        name = waiting.pop()
        if name not in loaded:
            content = (app / "assets" / name).read_bytes()
            loaded[name] = len(gzip.compress(content))
            imports = re.findall(rb'(?:from|import)"\./([\w.-]+\.js)"', content) if name.endswith(".js") else ()
            waiting += [file.decode() for file in imports]
    assert len(loaded) > 3
    assert sum(loaded.values()) <= FIRST_VIEW, loaded


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda folder: folder.name)
def test_everything_is_pinned_and_no_host_is_named(folder: Path) -> None:
    package = json.loads((folder / "package.json").read_text())
    lock = (folder / "package-lock.json").read_text()
    wanted = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
    assert [name for name, version in wanted.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    assert "resolved" not in lock
    assert "ignore-scripts=true" in (folder / ".npmrc").read_text()


def test_no_file_is_long() -> None:
    sources = [path for path in (WEB / "src").rglob("*") if path.suffix in {".ts", ".tsx"} and path.name != "schema.ts"]
    lengths = {str(path.relative_to(WEB)): len(path.read_text().splitlines()) for path in sources}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_markup_is_written_as_text() -> None:
    """React escapes everything, as long as nobody goes around it."""
    bypasses = re.compile(r"dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
    sources = list((WEB / "src").rglob("*.ts*"))
    assert [str(path) for path in sources if bypasses.search(path.read_text())] == []
