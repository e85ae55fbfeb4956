"""Every combination of overlap, failure, concurrency and misfire, simulated and compared with its description."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import Delays, RetryPolicy
from rota.core.limits.limits import Limit
from rota.core.schedules.schedule import define
from tests.support.seed_policies import CASES, MOST_ATTEMPTS, STORIES, Case, Story, as_told, expected
from tests.support.simulated_stories import simulated

RETRY = RetryPolicy(MOST_ATTEMPTS, Delays(()))


def as_simulated(case: Case, story: Story, *, of_job: bool) -> list[str]:
    """Simulate a case; `of_job`: the limit is the job's instead of the schedule's."""
    limit = Limit(max=1, when_full=case.concurrency.lower())
    job = JobDefinition(name="demo", limits=(limit,) if of_job else ())
    own = {} if of_job else {"max_concurrency": 1, "when_full": limit.when_full}
    definition = define(job, every(f"{story.step}s"), {**case.options, **own}, name=case.name, now=0)
    return as_told(simulated(definition, job, RETRY, story))


@pytest.mark.parametrize("of_job", [False, True], ids=["schedule", "job"])
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_all_combinations(story: Story, *, of_job: bool) -> None:
    differing = {
        case.name: (told, wanted)
        for case in CASES
        if (told := as_simulated(case, story, of_job=of_job)) != (wanted := as_told(expected(case, story)))
    }
    assert differing == {}


@given(
    case=st.sampled_from(CASES),
    lengths=st.lists(st.integers(1, 14), min_size=1, max_size=6),
    failing=st.sets(st.integers(1, 20)),
    away=st.tuples(st.integers(6, 20), st.integers(21, 45)),
)
def test_any_story(case: Case, lengths: list[int], failing: set[int], away: tuple[int, int]) -> None:
    if case.misfire == "SKIP":
        away = (away[0], (away[1] + 4) // 5 * 5)  # the plan time at that very second is not late
    story = Story(lambda n: lengths[n % len(lengths)], lambda n: n in failing, away=away)
    assert as_simulated(case, story, of_job=False) == as_told(expected(case, story))


def test_there_are_as_many_as_the_words_say() -> None:
    assert len({case.name for case in CASES}) == 4 * 3 * 2 * 3
