"""The command line in general: help, hints, errors, exit codes, configuration."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from rota import errors
from rota.cli import root
from rota.cli.servers.server import program
from rota.cli.terminal.format import one_field, state_cell, visible
from rota.core.states import RunState
from rota.values.durations import age, span
from rota.version import __version__
from tests.support.processes.command_line import rota


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROTA_DATABASE_URL", raising=False)


def commands(group: click.Group = root, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_every_command_shows_examples_of_itself_and_takes_json(command: tuple[str, ...]) -> None:
    text = rota(*command, "--help").stdout
    assert f"rota {' '.join(command)}" in text.partition("Examples:")[2]
    assert "--json" in text


def test_help_is_quick_to_load() -> None:
    heavy = ("apsw", "asyncpg", "rich", "starlette", "uvicorn", "uvloop")
    look = f"import rota.cli, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_help_of_runs_names_the_command_that_explains_them() -> None:
    assert "rota explain ID" in rota("run", "--help").stdout


def test_help_lists_every_exit_code() -> None:
    listed = {int(code) for code in re.findall(r"^ +(\d+)  ", rota("--help").stdout, re.MULTILINE)}
    raised = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type(errors.RotaError)) and issubclass(error, errors.RotaError)
    }
    assert listed == {0, 3, 130, 141, *raised}


def test_the_commands_to_type_next_work_where_rota_is_not_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / ".venv" / "bin" / "rota"
    own.parent.mkdir(parents=True)
    own.touch()
    monkeypatch.setattr(sys, "executable", str(own.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == ".venv/bin/rota"
    monkeypatch.chdir(own.parent)
    assert program() == "./rota"
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(own.parent))
    assert program() == "rota"


def test_the_version() -> None:
    assert rota("--version").stdout == f"rota {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    done = rota("completion", shell)
    assert done.exit_code == 0
    assert "_ROTA_COMPLETE" in done.stdout


def test_one_noun_does_for_workers() -> None:
    """`rota worker MODULE` starts one; `rota worker list` and the others are those of `rota workers`."""
    for command in (["ls"], ["drain", "web-1"]):
        one, many = rota("worker", *command), rota("workers", *command)
        assert (one.exit_code, one.stdout, one.stderr) == (many.exit_code, many.stdout, many.stderr)
    assert "jobs of an app" in rota("worker", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["run", "ls", "--stat", "failed"], "no such option", "did you mean --state?"),
        (["run", "lss"], "no such command", "did you mean ls?"),
        (["run", "get"], "missing argument 'ID'", "see `rota run get --help`"),
        (["run", "ls", "--state", "fialed"], "there is no state 'fialed'", "did you mean 'failed'?"),
        (["run", "ls", "--cursor", "zzz"], "cursor 'zzz' is invalid", "next_cursor"),
        (["run", "ls", "--scope", "account"], "'account' is not a scope", "KIND/ID"),
        (["run", "enqueue", "x", "--at", "2026-01-01"], "has no time zone", "Z"),
        (["run", "enqueue", "x", "--at", "soon"], "'soon' is not a time", "2026-01-31T08:00:00Z"),
        (["run", "enqueue", "x", "--metadata", "[1]"], "--metadata must be an object", ""),
        (["run", "ls", "--tag", "\udcff"], "is not text", ""),
        (["worker", "jobs:app", "--queues", "a,,b"], "empty name", "commas"),
        (["worker", "small.py"], "is a file", "did you mean 'small'?"),
        (["worker", "small.py:"], "is a file", "did you mean 'small'?"),
    ],
)
def test_what_cannot_be_parsed_exits_2_with_a_hint(arguments: list[str], error: str, hint: str) -> None:
    done = rota(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert error in done.stderr.splitlines()[0]
    assert hint in done.stderr
    assert done.stderr.startswith("error: ")


def test_with_json_an_error_is_a_problem_on_stderr() -> None:
    done = rota("run", "ls", "--json")
    problem = json.loads(done.stderr)
    assert (problem["type"], problem["status"], problem["exit_code"]) == ("urn:rota:problem:unavailable", 503, 69)
    assert json.loads(rota("run", "lss", "--json").stderr)["code"] == "usage"


@pytest.mark.parametrize(
    "command",
    [
        ["run", "ls"],
        ["run", "get", "1"],
        ["run", "wait", "1"],
        ["run", "count"],
        ["run", "cancel", "1"],
        ["run", "cancel", "--job", "crawl"],
        ["run", "retry", "--all", "--yes"],
        ["run", "retry", "1"],
        ["run", "enqueue", "crawl"],
        ["job", "ls"],
        ["queue", "ls"],
        ["prune"],
        ["migrate", "--check"],
    ],
    ids=" ".join,
)
def test_a_missing_sqlite_file_is_said_and_not_made(command: list[str], tmp_path: Path) -> None:
    done = rota(*command)
    assert done.exit_code == 69
    assert f"there is no rota database at {Path.cwd() / 'rota.db'}" in done.stderr, "which folder was meant"
    assert "rota dev" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "sqlite:///"])
def test_a_database_url_that_is_none_exits_78(url: str) -> None:
    done = rota("run", "ls", "--database", url)
    assert done.exit_code == 78
    assert "postgresql://" in done.stderr


def test_an_unreachable_postgresql_exits_69() -> None:
    done = rota("run", "ls", "--database", "postgresql://nobody@127.0.0.1:1/none")
    assert done.exit_code == 69
    assert "Traceback" not in done.stderr
    assert "is it running? check --database" in done.stderr


def test_a_bad_setting_exits_78(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_LEASE", "5s")
    assert rota("run", "ls").exit_code == 78


def test_migrate_names_what_it_applied_and_check_changes_nothing(new_postgres_url: str) -> None:
    outdated = rota("migrate", "--check", "--database", new_postgres_url)
    assert outdated.exit_code == 78
    assert "rota migrate" in outdated.stderr
    applied = json.loads(rota("migrate", "--json", "--database", new_postgres_url).stdout)
    assert applied["applied"]
    assert rota("migrate", "--check", "--database", new_postgres_url).exit_code == 0
    again = json.loads(rota("migrate", "--json", "--database", new_postgres_url).stdout)
    assert again == {**applied, "applied": []}


def test_commands_on_a_database_that_was_not_migrated_exit_78(new_postgres_url: str) -> None:
    done = rota("run", "ls", "--database", new_postgres_url)
    assert done.exit_code == 78
    assert "rota migrate" in done.stderr


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (timedelta(0), "now"),
        (timedelta(seconds=59), "59s ago"),
        (timedelta(minutes=3, seconds=50), "3m ago"),
        (timedelta(hours=25), "1d ago"),
        (timedelta(minutes=-5), "in 5m"),
    ],
)
def test_ages(before: timedelta, words: str) -> None:
    assert age(NOW - before, NOW) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0ms"),
        (0.34, "340ms"),
        (1.24, "1.2s"),
        (0.9999, "1s"),
        (59.99, "1m"),
        (192, "3m12s"),
        (7500, "2h5m"),
        (3650, "1h"),
        (90000, "1d1h"),
    ],
)
def test_spans(seconds: float, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words


def test_every_state_has_a_symbol_of_its_own() -> None:
    assert len({(state_cell(state).shown or "")[0] for state in RunState}) == len(RunState)


def test_text_from_outside_cannot_command_the_terminal_or_break_a_line() -> None:
    assert visible("a\x1b[31mb\x9b\n") == "a\\x1b[31mb\\x9b\n"
    assert one_field("a\tb\nc\\") == "a\\tb\\nc\\\\"
