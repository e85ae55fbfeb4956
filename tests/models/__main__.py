"""Check the models with TLC, and write the relation that the simulation is checked with.

check     every configuration: what holds, and which planted fault breaks what
relation  write lease_steps.json anew, after a change of Lease.tla
"""

from __future__ import annotations

import argparse
import sys
import time

import msgspec

from tests.models.configurations import CHECKED, RELATION, Checked
from tests.models.relation import STEPS, Relation, Step, digest, steps_of
from tests.models.tlc import check


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["check", "relation"])
    parser.add_argument("words", nargs="*", help="only configurations whose names have one of these words")
    arguments = parser.parse_args()
    if arguments.command == "relation":
        return write_relation()
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


def write_relation() -> int:
    graph = check("Lease", RELATION, draws=True).graph
    actions: dict[Step, set[str]] = {}
    for step, action in steps_of(graph):
        actions.setdefault(step, set()).add(action)
    steps = sorted(actions)
    relation = Relation(digest(), steps, [sorted(actions[step]) for step in steps])
    STEPS.write_bytes(msgspec.json.format(msgspec.json.encode(relation)) + b"\n")
    print(f"{len(steps)} kinds of steps in {STEPS.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
