"""Habits that a machine can hold: tests wait for conditions, and commits say what they change and why."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Real processes take real time; in a simulation time passes at once.
REAL_OR_SIMULATED = {"system", "chaos", "endurance", "simulation"}
# `wait.py` is the one place where tests wait. The others are programs and servers that are slow on purpose.
SLOW_ON_PURPOSE = {
    "wait.py", "connection_exhaustion.py", "hostile_server.py", "isolated_jobs.py", "process_handlers.py",
    "network_proxy.py", "random_jobs.py", "system_jobs.py", "system_schedules.py",
}  # fmt: skip
SLEEPS = {"sleep", "wait_for_timeout"}

EXEMPT = "a371a4b"  # this commit and its ancestors are older than the habit
LANDED_TOO_LONG = ("1f8b16f5", "da384df4")  # 77 characters each; the history of main is not rewritten for that
LONGEST = 72
IMPERATIVES = {"Bring", "Embed", "Exceed", "Feed", "Need", "Ping", "Proceed", "Seed", "Shed", "Speed", "String"}


def sleeps(source: str) -> Iterator[int]:
    """Yield the lines that sleep; `sleep(0)` only lets other tasks go on."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            first = node.args[0] if node.args else None
            if name in SLEEPS and not (isinstance(first, ast.Constant) and first.value == 0):
                yield node.lineno


def test_no_test_sleeps() -> None:
    """Step a loop, move the clock, or wait for a condition: `tests/support/wait.py`."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.name not in SLOW_ON_PURPOSE and REAL_OR_SIMULATED.isdisjoint(path.relative_to(ROOT).parts)
        for line in sleeps(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source", ["time.sleep(1)", "await asyncio.sleep(0.1)", "sleep(n)", "page.wait_for_timeout(9)"]
)
def test_a_sleep_is_found(source: str) -> None:
    assert list(sleeps(f"async def test():\n    {source}\n    await asyncio.sleep(0)")) == [2]


def complaints(message: str) -> list[str]:
    """List what is wrong with a commit's message."""
    subject, _, rest = message.partition("\n")
    first = (subject.split() or [""])[0]
    found = {
        "the subject is empty": not subject.strip(),
        f"the subject is longer than {LONGEST} characters": len(subject) > LONGEST,
        "the subject ends with a full stop": subject.endswith("."),
        "the subject is not in the imperative": first.endswith(("ing", "ed")) and first not in IMPERATIVES,
        "the second line is not empty": not rest.startswith("\n") and bool(rest.strip()),
        "there is no body that says why": not rest.strip(),
    }
    return [complaint for complaint, holds in found.items() if holds]


def commits() -> Iterator[tuple[str, str]]:
    """Yield each commit since the habit began, and its message; none where there is no history, as in an sdist."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return
    command = [git, "log", "--no-merges", "--format=%h%n%B%x00", f"{EXEMPT}..HEAD"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    for entry in told.stdout.split("\0"):  # nothing in a clone that is too shallow to know the first
        name, _, message = entry.strip().partition("\n")
        if name and not name.startswith(LANDED_TOO_LONG):
            yield name, message


def test_commits_say_what_they_change_and_why() -> None:
    found = [f"{name} {message.partition(chr(10))[0]}: {'; '.join(wrong)}" for name, message in commits()
             if (wrong := complaints(message))]  # fmt: skip
    assert found == []


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("Re-check a silent query after 4 s\n\nA dead server answers nothing.", None),
        ("Bring the hint back\n\nIt was lost.", None),
        ("Re-check a silent query after 4 s", "no body"),
        ("Re-check a silent query after 4 s.\n\nWhy.", "full stop"),
        ("Fixing the reaper\n\nWhy.", "imperative"),
        ("Fixed the reaper\n\nWhy.", "imperative"),
        (f"Fix {'x' * LONGEST}\n\nWhy.", "longer than 72"),
        ("Fix the reaper\nWhy.", "second line"),
        ("\n\nWhy.", "empty"),
    ],
)
def test_a_message_is_judged(message: str, complaint: str | None) -> None:
    found = complaints(message)
    assert [complaint in one for one in found] == [True] if complaint else found == []
