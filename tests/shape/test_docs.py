"""The documentation is true: its snippets run, its tables name every option and setting, its links lead somewhere."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rota.config import SETTINGS, load_config
from rota.core.publishing import RUN_OPTIONS
from rota.core.states import FINAL_STATES, RunState
from rota.registry.jobs import JOB_OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```python(?: file=(\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"`([a-z_]+)`")


def python_pages() -> list[Path]:
    return [page for page in PAGES if SNIPPET.search(page.read_text())]


@pytest.mark.parametrize("page", python_pages(), ids=lambda page: page.name)
def test_snippets_run_in_order(page: Path, tmp_path: Path) -> None:
    for number, (name, code) in enumerate(SNIPPET.findall(page.read_text())):
        file = tmp_path / (name or f"snippet_{number}.py")
        file.write_text(code)
        done = subprocess.run(
            [sys.executable, file.name],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={"PATH": "", "ROTA_DATABASE_URL": "sqlite:///docs.db"},
        )
        assert done.returncode == 0, f"{page.name}: {file.name}\n{done.stderr}"


def named_in_first_column(page: str, heading: str) -> set[str]:
    text = (ROOT / "docs" / page).read_text().partition(heading)[2]
    rows = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    return {name for row in rows for name in CELL.findall(row.split("|")[1])}


def test_every_option_of_a_job_is_documented() -> None:
    assert named_in_first_column("jobs.md", "## Options of a job") == set(JOB_OPTIONS)


def test_every_option_of_a_run_is_documented() -> None:
    assert named_in_first_column("jobs.md", "## Options of a run") == set(RUN_OPTIONS)


def test_every_final_state_is_documented() -> None:
    assert named_in_first_column("jobs.md", "## The states of a run") == {state.value for state in FINAL_STATES}
    text = (ROOT / "docs" / "jobs.md").read_text()
    assert all(f"`{state.value}`" in text for state in RunState)


def test_every_setting_is_documented() -> None:
    assert named_in_first_column("configuration.md", "# Configuration") == set(SETTINGS)


def test_the_sample_configuration_is_accepted(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    file = tmp_path / "rota.toml"
    for sample in TOML.findall(text):
        file.write_text(sample)
        config = load_config(environment={}, file=file)
        assert config.database_url == tomllib.loads(sample)["database_url"]


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
