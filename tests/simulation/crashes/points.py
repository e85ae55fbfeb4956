"""Crash points: small worlds, each run again and again with one operation on the database struck, each in turn.

A scenario is first run as it is, and its operations are counted, for each process: from the first thing that happens
in it (how engines start is a scenario of its own) until faults are over. Then one world for each point: an operation
and what befalls it. Up to its blow a world is the same as the first one.

Which points there are. An operation that wrote is met by every blow: the process dies before it or after it, its answer
gets lost and the caller is told, or the driver asks again, or it is refused. An operation that wrote nothing (a look, a
claim of an empty queue) leaves the same database before and after, so that of these blows only two differ: death and
refusal. They befall the first of its kind in each process: the others are the same look at another time.

    python -m tests.simulation.crashes [--database-url postgresql://…] [--point engine-1:7:crash_after] [scenario …]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from tests.simulation.checks.checker import Violation
from tests.simulation.crashes.catalogue import SCENARIOS
from tests.simulation.crashes.scenario import Scenario
from tests.simulation.crashes.world import CrashWorld, Operation
from tests.simulation.script.entries import Script, Strike
from tests.simulation.world.backends import Backend, open_backend
from tests.simulation.world.gate import BLOWS, Blow

WRITING = BLOWS
LOOKING: tuple[Blow, ...] = ("crash_before", "refused")
LOOKS_STRUCK = 1
_SEED = 1
_NOON = 1_893_499_200_000_000
_DISTANCE = 0.2
_NOBODY = "nobody"


class Point(msgspec.Struct, frozen=True):
    """The n-th operation of a process, and what befalls it."""

    process: str
    number: int
    befalls: Blow

    def __str__(self) -> str:
        return f"{self.process}:{self.number}:{self.befalls}"

    @classmethod
    def parse(cls, text: str) -> Point:
        process, number, befalls = text.split(":")
        return msgspec.convert({"process": process, "number": int(number), "befalls": befalls}, cls)


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One world: `operation` is what was struck."""

    scenario: str
    point: Point | None
    operation: Operation | None
    violation: Violation | None
    history: list[str]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """`missing`: what the scenario is about, and was not struck while it wrote."""

    scenario: str
    operations: int
    points: int
    writes_struck: int
    violations: list[Trial]
    missing: list[str]
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.violations and not self.missing


def world_of(scenario: Scenario, backend: Backend, point: Point | None) -> CrashWorld:
    """Without a point somebody else is struck, so that nothing but the blow makes a difference."""
    befalls = point.befalls if point else "refused"
    strike = Strike(0.0, point.process if point else _NOBODY, befalls, point.number if point else 0)
    script = Script(
        seed=_SEED,
        engines=scenario.engines,
        offsets=[0.0] * scenario.engines,
        distance=_DISTANCE,
        start=_NOON,
        span=scenario.span,
        entries=[strike, *scenario.entries],
    )
    return CrashWorld(script, backend)


def try_point(
    scenario: Scenario, backend: Backend, point: Point | None, expected: str | None = None
) -> tuple[Trial, CrashWorld]:
    """`expected`: the operation at this point in the world without blows."""
    world = world_of(scenario, backend, point)
    outcome = world.run()
    struck = [one for one in world.seen if point and (one.process, one.number) == (point.process, point.number)]
    operation = struck[0] if struck else None
    if point:
        assert operation is not None, f"{scenario.name}: {point} was never reached"
        assert expected in (None, operation.name), f"{scenario.name}: {point} struck {operation.name}, not {expected}"
        twice = point.befalls == "repeated" and operation.repeatable
        assert not twice or operation.times >= 2, f"{scenario.name}: {point} was not done again"
    violation = outcome.violation
    if violation is None:
        broken = next(scenario.promise(world), None)
        violation = None if broken is None else Violation(scenario.name, broken, world.loop.time())
    trial = Trial(
        scenario=scenario.name, point=point, operation=operation, violation=violation, history=outcome.history
    )
    return trial, world


def of_interest(scenario: Scenario, world: CrashWorld) -> list[Operation]:
    began = scenario.entries[0].at
    return [operation for operation in world.seen if operation.at >= began]


def points_of(operations: Sequence[Operation]) -> Iterator[tuple[Point, Operation]]:
    looks: Counter[str] = Counter()
    for operation in operations:
        looks[operation.kind] += not operation.wrote
        if operation.wrote:
            chosen = [one for one in WRITING if one != "repeated" or operation.repeatable]
        else:
            chosen = list(LOOKING) if looks[operation.kind] <= LOOKS_STRUCK else []
        for befalls in chosen:
            yield Point(operation.process, operation.number, befalls), operation


def enumerate_points(scenario: Scenario, backend: Backend, every: int = 1) -> Result:
    """`every`: only each so many-th point."""
    began = time.perf_counter()
    calm, world = try_point(scenario, backend, None)
    operations = of_interest(scenario, world)
    points = list(points_of(operations))[::every]
    trials = [calm] if calm.violation else [calm, *(_struck(scenario, backend, *point) for point in points)]
    kinds = {operation.kind for _, operation in points if operation.wrote}
    return Result(
        scenario=scenario.name,
        operations=len(operations),
        points=len(trials) - 1,
        writes_struck=0 if calm.violation else sum(operation.wrote for _, operation in points),
        violations=[trial for trial in trials if trial.violation],
        missing=[subject for subject in scenario.subjects if not any(_is(kind, subject) for kind in kinds)],
        seconds=time.perf_counter() - began,
    )


def _struck(scenario: Scenario, backend: Backend, point: Point, operation: Operation) -> Trial:
    return try_point(scenario, backend, point, operation.name)[0]


def _is(kind: str, subject: str) -> bool:
    """A subject names a process or how its name begins, and an operation: `engine Store.reap`."""
    (process, name), (whose, wanted) = kind.split(), subject.split()
    return process.startswith(whose) and name == wanted


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.crashes", description=__doc__.partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help=f"all, or some of: {', '.join(SCENARIOS)}")
    parser.add_argument("--database-url", help="a PostgreSQL database that may be emptied; SQLite if not given")
    parser.add_argument("--point", help="only this one, with its history")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.scenarios if name not in SCENARIOS]:
        parser.error(f"no such scenario: {', '.join(unknown)}")
    if chosen.point and len(chosen.scenarios) != 1:
        parser.error("a point is of one scenario: name it")
    scenarios = [SCENARIOS[name] for name in chosen.scenarios or SCENARIOS]
    backend = open_backend(chosen.database_url)
    try:
        if chosen.point:
            return _show(scenarios[0], backend, Point.parse(chosen.point))
        return _tabulate(scenarios, backend)
    finally:
        backend.close()


def _show(scenario: Scenario, backend: Backend, point: Point) -> int:
    trial, _ = try_point(scenario, backend, point)
    print("\n".join(trial.history))
    print(trial.violation or "no promise was broken")
    return int(trial.violation is not None)


def _tabulate(scenarios: Sequence[Scenario], backend: Backend) -> int:
    width = max(len(scenario.name) for scenario in scenarios)
    print(f"{'scenario':{width}} operations  points  writes struck  violations  seconds")
    results = []
    for scenario in scenarios:
        one = enumerate_points(scenario, backend)
        results.append(one)
        counts = f"{one.operations:10} {one.points:7} {one.writes_struck:14} {len(one.violations):11}"
        print(f"{one.scenario:{width}} {counts} {one.seconds:8.1f}", flush=True)
        for subject in one.missing:
            print(f"  never struck while it wrote: {subject}")
    operations, points, writes = (
        sum(getattr(one, what) for one in results) for what in ("operations", "points", "writes_struck")
    )
    broken = [trial for one in results for trial in one.violations]
    seconds = sum(one.seconds for one in results)
    print(f"{'all':{width}} {operations:10} {points:7} {writes:14} {len(broken):11} {seconds:8.1f}")
    for trial in broken:
        print(f"\n{trial.violation}\nagain: {_reproducer(trial, backend)}", *trial.history, sep="\n  ")
    return int(not all(one.passed for one in results))


def _reproducer(trial: Trial, backend: Backend) -> str:
    database = " --database-url …" if backend.dialect.name == "postgres" else ""
    point = f" --point {trial.point}" if trial.point else ""
    return f"python -m tests.simulation.crashes{database}{point} {trial.scenario}"
