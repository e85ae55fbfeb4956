"""Quotas on the command line: what people read."""

import pytest

from tests.support.processes.command_line import rota


def test_what_is_said_and_listed(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    assert rota("migrate").exit_code == 0
    assert rota("quota", "update", "tenant/42", "--max-concurrency", "5", "--rate", "1000/1h").stdout == "tenant/42\n"
    assert rota("quota", "update", "tenant", "--max-queued", "9").stdout == "tenant\n"
    assert [line.split("\t")[:4] for line in rota("quota", "ls").stdout.splitlines()] == [
        ["tenant", "", "9", ""],
        ["tenant/42", "5", "", "1000/1h"],
    ]
    assert "max_queued\t9\n" in rota("quota", "get", "tenant").stdout
    assert rota("quota", "rm", "tenant/42").stdout == "tenant/42\n"
    paused = rota("scope", "pause", "tenant")
    assert paused.exit_code != 0
    assert "name one scope" in paused.stderr
