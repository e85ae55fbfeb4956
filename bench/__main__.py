"""The command line of the benchmarks."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from bench import queue
from bench.peers import DRIVERS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("queue", help="drain, enqueue and pickup, beside the peers")
    command.add_argument("--runs", type=int, default=5, help="repetitions (default 5; fewer is for trying)")
    command.add_argument("--jobs", type=int, default=100_000, help="jobs of a drain; slow peers get a share of it")
    command.add_argument("--only", type=_names(DRIVERS), help=f"contenders, of: {','.join(DRIVERS)}")
    command.add_argument("--measures", type=_names(queue.MEASURES), help=f"of: {','.join(queue.MEASURES)}")
    command.add_argument("--finished", type=int, default=1_000_000, help="finished rows of `aged` (goal: 10000000)")
    command.add_argument("--samples", type=int, default=100, help="pickups per repetition")
    command.add_argument("--seconds", type=float, default=30, help="how long `sustained` lasts")
    command.add_argument("--rate", type=int, default=20_000, help="jobs/s of `sustained`")
    command.add_argument("--json", type=Path, help="also write every repetition's figures to this file")
    options = parser.parse_args()
    plan = queue.Plan(
        runs=options.runs,
        jobs=options.jobs,
        contenders=options.only or list(DRIVERS),
        measures=options.measures or list(queue.MEASURES),
        finished=options.finished,
        samples=options.samples,
        seconds=options.seconds,
        rate=options.rate,
    )
    queue.main(plan, options.json)


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return names

    return parse


main()
