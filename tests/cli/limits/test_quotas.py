"""Quotas from the command line, on both databases."""

from pathlib import Path

import pytest

from tests.support.processes.command_line import answer, rota


@pytest.fixture(autouse=True)
def url(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", database_url)
    monkeypatch.setenv("ROTA_ACTOR", "ann")
    assert rota("migrate").exit_code == 0


def test_they_are_set_listed_and_dropped() -> None:
    made = answer("quota", "update", "tenant/42", "--max-concurrency", "5", "--rate", "1000/1h")
    assert (made["kind"], made["id"], made["max_concurrency"], made["rate"]) == ("tenant", "42", 5, "1000/1h")
    assert rota("quota", "update", "tenant", "--max-queued", "9").exit_code == 0
    assert [(one["id"], one["max_queued"]) for one in answer("quota", "ls")["items"]] == [(None, 9), ("42", None)]
    assert rota("quota", "ls").stdout.splitlines()[1].split("\t")[:4] == ["tenant/42", "5", "", "1000/1h"]
    assert answer("quota", "rm", "tenant/42") == {"kind": "tenant", "id": "42", "deleted": True}
    assert rota("quota", "rm", "tenant/42").exit_code == 4
    assert rota("quota", "update", "tenant").exit_code == 2
    assert rota("quota", "update", "tenant/", "--max-queued", "1").exit_code == 2
