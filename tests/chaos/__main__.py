"""Breaks real processes for some minutes, and tells whether a promise was broken.

Workers, servers, producers and a PostgreSQL of their own are started; they are killed, frozen and cut off, the database
is restarted and crashes, answers to commits are lost. When everything is healed and at rest, what the database says is
compared with what handlers and producers wrote down elsewhere. A seed repeats the faults, not what they meet.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos import report
from tests.chaos.checks import judge
from tests.chaos.cluster import Plan
from tests.chaos.experiment import run_experiment
from tests.chaos.faults import POSTGRES


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="of faults; it ends a while later (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="of the faults")
    parser.add_argument("--database", choices=["sqlite", POSTGRES], default=POSTGRES)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--report", type=Path, default=Path("chaos-report"), metavar="DIR", help="(%(default)s)")
    wanted = parser.parse_args(arguments)
    plan = Plan(database=wanted.database, seed=wanted.seed, seconds=wanted.minutes * 60, workers=wanted.workers)
    return run(plan, wanted.report)


def run(plan: Plan, folder: Path) -> int:
    """The logs of all processes, the ledger and the answers are kept beside the report if there is a complaint."""
    began_at = time.monotonic()

    def say(words: str) -> None:
        print(f"{time.monotonic() - began_at:6.1f} s  {words}", flush=True)

    say(f"seed {plan.seed}")
    shutil.rmtree(folder / "left", ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="rota-chaos-") as place:
        seen = run_experiment(plan, Path(place) / "left", say)
        findings = judge(seen)
        page = report.write(folder, plan, seen, findings)
        if findings:
            shutil.copytree(Path(place) / "left", folder / "left")
    for promise, words in findings[:20]:
        say(f"{promise}: {words}")
    for name, value in report.figures(seen).items():
        say(f"{name}: {value}")
    say(report.verdict(findings))
    say(str(page))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
