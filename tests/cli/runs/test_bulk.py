"""Bulk commands for runs: count, confirm, cancel and retry."""

import asyncio
import os
import pty
import sys
from pathlib import Path

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.states import Outcome, RunState
from rota.store import Store, open_database
from tests.cli.terminal.test_terminal import rest_of
from tests.support.processes.command_line import answer, rota
from tests.support.runs.runs import claim, make, put_and_claim, tell


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(fill(sqlite_url))
    return sqlite_url


async def fill(url: str) -> None:
    """Three runs that failed, three that wait, one that runs; and one of another job."""
    store = Store(open_database(url))
    await store.migrate()
    await store.save_jobs([JobDefinition(name="work"), JobDefinition(name="other")])
    for _ in range(3):
        await tell(store, await put_and_claim(store), Outcome.FAILED)
    await store.enqueue([make()])
    await claim(store)
    await store.enqueue([make() for _ in range(3)])
    await store.enqueue([make("other")])
    await store.close()


def states(job: str = "work") -> list[str]:
    return sorted(run["state"] for run in answer("run", "ls", "--job", job)["items"])


def counted(*filters: str) -> int:
    return int(rota("run", "count", *filters).stdout)


@pytest.mark.usefixtures("url")
def test_count() -> None:
    assert counted() == 8
    assert counted("--job", "work", "--state", "queued") == 3
    assert counted("--error", "no luck", "--not-retried") == 3
    assert counted("--created-after", "2090-01-01T00:00:00Z") == 0
    assert counted("--created-before", "2090-01-01T00:00:00Z", "--worker", "worker-1") == 4
    assert answer("run", "count", "--most", "5") == {"count": 5, "exact": False}
    short = rota("run", "count", "--most", "5")
    assert (short.stdout, "there may be more" in short.stderr) == ("5\n", True)


@pytest.mark.usefixtures("url")
def test_cancel_all_that_match() -> None:
    done = answer("run", "cancel", "--job", "work", "--reason", "enough", "--yes")
    assert done == {"matched": 4, "done": 4, "refused": []}
    assert states() == ["cancelled"] * 3 + ["cancelling"] + ["failed"] * 3
    assert states("other") == ["queued"]
    (run, *_) = answer("run", "ls", "--state", "cancelled")["items"]
    assert run["reason"] == "enough"
    assert run["cancelled_by"].startswith("cli")
    assert f"cancelled_by\t{run['cancelled_by']}" in rota("run", "get", run["id"]).stdout
    assert rota("run", "cancel", "--all", "--yes").stdout == "2\n"


@pytest.mark.usefixtures("url")
def test_retry_all_that_match_once() -> None:
    assert rota("run", "retry", "--error", "no luck", "--yes").stdout == "3\n"
    assert rota("run", "retry", "--error", "no luck", "--yes").stdout == "0\n", "they were retried"
    assert states() == ["failed"] * 3 + ["queued"] * 6 + ["running"]


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_without_a_terminal_it_wants_to_be_told_yes(verb: str) -> None:
    before = states()
    done = rota("run", verb, "--job", "work", stdin="y\n")
    assert done.exit_code == 2
    assert f"{verb} {4 if verb == 'cancel' else 3} runs of work" in done.stderr
    assert "--yes" in done.stderr
    assert states() == before
    assert rota("run", verb, "--job", "nobody").stdout == "0\n", "nothing to ask about"


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["cancel"], "which run?"),
        (["retry", "--yes"], "which run?"),
        (["cancel", "abcd", "--job", "work"], "not both"),
        (["cancel", "--all", "--job", "work"], "not both"),
        (["retry", "--job", "work", "--wait", "--yes"], "one run only"),
        (["cancel", "--state", "failed", "--yes"], "is failed cannot be cancelled"),
        (["retry", "--state", "running", "--yes"], "is running cannot be retried"),
        (["cancel", "--created-after", "yesterday", "--yes"], "is not a time"),
    ],
)
def test_what_cannot_be_meant(arguments: list[str], problem: str) -> None:
    done = rota("run", *arguments)
    assert (done.exit_code, problem in done.stderr) == (2, True), done.stderr


def test_what_was_refused_is_told(url: str) -> None:
    async def surgery() -> None:
        store = Store(open_database(url))
        job = JobDefinition(name="surgery")
        await store.save_jobs([job])
        await put_and_claim(store, job)
        definition = '{"name": "surgery", "cancel": {"supported": false, "grace": "PT30S"}}'
        await store.database.transact(
            lambda tx: tx.fetch_sql("update rota_job set definition = :text where name = 'surgery'", text=definition)
        )
        await store.close()

    asyncio.run(surgery())
    done = rota("run", "cancel", "--job", "surgery", "--yes")
    assert (done.exit_code, done.stdout) == (6, "0\n")
    assert "note: 1 not cancelled: run" in done.stderr


@pytest.mark.parametrize(("said", "code", "left"), [("y", 0, RunState.CANCELLED), ("n", 3, RunState.QUEUED)])
def test_on_a_terminal_it_asks(url: str, said: str, code: int, left: RunState) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = ["run", "cancel", "--job", "other"]
        os.execve(sys.executable, [sys.executable, "-m", "rota", *arguments], {**os.environ, "COLUMNS": "100"})
    shown = b""
    while b"?" not in shown:
        shown += os.read(terminal, 65536)
    os.write(terminal, f"{said}\n".encode())
    shown += rest_of(terminal).encode()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    assert b"cancel 1 run of other?" in shown
    assert (b"cancelled 1 run\n" in shown) is (said == "y")
    assert states("other") == [left.value]
