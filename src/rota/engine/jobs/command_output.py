"""Split a program's output into log lines, cut long ones, and drop most of a flood."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rota.core.progress.notes import LONGEST_LINE, storable

_LONGEST = LONGEST_LINE - 1  # and a mark that it was longer
_WINDOW = 0.5
_FLOOD = 262_144
_TAIL_LINES = 20
_TAIL_BYTES = 4_000


class Output:
    """One stream of a program.

    Of a flood, the beginning of each half second and its end are logged; lines between are counted. A program that
    prints without end costs no more than reading its output.
    """

    def __init__(self, say: Callable[[str], None], now: Callable[[], float]) -> None:
        self._say = say
        self._now = now
        self._rest = b""
        self._cut = False
        self._since = now()
        self._said = 0
        self._held: deque[bytes] = deque()
        self._held_size = 0
        self._left_out = 0
        self._last: deque[str] = deque(maxlen=_TAIL_LINES)

    def feed(self, chunk: bytes) -> None:
        if self._now() - self._since >= _WINDOW:
            self._release()
            self._since, self._said = self._now(), 0
        self._said += len(chunk)
        if self._said <= _FLOOD:
            self._lines(chunk)
            return
        self._held.append(chunk)
        self._held_size += len(chunk)
        while self._held_size > _FLOOD and len(self._held) > 1:
            gone = self._held.popleft()
            self._held_size -= len(gone)
            self._left_out += gone.count(b"\n")

    def end(self) -> None:
        self._release()
        if self._rest:
            self._line(self._rest)
            self._rest = b""

    @property
    def tail(self) -> str:
        return "\n".join(self._last)[-_TAIL_BYTES:]

    def _release(self) -> None:
        if self._left_out:
            self._say(f"… {self._left_out} lines left out …")
            self._left_out = 0
        while self._held:
            self._lines(self._held.popleft())
        self._held_size = 0

    def _lines(self, chunk: bytes) -> None:
        *whole, rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            self._line(line)
        self._rest = rest
        if len(rest) > _LONGEST:  # cut an endless line now, to bound memory
            if not self._cut:
                self._line(rest, ended=False)
            self._rest = b" "

    def _line(self, line: bytes, *, ended: bool = True) -> None:
        was_cut, self._cut = self._cut, not ended
        if was_cut and ended:
            return
        text = storable(line[:_LONGEST].decode("utf-8", "replace").rstrip("\r"), LONGEST_LINE)
        if len(line) > _LONGEST:
            text += "…"
        if text:
            self._last.append(text)
            self._say(text)
