"""`rota promote` on a terminal, in a pipe and with --json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rota import Rota
from rota.cli import root
from rota.client.promotion import place_of
from rota.config import Config


def rota(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


@pytest.fixture
def used_url(sqlite_url: str) -> str:
    """A file with a job and three runs."""
    app = Rota(config=Config(database_url=sqlite_url))

    @app.job
    def hello(name: str) -> str:
        return name

    for name in ("Ada", "Grace", "Linus"):
        hello.enqueue(name=name)
    app.close()
    return sqlite_url


def test_what_would_move_then_moves(used_url: str, new_postgres_url: str) -> None:
    arguments = ("promote", "--database", used_url, "--to", new_postgres_url)
    looked = rota(*arguments, "--dry-run")
    assert looked.exit_code == 0, looked.output
    assert "rota_run\t3" in looked.stdout
    done = rota(*arguments, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["tables"]["rota_run"] == 3
    assert (document["to"], document["already"], document["dry_run"]) == (place_of(new_postgres_url), False, False)
    listed = json.loads(rota("run", "ls", "--database", new_postgres_url, "--json").stdout)
    assert len(listed["items"]) == 3
    assert json.loads(rota(*arguments, "--json").stdout)["already"]


def test_the_old_file_says_where_everything_is(used_url: str, new_postgres_url: str) -> None:
    assert rota("promote", "--database", used_url, "--to", new_postgres_url).exit_code == 0
    place = place_of(new_postgres_url)
    for command in (["run", "ls"], ["migrate"], ["migrate", "--check"], ["run", "enqueue", "hello", '{"name": "you"}']):
        refused = rota(*command, "--database", used_url)
        assert (refused.exit_code, place in refused.stderr) == (78, True), refused.output
    examined = rota("doctor", "--database", used_url)
    assert (examined.exit_code, place in examined.stdout) == (1, True)
    abandoned = rota("promote", "--database", used_url, "--to", new_postgres_url, "--abandon")
    assert abandoned.exit_code == 78


def test_nothing_to_abandon(used_url: str, new_postgres_url: str) -> None:
    refused = rota("promote", "--database", used_url, "--to", new_postgres_url, "--abandon")
    assert (refused.exit_code, "no promotion" in refused.stderr) == (6, True)


def test_a_password_is_told_nobody(used_url: str, new_postgres_url: str) -> None:
    done = rota("promote", "--database", used_url, "--to", new_postgres_url, "--dry-run", "--json")
    assert json.loads(done.stdout)["to"] == place_of(new_postgres_url)
    assert "@" not in done.stdout


@pytest.mark.parametrize(
    ("source", "target", "code"),
    [
        ("sqlite:///rota.db", "sqlite:///other.db", 2),
        ("postgresql://localhost/a", "postgresql://localhost/b", 2),
        ("sqlite:///nowhere.db", "postgresql://localhost/b", 69),
    ],
)
def test_what_cannot_be_promoted(
    source: str, target: str, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert rota("promote", "--database", source, "--to", target).exit_code == code


def test_a_target_that_is_away_freezes_nothing(used_url: str) -> None:
    away = rota("promote", "--database", used_url, "--to", "postgresql://nobody@127.0.0.1:1/none")
    assert away.exit_code == 69
    assert rota("queue", "pause", "mail", "--force", "--database", used_url).exit_code == 0
