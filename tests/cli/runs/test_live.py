"""The live view of a run on a terminal, whatever texts the run contains."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rich.cells import cell_len

from rota import Order
from tests.cli.runs.test_long_runs import at_work
from tests.cli.terminal.test_terminal import rest_of
from tests.support.wait import PATIENCE

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
UP = "\x1b[1A"


class Terminal:
    def __init__(self, child: asyncio.subprocess.Process, end: int) -> None:
        self.child = child
        self.shown = ""
        self.end = end

    async def until(self, words: str) -> str:
        async with asyncio.timeout(PATIENCE):
            while words not in self.shown:
                self.shown += (await asyncio.to_thread(os.read, self.end, 65536)).decode(errors="replace")
        return self.shown

    async def rest(self) -> str:
        self.shown += await asyncio.to_thread(rest_of, self.end)
        await self.child.wait()
        return self.shown.replace("\r\n", "\n")


@asynccontextmanager
async def on_terminal(url: str, *arguments: str, columns: int = 100, lines: int = 30) -> AsyncIterator[Terminal]:
    end, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1", "ROTA_DATABASE_URL": url}
    for size in ("COLUMNS", "LINES"):
        environment.pop(size, None)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rota", *arguments, env=environment, stdin=other, stdout=other, stderr=other
    )
    os.close(other)
    try:
        yield Terminal(child, end)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def last_frame(shown: str) -> list[str]:
    return [line.rstrip() for line in shown.rpartition("\x1b[2K")[2].splitlines()]


async def test_watch_is_drawn_in_place_and_stays_at_the_end(sqlite_url: str) -> None:
    async with (
        at_work(sqlite_url) as crawling,
        on_terminal(sqlite_url, "run", "watch", id := await crawling.enqueue()) as screen,
    ):
        shown = await screen.until("half of it")
        assert "▶ running  crawl" in shown
        assert re.search("█+░+  50 %  Parse it: half of it", shown)
        assert "○ pending" in shown
        crawling.go_on.set()
        shown = await screen.rest()
        assert UP in shown
        assert not COLOUR.search(shown)
        assert "\x1b]0;" not in shown
        state, far, tries, _, *steps, result = last_frame(shown)
        assert (state, far) == (f"✓ succeeded  crawl  {id}", "█" * 30 + "  100 %")
        assert tries.startswith("attempt 1/1  ")
        assert [step.split()[:3] for step in steps] == [
            ["✓", "succeeded", "fetch"], ["✓", "succeeded", "parse"], ["✓", "succeeded", "store"],
        ]  # fmt: skip
        assert result == '["fetch", "parse", "store"]'
        assert screen.child.returncode == 0


async def test_a_narrow_terminal_cuts_lines_instead_of_wrapping_them(sqlite_url: str) -> None:
    async with (
        at_work(sqlite_url) as crawling,
        on_terminal(sqlite_url, "run", "watch", await crawling.enqueue(), columns=40, lines=8) as screen,
    ):
        await screen.until("50 %")
        crawling.go_on.set()
        frame = last_frame(await screen.rest())
        assert max(len(line) for line in frame) <= 40
        assert frame[0].endswith("…")


async def test_wait_shows_how_far_it_is_in_one_line(sqlite_url: str) -> None:
    async with (
        at_work(sqlite_url) as crawling,
        on_terminal(sqlite_url, "run", "wait", await crawling.enqueue(), columns=60) as screen,
    ):
        shown = await screen.until("50 %")
        crawling.go_on.set()
        shown = await screen.rest()
        lines = shown.split("\r\x1b[K")
        assert all(len(line) < 60 for line in lines[:-1])
        assert any(line.startswith("▶ running  " + "█" * 10 + "░" * 10 + "  50 %  Parse it") for line in lines)
        assert "\x1b]0;" not in shown


async def test_a_log_is_a_block_for_each_line(sqlite_url: str) -> None:
    async with (
        at_work(sqlite_url) as crawling,
        on_terminal(sqlite_url, "run", "logs", await crawling.has_ended()) as screen,
    ):
        head, first, warning, more, last = (await screen.rest()).splitlines()
        assert re.fullmatch(r"attempt 1, \d{4}-\d\d-\d\d UTC", head)
        assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}  info      fetching", first)
        assert "\\x1b]0;a new title\\x07 and" in warning
        assert (more, last[14:]) == (f"{'':24}another line", "info      the last word")


async def test_show_has_steps_with_shape_and_word(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        id = await crawling.has_ended(broken=True)
        async with on_terminal(sqlite_url, "run", "get", id) as screen:
            shown = await screen.rest()
            assert re.search(r"progress +66 %", shown)
            assert re.search(r"store +↷ skipped", shown)
            assert "\x1b" not in shown
        async with on_terminal(sqlite_url, "run", "steps", id) as screen:
            assert re.search(r"parse \(Parse it\) +✓ succeeded", await screen.rest())


async def test_of_hundreds_of_steps_those_around_the_open_one_are_drawn(sqlite_url: str) -> None:
    async with at_work(sqlite_url) as crawling:
        run = await crawling.client.enqueue(Order("many", {}))
        async with on_terminal(sqlite_url, "run", "watch", run.id, columns=50, lines=20) as screen:
            shown = await screen.until("宽")
            frame = last_frame(shown.replace("\r\n", "\n").replace("\x1b[?25l", ""))
            assert re.search(r"… \d+ before", shown)
            assert len(frame) < 20
            assert all(cell_len(line) <= 50 for line in frame)
            crawling.go_on.set()
            assert (await screen.rest()).count("page-7\n") == 1
