"""`rota init`: its files work unchanged, and it never overwrites any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rota.cli import root
from rota.config import load_config

# What a worker would do, and no longer than until it is done.
PROGRAM = """
from jobs import app, greet
from rota.testing import drain

greet.enqueue(name="Ada")
print(*[run.result for run in drain(app)])
"""


def rota(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


def python(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_it_writes_runs(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "shop"
    made = rota("init", str(folder))
    assert made.exit_code == 0, made.output
    assert made.stdout.splitlines() == [str(folder / "jobs.py"), str(folder / "rota.toml")]
    assert "Hello, Ada!" in python(folder, "-c", PROGRAM)
    assert (folder / "rota.db").exists(), "where rota.toml says"
    (schedule,) = json.loads(python(folder, "-m", "rota", "schedule", "ls", "--json"))["items"]
    assert (schedule["name"], schedule["job"]) == ("greet-every-minute", "greet")


def test_its_settings_are_those_that_there_are(tmp_path: Path) -> None:
    rota("init", str(tmp_path))
    assert load_config(environment={}, file=tmp_path / "rota.toml").database_url == "sqlite:///rota.db"


@pytest.mark.parametrize("there", ["jobs.py", "rota.toml"])
def test_nothing_is_overwritten(there: str, tmp_path: Path) -> None:
    (tmp_path / there).write_text("mine")
    refused = rota("init", str(tmp_path))
    assert (refused.exit_code, there in refused.stderr) == (6, True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(there, "mine")]


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "shop").write_text("mine")
    assert rota("init", str(tmp_path / "shop")).exit_code == 2


def test_it_says_what_to_type_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = json.loads(rota("init", "shop", "--json").stdout)
    assert told["written"] == ["shop/jobs.py", "shop/rota.toml"]
    assert told["next"][:2] == ["cd shop", "rota dev jobs:app"]
    here = json.loads(rota("init", "--json").stdout)
    assert (here["written"], here["next"][0]) == (["jobs.py", "rota.toml"], "rota dev jobs:app")
