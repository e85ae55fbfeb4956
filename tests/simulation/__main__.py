"""Show that rota keeps its promises: a simulation with a checker, crash points, planted bugs.

seeds    many worlds, drawn from seeds; `--postgres` on a PostgreSQL of its own, each compared with SQLite
seed     one of them, with everything that happened; `--keep` only these entries of its script
crashes  scenarios, with a death before and after every operation
mutants  planted bugs, each of which has to be found
all      everything, and the figures for docs/guarantees.md
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.simulation.campaign import Tally, campaign, failure_of
from tests.simulation.script.generator import draw
from tests.simulation.world.backends import open_backend
from tests.simulation.world.world import World

CORES = os.cpu_count() or 1
DISK = [f"tests/simulation/tests/test_{name}.py" for name in ("power_cuts", "full_disk", "statement_crashes")]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="simulate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    seeds = commands.add_parser("seeds", help="many worlds, drawn from seeds")
    seeds.add_argument("--count", type=int, default=2_000)
    seeds.add_argument("--start", type=int, default=0, help="the first seed")
    seeds.add_argument("--jobs", type=int, default=CORES)
    seeds.add_argument("--postgres", action="store_true")
    seed = commands.add_parser("seed", help="one world, told in full")
    seed.add_argument("seed", type=int)
    seed.add_argument("--keep", help="places of the entries of its script, such as 0,3,7; or none")
    seed.add_argument("--postgres", action="store_true")
    for name in ("crashes", "mutants", "all"):
        commands.add_parser(name, add_help=name == "all")
    arguments, rest = parser.parse_known_args()
    if rest and arguments.command not in ("crashes", "mutants"):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if arguments.command == "seeds":
        return many(arguments.start, arguments.count, arguments.jobs, postgres=arguments.postgres)
    if arguments.command == "seed":
        return one(arguments.seed, arguments.keep, postgres=arguments.postgres)
    if arguments.command == "all":
        return everything()
    return module(arguments.command, *rest)


def many(start: int, count: int, jobs: int, *, postgres: bool) -> int:
    tally, told = Tally(), 0
    with databases(jobs if postgres else 0) as urls:
        for tally in campaign(range(start, start + count), jobs, urls or None, compare=postgres):
            if sys.stderr.isatty():
                print(f"\r{tally.seeds:,} of {count:,} seeds", end="", file=sys.stderr, flush=True)
            for failure in tally.failures[told:]:
                print(f"\n{failure}\n", flush=True)
            told = len(tally.failures)
    print(f"{'PostgreSQL' if postgres else 'SQLite'}: {tally} in {tally.seconds:.0f} s")
    if postgres:
        print(f"seeds that went otherwise than on SQLite: {len(tally.differing)}")
    for difference in tally.differing:
        print(difference)
    return 1 if tally.failures or tally.differing else 0


def one(seed: int, keep: str | None, *, postgres: bool) -> int:
    script = draw(seed)
    if keep is not None:
        script = script.kept([] if keep == "none" else [int(place) for place in keep.split(",")])
    with databases(1 if postgres else 0) as urls:
        backend = open_backend(urls[0] if urls else None)
        outcome = World(script, backend).run()
        print(f"theme: {script.theme}")
        for place, entry in enumerate(script.entries):
            print(f"entry {place}: {entry}")
        print("\n".join(outcome.history))
        if outcome.violation and keep is None:
            print(f"shorter: {failure_of(seed, backend, outcome, postgres=postgres).reproducer}")
        backend.close()
    print(outcome.violation or f"every promise is kept: {outcome.ends}")
    return 1 if outcome.violation else 0


def everything() -> int:
    codes = [many(0, 100_000, CORES, postgres=False), many(0, 5_000, CORES, postgres=True), module("crashes")]
    with databases(1) as (url,):
        codes.append(module("crashes", "--database-url", url))
    codes.append(module("mutants"))
    codes.append(python("pytest", "-q", *DISK))
    return max(codes)


def module(name: str, *arguments: str) -> int:
    return python(f"tests.simulation.{name}", *arguments)


def python(name: str, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", name, *arguments], check=False).returncode


@contextmanager
def databases(count: int) -> Iterator[list[str]]:
    """So many empty ones, on a PostgreSQL that ends with the block."""
    if not count:
        yield []
        return
    from tests.support.databases.postgres import PostgresCluster

    with ExitStack() as stack:
        cluster = stack.enter_context(PostgresCluster())
        yield [cluster.create_database() for _ in range(count)]


if __name__ == "__main__":
    sys.exit(main())
