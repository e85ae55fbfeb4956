"""Jobs from the command line: pause, resume, cancel, retry, count."""

import asyncio
import contextlib
import os
import pty
import sys
from pathlib import Path

import pytest

from rota.app import Rota
from rota.cli.terminal.format import job_state_cell
from rota.client.client import Order
from rota.core.jobs.status import JobState
from rota.core.states import RunState
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import answer, rota


def app_on(url: str) -> Rota:
    app = Rota(url)

    @app.job
    async def greet(name: str = "you") -> str:
        return f"hello {name}"

    @app.job(max_attempts=1)
    async def boom() -> None:
        raise ValueError("no luck")

    return app


async def introduce(url: str) -> None:
    await save_jobs_of(app_on(url))


async def work(url: str, *jobs: str) -> list[RunState]:
    """Run each job once, to its end."""
    async with app_on(url).running() as client:
        runs = [await client.enqueue(Order(job, {})) for job in jobs]
        return [(await client.wait(run.id, "60s")).state for run in runs]


@pytest.fixture
def known_url(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(introduce(sqlite_url))
    return sqlite_url


@pytest.mark.usefixtures("known_url")
def test_pause_and_resume() -> None:
    paused = answer("job", "pause", "greet", "--reason", "too loud")
    assert (paused["state"], paused["pause_reason"]) == ("paused", "too loud")
    assert paused["paused_by"].startswith("cli")
    assert rota("job", "pause", "greet", "--reason", "again").stdout == "greet\tpaused\t0\t0\n"
    assert answer("job", "get", "greet")["status"] == paused
    assert "pause_reason\ttoo loud" in rota("job", "get", "greet").stdout
    states = {job["name"]: job["status"]["state"] for job in answer("job", "ls")["items"]}
    assert states == {"boom": "pending", "greet": "paused"}
    assert answer("job", "resume", "greet", "--catch-up", "latest")["state"] == "pending"
    assert rota("job", "resume", "greet").exit_code == 0


@pytest.mark.usefixtures("known_url")
def test_cancel_wants_consent() -> None:
    for _ in range(3):
        rota("run", "enqueue", "greet", "--delay", "1h")
    refused = rota("job", "cancel", "greet")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--yes" in refused.stderr
    assert answer("job", "get", "greet")["status"]["waiting"] == 3
    for name in ("a", "b"):
        rota("schedule", "create", name, "greet", "--every", "1h")
    rota("schedule", "create", "off", "greet", "--every", "1h", "--disabled")
    assert "cancel greet with 2 schedules" in rota("job", "cancel", "greet").stderr
    done = answer("job", "cancel", "greet", "--yes", "--reason", "enough")
    assert (done["job"], done["cancelled"], done["status"]["state"]) == ("greet", 3, "cancelled")
    assert {run["reason"] for run in answer("run", "ls")["items"]} == {"enough"}
    assert answer("job", "get", "greet")["status"]["state"] == "cancelled"
    assert (done["schedules"], done["status"]["cancel_reason"]) == (["a", "b"], "enough")
    again = rota("job", "cancel", "greet", "--yes")
    assert (again.exit_code, again.stdout) == (6, "")
    assert "is cancelled" in again.stderr
    assert "possible now: resume" in again.stderr


@pytest.mark.usefixtures("known_url")
def test_many_jobs_at_once() -> None:
    refused = rota("job", "bulk", "pause", "--name", "gr*")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "pause 1 job:" in refused.stderr
    assert rota("job", "bulk", "pause", "--name", "gr*", "--yes", "--reason", "a rest").stdout == "1\n"
    assert [job["name"] for job in answer("job", "ls", "--state", "paused")["items"]] == ["greet"]
    assert answer("job", "bulk", "resume", "--all", "--yes") == {"matched": 2, "done": 2, "refused": []}
    nothing = rota("job", "bulk", "retry", "--all", "--yes")
    assert (nothing.exit_code, nothing.stdout) == (6, "0\n")
    assert "note: retry refused for 2 jobs" in nothing.stderr
    assert "the filter is empty" in rota("job", "bulk", "cancel", "--yes").stderr


def test_retry_and_stats(known_url: str) -> None:
    assert asyncio.run(work(known_url, "greet", "boom")) == [RunState.SUCCEEDED, RunState.FAILED]
    again = answer("job", "retry", "boom")
    assert again["retry_of"]
    assert rota("job", "retry", "boom").exit_code == 6
    refused = rota("job", "retry", "greet")
    assert refused.exit_code == 6
    assert "it did not fail" in refused.stderr
    stats = answer("job", "stats", "boom")
    assert (stats["total"], stats["failed"], stats["success_rate"]) == (1, 1, 0.0)
    assert stats["next_scheduled_at"] == again["run_at"]
    assert "success_rate\t1.0000" in rota("job", "stats", "greet").stdout


@pytest.mark.parametrize(("said", "code", "left"), [(b"y\n", 0, 0), (b"n\n", 3, 1)])
def test_on_a_terminal_it_asks_with_the_count(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, said: bytes, code: int, left: int
) -> None:
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(introduce(sqlite_url))
    rota("run", "enqueue", "greet", "--delay", "1h")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "rota", "job", "cancel", "greet"])
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(terminal, 4096)
    assert b"0 running, 1 waiting" in shown
    os.write(terminal, said)
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while os.read(terminal, 4096):
            pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    assert answer("job", "get", "greet")["status"]["waiting"] == left


def test_every_state_of_a_job_has_a_symbol_of_its_own() -> None:
    assert len({(job_state_cell(state).shown or "")[0] for state in JobState}) == len(JobState)
