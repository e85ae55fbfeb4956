"""Test lifespans of child processes: entered once in each, on a loop that stays, and left when the child ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rota.testing import Harness
from tests.support.jobs import lifespan_jobs


async def test_a_child_enters_once_and_leaves_when_the_worker_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    monkeypatch.setenv(lifespan_jobs.NOTES, str(notes))
    async with Harness(lifespan_jobs.app, concurrency=1) as harness:
        runs = [await harness.enqueue(job) for job in ("call", "call", "count")]
        await harness.drain()
        results = [(await harness.run(run)).result for run in runs]
    children = {child for child, _ in results}
    assert [calls for _, calls in results] == [1, 2, 2]
    assert len(children) == 1
    child, parent = children.pop(), os.getpid()
    assert child != parent
    assert notes.read_text().splitlines() == [
        f"{parent} enter",
        f"{child} enter",
        f"{child} leave",
        f"{parent} leave",
    ]
