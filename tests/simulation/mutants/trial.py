"""Runs in a process of its own, over the rota in a given folder: seed after seed, until one finds something wrong."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

import rota
from tests.simulation.script.generator import draw
from tests.simulation.world.backends import Backend, open_backend
from tests.simulation.world.world import World

LONGEST_WORLD = 30.0
"""Seconds of computing that one world may take: a bug may be that rota never rests, and virtual time stands still."""


class Catch(msgspec.Struct, frozen=True):
    """What a seed brought to light."""

    seed: int
    promise: str
    message: str


def in_order(seeds: Sequence[int], first: Collection[str]) -> list[int]:
    """Those of some themes, and then the others."""
    return sorted(seeds, key=lambda seed: (draw(seed).theme not in first, seed))


def hunt(seeds: Iterable[int], backend: Backend) -> Catch | None:
    asked_by = os.getppid()
    for seed in seeds:
        if os.getppid() != asked_by:
            raise SystemExit("nobody waits for the answer any more")
        _give_up_on(seed)
        caught = _try(seed, backend)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if caught is not None:
            return caught
    return None


def _try(seed: int, backend: Backend) -> Catch | None:
    try:
        violation = World(draw(seed), backend).run().violation
    except Exception as error:  # a state of the database that even the observer cannot make sense of
        return Catch(seed, "none: crashed", f"{type(error).__name__}: {error}".partition("\n")[0])
    return Catch(seed, violation.promise, violation.message.partition("\n")[0]) if violation else None


def _give_up_on(seed: int) -> None:
    def stop(_signal: int, _frame: object) -> None:
        tell(Catch(seed, "none: hung", f"the world of seed {seed} does not end"))
        os._exit(0)

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_WORLD)


def tell(caught: Catch | None) -> None:
    sys.stdout.write(msgspec.json.encode(caught).decode() + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the rota is that is to be tried")
    parser.add_argument("seeds", help="how many, from 0; or a list with commas, ending in one")
    parser.add_argument("--first", default="", help="themes, with commas: of all these seeds, those are tried first")
    asked = parser.parse_args()
    found = Path(rota.__file__).resolve()
    if not found.is_relative_to(asked.folder.resolve()):
        raise SystemExit(f"this is the rota in {found.parent}, not the one in {asked.folder}")
    listed = [int(seed) for seed in asked.seeds.split(",") if seed]
    seeds = listed if "," in asked.seeds else list(range(listed[0]))
    tell(hunt(in_order(seeds, asked.first.split(",")), open_backend(None)))


if __name__ == "__main__":
    main()
