"""Full-screen use of a terminal, with raw keys, restored at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.text import Text

from rota.cli.terminal.tables import terminal

_NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[Z": "backtab",
    "\x1b[5~": "pageup", "\x1b[6~": "pagedown", "\x1b[H": "g", "\x1b[F": "G", "\x1b[1~": "g", "\x1b[4~": "G",
    "\x1b": "escape", "\t": "tab", "\r": "enter", "\n": "enter",
}  # fmt: skip
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b(?![\[O])|[^\x1b]", re.DOTALL)
_BEGUN = re.compile(r"\x1b(\[[0-?]*[ -/]*|O)$")


class Keyboard:
    """Decoder of key presses. An escape sequence may arrive in two reads."""

    def __init__(self) -> None:
        self._begun = b""

    def typed(self, data: bytes) -> list[str]:
        text = (self._begun + data).decode("utf-8", "replace")
        begun = _BEGUN.search(text)
        self._begun = begun[0].encode() if begun else b""
        whole = text[: begun.start()] if begun else text
        keys = [_NAMES.get(code, code) for code in _KEY.findall(whole)]
        return [key for key in keys if key.isprintable()]


_ENTER = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _WIPE_LINE, _WIPE_REST = "\x1b[H", "\x1b[2K", "\x1b[J"


class FullScreen:
    """The terminal's alternate screen. Keys are read only if stdin is a terminal; otherwise there is only Ctrl-C."""

    def __init__(self) -> None:
        self._console = terminal()
        self._input = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] | None = None

    @property
    def size(self) -> tuple[int, int]:
        return self._console.size.width, self._console.size.height

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        try:
            self._take()
            yield
        finally:
            self._give_back()

    def _take(self) -> None:
        if self._input is not None:
            self._before = termios.tcgetattr(self._input)
            tty.setcbreak(self._input, termios.TCSADRAIN)  # not raw: Ctrl-C and Ctrl-Z still send signals
        self._write(_ENTER)

    def _give_back(self) -> None:
        """Restore the settings first: as soon as the old screen is visible, somebody may type."""
        before, self._before = self._before, None
        if self._input is not None and before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._input, termios.TCSADRAIN, before)
        with contextlib.suppress(OSError):  # the terminal may have been closed
            self._write(_LEAVE)

    def draw(self, lines: Sequence[Text]) -> None:
        """Draw the lines. Each is cleared before it is written: after a full line, the last column would be cleared."""
        with self._console.capture() as written:
            for line in lines:
                self._console.print(line, no_wrap=True, overflow="crop", end="\n")
        text = written.get().removesuffix("\n").replace("\n", f"\n{_WIPE_LINE}")
        self._write(f"{_HOME}{_WIPE_LINE}{text}{_WIPE_REST}")

    @contextlib.contextmanager
    def heard(
        self, key: Callable[[str], None], resized: Callable[[], None], end: Callable[[int], None]
    ) -> Iterator[None]:
        """Call back on keys, on a change of size, and with the exit code on signals that end the program."""
        loop, keyboard = asyncio.get_running_loop(), Keyboard()

        def readable() -> None:
            assert self._input is not None
            try:
                data = os.read(self._input, 1024)
            except OSError:
                data = b""
            if not data:
                end(0)
            for name in keyboard.typed(data):
                key(name)

        def stopped() -> None:
            """Give the terminal back to the shell at Ctrl-Z, until `fg`."""
            self._give_back()
            os.kill(os.getpid(), signal.SIGSTOP)
            self._take()
            resized()

        handlers = {
            signal.SIGWINCH: resized,
            signal.SIGTSTP: stopped,
            signal.SIGTERM: lambda: end(128 + signal.SIGTERM),
            signal.SIGHUP: lambda: end(128 + signal.SIGHUP),
        }
        if self._input is not None:
            loop.add_reader(self._input, readable)
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            if self._input is not None:
                loop.remove_reader(self._input)
            for number in handlers:
                loop.remove_signal_handler(number)

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
