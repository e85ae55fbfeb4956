"""The gate: each planted bug in a copy of rota, each copy in a process of its own, and what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from tests.simulation.mutants.patches import Planted, plant
from tests.simulation.mutants.trial import Catch

ROOT = Path(__file__).resolve().parents[3]


class Hunted(msgspec.Struct, frozen=True):
    """`broken`: why nothing can be said, if the copy did not even run."""

    bug: Planted
    caught: Catch | None
    broken: str | None = None


class NoAnswer(Exception):
    """The hunter died."""


def try_seeds(bug: Planted | None, seeds: int | Iterable[int]) -> Catch | None:
    """One of these seeds that shows something wrong; as many as told, from 0, or those listed.

    It is the first of the bug's own themes, or the first of all the others: no seed before it need be innocent.
    """
    wanted = str(seeds) if isinstance(seeds, int) else "".join(f"{seed}," for seed in seeds)
    first = ",".join(bug.themes) if bug else ""
    with tempfile.TemporaryDirectory(prefix="rota_mutant_") as name:
        plant(bug, Path(name))
        path = os.pathsep.join((name, str(ROOT)))  # before the package as it is installed
        done = subprocess.run(
            [sys.executable, "-m", "tests.simulation.mutants.trial", name, wanted, "--first", first],
            cwd=name,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise NoAnswer(done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}")
    return msgspec.json.decode(done.stdout.rpartition("\n")[0].rpartition("\n")[2], type=Catch | None)


def hunt_one(bug: Planted, seeds: int) -> Hunted:
    try:
        return Hunted(bug, try_seeds(bug, seeds))
    except NoAnswer as error:
        return Hunted(bug, None, str(error))


def hunt_all(bugs: Sequence[Planted], seeds: int, jobs: int, done: Callable[[Hunted], None]) -> list[Hunted]:
    """In their order; `done` hears of each as soon as it is known."""

    def one(bug: Planted) -> Hunted:
        hunted = hunt_one(bug, seeds)
        done(hunted)
        return hunted

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, bugs))


def false_alarm(hunted: Iterable[Hunted]) -> Catch | None:
    """A seed that finds a bug must find nothing in rota as it is: else it is not the bug that was found."""
    seeds = sorted({one.caught.seed for one in hunted if one.caught})
    return try_seeds(None, seeds) if seeds else None
