"""Runs from the command line; where exit codes and pipes matter, as real processes."""

import asyncio
import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rota.app import Rota
from rota.cli.terminal import wait as wait_command
from rota.cli.terminal.wait import finish
from rota.client.client import Client
from rota.core.runs.run import Run
from rota.core.states import FINAL_STATES, RunState
from rota.engine.handlers.context import Context
from rota.errors import RunNotFinal
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import answer, rota
from tests.support.wait import until

RUN_FIELDS = {"id", "job", "state", "scope", "payload", "result", "error", "attempt", "max_attempts", "fence", "tags"}


def app_on(url: str) -> Rota:
    app = Rota(url)

    @app.job(queue="mail")
    async def greet(name: str, times: int = 1) -> dict[str, str]:
        """Says hello.

        And nothing else.
        """
        return {"hello": name}

    @app.job(max_attempts=1)
    async def boom() -> None:
        raise ValueError("it went\tboom")

    @app.job(timeout="90s")
    async def endless(ctx: Context) -> None:
        await until(ctx.checkpoint)

    return app


async def introduce(url: str) -> Rota:
    """A database that knows the jobs, without a worker."""
    app = app_on(url)
    await save_jobs_of(app)
    return app


@pytest.fixture
def known_url(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(introduce(sqlite_url))
    return sqlite_url


@pytest.mark.usefixtures("known_url")
def test_add_prints_the_id_and_show_and_ls_know_it() -> None:
    id = rota("run", "enqueue", "greet", '{"name": "Ada"}').stdout.strip()
    found = answer("run", "get", id)
    assert found.keys() > RUN_FIELDS
    assert (found["state"], found["queue"], found["payload"]) == ("queued", "mail", {"name": "Ada"})
    assert answer("run", "attempts", id)["items"] == []
    assert found["created_at"].endswith("Z")
    assert datetime.fromisoformat(found["created_at"]).tzinfo
    (listed,) = answer("run", "ls")["items"]
    assert listed == found
    assert rota("run", "ls").stdout.split("\t")[:3] == [id, "queued", "greet"]
    assert f"payload\t{json.dumps(found['payload'])}" in rota("run", "get", id[:20]).stdout


@pytest.mark.usefixtures("known_url")
def test_every_option_reaches_the_run() -> None:
    run = answer(
        *("run", "enqueue", "greet", '{"name": "Ada"}', "--queue", "slow", "--priority", "7", "--delay", "1h"),
        *("--key", "k", "--scope", "account/42", "--tag", "a", "--tag", "b", "--metadata", '{"from": "cli"}'),
        *("--max-attempts", "2", "--timeout", "5m", "--idempotency-key", "once"),
    )
    assert (run["queue"], run["priority"], run["key"], run["tags"]) == ("slow", 7, "k", ["a", "b"])
    assert (run["scope"], run["metadata"]) == ({"kind": "account", "id": "42"}, {"from": "cli"})
    assert (run["max_attempts"], run["state"]) == (2, "scheduled")
    later = answer("run", "enqueue", "greet", '{"name": "Ada"}', "--at", "2099-01-01T00:00:00+01:00")
    assert later["run_at"] == "2098-12-31T23:00:00Z"
    assert [line.split("\t")[:4] for line in rota("queue", "ls").stdout.splitlines()] == [
        ["default", "0", "0", "0"], ["mail", "0", "0", "1"], ["slow", "0", "0", "1"],
    ]  # fmt: skip


@pytest.mark.usefixtures("known_url")
@pytest.mark.parametrize("how", [["--unique"], ["--unique-by", "name"], ["--key", "x"], ["--idempotency-key", "x"]])
def test_the_same_work_is_the_same_run(how: list[str]) -> None:
    first = rota("run", "enqueue", "greet", '{"name": "Ada"}', *how)
    second = rota("run", "enqueue", "greet", '{"name": "Ada"}', *how)
    assert first.stdout == second.stdout
    assert (first.stderr, second.stderr[:5]) == ("", "note:")


@pytest.mark.usefixtures("known_url")
def test_a_payload_comes_from_a_file_or_stdin(tmp_path: Path) -> None:
    Path("payload.json").write_text('{"name": "from a file", "times": 3}')
    assert answer("run", "enqueue", "greet", "@payload.json")["payload"] == {"name": "from a file", "times": 3}
    assert answer("run", "enqueue", "greet", "-", stdin='{"name": "ä"}')["payload"] == {"name": "ä"}
    missing = rota("run", "enqueue", "greet", "@missing.json")
    assert missing.exit_code == 2
    assert "missing.json" in missing.stderr


@pytest.mark.usefixtures("known_url")
@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ('{"name": 3}', "$.name"),
        ('{"name": "Ada", "nmae": 1}', "nmae"),
        ("{}", "name"),
        ("[1]", "the payload must be an object, not an array"),
        ("{", "the payload is not JSON"),
        ("{name: x}", """'{"name": "x"}'"""),
        ('{"name": "\\u0000"}', "$.name"),
    ],
)
def test_a_bad_payload_exits_2_and_names_the_path(payload: str, problem: str) -> None:
    done = rota("run", "enqueue", "greet", payload)
    assert done.exit_code == 2
    assert problem in done.stderr
    assert answer("run", "ls")["items"] == []


@pytest.mark.usefixtures("known_url")
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["run", "enqueue", "gret"], 4, "did you mean 'greet'?"),
        (["job", "get", "gret"], 4, "did you mean 'greet'?"),
        (["run", "get", "ffffffff"], 4, "there is no run"),
        (["run", "get", "x'; --"], 4, "there is no run"),
        (["run", "enqueue", "boom", "--priority", "5000"], 2, "priority"),
        (["run", "enqueue", "boom", "--delay", "10"], 2, "90s"),
        (["run", "enqueue", "boom", "--delay", "1s", "--at", "2026-01-01T00:00:00Z"], 2, "--delay or --at, not both"),
        (["run", "enqueue", "greet", '{"name": "x"}', "--unique-by", "nmae"], 2, "has no field 'nmae'"),
        (["run", "enqueue", "boom", "--metadata", "[1]"], 2, "--metadata must be an object, not an array"),
        (["run", "ls", "--limit", "0"], 2, "limit"),
    ],
)
def test_what_is_refused_says_why(arguments: list[str], code: int, says: str) -> None:
    done = rota(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert says in done.stderr


@pytest.mark.usefixtures("known_url")
def test_jobs_as_they_were_declared() -> None:
    assert [job["name"] for job in answer("job", "ls")["items"]] == ["boom", "endless", "greet"]
    assert answer("job", "get", "endless")["timeout"] == "1m30s"
    assert rota("job", "ls").stdout.splitlines()[2] == "greet\tpending\t\t\t1\tmail\tyes\tSays hello."


@pytest.mark.usefixtures("known_url")
def test_prune_counts() -> None:
    assert answer("prune") == {"pruned": 0}
    assert rota("prune").stdout == "0\n"


class Done(NamedTuple):
    code: int | None
    stdout: str
    stderr: str


async def process(*arguments: str, url: str, shell: str | None = None) -> Done:
    """The program itself, beside a worker in this process."""
    environment = {**os.environ, "ROTA_DATABASE_URL": url}
    command = [sys.executable, "-m", "rota", *arguments]
    if shell:
        command = ["bash", "-c", f'set -o pipefail; "$0" "$@" {shell}', *command]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, env=environment, stdout=pipe, stderr=pipe)
    stdout, stderr = await child.communicate()
    return Done(child.returncode, stdout.decode(), stderr.decode())


async def test_the_exit_code_tells_how_a_run_ended(database_url: str) -> None:
    app = await introduce(database_url)
    async with app.running() as client:
        well, badly = await asyncio.gather(
            process("run", "enqueue", "greet", '{"name": "Ada"}', "--wait", "--json", url=database_url),
            process("run", "enqueue", "boom", "--wait", url=database_url),
        )
        assert (well.code, well.stderr) == (0, "")
        assert json.loads(well.stdout)["result"] == {"hello": "Ada"}
        assert badly.code == 1
        id, state, error = badly.stdout.rstrip("\n").split("\t")
        assert (state, error) == ("failed", "ValueError: it went\\tboom")

        again, waited = await asyncio.gather(
            process("run", "retry", id, "--wait", "--json", url=database_url),
            process("run", "wait", id, url=database_url),
        )
        assert (again.code, waited.code) == (1, 1)
        assert json.loads(again.stdout)["retry_of"] == id

        shown = json.loads((await process("run", "get", id, "--json", url=database_url)).stdout)
        attempts = json.loads((await process("run", "attempts", id, "--json", url=database_url)).stdout)["items"]
        assert [attempt["outcome"] for attempt in attempts] == ["failed"]
        assert shown["error"]["type"] == "ValueError"
        assert len(await client.list()) == 3


async def test_a_run_that_goes_on_is_75_and_cancelled_it_is_3(sqlite_url: str) -> None:
    app = await introduce(sqlite_url)
    async with app.running():
        added = await process("run", "enqueue", "endless", url=sqlite_url)
        id = added.stdout.strip()
        late = await process("run", "wait", id, "--timeout", "100ms", "--json", url=sqlite_url)
        problem = json.loads(late.stderr)
        assert (late.code, problem["code"], "status" in problem) == (75, "still-running", False)
        waiting = asyncio.create_task(process("run", "wait", id, url=sqlite_url))
        assert (await process("run", "cancel", id[-8:], url=sqlite_url)).code == 0
        assert (await waiting).code == 3


@pytest.mark.parametrize(("state", "hint"), [("cancelling", "wait until"), ("running", "cancel it first")])
def test_a_run_that_cannot_be_retried_yet_says_what_to_do_first(state: str, hint: str) -> None:
    assert (RunNotFinal("1", state).hint or "").startswith(hint)


async def test_a_reader_that_goes_away_is_no_error(sqlite_url: str) -> None:
    await introduce(sqlite_url)
    done = await process("job", "ls", url=sqlite_url, shell="| head -n 1")
    assert done == (0, "boom\tpending\t\t\t1\tdefault\tyes\t\n", "")


async def test_a_full_disk_is_said_without_a_traceback(sqlite_url: str) -> None:
    await introduce(sqlite_url)
    done = await process("job", "ls", url=sqlite_url, shell="> /dev/full")
    assert done == (1, "", "error: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_every_ending_has_its_exit_code(state: RunState) -> None:
    facts: dict[str, Any] = {**dict.fromkeys(Run.__struct_fields__), "id": "1", "state": state}
    run = Run(**facts)
    assert finish(run, as_json=True) == {"succeeded": 0, "cancelled": 3, "skipped": 3}.get(state, 1)


@pytest.mark.usefixtures("known_url")
def test_queues_are_paused_and_resumed() -> None:
    assert rota("queue", "pause", "mail", "--force", "--reason", "a look inside").stdout == "mail\n"
    assert rota("queue", "ls").stdout.splitlines()[-1].split("\t") == [
        "mail",
        "0",
        "0",
        "0",
        "yes",
        "a look inside",
        "",
    ]
    assert rota("queue", "resume", "mail").stdout == "mail\n"
    assert rota("queue", "ls").stdout.splitlines()[-1].split("\t") == ["mail", "0", "0", "0", "no", "", ""]


def test_who_waits_in_vain_is_told_why(known_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told, wait, held_back = asyncio.Event(), Client.wait, wait_command._stuck_reason

    async def tell(client: Client, run: Run) -> str | None:
        why = await held_back(client, run)
        told.set()
        return why

    async def wait_until_told(client: Client, id: str, timeout: str | None) -> Run:
        await told.wait()
        return await wait(client, id, timeout)

    monkeypatch.setattr(wait_command, "_INTERVAL", 0.01)
    monkeypatch.setattr(wait_command, "_stuck_reason", tell)
    monkeypatch.setattr(Client, "wait", wait_until_told)
    id = answer("run", "enqueue", "boom")["id"]
    waited = rota("run", "wait", id, "--timeout", "50ms")
    assert waited.exit_code == 75
    assert waited.stderr.count("note: the run waits: No worker is alive: start one with `rota worker`.") == 1


def test_every_wait_can_be_bounded(known_url: str) -> None:
    waited = rota("run", "enqueue", "boom", "--wait-timeout", "100ms", "--timeout", "1h")
    assert waited.exit_code == 75
    (run,) = answer("run", "ls")["items"]
    rota("run", "cancel", run["id"])
    assert rota("run", "retry", run["id"], "--wait-timeout", "100ms").exit_code == 75


def test_who_waits_for_a_time_to_come_is_told_nothing(known_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.cli.terminal.wait._INTERVAL", 0.01)
    id = answer("run", "enqueue", "boom", "--delay", "1h")["id"]
    assert "note" not in rota("run", "wait", id, "--timeout", "200ms").stderr


def test_a_payload_that_does_not_fit_says_where_to_look(known_url: str) -> None:
    assert "hint: `rota job get greet` shows what it takes" in rota("run", "enqueue", "greet").stderr
    assert "hint: did you mean 'times'?" in rota("run", "enqueue", "greet", '{"name": "Ada", "tmies": 2}').stderr


def test_an_option_before_its_command_is_shown_its_place() -> None:
    for option in ("--database", "--json"):
        found = rota(option, "run", "ls")
        assert found.exit_code == 2
        assert f"put it after the command: rota run list {option}" in found.stderr
    assert "hint: see `rota run list --help`" in rota("run", "ls", "--xyzzy").stderr
