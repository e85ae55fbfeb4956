"""The command line of the benchmarks."""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.harness.chaos_faults import FAULTS
from benchmarks.measures import arena, chaos, http, idle, pages, queue, schedule, server
from benchmarks.peers import DRIVERS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    _add_queue(commands.add_parser("queue", help="drain, enqueue and pickup, beside the peers"))
    _add_schedule(commands.add_parser("schedule", help="fires, lateness, idle and start, cron; beside peers"))
    _add_http(commands.add_parser("http", help="HTTP jobs, beside the bare client"))
    _add_server(commands.add_parser("server", help="the API, beside its framework and its store"))
    _add_chaos(commands.add_parser("chaos", help="what is left of the rate after a fault"))
    _add_arena(commands.add_parser("arena", help="a steady rate beside queries or a transaction that take minutes"))
    _add_idle(commands.add_parser("idle", help="transactions of processes that have nothing to do"))
    _add_pages(commands.add_parser("pages", help="CPU of every answer of the API beside millions of runs"))
    _add_paint(commands.add_parser("paint", help="how soon the dashboard shows something with a million runs"))
    options = parser.parse_args()
    options.run(options)


def _add_queue(command: argparse.ArgumentParser) -> None:
    command.add_argument("--runs", type=int, default=5, help="repetitions (default 5; fewer is for trying)")
    command.add_argument("--jobs", type=int, default=100_000, help="jobs of a drain; slow peers get a share of it")
    command.add_argument("--only", type=_names(DRIVERS), help=f"contenders, of: {','.join(DRIVERS)}")
    command.add_argument("--measures", type=_names(queue.MEASURES), help=f"of: {','.join(queue.MEASURES)}")
    command.add_argument("--finished", type=int, default=1_000_000, help="finished rows of `aged` (goal: 10000000)")
    command.add_argument("--samples", type=int, default=100, help="pickups per repetition")
    command.add_argument("--seconds", type=float, default=30, help="how long `sustained` lasts")
    command.add_argument("--rate", type=int, default=20_000, help="jobs/s of `sustained`")
    command.add_argument("--json", type=Path, help="also write every repetition's figures to this file")
    command.set_defaults(run=_queue)


def _queue(options: argparse.Namespace) -> None:
    plan = queue.Plan(
        runs=options.runs,
        jobs=options.jobs,
        contenders=options.only or [name for name, driver in DRIVERS.items() if driver.batched],
        measures=options.measures or list(queue.MEASURES),
        finished=options.finished,
        samples=options.samples,
        seconds=options.seconds,
        rate=options.rate,
    )
    queue.main(plan, options.json)


def _add_schedule(command: argparse.ArgumentParser) -> None:
    command.add_argument("measures", nargs="*", help=f"of: {', '.join(schedule.MEASURES)} (default: all)")
    command.add_argument("--database", choices=("postgres", "sqlite", "both"), default="both")
    command.add_argument("--repeat", type=int, default=5, help="repetitions (default 5; fewer is for trying)")
    command.add_argument("--carried", type=int, default=1_000_000, help="schedules in the table")
    command.add_argument("--due", type=int, default=10_000, help="how many of them are due in one second")
    command.add_argument("--history", type=int, default=1, help="runs that each of them had before")
    command.add_argument("--steps", type=int, default=500, help="idle steps per repetition")
    command.add_argument("--calls", type=int, default=2_000, help="cron calls per expression and repetition")
    command.add_argument("--cases", type=int, default=2_000, help="random cron cases compared with brute force")
    command.add_argument("--json", type=Path, help="also write every repetition's figures to this file")
    command.set_defaults(run=_schedule)


def _schedule(options: argparse.Namespace) -> None:
    unknown = set(options.measures).difference(schedule.MEASURES)
    if options.history < 1:
        sys.exit("each has had a run before: a history is one run or more")
    if unknown or options.due > options.carried:
        sys.exit(f"measures are {', '.join(schedule.MEASURES)}; no more schedules can be due than are carried")
    plan = schedule.Plan(
        measures=options.measures or list(schedule.MEASURES),
        databases=["postgres", "sqlite"] if options.database == "both" else [options.database],
        repeat=options.repeat,
        carried=options.carried,
        due=options.due,
        history=options.history,
        steps=options.steps,
        calls=options.calls,
        cases=options.cases,
    )
    schedule.main(plan, options.json)


def _add_http(command: argparse.ArgumentParser) -> None:
    command.add_argument("--requests", type=int, default=10_000, help="of each repetition, in thousands")
    command.add_argument("--concurrency", type=int, default=50, help="requests at a time")
    command.add_argument("--repeat", type=int, default=5, help="repetitions (default 5; fewer is for trying)")
    command.add_argument("--json", type=Path, help="also write every repetition's figures to this file")
    command.set_defaults(run=_http)


def _http(options: argparse.Namespace) -> None:
    http.main(http.Plan(options.requests, options.concurrency, options.repeat), options.json)


def _add_server(command: argparse.ArgumentParser) -> None:
    command.add_argument("measures", nargs="*", help=f"of: {', '.join(server.MEASURES)} (default: all)")
    command.add_argument("--database", choices=(*server.DATABASES, "both"), default="both")
    command.add_argument("--repeat", type=int, default=5, help="repetitions (default 5; fewer is for trying)")
    command.add_argument("--requests", type=int, default=20_000, help="single enqueues of each repetition")
    command.add_argument("--concurrency", type=int, default=32, help="of them at a time")
    command.add_argument("--runs", type=int, default=100_000, help="enqueued in bulk")
    command.add_argument("--batch", type=int, default=500, help="of them in a request")
    command.add_argument("--rows", type=int, default=1_000_000, help="runs there are when a page is asked for")
    command.add_argument("--pages", type=int, default=1_000, help="asked for")
    command.add_argument("--clients", type=int, default=200, help="idle streams")
    command.add_argument("--seconds", type=float, default=20, help="for which they are watched")
    command.add_argument("--json", type=Path, help="also write every repetition's figures to this file")
    command.set_defaults(run=_server)


def _server(options: argparse.Namespace) -> None:
    unknown = set(options.measures).difference(server.MEASURES)
    if unknown:
        sys.exit(f"measures are {', '.join(server.MEASURES)}")
    plan = server.Plan(
        measures=options.measures or list(server.MEASURES),
        databases=list(server.DATABASES) if options.database == "both" else [options.database],
        repeat=options.repeat,
        requests=options.requests,
        concurrency=options.concurrency,
        runs=options.runs,
        batch=options.batch,
        rows=options.rows,
        pages=options.pages,
        clients=options.clients,
        seconds=options.seconds,
    )
    server.main(plan, options.json)


def _add_chaos(command: argparse.ArgumentParser) -> None:
    command.add_argument("faults", nargs="*", help=f"of: {', '.join(FAULTS)} (default: all)")
    command.add_argument("--repeat", type=int, default=3, help="repetitions")
    command.add_argument("--seconds", type=float, default=8, help="of the baseline, before each fault")
    command.add_argument("--json", type=Path, help="also write every repetition's figures to this file")
    command.set_defaults(run=_chaos)


def _chaos(options: argparse.Namespace) -> None:
    if set(options.faults).difference(FAULTS):
        sys.exit(f"faults are {', '.join(FAULTS)}")
    chaos.main(chaos.Plan(options.faults or list(FAULTS), options.repeat, options.seconds), options.json)


def _add_arena(command: argparse.ArgumentParser) -> None:
    command.add_argument("arena", choices=list(arena.ARENAS), help="who keeps PostgreSQL from cleaning up")
    command.add_argument("--only", type=_names(DRIVERS), default=["rota"], help=f"contenders, of: {','.join(DRIVERS)}")
    command.add_argument("--rate", type=int, help="jobs/s (default: 800 beside queries, 20000 beside a transaction)")
    command.add_argument("--seconds", type=float, default=600, help="how long it lasts")
    command.add_argument("--query-seconds", type=float, default=120, help="how long each query takes")
    command.add_argument("--json", type=Path, help="also write every moment's figures to this file")
    command.set_defaults(run=_arena)


def _arena(options: argparse.Namespace) -> None:
    _, rate = arena.ARENAS[options.arena]
    others = [name for name in options.only if DRIVERS[name].database != "postgresql"]
    if others:
        sys.exit(f"arenas are of PostgreSQL: {', '.join(others)} cannot take part")
    plan = arena.Plan(options.arena, options.only, options.rate or rate, options.seconds, options.query_seconds)
    arena.main(plan, options.json)


def _add_idle(command: argparse.ArgumentParser) -> None:
    command.add_argument("--processes", type=int, nargs="+", default=[1, 20], help="how many at a time (1 20)")
    command.add_argument("--seconds", type=float, default=60, help="how long they are counted")
    command.add_argument("--settle", type=float, default=20, help="how long they have to come to rest before")
    command.add_argument("--json", type=Path, help="also write the counts to this file")
    command.set_defaults(run=_idle)


def _idle(options: argparse.Namespace) -> None:
    idle.main(idle.Plan(options.processes, options.seconds, options.settle), options.json)


def _add_pages(command: argparse.ArgumentParser) -> None:
    command.add_argument("--database", choices=("postgres", "sqlite", "both"), default="both")
    command.add_argument("--rows", type=int, default=1_000_000, help="runs that wait, and as many that have ended")
    command.add_argument("--repeat", type=int, default=10, help="how often each question is asked, at most")
    command.add_argument("--only", nargs="+", default=[], help="questions, such as 'GET /queues'")
    command.add_argument("--json", type=Path, help="also write all costs to this file")
    command.set_defaults(run=_pages)


def _pages(options: argparse.Namespace) -> None:
    databases = ["postgres", "sqlite"] if options.database == "both" else [options.database]
    pages.main(pages.Plan(databases, options.rows, options.repeat, options.only), options.json)


def _add_paint(command: argparse.ArgumentParser) -> None:
    command.add_argument("--rows", type=int, default=1_000_000, help="runs in the database")
    command.add_argument("--repeat", type=int, default=5, help="visits of each page")
    command.add_argument("--json", type=Path, help="also write every visit's figures to this file")
    command.set_defaults(run=_paint)


def _paint(options: argparse.Namespace) -> None:
    from benchmarks.measures import paint  # only this one needs a browser

    paint.main(paint.Plan(options.rows, options.repeat), options.json)


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return names

    return parse


main()
