"""`rota schedule plan|apply`: which deletions need confirmation, and the exit code for CI."""

import asyncio
import contextlib
import os
import pty
import sys
from pathlib import Path

import pytest

from rota.app import Rota
from rota.cli.servers.server import announce
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import rota

ONE = '[[schedule]]\nname = "{}"\njob = "crawl"\nevery = "30m"\n'


def names() -> list[str]:
    return [line.split("\t")[0] for line in rota("schedule", "ls").stdout.splitlines()]


async def introduce(url: str) -> None:
    app = Rota(url)

    @app.job
    async def crawl() -> None: ...

    await save_jobs_of(app)


@pytest.fixture(autouse=True)
def known(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(introduce(sqlite_url))


def put(folder: str, text: str) -> str:
    Path(folder).mkdir(exist_ok=True)
    file = Path(folder, "schedules.toml")
    file.write_text(text)
    return str(file)


def test_two_files_of_one_name_do_not_delete_each_others_schedules_unasked() -> None:
    assert rota("schedule", "apply", put("a", ONE.format("news"))).exit_code == 0
    other = put("b", ONE.format("mail"))
    refused = rota("schedule", "apply", other)
    assert (refused.exit_code, refused.stdout, names()) == (2, "", ["news"])
    assert "delete news of owner file:schedules.toml: there is no terminal to ask on" in refused.stderr
    assert 'owner = "…"' in refused.stderr
    assert rota("schedule", "apply", put("b", 'owner = "b"\n' + ONE.format("mail"))).exit_code == 0
    assert names() == ["mail", "news"]
    assert rota("schedule", "apply", put("a", ""), "--yes").stdout == "delete\tnews\t\n"


def test_an_owner_that_was_named_prunes_without_asking() -> None:
    rota("schedule", "apply", put("a", 'owner = "a"\n' + ONE.format("news") + ONE.format("mail")))
    assert rota("schedule", "apply", put("a", 'owner = "a"\n' + ONE.format("mail"))).exit_code == 0
    assert names() == ["mail"]
    assert rota("schedule", "apply", put("a", ""), "--owner", "a").exit_code == 0
    assert names() == []


def test_many_deletions_are_not_all_named() -> None:
    rota("schedule", "apply", put("a", "".join(ONE.format(f"s{number:02}") for number in range(12))))
    assert "s09 and 2 more of owner" in rota("schedule", "apply", put("a", "")).stderr


@pytest.mark.parametrize(("said", "code", "left"), [(b"y\n", 0, []), (b"n\n", 3, ["news"])])
def test_on_a_terminal_apply_asks(said: bytes, code: int, left: list[str]) -> None:
    rota("schedule", "apply", put("a", ONE.format("news")))
    file = put("a", "")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "rota", "schedule", "apply", file])
    shown = b""
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while part := os.read(terminal, 4096):
            shown += part
            if b"[y/N]" in part:
                os.write(terminal, said)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    assert b"delete news of owner file:schedules.toml?" in shown
    assert (b"nothing was done" in shown) == (code == 3)
    assert names() == left


def test_the_exit_code_of_plan_tells_whether_something_would_change() -> None:
    file = put("a", ONE.format("news"))
    assert [rota("schedule", "plan", file, *more).exit_code for more in ((), ("--exit-code",))] == [0, 3]
    rota("schedule", "apply", file)
    assert rota("schedule", "plan", file, "--exit-code").exit_code == 0
    assert rota("schedule", "plan", put("a", ""), "--exit-code", "--json").exit_code == 3


@pytest.mark.parametrize("wrong", ['name = "nojob"', 'job = "greet"', 'name = "a"\njob = "greet"\nbogus = 3'])
def test_a_plan_refuses_what_apply_refuses(wrong: str) -> None:
    file = put("a", f'[[schedule]]\n{wrong}\nevery = "1h"\n')
    refused = [rota("schedule", verb, file, "--owner", "me") for verb in ("plan", "apply")]
    assert [each.exit_code for each in refused] == [2, 2]
    assert refused[0].stderr == refused[1].stderr


def test_dev_names_the_list_of_schedules_among_what_to_try_next(capsys: pytest.CaptureFixture[str]) -> None:
    announce(Rota(), "http://localhost", as_json=False)
    assert " schedule list" in capsys.readouterr().out
