"""The audit trail from the command line."""

import asyncio
import json
from pathlib import Path

import pytest

from rota.app import Rota
from rota.cli.connect import actor
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import answer, rota


async def introduce(url: str) -> None:
    app = Rota(url)

    @app.job(max_attempts=1)
    async def greet(name: str = "") -> None: ...

    await save_jobs_of(app)


@pytest.fixture(autouse=True)
def known_url(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(introduce(sqlite_url))
    return sqlite_url


def test_the_events_of_a_run() -> None:
    run_id = rota("run", "enqueue", "greet", "--delay", "1h").stdout.strip()
    rota("run", "cancel", run_id, "--reason", "wrong\tname")
    items = answer("run", "events", run_id[:20])["items"]
    assert [(item["seq"], item["type"], item["from"], item["to"], item["actor"]) for item in items] == [
        (1, "created", None, "scheduled", "client"),
        (2, "cancelled", "scheduled", "cancelled", actor()),
    ]
    assert items[1]["at"].endswith("Z")
    lines = [line.split("\t") for line in rota("run", "events", run_id).stdout.splitlines()]
    assert [line[1:6] for line in lines] == [
        ["created", "", "scheduled", "0", "client"],
        ["cancelled", "scheduled", "cancelled", "1", actor()],
    ]
    assert json.loads(lines[1][6].replace("\\\\", "\\")) == {"reason": "wrong\tname"}
    again = rota("run", "retry", run_id).stdout.strip()
    assert answer("run", "events", again)["items"][0]["details"] == {"retry_of": run_id}
    assert rota("run", "events", "ffff").exit_code == 4


def test_the_events_of_a_schedule() -> None:
    rota("schedule", "create", "news", "greet", "--every", "1h")
    rota("schedule", "pause", "news", "--reason", "holidays")
    rota("schedule", "resume", "news")
    (run_id,) = rota("schedule", "trigger", "news").stdout.split()
    rota("schedule", "rm", "news", "--yes")
    items = answer("schedule", "events", "news")["items"]
    assert [item["type"] for item in items] == ["created", "paused", "resumed", "triggered", "deleted"]
    assert {item["actor"] for item in items} == {actor()}
    assert items[1]["details"]["reason"] == "holidays"
    assert items[3]["details"]["runs"] == [run_id]
    assert rota("schedule", "events", "nothing").exit_code == 4


def test_the_audit_log_in_pages() -> None:
    for name in ("a", "b", "c"):
        rota("queue", "pause", name, "--force", "--reason", f"because of {name}")
    rota("queue", "resume", "a")
    page = answer("audit", "--limit", "3")
    assert [(item["subject"], item["type"]) for item in page["items"]] == [
        ("a", "resumed"), ("c", "paused"), ("b", "paused"),
    ]  # fmt: skip
    rest = answer("audit", "--cursor", page["next_cursor"])
    assert [item["subject"] for item in rest["items"]] == ["a"]
    assert rest["next_cursor"] is None
    assert len(answer("audit", "--kind", "queue", "--subject", "a", "--actor", actor())["items"]) == 2
    assert answer("audit", "--actor", "nobody")["items"] == []
    line = rota("audit", "--limit", "1").stdout.rstrip("\n").split("\t")
    assert line[2:6] == ["queue", "a", "resumed", actor()]
    assert rota("audit", "--kind", "nonsense").exit_code == 2
