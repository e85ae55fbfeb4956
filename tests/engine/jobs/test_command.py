"""Test command jobs with real programs: output, exit status, and processes they leave behind."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rota.core.runs.run import Run
from rota.core.states import RunState
from rota.testing import Harness
from tests.support.runs.real_worker import Working
from tests.support.wait import PATIENCE, until


@pytest.fixture
async def harness(sqlite_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=sqlite_url, enable_command=True) as harness:
        yield harness


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def shell(line: str) -> list[str]:
    return ["sh", "-c", line]


async def ran(harness: Harness, argv: list[str], payload: dict[str, Any] | None = None, **options: Any) -> Run:
    harness.app.command_job("tool", argv, **options)
    run = await harness.enqueue("tool", **(payload or {}))
    await harness.drain()
    return await harness.run(run)


async def said(harness: Harness, run: Run) -> list[tuple[str, str]]:
    return [(line.level, line.text) for line in await harness.client.logs(run.id, limit=10_000)]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2] if Path(f"/proc/{pid}").exists() else False


async def pid_in(file: Path) -> int:
    await until(lambda: file.exists() and file.read_text().endswith("\n"))
    return _number_in(file)


def _number_in(file: Path) -> int:
    return int(file.read_text())


async def test_output_is_the_log_and_its_end_the_result(harness: Harness) -> None:
    run = await ran(harness, shell("echo one; echo two; echo oh >&2"))
    assert (run.state, run.result) == (RunState.SUCCEEDED, {"exit_code": 0, "output": "one\ntwo"})
    assert sorted(await said(harness, run)) == [("info", "one"), ("info", "two"), ("warning", "oh")]


async def test_arguments_are_never_read_by_a_shell(harness: Harness) -> None:
    run = await ran(harness, ["printf", "%s", "<{payload.x}> {attempt}"], {"x": "$(id); `id` && rm -rf *"})
    assert run.result["output"] == "<$(id); `id` && rm -rf *> 1"


async def test_its_environment_is_its_own(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
    run = await ran(harness, ["env"], {"who": "Ada"}, env={"WHO": "{payload.who}"}, cwd="/")
    found = dict(line.split("=", 1) for line in run.result["output"].split("\n"))
    assert found.pop("ROTA_RUN_ID") == found.pop("ROTA_IDEMPOTENCY_KEY") == run.id
    assert (found.pop("ROTA_ATTEMPT"), found.pop("ROTA_PAYLOAD")) == ("1", '{"who":"Ada"}')
    assert found.pop("WHO") == "Ada"
    assert set(found) <= {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"}


async def test_the_payload_on_stdin(harness: Harness) -> None:
    run = await ran(harness, ["wc", "-c"], {"x": "y" * 200_000}, stdin="payload")
    assert run.result["output"].strip() == str(len('{"x":""}') + 200_000)


async def test_without_it_stdin_is_empty(harness: Harness) -> None:
    assert (await ran(harness, ["cat"])).result == {"exit_code": 0, "output": ""}


async def test_a_payload_too_large_for_the_environment(harness: Harness) -> None:
    run = await ran(harness, ["true"], {"x": "y" * 200_000})
    assert run.error
    assert (run.state, run.error.code) == (RunState.FAILED, "bad_command")


async def test_another_exit_status_is_a_failure(harness: Harness) -> None:
    run = await ran(harness, shell("echo fine; echo 'no luck' >&2; exit 3"))
    assert run.error
    assert (run.state, run.error.code, run.error.message) == (
        RunState.SCHEDULED,
        "exit_status",
        "sh: exit status 3: no luck",
    )


@pytest.mark.parametrize(("status", "again"), [(4, True), (75, True), (5, False)])
async def test_which_are_tried_again(harness: Harness, status: int, again: bool) -> None:
    run = await ran(harness, shell(f"exit {status}"), retry_exit_codes=[4])
    assert run.state is (RunState.SCHEDULED if again else RunState.FAILED)


async def test_a_signal_is_named(harness: Harness) -> None:
    run = await ran(harness, shell("kill -SEGV $$"), max_attempts=1)
    assert run.error
    assert run.error.message == "sh: killed by SIGSEGV"


@pytest.mark.parametrize("argv", [["/no/such/program"], ["/etc/passwd"], ["/"]])
async def test_a_program_that_cannot_be_run(harness: Harness, argv: list[str]) -> None:
    run = await ran(harness, argv)
    assert run.error
    assert (run.state, run.error.code) == (RunState.FAILED, "no_command")


async def test_a_folder_that_is_not_there(harness: Harness) -> None:
    run = await ran(harness, ["true"], cwd="/no/such/folder")
    assert run.error
    assert (run.error.code, "/no/such/folder" in run.error.message) == ("no_command", True)


async def test_a_child_that_keeps_the_pipe_open_is_not_waited_for(harness: Harness, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with asyncio.timeout(PATIENCE):
        run = await ran(harness, shell(f"sleep 600 & echo $! > {file}; echo done"))
    assert (run.state, run.result["output"]) == (RunState.SUCCEEDED, "done")
    pid = _number_in(file)
    await until(lambda: not is_alive(pid))


async def test_a_hundred_megabytes(harness: Harness) -> None:
    code = "import sys\nfor i in range(100): sys.stdout.write(('x' * 99 + '\\n') * 10_486)\nprint('the end')"
    run = await ran(harness, python(code), timeout="100s")
    assert run.result["output"].endswith("the end")
    lines = await said(harness, run)
    assert any("lines left out" in text for _, text in lines)
    assert sum(len(text) for _, text in lines) < 2 * harness.config.log_limit


async def test_a_line_without_end(harness: Harness) -> None:
    run = await ran(
        harness, python("import sys\nfor _ in range(100): sys.stdout.write('x' * 65536)\nprint(); print('y')")
    )
    lines = [text for _, text in await said(harness, run)]
    assert [len(text) for text in lines] == [8_000, 1]


async def test_bytes_that_are_no_text(harness: Harness) -> None:
    run = await ran(harness, python(r"import os; os.write(1, b'a\xff\x00b\r\n')"))
    assert run.state is RunState.SUCCEEDED
    assert [text for _, text in await said(harness, run)] == ["a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"]


STUBBORN = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork():
    print(os.getpid(), file=open(sys.argv[1], "w"))
else:
    print(os.getpid(), file=open(sys.argv[2], "w"))
while True:
    signal.pause()
"""


@pytest.fixture
def stubborn(tmp_path: Path) -> tuple[list[str], Path, Path]:
    """A program that ignores SIGTERM, as does its child."""
    return [*python(STUBBORN), str(tmp_path / "a"), str(tmp_path / "b")], tmp_path / "a", tmp_path / "b"


async def test_what_ignores_sigterm_is_killed_with_its_children(
    harness: Harness, stubborn: tuple[list[str], Path, Path], working: Callable[..., Awaitable[Working]]
) -> None:
    argv, one, other = stubborn
    harness.app.command_job("tool", argv, cancel_grace="2s")
    run = await harness.enqueue("tool")
    worker = await working(harness)
    pids = [await pid_in(one), await pid_in(other)]
    await harness.cancel(run)
    await worker.has_state(run, RunState.CANCELLED)
    await until(lambda: not any(is_alive(pid) for pid in pids))


async def test_a_timeout_kills_likewise(harness: Harness, stubborn: tuple[list[str], Path, Path]) -> None:
    argv, one, other = stubborn
    run = await ran(harness, argv, timeout="1s", max_attempts=1, cancel_grace="1s")
    assert run.state is RunState.TIMED_OUT
    pids = [await pid_in(one), await pid_in(other)]
    await until(lambda: not any(is_alive(pid) for pid in pids))


async def test_a_worker_that_stops_leaves_nothing_behind(
    harness: Harness, stubborn: tuple[list[str], Path, Path], working: Callable[..., Awaitable[Working]]
) -> None:
    argv, one, other = stubborn
    harness.app.command_job("tool", argv)
    run = await harness.enqueue("tool")
    worker = await working(harness)
    pids = [await pid_in(one), await pid_in(other)]
    await worker.stop(timedelta(milliseconds=100))
    assert await harness.state(run) is RunState.QUEUED
    await until(lambda: not any(is_alive(pid) for pid in pids))


async def test_a_worker_that_may_not_leaves_them_alone(sqlite_url: str) -> None:
    async with Harness(url=sqlite_url) as harness:
        run = await ran(harness, ["true"])
        assert (run.state, run.attempt) == (RunState.QUEUED, 0)


async def test_a_program_is_killed_when_its_cpu_time_is_over(harness: Harness) -> None:
    run = await ran(harness, python("while True: pass"), cpu_limit="1s", max_attempts=1)
    assert run.error is not None
    assert (run.state, run.error.code) == (RunState.FAILED, "cpu_limit")
    assert run.error.message == "more CPU time than its limit of 1s"


async def test_a_program_gets_no_more_memory_than_its_limit(harness: Harness) -> None:
    limits: dict[str, Any] = {"memory_limit": "64MB", "max_attempts": 1}
    run = await ran(harness, python("x = bytearray(200_000_000)"), **limits)
    assert run.error is not None
    assert run.state is RunState.FAILED
    assert "MemoryError" in run.error.message
    assert "its memory limit is 64MB" in run.error.message


async def test_its_children_have_the_same_limits(harness: Harness) -> None:
    limits: dict[str, Any] = {"cpu_limit": "7s", "memory_limit": "64MB"}
    run = await ran(harness, shell("sh -c 'ulimit -S -t; ulimit -d'"), **limits)
    assert run.result == {"exit_code": 0, "output": f"7\n{64 * 1024}"}


async def test_a_program_that_does_not_exist_is_told_with_limits_too(harness: Harness) -> None:
    run = await ran(harness, ["no-such-program"], cpu_limit="1s", max_attempts=1)
    assert run.error is not None
    assert run.error.code == "no_command"
