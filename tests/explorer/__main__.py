"""Explore transactions inside each other: pairs of operations, every order of their statements, on PostgreSQL.

pairs    all pairs of operations of a scene, or of all scenes
triples  the chosen triples, with one preemption less
faults   planted faults, each of which has to be found
one      one pair or triple, or one order of it as a finding prints it
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rota.store import Store, open_database
from tests.explorer.explorer import Explored, explorer_on
from tests.explorer.faults import FAULTS, found
from tests.explorer.rest import tally
from tests.explorer.scenes.catalogue import SCENES, pairs
from tests.support.databases.postgres import PostgresCluster


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="explore", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("pairs", "triples"):
        many = commands.add_parser(name)
        many.add_argument("scenes", nargs="*", help=", ".join(SCENES))
        many.add_argument("--preemptions", type=int, default=2 if name == "pairs" else 1)
        many.add_argument("--most", type=int, help="stop after so many plays of each")
    one = commands.add_parser("one")
    one.add_argument("scene", choices=list(SCENES))
    one.add_argument("operations", nargs="+")
    one.add_argument("--order", help="a letter for each step")
    one.add_argument("--preemptions", type=int, default=2)
    one.add_argument("--first", action="store_true", help="stop at the first finding")
    one.add_argument("--database-url", help="use this database; everything in it is deleted")
    commands.add_parser("faults", help="planted faults, each of which has to be found")
    arguments = parser.parse_args()
    if arguments.command == "one" and arguments.database_url:
        return asyncio.run(one_meeting(arguments.database_url, arguments))
    with database() as url:
        if arguments.command == "faults":
            return planted(url)
        if arguments.command == "one":
            return asyncio.run(one_meeting(url, arguments))
        chosen = [
            (scene, names)
            for scene in arguments.scenes or SCENES
            for names in (pairs(SCENES[scene]) if arguments.command == "pairs" else SCENES[scene].triples)
        ]
        return asyncio.run(many_meetings(url, chosen, arguments.preemptions, arguments.most))


async def many_meetings(
    url: str, chosen: Sequence[tuple[str, tuple[str, ...]]], preemptions: int, most: int | None
) -> int:
    total, began, failed = 0, time.monotonic(), 0
    explorer = await explorer_on(url)
    for scene, names in chosen:
        await explorer.enter(SCENES[scene])
        result = await explorer.explore(names, preemptions, most=most)
        total += result.plays
        failed += bool(result.findings)
        print(f"{scene}: {' × '.join(names)}: {summary(result)}", flush=True)
        for finding in result.findings.values():
            print(f"  {finding}", flush=True)
    await explorer.close()
    print(f"{len(chosen)} meetings, {total} plays, {failed} with findings, in {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


async def one_meeting(url: str, arguments: argparse.Namespace) -> int:
    explorer = await explorer_on(url)
    await explorer.enter(SCENES[arguments.scene])
    if arguments.order is None:
        result = await explorer.explore(arguments.operations, arguments.preemptions, first=arguments.first)
        findings = list(result.findings.values())
        print(summary(result))
    else:
        played, findings = await explorer.replay(arguments.operations, arguments.order)
        for who, what in played.steps:
            print(f"{who}  {what}")
        for answer in played.answers:
            print(f"-> {answer!r}")
    for finding in findings:
        print(finding)
    await explorer.close()
    return 1 if findings else 0


def planted(url: str) -> int:
    missed = 0
    for fault in FAULTS:
        printed = found(fault, url)
        seen = f"{fault.shows}:" in printed
        missed += not seen
        print(f"{'found' if seen else 'MISSED'}: {fault.name}", flush=True)
        if not seen:
            print(printed)
    return 1 if missed else 0


def summary(result: Explored) -> str:
    told = f"{result.plays} plays, {result.serial} serial ends, {result.blocked} with a wait, {result.seconds:.1f} s"
    return told + (f"; late: {tally(result.late)}" if result.late else "") + ("" if result.whole else "; not all")


@contextmanager
def database() -> Iterator[str]:
    """Make a database with tables, on a PostgreSQL that ends with the block."""
    with PostgresCluster(settings={"autovacuum": "off"}) as cluster:
        url = cluster.create_database()
        asyncio.run(_migrate(url))
        yield url


async def _migrate(url: str) -> None:
    store = Store(open_database(url))
    await store.migrate()
    await store.close()


if __name__ == "__main__":
    sys.exit(main())
