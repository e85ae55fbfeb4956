"""Test that `enqueue` is typed by the job's own signature."""

import json
import os
import subprocess
import sys
from pathlib import Path

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


def test_another_type_checker_knows_it_too(tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "include": [os.path.relpath(HERE / "typed_jobs.py", tmp_path)],
                "pythonVersion": "3.11",
                "reportUnnecessaryTypeIgnoreComment": "error",
            }
        )
    )
    pyright = Path(sys.executable).with_name("pyright")  # pinned with its Node: it fetches nothing
    done = subprocess.run(
        [pyright, "--project", tmp_path, "--pythonpath", sys.executable],
        cwd=ROOT,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "src" / "rota" / "py.typed").exists()
