"""`rota top` on a real terminal, which it restores, and with a database that becomes unavailable."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from rich.text import Text

from rota import Client, Order
from rota.cli.top import data, loop
from rota.cli.top.loop import TopLoop
from rota.cli.top.screen import FullScreen
from rota.errors import SchemaOutdated, Unavailable
from tests.cli.runs.test_live import Terminal, on_terminal
from tests.cli.runs.test_long_runs import at_work
from tests.support.processes.command_line import answer, refused, rota
from tests.support.wait import until

TAKEN, GIVEN_BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def press(screen: Terminal, keys: str) -> None:
    os.write(screen.end, keys.encode())


async def test_a_run_is_chosen_shown_and_cancelled(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        run = await crawling.client.enqueue(Order("many", {}))
        async with on_terminal(sqlite_url, "top", "--every", "500ms", columns=80, lines=24) as screen:
            await screen.until("many")
            press(screen, "j")
            await screen.until(f"› {run.id[-8:]}")
            press(screen, "\r")
            await screen.until("many (version 1)")
            press(screen, "q?")
            await screen.until("as `rota run get` does")
            press(screen, "qc")
            await screen.until(f"cancel run {run.id[-8:]} of many?")
            press(screen, "y")
            await screen.until(f"run {run.id[-8:]} is cancel")
            fcntl.ioctl(screen.end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            screen.child.send_signal(signal.SIGWINCH)
            await screen.until("  queues ")
            press(screen, "q")
            shown = await screen.rest()
            assert screen.child.returncode == 0
            assert shown.index(TAKEN) < shown.index(GIVEN_BACK)
            assert shown.endswith(GIVEN_BACK)
        assert str((await crawling.client.get(run.id)).cancelled_by).startswith("cli:")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
async def test_a_signal_leaves_the_terminal_as_it_was(sqlite_url: str, number: int, code: int) -> None:
    async with at_work(sqlite_url), on_terminal(sqlite_url, "top") as screen:
        before = settings(screen)
        await screen.until("q quit")
        assert settings(screen) != before
        screen.child.send_signal(number)
        await screen.until(GIVEN_BACK)
        assert settings(screen) == before
        await screen.rest()
        assert screen.child.returncode == code


def settings(screen: Terminal) -> int:
    """Return whether the terminal edits and echoes typed lines."""
    local: int = termios.tcgetattr(screen.end)[3]
    return local & (termios.ICANON | termios.ECHO)


def test_an_error_leaves_the_terminal_too(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), FullScreen().taken():
        raise ZeroDivisionError
    assert capfd.readouterr().out.endswith(GIVEN_BACK)


class Watched:
    """A screen without a terminal, for tests: records what is drawn, and presses keys."""

    size = (100, 30)

    def __init__(self) -> None:
        self.shown = ""
        self.press: Callable[[str], None]

    def draw(self, lines: Sequence[Text]) -> None:
        self.shown = "\n".join(line.plain for line in lines)

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def heard(self, key: Callable[[str], None], *_: object) -> Iterator[None]:
        self.press = key
        yield

    async def until(self, words: str) -> None:
        await until(lambda: words in self.shown)


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> timedelta:
    """Refresh without a pause."""
    for module in (data, loop):
        monkeypatch.setattr(module, "SHORTEST", timedelta(milliseconds=10))
    return timedelta(milliseconds=20)


async def test_it_goes_on_trying_while_the_database_is_away(
    sqlite_url: str, quickly: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(sqlite_url) as crawling:
        screen, trouble = Watched(), list[Exception]()

        async def shaky(client: Client) -> Any:
            if trouble:
                raise trouble[0]
            return await data.read_snapshot(client)

        monkeypatch.setattr(loop, "read_snapshot", shaky)
        overseer = TopLoop(crawling.client, "somewhere", quickly, cast("FullScreen", screen))
        staying = asyncio.create_task(overseer.stay())
        await screen.until("no runs")
        trouble.append(Unavailable("nobody is there"))
        await screen.until("retrying: nobody is there")
        assert "no runs" in screen.shown  # what was seen last
        trouble.clear()
        await screen.until("UTC  every 20ms")
        for key in "jkr":
            screen.press(key)
        await screen.until("select a run first")
        trouble.append(SchemaOutdated(1, 2))
        with pytest.raises(SchemaOutdated):
            await staying
        trouble[0] = Unavailable("nobody is there")
        with pytest.raises(Unavailable):  # who cannot even begin is told at once
            await TopLoop(crawling.client, "somewhere", quickly, cast("FullScreen", Watched())).stay()


async def test_a_failure_is_retried_and_what_is_refused_is_told(sqlite_url: str, quickly: timedelta) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.has_ended(broken=True)
        screen = Watched()
        overseer = TopLoop(crawling.client, "somewhere", quickly, cast("FullScreen", screen))
        staying = asyncio.create_task(overseer.stay())
        await screen.until(id[-8:])
        await screen.until("errors of a day 1")
        for key in ("tab", "j", "r"):
            screen.press(key)
        await screen.until(f"run {id[-8:]} is retried, as ")
        screen.press("c")
        screen.press("y")
        await screen.until("is failed already")
        screen.press("p")
        await screen.until("⏸ paused")
        screen.press("q")
        assert await staying == 0


def test_once(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DATABASE_URL", database_url)
    told = answer("top")
    assert set(told) == {"at", "overview", "series", "runs", "failures", "errors", "queues", "workers"}
    assert told["overview"]["live"]["running"] == 0
    for arguments in (["top", "--once"], ["top"]):  # without a terminal it is the same
        done = rota(*arguments)
        assert (done.exit_code, done.stdout.count("\x1b")) == (0, 0)
        assert "running 0  no runs" in done.stdout
    assert "at least 500ms" in refused(2, "top", "--every", "100ms")
    assert "is not a duration" in refused(2, "top", "--every", "often")
