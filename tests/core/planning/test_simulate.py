"""Simulations of a schedule over a span of virtual time."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.calendar.rules import Rule
from rota.core.calendar.triggers import after, cron
from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.jobs.retry import Delays, RetryPolicy
from rota.core.limits.limits import Limit
from rota.core.planning.assumptions import Assumptions, Beginning, SimulatedEvent, Simulation
from rota.core.planning.overlap_and_failure import Lane, LiveRun
from rota.core.planning.simulate import simulate
from rota.core.planning.tick import ScheduleState
from rota.core.schedules.policies import (
    FAILURE,
    OVERLAP,
    CatchUp,
    CatchUpMode,
    Failure,
    FailureMode,
    Overlap,
    OverlapMode,
)
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import Invalid
from rota.values.scope import GLOBAL, Scope
from tests.support.schedules.plan_times import DAY, SECOND, Listed, Steady, standing

ONCE = RetryPolicy(max_attempts=1)
A, B = Scope("account", "a"), Scope("account", "b")


def lasting(seconds: float, **more: Any) -> Assumptions:
    return Assumptions(duration=timedelta(seconds=seconds), **more)


def at(*seconds: int) -> frozenset[int]:
    return frozenset(second * SECOND for second in seconds)


def each(step: int, until: int, assuming: Assumptions, retry: RetryPolicy = ONCE, **policies: Any) -> Simulation:
    """Simulate a schedule of every `step` seconds, from 0 up to `until` seconds."""
    return simulate(standing(Steady(step * SECOND), **policies), retry, 0, until * SECOND, assuming)


def story(simulation: Simulation) -> list[tuple[object, ...]]:
    """Return the events in seconds: runs with their start and end, all others with their plan times."""
    return [told(event) for event in simulation.events]


def told(event: SimulatedEvent) -> tuple[object, ...]:
    if event.kind in ("run", "cancelled"):
        return (event.kind, *map(seconds, (event.plan_time, event.started_at, event.finished_at)))
    if event.kind in ("missed", "covered"):
        return (event.kind, seconds(event.plan_time), seconds(event.to_at), event.count)
    return event.kind, seconds(event.plan_time)


def seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / SECOND


def counts(simulation: Simulation) -> dict[str, int]:
    return {kind: count for kind, count in simulation.counts.items() if count}


def test_runs_that_are_short_enough_are_on_time() -> None:
    simulation = each(10, 35, lasting(3))
    assert story(simulation) == [("run", 10, 10, 13), ("run", 20, 20, 23), ("run", 30, 30, 33)]
    assert counts(simulation) == {"run": 3}
    assert simulation.until == 35 * SECOND


def test_a_run_that_ends_when_the_next_is_due_does_not_overlap() -> None:
    assert counts(each(10, 100, lasting(10))) == {"run": 10}


def test_what_goes_on_at_the_end_has_no_end() -> None:
    assert story(each(10, 25, lasting(8))) == [("run", 10, 10, 18), ("run", 20, 20, None)]


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("skip", [("run", 10, 10, 35), ("skipped", 20), ("skipped", 30), ("run", 40, 40, None)]),
        ("allow", [("run", 10, 10, 35), ("run", 20, 20, 45), ("run", 30, 30, None), ("run", 40, 40, None)]),
        ("parallel", [("run", 10, 10, 35), ("run", 20, 20, 45), ("run", 30, 30, None), ("run", 40, 40, None)]),
        ("cancel_previous", [("cancelled", n, n, n + 10) for n in (10, 20, 30)] + [("run", 40, 40, None)]),
        ("queue_one", [("run", 10, 10, 35), ("run", 20, 35, None), ("skipped", 30), ("run", 40, None, None)]),
        ("queue_all", [("run", 10, 10, 35), ("run", 20, 35, None), ("run", 30, None, None), ("run", 40, None, None)]),
    ],
)
def test_runs_that_are_too_long_overlap(overlap: str, expected: list[tuple[object, ...]]) -> None:
    assert story(each(10, 45, lasting(25), overlap=Overlap(mode=OverlapMode(overlap)))) == expected


def test_no_more_than_so_many_in_parallel() -> None:
    simulation = each(10, 45, lasting(25), overlap=Overlap(mode=OverlapMode.PARALLEL, max_overlap=2))
    assert story(simulation) == [("run", 10, 10, 35), ("run", 20, 20, 45), ("skipped", 30), ("run", 40, 40, None)]


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        (CatchUp(), [("covered", 20, 50, 4), ("run", 60, 65, 66)]),
        (CatchUp(mode=CatchUpMode.NONE, grace=timedelta(seconds=5)), [("missed", 20, 50, 4), ("run", 60, 65, 66)]),
        (CatchUp(mode=CatchUpMode.NONE, grace=timedelta(seconds=4)), [("missed", 20, 60, 5)]),
        (CatchUp(mode=CatchUpMode.ALL, keep=2), [("missed", 20, 40, 3), ("run", 50, 65, 66), ("run", 60, 66, 67)]),
        (
            CatchUp(window=timedelta(seconds=30)),
            [("missed", 20, 30, 2), ("covered", 40, 50, 2), ("run", 60, 65, 66)],
        ),
    ],
)
def test_an_outage_is_caught_up(catch_up: CatchUp, expected: list[tuple[object, ...]]) -> None:
    overlap = Overlap(mode=OverlapMode.QUEUE_ALL)
    simulation = each(10, 75, lasting(1, outages=((15 * SECOND, 65 * SECOND),)), catch_up=catch_up, overlap=overlap)
    assert story(simulation) == [("run", 10, 10, 11), *expected, ("run", 70, 70, 71)]


def test_outages_that_touch_are_one() -> None:
    outages = ((40 * SECOND, 65 * SECOND), (15 * SECOND, 30 * SECOND), (25 * SECOND, 40 * SECOND))
    assert counts(each(10, 65, lasting(1, outages=outages))) == {"run": 2, "covered": 4}


def test_a_schedule_that_is_late_at_the_start_catches_up_first() -> None:
    late = simulate(standing(Steady(10 * SECOND), cursor=0), ONCE, 100 * SECOND, 115 * SECOND, lasting(1))
    assert story(late) == [("covered", 10, 90, 9), ("run", 100, 100, 101), ("run", 110, 110, 111)]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure(), ["run", "run", "run", "run", "run"]),
        (Failure(mode=FailureMode.SKIP), ["run", "skipped", "run", "run", "run"]),
        (
            Failure(mode=FailureMode.BACKOFF, backoff=Delays((timedelta(seconds=25),))),
            ["run", "skipped", "skipped", "run", "run"],
        ),
        (Failure(mode=FailureMode.HALF_OPEN, threshold=2), ["run", "run", "run", "run", "run"]),
        (
            Failure(mode=FailureMode.HALF_OPEN, threshold=1, cooldown=timedelta(seconds=15)),
            ["run", "skipped", "run", "run", "run"],
        ),
        (Failure(mode=FailureMode.PAUSE), ["run", "skipped", "paused"]),
    ],
)
def test_a_failure_has_the_consequences_of_its_policy(failure: Failure, expected: list[str]) -> None:
    simulation = each(10, 55, lasting(1, fail_at=at(10)), failure=failure)
    assert [event.kind for event in simulation.events] == expected
    assert [event.failed for event in simulation.events] == [True] + [False] * (len(expected) - 1)
    assert simulation.counts["failed"] == 1


def test_retries_by_the_schedule_count_their_attempts() -> None:
    simulation = each(
        10, 65, lasting(1, fail_at=at(10, 20, 30, 40)), RetryPolicy(3), failure=Failure(mode=FailureMode.RETRY)
    )
    assert [event.attempt for event in simulation.events] == [1, 2, 3, 1, 2, 1]


def test_retries_of_its_own_make_a_run_longer() -> None:
    retry = RetryPolicy(3, Delays((timedelta(seconds=5), timedelta(seconds=10))))
    simulation = each(10, 45, lasting(1, fail_at=at(10)), retry)
    assert story(simulation) == [("run", 10, 10, 28), ("skipped", 20), ("run", 30, 30, 31), ("run", 40, 40, 41)]
    assert simulation.events[0].attempt == 3
    assert simulation.events[0].failed


def test_a_run_that_backs_off_is_superseded() -> None:
    retry = RetryPolicy(2, Delays((timedelta(seconds=60),)))
    simulation = each(10, 25, lasting(1, fail_at=at(10)), retry, overlap=Overlap(mode=OverlapMode.CANCEL_PREVIOUS))
    assert [event.kind for event in simulation.events] == ["cancelled", "run"]
    assert simulation.events[0].reason == "superseded by run #2"


def test_a_run_that_gave_way_does_not_end_a_row_of_failures() -> None:
    assuming = Assumptions(duration=lambda n: timedelta(seconds=99 if n == 2 else 1), fail_at=at(10, 30))
    policies: dict[str, Any] = {
        "overlap": Overlap(mode=OverlapMode.CANCEL_PREVIOUS),
        "failure": Failure(mode=FailureMode.HALF_OPEN, threshold=2),
    }
    kinds = [event.kind for event in each(10, 45, assuming, **policies).events]
    assert kinds == ["run", "cancelled", "run", "skipped"]


def test_every_so_many_runs_fail() -> None:
    simulation = each(10, 65, lasting(1, fail_every=3))
    assert [event.failed for event in simulation.events] == [False, False, True] * 2


def test_a_run_may_last_as_its_number_says() -> None:
    assuming = Assumptions(duration=lambda number: timedelta(seconds=2 * number))
    assert story(each(10, 35, assuming)) == [("run", 10, 10, 12), ("run", 20, 20, 24), ("run", 30, 30, None)]


def test_runs_wait_for_a_worker() -> None:
    simulation = each(10, 45, lasting(4, workers=1), scopes=(A, B))
    assert [(event.scope, *told(event)) for event in simulation.events][:4] == [
        (A, "run", 10, 10, 14),
        (B, "run", 10, 14, 18),
        (A, "run", 20, 20, 24),
        (B, "run", 20, 24, 28),
    ]


def test_delay_and_jitter_are_kept() -> None:
    delayed = each(10, 25, lasting(1), delay=timedelta(seconds=3))
    assert story(delayed) == [("run", 10, 13, 14), ("run", 20, 23, 24)]
    jittered = each(100, 1_000, lasting(1), jitter=timedelta(seconds=50))
    late = [event.started_at - event.plan_time for event in jittered.events if event.started_at is not None]
    assert len(set(late)) == len(late)
    assert all(0 <= lateness <= 50 * SECOND for lateness in late)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Limit(max=1, when_full="skip"), ["run", "skipped", "skipped", "run"]),
        (Limit(max=1, when_full="reject"), ["run", "skipped", "skipped", "run"]),
        (Limit(max=2, when_full="skip"), ["run", "run", "skipped", "run"]),
        (Limit(max=1), ["run", "run", "run", "run"]),
        (Limit(max=1, max_queued=1), ["run", "run", "skipped", "run"]),
        (Limit(max=1, when_full="cancel_oldest"), ["cancelled", "cancelled", "cancelled", "run"]),
        (Limit(max=2, when_full="cancel_oldest"), ["cancelled", "cancelled", "run", "run"]),
    ],
)
def test_the_schedules_own_limit_decides_among_its_runs(limit: Limit, expected: list[str]) -> None:
    simulation = each(10, 45, lasting(25), overlap=Overlap(mode=OverlapMode.ALLOW), limit=limit)
    assert [event.kind for event in simulation.events] == expected
    assert most_at_once(simulation) <= limit.max


def test_the_schedules_own_rate_delays_its_runs() -> None:
    slow = Limit(max=2, per=timedelta(seconds=30))
    simulation = each(5, 60, lasting(1), overlap=Overlap(mode=OverlapMode.ALLOW), rate=slow)
    begun = [event.started_at for event in simulation.events if event.started_at is not None]
    assert len(begun) >= 4
    assert all(later - first >= 30 * SECOND for first, later in zip(begun, begun[2:], strict=False))
    assert begun[2] - begun[0] == 30 * SECOND


def most_at_once(simulation: Simulation) -> int:
    spans = [
        (e.started_at, e.finished_at or simulation.until + 1) for e in simulation.events if e.started_at is not None
    ]
    return max((sum(begin <= start < end for begin, end in spans) for start, _ in spans), default=0)


def test_a_limit_sees_what_the_same_look_has_decided() -> None:
    outage = lasting(25, outages=((5 * SECOND, 45 * SECOND),))
    policies: dict[str, Any] = {"catch_up": CatchUp(mode=CatchUpMode.ALL), "overlap": Overlap(mode=OverlapMode.ALLOW)}
    skipping = each(10, 46, outage, limit=Limit(max=2, when_full="skip"), **policies)
    assert [event.kind for event in skipping.events] == ["run", "run", "skipped", "skipped"]
    cancelling = each(10, 46, outage, limit=Limit(max=2, when_full="cancel_oldest"), **policies)
    assert [event.kind for event in cancelling.events] == ["skipped", "skipped", "run", "run"]


def test_the_sample_configuration() -> None:
    """Plan runs of eight seconds every five, with an outage of 27 seconds: never two at once."""
    definition = ScheduleDefinition(
        job="demo",
        rule=Rule(trigger=cron("*/5 * * * * *")),
        catch_up=CatchUp(mode=CatchUpMode.ALL, keep=3),
        overlap=Overlap(mode=OverlapMode.CANCEL_PREVIOUS),
        failure=Failure(mode=FailureMode.RETRY),
        limit=Limit(max=1, when_full="skip"),
    )
    demo = ScheduleState("s1", "demo-task", definition, 0, 5 * SECOND)
    simulation = simulate(demo, RetryPolicy(), 0, 60 * SECOND, lasting(8, outages=((13 * SECOND, 40 * SECOND),)))
    assert story(simulation) == [
        ("cancelled", 5, 5, 10),
        ("run", 10, 10, 18),
        ("missed", 15, 25, 3),
        ("skipped", 30),
        ("skipped", 35),
        ("cancelled", 40, 40, 45),
        ("cancelled", 45, 45, 50),
        ("cancelled", 50, 50, 55),
        ("cancelled", 55, 55, 60),
        ("run", 60, 60, None),
    ]
    assert most_at_once(simulation) == 1


def test_a_trigger_that_follows_its_run() -> None:
    following = standing(Steady(SECOND), cursor=9 * SECOND, trigger=after("30s"))
    simulation = simulate(following, ONCE, 0, 100 * SECOND, lasting(7))
    assert story(simulation) == [("run", 10, 10, 17), ("run", 47, 47, 54), ("run", 84, 84, 91)]


def test_a_trigger_that_follows_a_run_which_goes_on() -> None:
    following = msgspec.structs.replace(standing(Steady(SECOND), trigger=after("30s")), next_plan=None)
    lanes = {GLOBAL: Lane((LiveRun("old", begun=True, claimed=True),))}
    simulation = simulate(following, ONCE, 0, 50 * SECOND, lasting(7), beginning=Beginning(lanes=lanes))
    assert story(simulation) == [("run", 37, 37, 44)]


def test_after_so_many_runs_it_is_over() -> None:
    assert counts(each(10, 1_000, lasting(1), max_runs=4)) == {"run": 4}


def test_who_waits_for_a_run_that_gives_way_waits_for_what_that_waited_for() -> None:
    policies: dict[str, Any] = {
        "overlap": Overlap(mode=OverlapMode.QUEUE_ALL),
        "limit": Limit(max=3, when_full="cancel_oldest"),
    }
    lanes = {GLOBAL: Lane((LiveRun("a", True, True, True), LiveRun("b", followed=True), LiveRun("c")))}
    stuck = msgspec.structs.replace(lasting(100), job=JobDefinition(name="work", cancel=CancelPolicy(supported=False)))
    schedule = standing(Steady(10 * SECOND), **policies)
    simulation = simulate(schedule, ONCE, 0, 45 * SECOND, stuck, beginning=Beginning(lanes=lanes))
    assert most_at_once(simulation) == 0


def test_live_runs_at_the_start_are_in_the_way_but_in_no_count() -> None:
    lanes = {GLOBAL: Lane((LiveRun("a", True, True, True), LiveRun("b", followed=True), LiveRun("c")))}
    schedule = standing(Steady(10 * SECOND), overlap=Overlap(mode=OverlapMode.QUEUE_ALL))
    simulation = simulate(schedule, ONCE, 0, 35 * SECOND, lasting(8), beginning=Beginning(lanes=lanes))
    assert story(simulation) == [("run", 10, 24, 32), ("run", 20, 32, None), ("run", 30, None, None)]
    assert counts(simulation) == {"run": 3}


def test_a_policy_is_tried_by_changing_the_definition() -> None:
    schedule = standing(Steady(10 * SECOND))
    other = msgspec.structs.replace(
        schedule, definition=msgspec.structs.replace(schedule.definition, overlap=Overlap(mode=OverlapMode.ALLOW))
    )
    before, then = (simulate(s, ONCE, 0, 100 * SECOND, lasting(15)) for s in (schedule, other))
    assert (counts(before), counts(then)) == ({"run": 5, "skipped": 5}, {"run": 10})


def test_many_events_are_cut_and_their_totals_are_not() -> None:
    schedule = standing(Steady(SECOND))
    simulation = simulate(schedule, ONCE, 0, 3_600 * SECOND, lasting(1.5, fail_every=4), limit=10)
    whole = simulate(schedule, ONCE, 0, 3_600 * SECOND, lasting(1.5, fail_every=4), limit=10_000)
    assert len(simulation.events) == 10
    assert simulation.events == whole.events[:10]
    assert simulation.counts == whole.counts == {**whole.counts, "run": 1_800, "skipped": 1_800, "failed": 449}


def test_too_long_a_story_ends_early_and_says_so() -> None:
    simulation = simulate(standing(Steady(SECOND)), ONCE, 0, 365 * DAY, lasting(0), most=1_000)
    assert simulation.until < 1_000 * SECOND
    assert simulation.counts["run"] == simulation.until // SECOND


@pytest.mark.parametrize("span", [DAY, 365 * DAY, 50 * 365 * DAY])
def test_time_jumps_from_one_thing_that_happens_to_the_next(span: int) -> None:
    times = Listed([10 * SECOND, span])
    simulation = simulate(standing(times), ONCE, 0, span + SECOND, lasting(0.5))
    assert counts(simulation) == {"run": 2}
    assert times.asked < 20


@pytest.mark.parametrize(
    "assume",
    [
        lambda: lasting(-1),
        lambda: Assumptions(fail_every=0),
        lambda: Assumptions(workers=0),
        lambda: Assumptions(outages=((2, 1),)),
        lambda: simulate(standing(), ONCE, 2, 1),
    ],
)
def test_assumptions_that_make_no_sense(assume: Callable[[], object]) -> None:
    with pytest.raises(Invalid):
        assume()


instants = st.integers(1, 300)
assumptions = st.builds(
    Assumptions,
    duration=st.integers(0, 40).map(lambda n: timedelta(seconds=n)),
    fail_every=st.none() | st.integers(1, 4),
    outages=st.lists(st.tuples(instants, st.integers(0, 90)), max_size=2).map(
        lambda found: tuple((begin * SECOND, (begin + length) * SECOND) for begin, length in found)
    ),
    workers=st.none() | st.integers(1, 2),
)
spans = st.integers(1, 200).map(lambda n: timedelta(seconds=n))
schedules = st.fixed_dictionaries(
    {
        "catch_up": st.builds(
            CatchUp,
            mode=st.sampled_from(["none", "latest", "all"]),
            window=spans,
            keep=st.integers(1, 9),
            per_tick=st.integers(1, 3),
            grace=spans,
        ),
        "overlap": st.builds(Overlap, mode=st.sampled_from(OVERLAP)),
        "failure": st.builds(Failure, mode=st.sampled_from(FAILURE), threshold=st.integers(1, 3), cooldown=spans),
        "limit": st.none()
        | st.builds(Limit, max=st.integers(1, 2), when_full=st.sampled_from(["queue", "skip", "cancel_oldest"])),
        "max_runs": st.none() | st.integers(1, 20),
    }
)


@given(st.sets(instants, max_size=60), schedules, assumptions, st.integers(1, 3))
def test_every_plan_time_has_exactly_one_fate(
    planned: set[int], policies: dict[str, Any], assuming: Assumptions, attempts: int
) -> None:
    times = Listed(second * SECOND for second in planned)
    retry = RetryPolicy(attempts, Delays((timedelta(seconds=7),)))
    until = 500 * SECOND
    simulation = simulate(standing(times, **policies), retry, 0, until, assuming)
    assert simulation == simulate(standing(times, **policies), retry, 0, until, assuming)
    fates = [event for event in simulation.events if event.kind != "paused"]
    total = sum(simulation.counts[kind] for kind in ("run", "skipped", "cancelled", "missed", "covered"))
    assert total == sum(event.count for event in fates)
    over = simulation.counts["paused"] or policies["max_runs"] is not None
    assert total <= len(planned) if over else total == len(planned)
    firsts = [event.plan_time for event in fates]
    assert firsts == sorted(set(firsts))
    assert all((begin.to_at or begin.plan_time) < end.plan_time for begin, end in pairwise(fates))
    for event in fates:
        assert event.started_at is None or event.started_at >= event.plan_time
        assert event.finished_at is None or event.started_at is None or event.finished_at >= event.started_at
    if policies["overlap"].mode not in ("allow", "parallel"):
        assert most_at_once(simulation) <= 1
    if attempts == 1:  # else a run may be resting between its start and its end
        assert most_at_once(simulation) <= (assuming.workers or 1_000)
