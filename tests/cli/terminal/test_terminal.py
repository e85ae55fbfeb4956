"""Output on a terminal: tables and colours, and neither where they are unwanted."""

import asyncio
import contextlib
import os
import pty
import sys
from pathlib import Path

import pytest

from rota.app import Rota
from rota.cli.terminal.run_format import RUN_COLUMNS
from rota.client.client import Order
from rota.engine.handlers.context import Context
from tests.cli.workers.test_workers import beat

ESCAPE = "\x1b["
TITLE = "\\x1b]0;a new title\\x07"


@pytest.fixture
def run_id(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    app = Rota(sqlite_url)

    @app.job(max_attempts=1)
    async def boom(ctx: Context) -> None:
        """Fail with a message that is wider than any terminal."""
        ctx.count("pages", 3)
        raise ValueError("\x1b]0;a new title\x07 " + "word " * 40)

    async def fail_once() -> str:
        async with app.running() as client:
            enqueued = await client.enqueue(Order("boom", {}))
            return (await client.wait(enqueued.id, "60s")).id

    return asyncio.run(fail_once())


def on_terminal(*arguments: str, columns: int = 120, **environment: str) -> str:
    """Return what the program writes to a terminal of that width."""
    pid, terminal = pty.fork()
    if pid == 0:
        values = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), **environment}
        os.execve(sys.executable, [sys.executable, "-m", "rota", *arguments], values)
    shown = rest_of(terminal)
    os.waitpid(pid, 0)
    return shown


def rest_of(terminal: int) -> str:
    shown = b""
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while part := os.read(terminal, 65536):
            shown += part
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n")


def test_ls_is_a_table_with_symbols_colours_and_ages(run_id: str) -> None:
    shown = on_terminal("run", "ls")
    assert run_id in shown
    assert "✗ failed" in shown
    assert ESCAPE in shown
    assert "ago" in shown or "now" in shown


def test_no_color_means_none(run_id: str) -> None:
    shown = on_terminal("run", "ls", NO_COLOR="1")
    assert "✗ failed" in shown
    assert ESCAPE not in shown


@pytest.mark.usefixtures("run_id")
def test_doctor_has_symbols_and_colours_only_if_they_are_wanted() -> None:
    assert ESCAPE in on_terminal("doctor")
    for shown in (on_terminal("doctor", NO_COLOR="1"), on_terminal("doctor", TERM="dumb")):
        assert "✓ database" in shown
        assert ESCAPE not in shown


def test_in_80_columns_an_id_is_short_and_all_columns_are_there(run_id: str) -> None:
    header, row = on_terminal("run", "ls", columns=80, NO_COLOR="1").splitlines()
    assert header.split() == list(RUN_COLUMNS.titles)
    assert row.split()[0] == run_id[-8:]
    assert run_id in on_terminal("run", "get", run_id[-8:], NO_COLOR="1")
    header, row, note = on_terminal("run", "ls", columns=40, NO_COLOR="1").splitlines()
    assert row.split()[0] == run_id[-8:]
    assert note.startswith("too narrow for: ")


def test_a_column_that_does_not_fit_is_cut_or_named_but_never_dropped_silently(run_id: str) -> None:
    header, *_, note = on_terminal("run", "ls", columns=40, NO_COLOR="1").splitlines()
    assert {*header.split(), *note.replace(",", "").split()} >= set(RUN_COLUMNS.titles)
    assert set(on_terminal("run", "ls", NO_COLOR="1").split()) >= set(RUN_COLUMNS.titles)
    header, row, *_ = on_terminal("job", "ls", columns=80, NO_COLOR="1").splitlines()
    assert "description" in header
    assert "Fail with a message" in row
    assert row.endswith("…")


def test_events_say_by_whom_in_80_columns(run_id: str) -> None:
    header, row, *_ = on_terminal("run", "events", run_id, columns=80, NO_COLOR="1").splitlines()
    assert header.split()[-1] == "by"
    assert row.split()[-1] == "client"
    header, *_, note = on_terminal("run", "events", run_id, columns=60, NO_COLOR="1").splitlines()
    assert header.split() == ["at", "event", "to", "by"]
    assert note.startswith("too narrow for: from, fence")


def test_the_audit_log_names_a_run_by_what_commands_take_for_it(run_id: str) -> None:
    waiting = on_terminal("run", "enqueue", "boom", "--delay", "1h", NO_COLOR="1").splitlines()[1].split()[0]
    on_terminal("run", "cancel", waiting)
    _, row, *_ = on_terminal("audit", columns=80, NO_COLOR="1").splitlines()
    assert waiting[-8:] in row.split()
    assert waiting in on_terminal("run", "get", waiting[-8:], NO_COLOR="1")


@pytest.mark.usefixtures("run_id")
def test_a_workers_id_stays_whole_whatever_is_asked_of_it(sqlite_url: str) -> None:
    id = "crawler-7d9c5b6f4-x2lqp@5be1a0c3"
    asyncio.run(beat(sqlite_url, id, queues=("a-long-name-of-a-queue", "another-one")))
    set_more = ["--slots", "3", "--queues", "critical:4,default:1", "--heartbeat", "5s", "--poll", "500ms"]
    shown = on_terminal("workers", "update", id, *set_more, columns=80, NO_COLOR="1")
    header, row, asked, note = shown.splitlines()
    assert row.split()[0] == id
    assert header.split()[:3] == ["id", "state", "runs"]
    assert asked.strip() == "requested: slots 3, queues critical:4,default:1, heartbeat 5s, poll 500ms"
    assert note.startswith("too narrow for: host")
    assert id in on_terminal("workers", "ls", columns=50, NO_COLOR="1")


@pytest.mark.parametrize("command", [["run", "ls"], ["job", "ls"], ["queue", "ls"]], ids=" ".join)
def test_a_row_stays_a_line_however_narrow_it_gets(run_id: str, command: list[str]) -> None:
    header, row, *notes = on_terminal(*command, columns=20, NO_COLOR="1").splitlines()
    assert "…" in header + row
    assert max(len(header), len(row)) <= 20
    assert len(notes) == (command != ["queue", "ls"])


def test_an_attempt_shows_its_error_and_what_it_measured_in_80_columns(run_id: str) -> None:
    shown = on_terminal("run", "get", run_id, columns=80, NO_COLOR="1")
    attempts = " ".join(shown.partition("\nattempt  outcome")[2].split())
    assert attempts.endswith(f"ValueError: {TITLE} {'word ' * 40}pages 3")
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_show_has_the_error_and_the_attempts_but_obeys_no_escape_codes(run_id: str) -> None:
    shown = on_terminal("run", "get", run_id, NO_COLOR="1")
    assert "UTC (" in shown
    assert "ValueError: \\x1b]0;a new title\\x07" in shown
    assert "outcome" in shown
    assert "\x1b]0;" not in shown


def test_wait_shows_its_progress_and_wipes_it(run_id: str) -> None:
    shown = on_terminal("run", "enqueue", "boom", "--delay", "1h", NO_COLOR="1")
    id = shown.splitlines()[1].split()[0]
    shown = on_terminal("run", "wait", id, "--timeout", "700ms", NO_COLOR="1")
    assert "◷ scheduled  boom  attempt 0/1" in shown
    assert shown.rpartition("\x1b[K")[2].startswith("error: run")


@pytest.mark.parametrize("command", [["wait"], ["enqueue", "boom", "--delay", "1h", "--wait"]], ids=["wait", "enqueue"])
def test_ctrl_c_ends_waiting_with_130(run_id: str, command: list[str]) -> None:
    id = on_terminal("run", "enqueue", "boom", "--delay", "1h", NO_COLOR="1").splitlines()[1].split()[0]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(
            sys.executable, [sys.executable, "-m", "rota", "run", *command, *([id] if command == ["wait"] else [])]
        )
    while "scheduled" not in os.read(terminal, 4096).decode():
        pass
    os.write(terminal, b"\x03")
    assert "error: interrupted; the run continues" in rest_of(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130


def test_an_empty_list_says_so(run_id: str) -> None:
    assert "no runs match" in on_terminal("run", "ls", "--job", "nothing")
