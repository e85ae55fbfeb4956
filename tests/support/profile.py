"""Profile of what is called: the functions of `src/rota`, in every thread of the process.

A lambda is a function; a comprehension is not, because newer Pythons do not call it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import rota

PACKAGE = Path(rota.__file__).parent
DRIVER = "store/databases/sqlite/"
_INLINED = {"<listcomp>", "<dictcomp>", "<setcomp>"}  # no calls since Python 3.12


class Walk:
    """Functions that were called, in the order of their first calls, and how often anything was called."""

    def __init__(self) -> None:
        self.hops: dict[tuple[str, str], int] = {}
        self.calls = 0

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(file for file, _ in self.hops))

    @property
    def without_driver(self) -> list[str]:
        return [file for file in self.files if not file.startswith(DRIVER)]

    def functions_in(self, file: str) -> list[str]:
        return [name for place, name in self.hops if place == file]


class Profile:
    """Profiler of all threads that are started within it. It notes calls only while a walk is recorded."""

    def __init__(self) -> None:
        self._walk: Walk | None = None
        self._places: dict[CodeType, tuple[str, str] | None] = {}

    def __enter__(self) -> Profile:
        self._former = sys.getprofile()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._former)
        threading.setprofile(None)

    @contextmanager
    def walk(self) -> Iterator[Walk]:
        self._walk = walk = Walk()
        try:
            yield walk
        finally:
            self._walk = None

    def _note(self, frame: FrameType, event: str, _argument: Any) -> None:
        walk = self._walk
        if walk is None or event != "call":
            return
        code = frame.f_code
        if code not in self._places:
            self._places[code] = _place_of(code)
        place = self._places[code]
        if place is not None:
            walk.calls += 1
            walk.hops[place] = walk.hops.get(place, 0) + 1


def _place_of(code: CodeType) -> tuple[str, str] | None:
    path = Path(code.co_filename)
    if code.co_name in _INLINED or not path.is_relative_to(PACKAGE):
        return None
    return str(path.relative_to(PACKAGE)), code.co_qualname
