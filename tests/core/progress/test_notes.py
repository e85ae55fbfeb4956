"""Progress of a run, derived from its steps."""

from __future__ import annotations

import pytest

from rota.core.progress.notes import Progress, progress_of
from rota.core.progress.steps import Step, StepDefinition, StepState, in_order, share_of
from rota.core.states import RunState

DECLARED = [StepDefinition("fetch"), StepDefinition("parse"), StepDefinition("store"), StepDefinition("tell")]


def step(id: str, state: StepState, percentage: float | None = None) -> Step:
    return Step(id=id, name="", state=state, attempt=1, percentage=percentage)


@pytest.mark.parametrize(
    ("opened", "share"),
    [
        ([], 0.0),
        ([step("fetch", StepState.SUCCEEDED, 100.0)], 25.0),
        ([step("fetch", StepState.SUCCEEDED, 100.0), step("parse", StepState.RUNNING, 50.0)], 37.5),
        ([step("fetch", StepState.SKIPPED)], 25.0),
        ([step("fetch", StepState.CANCELLED, 80.0)], 20.0),
    ],
)
@pytest.mark.parametrize("over", [False, True])
def test_what_was_never_reached_is_not_done(opened: list[Step], share: float, over: bool) -> None:
    assert share_of(in_order(DECLARED, {one.id: one for one in opened}, over=over)) == share


def test_a_run_without_steps_says_itself_how_far_it_is() -> None:
    said = Progress(percentage=40.0, summary="parsing", at=None)
    assert share_of([]) is None
    assert progress_of(said, [], RunState.RUNNING).percentage == 40.0
    assert progress_of(said, [], RunState.SUCCEEDED).percentage == 100.0
    assert progress_of(None, [], RunState.QUEUED).percentage is None
