"""Test that `enqueue` is typed by the job's own signature."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_a_type_checker_knows_what_a_job_takes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", HERE / "typed_jobs.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_type_checker_knows_it_too() -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    done = subprocess.run(
        [pyright, "--pythonpath", sys.executable, HERE / "typed_jobs.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "src" / "rota" / "py.typed").exists()
