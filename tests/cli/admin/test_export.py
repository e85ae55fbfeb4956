"""`rota export`: all runs, attempts or events as JSON lines, over several pages."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from rota.app import Rota
from rota.client import export
from rota.core.progress.control_flow import Fail
from rota.testing import drain
from tests.support.processes.command_line import refused, rota


@pytest.fixture
def ids(database_url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of three runs, oldest first; the last one fails. A page has two runs."""
    monkeypatch.setenv("ROTA_DATABASE_URL", database_url)
    monkeypatch.setattr(export, "MOST_LISTED", 2)
    app = Rota(database_url)

    @app.job(max_attempts=1)
    def greet(name: str) -> str:
        if name == "嫌":
            raise Fail("not\nyou")
        return name

    made = [greet.enqueue(name=name).id for name in ("a", "b", "嫌")]
    drain(app)
    app.close()
    return made


def exported(*arguments: str) -> list[Any]:
    done = rota("export", *arguments)
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_kind_is_a_document_on_each_line(ids: list[str]) -> None:
    runs = exported("runs")
    assert [run["id"] for run in runs] == ids[::-1]
    assert (runs[0]["payload"], runs[0]["error"]["message"]) == ({"name": "嫌"}, "not\nyou")
    assert exported("runs", "--json") == runs
    assert [run["id"] for run in exported("runs", "--state", "failed")] == ids[2:]
    assert exported("runs", "--job", "nobody") == []
    attempts = exported("attempts")
    assert [(one["run_id"], one["outcome"]) for one in attempts] == [
        (ids[2], "failed"), (ids[1], "succeeded"), (ids[0], "succeeded"),
    ]  # fmt: skip
    assert [one["run_id"] for one in exported("attempts", "--state", "failed")] == ids[2:]


def test_the_whole_audit(ids: list[str]) -> None:
    for queue in "abc":
        assert rota("queue", "pause", queue, "--force").exit_code == 0
    assert [event["subject"] for event in exported("events")] == ["c", "b", "a"]
    assert "rota audit" in refused(2, "export", "events", "--job", "greet")
    assert "'runs', 'attempts', 'events'" in refused(2, "export", "everything")


def test_a_reader_that_has_enough(ids: list[str]) -> None:
    command = f"{sys.executable} -m rota export runs | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["id"] == ids[2]
    assert done.stderr == ""
