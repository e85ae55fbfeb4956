"""Check the models with TLC, and write the relation that the simulation is checked with.

check     every configuration: what holds, and which planted fault breaks what
relation  write lease_steps.json and planner_steps.json anew, after a change of a model
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from tests.models import planner_relation, relation
from tests.models.configurations import CHECKED, PLANNER_RELATION, RELATION, Checked
from tests.models.planner_relation import PlannerRelation, PlannerStep
from tests.models.relation import Relation, Step
from tests.models.tlc import check


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["check", "relation"])
    parser.add_argument("words", nargs="*", help="only configurations whose names have one of these words")
    arguments = parser.parse_args()
    if arguments.command == "relation":
        return write_relations()
    chosen = [one for one in CHECKED if not arguments.words or any(word in one.name for word in arguments.words)]
    return max([_checked(one) for one in chosen])


def _checked(one: Checked) -> int:
    began = time.monotonic()
    verdict = check(one.module, one.constants, one.invariants, one.properties)
    as_expected = verdict.violated in one.breaks if one.breaks else not verdict.violated
    told = f"{verdict.violated} is broken" if verdict.violated else "holds"
    seconds = time.monotonic() - began
    print(f"{one.module}, {one.name}: {told}, {verdict.states} states, {seconds:.0f} s", flush=True)
    if not as_expected:
        print(f"UNEXPECTED, instead of {' or '.join(one.breaks) or 'nothing'}:\n{verdict.output}")
    return 0 if as_expected else 1


def write_relations() -> int:
    """Write what each model allows, of the smallest configuration that has all kinds of its steps."""
    leases = by_step(relation.steps_of(check("Lease", RELATION, draws=True).graph))
    write(relation.STEPS, Relation(relation.digest(), *leases))
    plans = by_step(planner_relation.steps_of(check("Planner", PLANNER_RELATION, draws=True).graph))
    write(planner_relation.STEPS, PlannerRelation(planner_relation.digest(), *plans))
    return 0


S = TypeVar("S", Step, PlannerStep)


def by_step(made: Iterable[tuple[S, str]]) -> tuple[list[S], list[list[str]]]:
    """Return all kinds of steps, and which actions make each."""
    actions: dict[S, set[str]] = {}
    for step, action in made:
        actions.setdefault(step, set()).add(action)
    steps = sorted(actions)
    return steps, [sorted(actions[step]) for step in steps]


def write(path: Path, told: Relation | PlannerRelation) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(told)) + b"\n")
    print(f"{len(told.steps)} kinds of steps in {path.name}")


if __name__ == "__main__":
    sys.exit(main())
