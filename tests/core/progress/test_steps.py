"""Steps: declarations, and the states derived for steps that were not recorded."""

from datetime import timedelta
from typing import Any

import pytest

from rota.core.progress.notes import Progress, hundredths, level_name, progress_of, storable
from rota.core.progress.steps import (
    MOST_STEPS,
    Step,
    StepDefinition,
    StepOption,
    StepState,
    definition_of,
    in_order,
    kept_of,
    left_open,
    number_of,
    share_of,
    steps_of,
)
from rota.core.states import FENCES, Outcome, RunState
from rota.errors import Invalid, UnknownOption, UnknownStep


def test_ids_or_dicts() -> None:
    given: list[StepOption] = [
        "fetch",
        {"id": "parse", "name": "Parse", "timeout": "1m", "cancelable": False},
        StepDefinition("store"),
    ]
    assert steps_of(given) == (
        StepDefinition("fetch"),
        StepDefinition("parse", "Parse", timedelta(minutes=1), False),
        StepDefinition("store"),
    )
    assert steps_of(None) == ()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (["a", "a"], Invalid, "declared twice"),
        ("fetch", Invalid, "steps are a list"),
        ({"id": "fetch"}, Invalid, "steps are a list"),
        ([""], Invalid, "step id must be text"),
        (["x" * 201], Invalid, "step id must be text"),
        ([{"name": "A"}], Invalid, "needs an id"),
        ([{"id": "a", "timeout": "0s"}], Invalid, "longer than zero"),
        ([{"id": "a", "cancelable": "no"}], Invalid, "true or false"),
        ([{"id": "a", "cancellable": False}], UnknownOption, "did you mean 'cancelable'"),
        ([str(number) for number in range(MOST_STEPS + 1)], Invalid, "at most 1000"),
    ],
)
def test_what_is_refused(given: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        steps_of(given)


def test_a_job_that_declares_steps_has_no_others() -> None:
    declared = steps_of(["fetch", "parse"])
    assert definition_of(declared, "parse") is declared[1]
    with pytest.raises(UnknownStep, match="did you mean 'parse'"):
        definition_of(declared, "pars")
    assert definition_of((), "anything") == StepDefinition("anything")


@pytest.mark.parametrize(
    ("attempt", "run", "state"),
    [
        (Outcome.CANCELLED, RunState.CANCELLED, StepState.CANCELLED),
        (Outcome.LOST, RunState.CANCELLED, StepState.CANCELLED),
        (Outcome.LOST, None, StepState.PENDING),
        (Outcome.HANDED_BACK, None, StepState.PENDING),
        (Outcome.SNOOZED, None, StepState.PENDING),
        (Outcome.FAILED, None, StepState.FAILED),
        (Outcome.LOST, RunState.EXPIRED, StepState.FAILED),
        (Outcome.TIMED_OUT, RunState.TIMED_OUT, StepState.FAILED),
        (None, RunState.SUCCEEDED, StepState.FAILED),
    ],
)
def test_what_becomes_of_a_step_that_was_left_open(
    attempt: Outcome | None, run: RunState | None, state: StepState
) -> None:
    assert left_open(attempt, run) is state


@pytest.mark.parametrize(
    ("declared", "recorded", "from_step", "kept"),
    [
        ("", "abc", None, "abc"),
        ("", "abc", "a", ""),
        ("", "abc", "c", "ab"),
        ("abcd", "abc", None, "abc"),
        ("abcd", "ab", "d", "ab"),  # never reached
        ("abcd", "ab", "c", "ab"),
        ("abcd", "ba", "b", "a"),  # opened in another order than declared
        ("abcd", "", "d", ""),
        ("abcd", "abx", "c", "ab"),  # an older version of the job had that one
    ],
)
def test_what_a_retry_keeps(declared: str, recorded: str, from_step: str | None, kept: str) -> None:
    assert kept_of(steps_of(list(declared)), list(recorded), from_step) == list(kept)


@pytest.mark.parametrize(("declared", "recorded"), [("", "abc"), ("abc", "ab"), ("abc", "abd")])
def test_a_retry_from_an_unknown_step(declared: str, recorded: str) -> None:
    with pytest.raises(UnknownStep):
        kept_of(steps_of(list(declared)), list(recorded), "d" if not declared or "d" not in recorded else "e")


def test_later_attempts_number_their_steps_behind_earlier_ones() -> None:
    numbers = [number_of(fence, count) for fence in (1, 2, 3) for count in (1, MOST_STEPS, 2 * MOST_STEPS)]
    assert numbers == sorted(set(numbers))


def test_steps_of_a_later_epoch_come_behind_and_their_numbers_fit() -> None:
    fences = [
        1,
        199_999,
        200_001,
        FENCES,
        FENCES + 20_000,
        2 * FENCES,
        56 * FENCES,
        56 * FENCES + 20_000,
        2_000 * FENCES,
    ]
    numbers = [number_of(fence, count) for fence in fences for count in (1, 2 * MOST_STEPS)]
    assert numbers == sorted(set(numbers))
    assert number_of(2**31 - 1, 2 * MOST_STEPS) < 2**31


def test_declared_ones_come_first() -> None:
    declared = steps_of(["a", {"id": "b", "name": "B"}])
    opened = {id: Step(id=id, name="", state=StepState.SUCCEEDED) for id in ("z", "b")}
    assert [(step.id, step.name, step.state.value) for step in in_order(declared, opened, over=False)] == [
        ("a", "", "pending"),
        ("b", "B", "succeeded"),
        ("z", "", "succeeded"),
    ]
    assert in_order(declared, {}, over=True)[0].state is StepState.SKIPPED


def test_a_share_of_steps() -> None:
    steps = [
        Step(id="a", name="", state=StepState.SUCCEEDED, attempt=1),
        Step(id="b", name="", state=StepState.RUNNING, attempt=1, percentage=50.0),
        Step(id="c", name="", state=StepState.PENDING),
    ]
    assert share_of(steps) == 50.0
    assert share_of([]) is None


def test_what_a_run_says_counts_more_than_its_steps() -> None:
    steps = [
        Step(id="a", name="", state=StepState.SUCCEEDED, attempt=1),
        Step(id="b", name="", state=StepState.PENDING),
    ]
    assert progress_of(None, steps, RunState.RUNNING).percentage == 50.0
    said = Progress(percentage=10.0, summary="so far", at=None)
    assert progress_of(said, steps, RunState.RUNNING).percentage == 10.0
    assert progress_of(said, steps, RunState.SUCCEEDED).percentage == 100.0
    assert progress_of(None, [], RunState.FAILED).percentage is None


@pytest.mark.parametrize(("percentage", "done"), [(0, 0), (100, 10_000), (33.333, 3_333), (0.004, 0), (99.999, 10_000)])
def test_progress_in_hundredths(percentage: float, done: int) -> None:
    assert hundredths(percentage) == done


@pytest.mark.parametrize(
    ("level", "name"), [(5, "debug"), (20, "info"), (25, "info"), (30, "warning"), (99, "critical")]
)
def test_levels(level: int, name: str) -> None:
    assert level_name(level) == name


def test_text_that_can_be_stored() -> None:
    assert storable("a\x00b\ud800", 100) == "a�b?"
    assert storable("x" * 101, 100) == "x" * 100 + "… (1 more characters)"
    assert storable(7, 10) == "7"
