"""The state of a job, case by case."""

from datetime import datetime
from typing import Any

import pytest

from rota.core.jobs.status import RETRIED_BY_HAND, JobFacts, JobState, job_state, resume_mode, status_of
from rota.core.states import FINAL_STATES, RunState
from rota.errors import Invalid
from rota.values.instants import instant


def facts(**given: Any) -> JobFacts:
    return JobFacts(job="work", **given)


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({}, "pending"),
        ({"ended": "succeeded"}, "completed"),
        ({"ended": "failed"}, "failed"),
        ({"ended": "timed_out"}, "failed"),
        ({"ended": "expired"}, "failed"),
        ({"ended": "cancelled"}, "pending"),
        ({"waiting": 1, "due_at": 5}, "scheduled"),
        ({"waiting": 1, "due_at": 5, "ended": "failed"}, "scheduled"),
        ({"planned_at": 5}, "scheduled"),
        ({"planned_at": 5, "ended": "succeeded"}, "scheduled"),
        ({"running": 1}, "running"),
        ({"running": 1, "waiting": 3, "planned_at": 5, "ended": "failed"}, "running"),
        ({"paused_at": 1}, "paused"),
        ({"paused_at": 1, "running": 1, "waiting": 1, "planned_at": 5, "ended": "failed"}, "paused"),
        ({"paused_at": 1, "cancelled_at": 2, "running": 1, "waiting": 1}, "cancelled"),
    ],
)
def test_the_state(given: dict[str, Any], state: str) -> None:
    assert job_state(facts(**given)) is JobState(state)


@pytest.mark.parametrize("ended", sorted(FINAL_STATES - {RunState.SKIPPED}))
def test_however_its_newest_run_ended_a_job_has_a_state(ended: RunState) -> None:
    assert job_state(facts(ended=ended.value)) in (JobState.COMPLETED, JobState.FAILED, JobState.PENDING)
    assert (ended in RETRIED_BY_HAND) == (ended is not RunState.SUCCEEDED)


@pytest.mark.parametrize(
    ("given", "next_at", "last_run_at"),
    [
        ({}, None, None),
        ({"waiting": 1, "due_at": 7, "planned_at": 5}, instant(5), None),
        ({"waiting": 1, "due_at": 3, "planned_at": 5, "began_at": 1}, instant(3), instant(1)),
        ({"running": 1, "running_since": 4, "began_at": 1}, None, instant(4)),
        ({"paused_at": 2, "waiting": 1, "due_at": 3, "planned_at": 5}, None, None),
    ],
)
def test_next_and_last(given: dict[str, Any], next_at: datetime | None, last_run_at: datetime | None) -> None:
    status = status_of(facts(**given))
    assert (status.next_at, status.last_run_at) == (next_at, last_run_at)


def test_a_pause_is_told_with_who_and_why() -> None:
    status = status_of(facts(paused_at=1, paused_by="ada", pause_reason="too loud"))
    assert (status.paused_at, status.paused_by, status.pause_reason) == (instant(1), "ada", "too loud")


def test_how_a_job_may_be_resumed() -> None:
    assert [resume_mode(mode) for mode in ("skip", "latest", "all")] == ["skip", "latest", "all"]
    with pytest.raises(Invalid, match="did you mean 'latest'"):
        resume_mode("lates")
