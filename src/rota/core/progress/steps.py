"""Steps: the checkpointed parts of a run, as declared and with their state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from rota.core.states import FENCES, Outcome, RunState
from rota.errors import Invalid, UnknownOption, UnknownStep
from rota.values.names import checked_name, checked_timeout

MOST_STEPS = 1_000


class StepState(StrEnum):
    """State of a step."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


STEP_STATE_WORDS: dict[StepState, str] = {
    StepState.PENDING: "not begun; or its attempt was lost, snoozed or handed back, and the next attempt runs it",
    StepState.RUNNING: "open in the current attempt",
    StepState.SUCCEEDED: "done; its result is kept for later attempts",
    StepState.FAILED: "it raised, exceeded its timeout, or its attempt failed while it was open",
    StepState.SKIPPED: "`ctx.skip_step(…)` skipped it; or the run ended before it began",
    StepState.CANCELLED: "it was open when its run was cancelled",
}
RECORDED = frozenset(StepState) - {StepState.PENDING}
"""States that an attempt records; a step without a record is pending."""


class StepDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Declared step; one that is not `cancelable` finishes before a cancel takes effect."""

    id: str
    name: str = ""
    timeout: timedelta | None = None
    cancelable: bool = True
    """Whether a cancel interrupts it."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Step of a run; `kept_from`: the earlier run that completed it, of which this run is a retry."""

    id: str
    """Id of the step."""
    name: str
    """Name of the step, for people."""
    state: StepState
    """State of the step."""
    attempt: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    percentage: float | None = None
    summary: str | None = None
    result: Any = None
    error: Any = None
    kept_from: str | None = None
    """The earlier run that did it, of which this one is a retry."""


StepOption = str | dict[str, Any] | StepDefinition


def steps_of(options: Iterable[StepOption] | None) -> tuple[StepDefinition, ...]:
    """Parse `@app.job(steps=…)`: ids, or dicts of `id, name, timeout, cancelable`."""
    if isinstance(options, str | Mapping):
        raise Invalid("steps are a list", hint=f"write steps=[{options!r:.40}]")
    steps = tuple(_step_of(option) for option in options or ())
    ids = [step.id for step in steps]
    for id in ids:
        if ids.count(id) > 1:
            raise Invalid(f"step {id!r} is declared twice")
    if len(steps) > MOST_STEPS:
        raise Invalid(f"a job has at most {MOST_STEPS} steps, not {len(steps)}")
    return steps


def _step_of(value: StepOption) -> StepDefinition:
    if isinstance(value, StepDefinition):
        return value
    if isinstance(value, str):
        return StepDefinition(checked_name(value, "step id"))
    fields = StepDefinition.__struct_fields__
    for option in value:
        if option not in fields:
            raise UnknownOption(option, fields, where="a step")
    if "id" not in value:
        raise Invalid("a step needs an id", hint='for example {"id": "fetch", "timeout": "1m"}')
    cancelable = value.get("cancelable", True)
    if not isinstance(cancelable, bool):
        raise Invalid(f"cancelable is true or false, not {cancelable!r}")
    timeout = value.get("timeout")
    return StepDefinition(
        checked_name(value["id"], "step id"),
        str(value.get("name", "")),
        None if timeout is None else checked_timeout(timeout),
        cancelable,
    )


def definition_of(declared: Sequence[StepDefinition], id: str) -> StepDefinition:
    """Return the step's definition; a job that declares steps has no others."""
    for step in declared:
        if step.id == id:
            return step
    if declared:
        raise UnknownStep(id, [step.id for step in declared])
    return StepDefinition(checked_name(id, "step id"))


def number_of(fence: int, count: int) -> int:
    """Return the sort number of a step: those of a later attempt come after all earlier ones.

    It fits into 32 bits. So fences of a later epoch, which are large, are folded into what is left above the others:
    there, attempts under fences that are close to each other share their numbers.
    """
    if fence < FENCES:
        return min(fence * _NUMBERS, _LATER_EPOCHS) + count
    return _LATER_EPOCHS + fence // _FOLDED * MOST_STEPS + min(count, MOST_STEPS - 1)


_NUMBERS = 10 * MOST_STEPS
_LATER_EPOCHS = 2_000_000_000
_FOLDED = 16_384


def kept_of(declared: Sequence[StepDefinition], recorded: Sequence[str], from_step: str | None) -> list[str]:
    """Return the steps that a retry need not repeat: all recorded ones, or those before `from_step`.

    "Before" means the declared order, else the order in which they were opened.
    """
    if from_step is None:
        return list(recorded)
    order = [step.id for step in declared] or list(recorded)
    if from_step not in order:
        raise UnknownStep(from_step, order)
    before = set(order[: order.index(from_step)])
    return [id for id in recorded if id in before]


def left_open(attempt: Outcome | None, run: RunState | None) -> StepState:
    """Return the state of a step that was running when its attempt ended; `run` is the run's final state, if any."""
    if attempt is Outcome.CANCELLED or run is RunState.CANCELLED:
        return StepState.CANCELLED
    if run is None and attempt in _NOT_ITS_FAULT:
        return StepState.PENDING
    return StepState.FAILED


_NOT_ITS_FAULT = {Outcome.LOST, Outcome.HANDED_BACK, Outcome.SNOOZED}


def in_order(declared: Sequence[StepDefinition], opened: Mapping[str, Step], *, over: bool) -> list[Step]:
    """Return declared steps in their order, then the others as opened; `over`: the run has ended."""
    absent = StepState.SKIPPED if over else StepState.PENDING
    named = [
        msgspec.structs.replace(opened[step.id], name=step.name)
        if step.id in opened
        else Step(id=step.id, name=step.name, state=absent)
        for step in declared
    ]
    ids = {step.id for step in declared}
    return named + [step for id, step in opened.items() if id not in ids]


def share_of(steps: Sequence[Step]) -> float | None:
    """Return the progress of a run in percent, derived from its steps. A step that was never reached is not done."""
    if not steps:
        return None
    over = sum(100.0 if step.state in _OVER and step.attempt else step.percentage or 0.0 for step in steps)
    return round(over / len(steps), 2)


_OVER = {StepState.SUCCEEDED, StepState.SKIPPED}
