"""Steps that the model of planning allows, projected to what an observer of the database sees of one schedule."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent
MODEL, STEPS = FOLDER / "Planner.tla", FOLDER / "planner_steps.json"

_EDGE = re.compile(r'^(-?\d+) -> (-?\d+) \[label="(\w*)"')
_NODE = re.compile(r'^(-?\d+) \[label="(.*)"', re.DOTALL)
_NUMBER = re.compile(r"(cursor|next|rev|open) \|-> (\d+)")
_BEGUN = re.compile(r"begun \|-> <<([\d, ]*)>>")
_RUN = re.compile(r"<<\d+, \d+, \D")  # unlike `begun`, it names who made it


class Planned(msgspec.Struct, frozen=True):
    """A schedule at a commit. `owed`: plan times up to the cursor that were named; `answers`: what stands for some.

    `begun`: when each revision began. `next_plan`: None if nothing comes.
    """

    cursor: int
    next_plan: int | None
    begun: tuple[int, ...]
    owed: int
    answers: int


class PlannerStep(msgspec.Struct, frozen=True, order=True, array_like=True):
    """`answers`: whether as many come as are owed more: "none", "all", "fewer" or "more"."""

    cursor: str
    revision: str
    answers: str
    next_plan: str

    def __str__(self) -> str:
        return f"the cursor {self.cursor}, revision {self.revision}, answers {self.answers}, next plan {self.next_plan}"


class PlannerRelation(msgspec.Struct, frozen=True):
    """`model`: digest of the model that it was made from. `actions`: which of its actions make a step."""

    model: str
    steps: list[PlannerStep]
    actions: list[list[str]]


def step(before: Planned | None, after: Planned) -> PlannerStep | None:
    """Return what a commit did to a schedule; None if nothing that the model knows."""
    revisions: tuple[int, ...] = before.begun if before else ()
    if before is None:
        cursor, owed, answers = "begins", after.owed, after.answers
    else:
        grows = after.cursor > before.cursor
        cursor = "stays" if after.cursor == before.cursor else "grows" if grows else "falls"
        owed, answers = after.owed - before.owed, after.answers - before.answers
        if after == before:
            return None
    came = "none" if owed == answers == 0 else "all" if owed == answers else "more" if answers > owed else "fewer"
    return PlannerStep(cursor, _revision(revisions, after), came, _next_plan(after))


def _revision(before: tuple[int, ...], after: Planned) -> str:
    """A new one begins where everything before it is decided. Two may begin at once, as if one after the other."""
    if after.begun == before:
        return "stays"
    if after.begun[: len(before)] != before or len(after.begun) < len(before):
        return "is rewritten"
    begins = set(after.begun[len(before) :])
    return "begins at the cursor" if begins == {after.cursor} else "begins elsewhere"


def _next_plan(after: Planned) -> str:
    if after.next_plan is None:
        return "never"
    return "after the cursor" if after.next_plan > after.cursor else "not after the cursor"


def digest() -> str:
    return hashlib.sha256(MODEL.read_bytes()).hexdigest()


@cache
def allowed() -> frozenset[PlannerStep]:
    return frozenset(msgspec.json.decode(STEPS.read_bytes(), type=PlannerRelation).steps)


def steps_of(graph: str) -> Iterator[tuple[PlannerStep, str]]:
    """Read steps, with the action of each, from a graph of states as TLC writes it."""
    schedules: dict[str, Planned | None] = {}
    edges = set[tuple[str, str, str]]()
    for line in graph.splitlines():
        if edge := _EDGE.match(line):
            edges.add((edge[1], edge[2], edge[3]))
        elif node := _NODE.match(line):
            schedules[node[1]] = _schedule(node[2])
    for source, target, action in edges:
        after = schedules[target]
        if after is not None and (made := step(schedules[source], after)) is not None:
            yield made, action


def _schedule(label: str) -> Planned | None:
    """Read a state. Of the plan times owed, the model says itself how many there are."""
    record = label[label.index("db = [") : label.index("]", label.index("db = ["))].replace("\\n", " ")  # long lines
    numbers = {name: int(number) for name, number in _NUMBER.findall(record)}
    if not numbers["rev"]:
        return None
    found = _BEGUN.search(record)
    begun = tuple(int(at) for at in found[1].split(",")) if found else ()
    owed = _owed(numbers["cursor"], begun, numbers["open"])
    return Planned(numbers["cursor"], numbers["next"] or None, begun, owed, len(_RUN.findall(record)))


def _owed(cursor: int, begun: tuple[int, ...], is_open: int) -> int:
    """Count what the model's revisions named up to the cursor (`Named`)."""
    ends = (*begun[1:], cursor)
    count = 0
    for revision, (begins, ends_at) in enumerate(zip(begun, ends, strict=True), 1):
        size = {1: 1, 2: 2, is_open: 2, 5: 1}.get(revision)
        count += sum(at % size == 0 for at in range(begins + 1, ends_at + 1)) if size else 0
    return count
