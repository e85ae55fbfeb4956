"""Keys as a terminal sends them: bytes, in pieces of any size."""

from __future__ import annotations

import re

_NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[Z": "backtab",
    "\x1b[5~": "pageup", "\x1b[6~": "pagedown", "\x1b[H": "g", "\x1b[F": "G", "\x1b[1~": "g", "\x1b[4~": "G",
    "\x1b": "escape", "\t": "tab", "\r": "enter", "\n": "enter",
}  # fmt: skip
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b(?![\[O])|[^\x1b]", re.DOTALL)
_BEGUN = re.compile(r"\x1b(\[[0-?]*[ -/]*|O)$")


class Keyboard:
    """A key that comes in two pieces is one key."""

    def __init__(self) -> None:
        self._begun = b""

    def typed(self, data: bytes) -> list[str]:
        text = (self._begun + data).decode("utf-8", "replace")
        begun = _BEGUN.search(text)
        self._begun = begun[0].encode() if begun else b""
        whole = text[: begun.start()] if begun else text
        keys = [_NAMES.get(found, found) for found in _KEY.findall(whole)]
        return [key for key in keys if key.isprintable()]
