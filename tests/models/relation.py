"""Steps that the model of a lease allows, projected to what an observer of the database sees of one run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent
MODEL, STEPS = FOLDER / "Lease.tla", FOLDER / "lease_steps.json"
GONE = "gone"
"""Where a run is that retention has deleted."""

_EDGE = re.compile(r'^(-?\d+) -> (-?\d+) \[label="(\w*)"')
_NODE = re.compile(r'^(-?\d+) \[label="(.*)"', re.DOTALL)
_FIELD = re.compile(r'(at|state|fence|attempt) \|-> (?:\\"([^\\]*)\\"|(\d+))')


class Step(msgspec.Struct, frozen=True, order=True, array_like=True):
    """`fence`: whether it stays, grows or falls. `attempts`: how many are counted more. `state` is that of an end."""

    before: str
    after: str
    fence: str
    attempts: int
    state: str = ""

    @property
    def is_still(self) -> bool:
        """Return whether nothing happens that the model knows: a lease is renewed, a run that waits becomes due."""
        return self == Step(self.before, self.before, "stays", 0)

    def __str__(self) -> str:
        counted = f", {self.attempts:+d} attempt" if self.attempts else ""
        return f"{self.before} -> {self.state or self.after}, fence {self.fence}{counted}"


class Relation(msgspec.Struct, frozen=True):
    """`model`: digest of the model that it was made from. `actions`: which of its actions make a step."""

    model: str
    steps: list[Step]
    actions: list[list[str]]


def step(before: str, after: str, fences: tuple[int, int], attempts: tuple[int, int], state: str) -> Step:
    was, now = fences
    fence = "stays" if now == was else "grows" if now > was else "falls"
    return Step(before, after, fence, attempts[1] - attempts[0], state)


def digest() -> str:
    return hashlib.sha256(MODEL.read_bytes()).hexdigest()


@cache
def allowed() -> frozenset[Step]:
    return frozenset(msgspec.json.decode(STEPS.read_bytes(), type=Relation).steps)


def steps_of(graph: str) -> Iterator[tuple[Step, str]]:
    """Read steps, with the action of each, from a graph of states as TLC writes it."""
    runs: dict[str, tuple[str, str, int, int]] = {}
    edges = set[tuple[str, str, str]]()
    for line in graph.splitlines():
        if edge := _EDGE.match(line):
            edges.add((edge[1], edge[2], edge[3]))
        elif node := _NODE.match(line):
            runs[node[1]] = _run(node[2])
    for source, target, action in edges:
        (at, _, fence, attempt), (then, state, raised, counted) = runs[source], runs[target]
        ended = state if then == "final" and at != "final" else ""
        made = step(at, then, (fence, raised), (attempt, counted), ended)
        if not made.is_still:
            yield made, action


def _run(label: str) -> tuple[str, str, int, int]:
    record = label[label.index("db = [") : label.index("]", label.index("db = ["))]
    found = {name: text or number for name, text, number in _FIELD.findall(record)}
    return found["at"], found["state"], int(found["fence"]), int(found["attempt"])
