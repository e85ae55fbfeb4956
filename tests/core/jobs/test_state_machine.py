"""Every pair of a job's state and a verb: the next state, or a refusal that names what is possible."""

from typing import Any

import pytest

from rota.core.jobs.status import JobFacts, JobVerb, Standing, decide_verb, possible_verbs, require_verb, standing_of
from rota.errors import Conflict, JobDisabled, JobRefuses

TABLE = """
            idle       active     paused     cancelled
pause       paused     paused     paused     -
resume      idle       active     active     active
cancel      -          cancelled  cancelled  -
retry       active     active     paused     -
run         active     active     paused     -
schedule    active     active     paused     cancelled
update      idle       active     paused     cancelled
delete      idle       active     paused     cancelled
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
PAIRS = [
    (Standing(state), JobVerb(verb), None if after == "-" else Standing(after))
    for verb, *cells in ROWS[1:]
    for state, after in zip(ROWS[0], cells, strict=True)
]


def test_the_table_has_every_pair() -> None:
    assert {(state, verb) for state, verb, _ in PAIRS} == {(state, verb) for state in Standing for verb in JobVerb}


@pytest.mark.parametrize(("state", "verb", "after"), PAIRS)
def test_each_pair(state: Standing, verb: JobVerb, after: Standing | None) -> None:
    answer = decide_verb("work", state, verb)
    if after is not None:
        assert answer is after
        return
    assert isinstance(answer, JobRefuses)
    assert str(verb) in answer.message
    allowed = [other for found, other, next_state in PAIRS if found is state and next_state is not None]
    assert answer.hint == f"possible now: {', '.join(allowed)}"
    with pytest.raises(JobRefuses):
        require_verb("work", state, verb)


@pytest.mark.parametrize("state", Standing)
def test_a_disabled_job_takes_neither_runs_nor_retries(state: Standing) -> None:
    assert {*possible_verbs(state)} - {*possible_verbs(state, enabled=False)} <= {JobVerb.RETRY, JobVerb.RUN}
    for verb in (JobVerb.RETRY, JobVerb.RUN):
        assert verb not in possible_verbs(state, enabled=False)
        answer = decide_verb("work", state, verb, enabled=False)
        assert isinstance(answer, JobRefuses if state is Standing.CANCELLED else JobDisabled)
        with pytest.raises(Conflict):
            require_verb("work", state, verb, enabled=False)
    require_verb("work", state, JobVerb.UPDATE, enabled=False)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "idle"),
        ({"ended": "failed"}, "idle"),
        ({"ended": "cancelled"}, "idle"),
        ({"waiting": 1}, "active"),
        ({"running": 1}, "active"),
        ({"planned_at": 5}, "active"),
        ({"paused_at": 1, "running": 1}, "paused"),
        ({"paused_at": 1, "cancelled_at": 1, "running": 1}, "cancelled"),
    ],
)
def test_the_state_of_a_job(facts: dict[str, Any], state: str) -> None:
    assert standing_of(JobFacts(job="work", **facts)) is Standing(state)
