"""Ends of runs: whoever ends some leaves what follows from it to one function."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rota.store

STORE = Path(rota.store.__file__).parent
ONLY_THERE = {
    "end_waits_for": {"runs/end.py"},
    "signal_ends": {"alerts/emit_signal.py"},
    "end_each": {"runs/end.py", "runs/cancel.py"},
    "release(": {"runs/end.py", "runs/dependencies.py", "limits/strays.py"},
    "slots.leave(": {"runs/end.py", "limits/strays.py"},
    # SQLite has no statement that ends runs and writes their signals at once.
    "emit_signal.tell(": {"runs/end.py", "databases/sqlite/sqlite_hot.py"},
}
"""What ends bring about, and the modules that may say so."""


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(STORE.rglob("*.py")):
        yield path.relative_to(STORE).as_posix(), path.read_text()


@pytest.mark.parametrize("call", ONLY_THERE)
def test_what_an_end_brings_about_is_said_in_one_place(call: str) -> None:
    calls = re.compile(rf"(await |\"){re.escape(call)}")
    assert {name for name, text in modules() if calls.search(text)} == ONLY_THERE[call]
