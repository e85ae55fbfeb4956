"""Test the wheel and the source archive: their content, and that they run in a clean environment."""

from __future__ import annotations

import email
import importlib.util
import os
import re
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.archives import unpack_tar
from tests.support.wait import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]
TIMEOUT = 300
JUNK = {".pyc", ".db", ".db-wal", ".db-shm", ".log", ".map", ".orig", ".env"}
HIDDEN = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in {names!r} else found(name, path, target)
PathFinder.find_spec = find_spec
"""

pytestmark = pytest.mark.timeout(TIMEOUT)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both, by the build tool itself, in the environment that is there: nothing is fetched."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(made: Path) -> Path:
    (wheel,) = made.glob("rota-*-py3-none-any.whl")
    return wheel


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_wheel_has_everything_that_runs_and_nothing_else(names: list[str]) -> None:
    source = ROOT / "src"
    wanted = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    wanted = {name for name in wanted if Path(name).suffix not in JUNK}
    packed = {name for name in names if name.startswith("rota/")}
    assert packed == wanted
    assert {"rota/py.typed", "rota/ui/app/index.html", "rota/store/sql/migrations/0001_runs.sql"} <= packed
    assert any(re.fullmatch(r"rota/ui/app/assets/index-.*\.js", name) for name in packed)
    beside = {name.partition("/")[2] for name in names} - {name.partition("/")[2] for name in packed}
    assert beside == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
        "licenses/LICENSES/dashboard.txt",
    }
    assert {Path(name).suffix for name in packed} & JUNK == set()


def test_what_it_says_of_itself(wheel: Path, names: list[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        said = email.message_from_bytes(archive.read(metadata))
        (entries,) = [name for name in names if name.endswith("/entry_points.txt")]
        assert "rota = rota.cli:main" in archive.read(entries).decode()
    assert said["Name"] == "rota"
    assert said["Requires-Python"] == ">=3.11"
    assert said["License-Expression"] == "MIT"
    assert said["Description-Content-Type"] == "text/markdown"
    assert {"http", "jwt", "tracing", "all"} <= set(said.get_all("Provides-Extra") or [])
    needed = [line for line in said.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert not [line for line in needed if line.startswith(("aiohttp", "joserfc", "opentelemetry"))]


def test_the_source_archive_needs_neither_git_nor_node(made: Path, tmp_path: Path) -> None:
    """Its dashboard is built already, from the very sources in it."""
    (path,) = made.glob("rota-*.tar.gz")
    unpack_tar(path, tmp_path)
    (folder,) = tmp_path.iterdir()
    assert not (folder / ".git").exists()
    junk = [path for path in folder.rglob("*") if path.name in ("node_modules", "__pycache__", ".venv", ".dev")]
    assert junk == []
    build = load(folder / "tools" / "dashboard.py")
    assert build.built() == build.stamp()
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env={**os.environ, "PATH": os.defpath})
    (again,) = (folder / "dist").glob("*.whl")
    (first,) = made.glob("*.whl")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(first).namelist())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the pinned packages and the wheel, and nothing else."""
    dev = load(ROOT / "dev.py")
    venv = tmp_path_factory.mktemp("installed") / "venv"
    environment = {**dev.environment(), "VIRTUAL_ENV": str(venv)}
    uv, target = dev.find_uv(), ["--python", str(venv / "bin" / "python")]
    pins = str(ROOT / "requirements" / "run.txt")
    for command in (
        ["venv", "--python", sys.executable, str(venv)],
        ["pip", "sync", *target, "--require-hashes", pins],
        ["pip", "install", *target, "--no-deps", str(wheel)],
        ["pip", "check", *target],
    ):
        subprocess.run([uv, "--quiet", *command], check=True, env=environment)
    return venv / "bin"


def test_a_newcomer_has_a_page_and_a_run_within_a_minute(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": f"{installed}:{os.defpath}", "ROTA_PORT": "0"}

    def rota(*arguments: str) -> str:
        done = subprocess.run(
            [installed / "rota", *arguments], cwd=home, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert re.match(r"rota\b.*\d+\.\d+\.\d+", rota("--version"))
    rota("init", "project")
    project = home / "project"
    with (home / "dev.log").open("wb") as log:
        serving = subprocess.Popen([installed / "rota", "dev"], cwd=project, env=environment, stdout=log, stderr=log)
    try:
        said: list[str] = []

        def listening() -> bool:
            assert serving.poll() is None, (home / "dev.log").read_text()
            said[:] = re.findall(r"http://127\.0\.0\.1:\d+", (home / "dev.log").read_text())
            return bool(said)

        wait_for(listening, PATIENCE * 2)
        with urllib.request.urlopen(said[0]) as page:
            assert b"<script" in page.read()
        assert "succeeded" in _added(installed, project, environment)
    finally:
        serving.terminate()
        assert serving.wait(PATIENCE) == 0


def _added(installed: Path, project: Path, environment: dict[str, str]) -> str:
    command = [str(installed / "rota"), "run", "enqueue", "hello", "--wait", "--json"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True).stdout


OPTIONAL = {"http": ("aiohttp", "yarl"), "jwt": ("joserfc", "cryptography"), "tracing": ("opentelemetry",)}
PROGRAM = """
import asyncio, logging
from rota import Rota
from rota.cli import main
from rota.testing import Harness

app = Rota()

@app.job
async def greet() -> str:
    return "hello"

app.http_job("ping", url="https://example.com")

async def works():
    async with Harness(app) as harness:
        run = await harness.enqueue("greet")
        await harness.drain()
        assert (await harness.run(run)).result == "hello"

asyncio.run(works())
import rota.server
main()
"""


def _without(names: tuple[str, ...], program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HIDDEN.format(names=set(names)) + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_worker_server_and_commands_work_without_any_extra() -> None:
    every = tuple(name for names in OPTIONAL.values() for name in names)
    done = _without(every, PROGRAM, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: " in done.stdout


ASK = "from rota.cli import main; main()"
SIGN = "from rota.api.auth.jwt import _require_library; _require_library()"
TRACE = "import logging; logging.basicConfig(); from rota.observability.tracing import turn_on; assert not turn_on()"


@pytest.mark.parametrize(("extra", "program"), [("http", ASK), ("jwt", SIGN), ("tracing", TRACE)], ids=OPTIONAL.keys())
def test_what_needs_an_extra_names_it(extra: str, program: str) -> None:
    done = _without(OPTIONAL[extra], program, "--server", "http://127.0.0.1:9", "run", "ls")
    assert f"pip install 'rota[{extra}]'" in done.stderr
