"""Decisions about one plan time, given the runs of its lane: overlap first, then failure."""

from itertools import product
from typing import Any

import pytest

from rota.core.planning.overlap_and_failure import Create, Lane, LiveRun, Pause, Skip, decide
from rota.core.planning.tick import after_decision
from rota.core.schedules.policies import (
    FAILURE,
    OVERLAP,
    CatchUp,
    Failure,
    Overlap,
    OverlapMode,
    failure_of,
    overlap_of,
)
from tests.support.schedules.plan_times import MINUTE, SECOND

NOW = 1_000_000 * SECOND
ALLOW, RUN_NEW = Overlap(mode=OverlapMode.ALLOW), Failure()
WAITING, RUNNING, RESTING = LiveRun("a"), LiveRun("a", begun=True, claimed=True), LiveRun("a", begun=True)
SECOND_WAITING, SECOND_RUNNING = LiveRun("b"), LiveRun("b", begun=True, claimed=True)

LIVE = {
    "none": Lane(),
    "unclaimed": Lane((WAITING,)),
    "claimed": Lane((RUNNING,)),
    "backing off": Lane((RESTING,)),
    "one claimed, one waiting": Lane((LiveRun("a", begun=True, claimed=True, followed=True), SECOND_WAITING)),
    "two claimed": Lane((RUNNING, SECOND_RUNNING)),
    "two waiting": Lane((WAITING, SECOND_WAITING)),
}


def ended(lane: Lane | None = None, *, failed: bool = False, neutral: bool = False, attempt: int = 1) -> Lane:
    """Return a lane whose last run ended a second ago."""
    return (lane or Lane()).ended(failed=failed, neutral=neutral, attempt=attempt, finished_at=NOW - SECOND)


ENDED = {
    "nothing yet": Lane(),
    "success": ended(),
    "failure": ended(failed=True),
    "cancelled by a person": ended(failed=True),
    "cancelled by a policy": ended(neutral=True),
    "failure, then cancelled by a policy": ended(ended(failed=True), neutral=True),
    "failure, then success": ended(ended(failed=True)),
    "two failures": ended(ended(failed=True), failed=True),
}


def overlapping(mode: str, lane: Lane, **more: Any) -> Create | Skip | Pause:
    return decide(Overlap(mode=OverlapMode(mode), **more), RUN_NEW, lane, NOW, 4)


def failing(written: Any, lane: Lane, now: int = NOW, most: int = 4) -> Create | Skip | Pause:
    return decide(ALLOW, failure_of(written), lane, now, most)


@pytest.mark.parametrize("mode", OVERLAP)
@pytest.mark.parametrize("before", ENDED)
def test_without_a_live_run_there_is_no_overlap(mode: str, before: str) -> None:
    assert overlapping(mode, ENDED[before]) == Create()


@pytest.mark.parametrize(
    ("mode", "live", "gets"),
    [
        ("skip", "unclaimed", Skip("overlap: run a is not over")),
        ("skip", "claimed", Skip("overlap: run a is not over")),
        ("skip", "backing off", Skip("overlap: run a is not over")),
        ("skip", "two claimed", Skip("overlap: run b is not over")),
        ("allow", "unclaimed", Create()),
        ("allow", "claimed", Create()),
        ("allow", "backing off", Create()),
        ("allow", "two claimed", Create()),
        ("parallel", "unclaimed", Create(unlimited=True)),
        ("parallel", "claimed", Create(unlimited=True)),
        ("parallel", "backing off", Create(unlimited=True)),
        ("parallel", "two claimed", Create(unlimited=True)),
        ("cancel_previous", "unclaimed", Create(supersedes=("a",))),
        ("cancel_previous", "claimed", Create(after=("a",), cancels=("a",))),
        ("cancel_previous", "backing off", Create(supersedes=("a",))),
        ("cancel_previous", "one claimed, one waiting", Create(after=("a",), supersedes=("b",), cancels=("a",))),
        ("cancel_previous", "two claimed", Create(after=("a", "b"), cancels=("a", "b"))),
        ("cancel_previous", "two waiting", Create(supersedes=("a", "b"))),
        ("queue_one", "unclaimed", Skip("overlap: run a waits already")),
        ("queue_one", "claimed", Create(after=("a",))),
        ("queue_one", "backing off", Create(after=("a",))),
        ("queue_one", "one claimed, one waiting", Skip("overlap: run b waits already")),
        ("queue_one", "two claimed", Create(after=("a", "b"))),
        ("queue_one", "two waiting", Skip("overlap: run a waits already")),
        ("queue_all", "unclaimed", Create(after=("a",))),
        ("queue_all", "claimed", Create(after=("a",))),
        ("queue_all", "backing off", Create(after=("a",))),
        ("queue_all", "one claimed, one waiting", Create(after=("b",))),
        ("queue_all", "two claimed", Create(after=("a", "b"))),
    ],
)
def test_what_a_plan_time_gets_while_another_run_is_not_over(mode: str, live: str, gets: Create | Skip) -> None:
    assert overlapping(mode, LIVE[live]) == gets


@pytest.mark.parametrize(("most", "created"), [(None, True), (1, False), (2, False), (3, True)])
def test_runs_are_parallel_up_to_so_many(most: int | None, created: bool) -> None:
    decision = overlapping("parallel", LIVE["two claimed"], max_overlap=most)
    assert isinstance(decision, Create) == created
    assert created or decision == Skip(f"overlap: 2 runs are not over, and {most} may be at once")


def burst(mode: str, lane: Lane, times: int) -> list[Create | Skip]:
    """Decide several plan times in one tick, each of which sees the decision before it."""
    decisions = []
    for number in range(times):
        decision = overlapping(mode, lane)
        assert not isinstance(decision, Pause)
        decisions.append(decision)
        lane = after_decision(lane, f"n{number}", decision)
    return decisions


def test_a_burst_overlaps_with_itself() -> None:
    assert [type(decision) for decision in burst("skip", Lane(), 3)] == [Create, Skip, Skip]
    assert burst("queue_all", Lane(), 3) == [Create(), Create(after=("n0",)), Create(after=("n1",))]
    assert (
        burst("queue_one", LIVE["claimed"], 3) == [Create(after=("a",))] + [Skip("overlap: run n0 waits already")] * 2
    )
    assert burst("cancel_previous", LIVE["claimed"], 3) == [
        Create(after=("a",), cancels=("a",)),
        Create(after=("a",), cancels=("a",), supersedes=("n0",)),
        Create(after=("a",), cancels=("a",), supersedes=("n1",)),
    ]


@pytest.mark.parametrize(
    ("mode", "before", "gets"),
    [
        ("run_new", "failure", Create()),
        ("run_new", "cancelled by a person", Create()),
        ("skip", "success", Create()),
        ("skip", "failure", Skip("failure: the last run failed, so one plan time is skipped", failure=True)),
        ("skip", "cancelled by a policy", Create()),
        ("skip", "failure, then cancelled by a policy", Create()),
        ("skip", "failure, then success", Create()),
        ("retry", "nothing yet", Create(attempt=1, single=True)),
        ("retry", "success", Create(attempt=1, single=True)),
        ("retry", "failure", Create(attempt=2, single=True)),
        ("retry", "cancelled by a person", Create(attempt=2, single=True)),
        ("retry", "cancelled by a policy", Create(attempt=1, single=True)),
        ("backoff", "success", Create()),
        ("backoff", "failure", Skip("failure: the last run failed, so plan times are skipped for 1m", failure=True)),
        (
            "backoff",
            "two failures",
            Skip("failure: 2 failures in a row, so plan times are skipped for 2m", failure=True),
        ),
        ("backoff", "cancelled by a policy", Create()),
        ("half_open", "failure", Create()),
        ("half_open", "two failures", Create()),
        ("pause", "success", Create()),
        ("pause", "failure", Pause("failure: the last run failed")),
        ("pause", "cancelled by a person", Pause("failure: the last run failed")),
        ("pause", "cancelled by a policy", Create()),
    ],
)
def test_what_a_plan_time_gets_after_another_run(mode: str, before: str, gets: Create | Skip | Pause) -> None:
    assert failing(mode, ENDED[before]) == gets


@pytest.mark.parametrize("mode", ["skip", "pause"])
def test_exactly_one_plan_time_is_lost_to_a_failure(mode: str) -> None:
    """Check that after a pause the plan time after the resume runs."""
    lane = after_decision(ENDED["failure"], "n0", Skip("failure: …", failure=True))
    assert failing(mode, lane) == Create()
    again = lane.ended(failed=True, neutral=False, attempt=1, finished_at=NOW)
    assert not isinstance(failing(mode, again), Create)


def test_a_plan_time_skipped_for_another_reason_does_not_count_for_the_failure() -> None:
    lane = after_decision(ENDED["failure"], "n0", Skip("overlap: run a is not over"))
    assert failing("skip", lane) == failing("skip", ENDED["failure"])


@pytest.mark.parametrize(
    ("written", "most", "attempts"),
    [
        ("retry", 4, [1, 2, 3, 4, 1, 2]),
        ("retry", 1, [1, 1, 1]),
        ({"mode": "retry", "max_attempts": 2}, 4, [1, 2, 1, 2]),
        ({"mode": "retry", "max_attempts": 6}, 2, [1, 2, 3, 4, 5, 6, 1]),
    ],
)
def test_retries_count_up_to_the_budget_and_begin_again(written: Any, most: int, attempts: list[int]) -> None:
    lane, found = Lane(), []
    for _ in attempts:
        decision = failing(written, lane, most=most)
        assert isinstance(decision, Create)
        assert decision.single
        found.append(decision.attempt)
        lane = ended(lane, failed=True, attempt=decision.attempt)
    assert found == attempts


def test_plan_times_are_skipped_for_a_growing_time() -> None:
    """Return `base × 2^(n-1)`, up to the cap."""
    lane, waits = Lane(), []
    for _ in range(9):
        lane = ended(lane, failed=True)
        wait = next(
            n for n in range(0, 3_601, 20) if isinstance(failing("backoff", lane, NOW + (n - 1) * SECOND), Create)
        )
        waits.append(wait)
    assert waits == [60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]


def test_a_list_of_backoffs_repeats_its_last() -> None:
    written, lane = {"mode": "backoff", "backoff": ["10s", "1m"]}, Lane()
    for wait in (10, 60, 60):
        lane = ended(lane, failed=True)
        assert isinstance(failing(written, lane, NOW + (wait - 1) * SECOND - 1), Skip)
        assert failing(written, lane, NOW + (wait - 1) * SECOND) == Create()


def tripped(failures: int = 3) -> Lane:
    lane = Lane()
    for _ in range(failures):
        lane = ended(lane, failed=True)
    return lane


BREAKER = {"mode": "half_open", "threshold": 3, "cooldown": "5m"}


def test_a_breaker_opens_after_so_many_failures_in_a_row() -> None:
    assert failing(BREAKER, tripped(2)) == Create()
    told = "failure: 3 failures in a row, so one probe is let through per 5m"
    assert failing(BREAKER, tripped(3)) == Skip(told, failure=True)
    assert failing(BREAKER, tripped(9), NOW + 5 * MINUTE - SECOND - 1) == Skip(told.replace("3", "9"), failure=True)
    assert failing(BREAKER, tripped(3), NOW + 5 * MINUTE - SECOND) == Create()


def test_a_breaker_lets_one_probe_through() -> None:
    later = NOW + 5 * MINUTE
    probed = after_decision(tripped(), "probe", Create())
    told = "failure: 3 failures in a row, and run probe is the probe"
    assert failing(BREAKER, probed, later) == Skip(told, failure=True)
    over = probed.without(("probe",))
    failed_again = over.ended(failed=True, neutral=False, attempt=1, finished_at=later)
    assert isinstance(failing(BREAKER, failed_again, later + 5 * MINUTE - 1), Skip)
    assert failing(BREAKER, failed_again, later + 5 * MINUTE) == Create()
    recovered = over.ended(failed=False, neutral=False, attempt=1, finished_at=later)
    assert failing(BREAKER, recovered, later) == Create()


def test_a_policy_that_cancels_the_probe_does_not_close_the_breaker() -> None:
    cancelled = tripped().ended(failed=False, neutral=True, attempt=1, finished_at=NOW)
    assert isinstance(failing(BREAKER, cancelled), Skip)


@pytest.mark.parametrize("overlap", OVERLAP)
@pytest.mark.parametrize("failure", FAILURE)
def test_every_overlap_with_every_failure_policy(overlap: str, failure: str) -> None:
    for live, before in product(LIVE, ENDED):
        check_together(overlap, failure, live, before)


def check_together(overlap: str, failure: str, live: str, before: str) -> None:
    lane = ENDED[before]
    lane = Lane(LIVE[live].live, lane.failed, lane.failures, lane.attempt, lane.finished_at, lane.skips)
    policies = overlap_of(overlap, CatchUp()), failure_of(failure)
    decision = decide(*policies, lane, NOW, 4)
    assert decision == decide(*policies, lane, NOW, 4)
    assert decide(*policies, lane, NOW, 4, forced=True) == Create()
    alone = overlapping(overlap, lane)
    if isinstance(alone, Skip):
        assert decision == alone  # overlap has the first word
        return
    after = failing(failure, ENDED[before])
    if not isinstance(after, Create):
        assert decision == after  # then failure, which cancels and supersedes nothing
        return
    assert isinstance(decision, Create)
    assert (decision.attempt, decision.single) == (after.attempt, after.single)
    assert isinstance(alone, Create)
    assert (decision.after, decision.supersedes, decision.cancels) == (alone.after, alone.supersedes, alone.cancels)
    assert {*decision.after, *decision.supersedes} <= {run.id for run in lane.live}


def test_a_run_that_ended_before_the_last_one_changes_nothing() -> None:
    lane = ended(failed=True)
    assert lane.ended(failed=False, neutral=False, attempt=1, finished_at=NOW - 2 * SECOND) == lane


def test_how_a_run_ends_starts_the_count_of_skips_anew() -> None:
    skipped = after_decision(ended(failed=True), "n0", Skip("failure: …", failure=True))
    assert skipped.skips == 1
    assert ended(skipped, failed=True).skips == 0


def test_a_lane_knows_its_live_runs() -> None:
    lane = Lane().with_run(LiveRun("a")).with_run(LiveRun("b"), after=("a",))
    assert lane.live == (LiveRun("a", followed=True), LiveRun("b"))
    assert lane.without(("a", "z")).live == (LiveRun("b"),)
