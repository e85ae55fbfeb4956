"""Retry policies: when a failed attempt is retried."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.retry import (
    Delays,
    Exponential,
    GiveUp,
    RetryPolicy,
    TryAgain,
    after_failure,
    backoff_of,
    retry_policy,
    retry_policy_in,
)
from rota.errors import BadDuration, Invalid

SECOND = timedelta(seconds=1)
MOST = 10_000


def seconds(policy: RetryPolicy, attempt: int, jitter: float = 0.0) -> float:
    decision = after_failure(policy, attempt, jitter)
    assert isinstance(decision, TryAgain)
    return decision.after.total_seconds()


def test_the_default_doubles_from_a_minute_to_an_hour() -> None:
    policy = RetryPolicy(max_attempts=12)
    series = [seconds(policy, attempt) for attempt in range(1, 12)]
    assert series == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600, 3600]


def test_four_attempts_by_default() -> None:
    decisions = [after_failure(RetryPolicy(), attempt, 0) for attempt in (1, 2, 3, 4)]
    assert [type(decision) for decision in decisions] == [TryAgain, TryAgain, TryAgain, GiveUp]
    assert decisions[-1] == GiveUp("attempt 4 of 4")


@pytest.mark.parametrize("attempt", [1, 41, 42, 64, 65, 1_000, MOST - 1])
@pytest.mark.parametrize("factor", [1.0, 1.5, 2.0, 1e6, 1e300])
def test_huge_attempts_do_not_overflow(attempt: int, factor: float) -> None:
    policy = RetryPolicy(MOST, Exponential(factor=factor))
    assert 60 <= seconds(policy, attempt) <= 3600


def test_a_factor_of_one_stays_the_same_for_ever() -> None:
    policy = RetryPolicy(MOST, Exponential(base=SECOND, factor=1.0))
    assert {seconds(policy, attempt) for attempt in (1, 2, 64, 65, 9_999)} == {1.0}


@given(st.integers(1, MOST - 1), st.floats(0, 1), st.floats(0, 1), st.floats(1, 100))
def test_jitter_changes_a_delay_by_at_most_its_share(attempt: int, drawn: float, share: float, factor: float) -> None:
    plain = seconds(RetryPolicy(MOST, Exponential(factor=factor, jitter=0.0)), attempt, drawn)
    jittered = seconds(RetryPolicy(MOST, Exponential(factor=factor, jitter=share)), attempt, drawn)
    assert plain * (1 - share) <= jittered + 1e-5
    assert jittered <= plain * (1 + share) + 1e-5


@given(st.integers(1, MOST - 1), st.floats(0, 1), st.floats(0, 1), st.floats(1, 100))
def test_jitter_never_exceeds_the_cap(attempt: int, drawn: float, share: float, factor: float) -> None:
    backoff = Exponential(factor=factor, jitter=share)
    assert timedelta(0) <= backoff.delay(attempt, drawn) <= backoff.cap


def test_runs_that_wait_for_the_cap_do_not_come_back_at_once() -> None:
    backoff = Exponential(cap=60 * SECOND)
    assert [backoff.delay(9, drawn / 4).total_seconds() for drawn in range(5)] == [60, 58.5, 57, 55.5, 54]


@given(st.integers(1, MOST - 2), st.floats(1, 10))
def test_backoff_never_shrinks(attempt: int, factor: float) -> None:
    policy = RetryPolicy(MOST, Exponential(factor=factor))
    assert seconds(policy, attempt) <= seconds(policy, attempt + 1)


def test_a_list_gives_one_delay_each_and_repeats_its_last() -> None:
    policy = retry_policy(10, ["1s", "10s", "1m"])
    assert [seconds(policy, attempt, jitter=1.0) for attempt in (1, 2, 3, 4, 9)] == [1, 10, 60, 60, 60]


def test_an_empty_list_means_no_retry() -> None:
    assert isinstance(after_failure(retry_policy(10, []), 1, 0), GiveUp)


def test_one_attempt_means_no_retry() -> None:
    assert isinstance(after_failure(retry_policy(1, "1s"), 1, 0), GiveUp)


@given(st.integers(1, 50), st.integers(1, 60), st.floats(0, 1))
def test_attempts_stay_within_the_budget(most: int, attempt: int, jitter: float) -> None:
    decision = after_failure(RetryPolicy(most), attempt, jitter)
    assert isinstance(decision, TryAgain) == (attempt < most)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("30s", Delays((30 * SECOND,))),
        (timedelta(minutes=2), Delays((120 * SECOND,))),
        (["1s", timedelta(seconds=2)], Delays((SECOND, 2 * SECOND))),
        (("1s",), Delays((SECOND,))),
        ("exponential", Exponential()),
        (Exponential(factor=3), Exponential(factor=3)),
        (Delays((SECOND,)), Delays((SECOND,))),
    ],
)
def test_what_people_write(written: str, meant: Exponential | Delays) -> None:
    assert backoff_of(written) == meant


@pytest.mark.parametrize("most", [0, -1, MOST + 1, True, 1.5, "3", None])
def test_a_budget_that_makes_no_sense(most: object) -> None:
    with pytest.raises(Invalid, match="max_attempts"):
        retry_policy(most, "1s")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "backoff",
    [
        Exponential(factor=0.5),
        Exponential(factor=float("nan")),
        Exponential(jitter=-0.1),
        Exponential(jitter=1.1),
        Exponential(jitter=float("nan")),
        Exponential(base=-SECOND),
        Exponential(cap=-SECOND),
    ],
)
def test_an_exponential_that_makes_no_sense(backoff: Exponential) -> None:
    with pytest.raises(Invalid, match="exponential"):
        backoff_of(backoff)


@pytest.mark.parametrize("backoff", ["soon", ["1s", "later"], ["-1s"], [5]])
def test_delays_that_are_no_durations(backoff: str) -> None:
    with pytest.raises(BadDuration):
        backoff_of(backoff)


@pytest.mark.parametrize(
    "policy", [RetryPolicy(), retry_policy(3, ["1s"]), retry_policy(2, []), retry_policy(4, Exponential())]
)
def test_a_policy_survives_json(policy: RetryPolicy) -> None:
    assert msgspec.json.decode(msgspec.json.encode(policy), type=RetryPolicy) == policy


def test_only_a_given_default_is_written() -> None:
    """Other policies are stored as before, so that no job or schedule seems to have changed."""
    written = {"max_attempts": 4, "backoff": msgspec.to_builtins(Exponential())}
    assert msgspec.to_builtins(retry_policy_in({})) == written
    assert msgspec.to_builtins(retry_policy_in({"backoff": "exponential"})) == {**written, "backoff_given": True}
    assert set(msgspec.to_builtins(retry_policy_in({"backoff": "1s"}))) == set(written)


def test_what_is_not_given_stays_as_it_was_given() -> None:
    chosen = retry_policy_in({"backoff": {"base": "60s"}})
    for job, is_default in ((RetryPolicy(), True), (chosen, False)):
        assert retry_policy_in({"max_attempts": 2}, job).has_default_backoff is is_default
        assert retry_policy_in({"backoff": {}}, job).has_default_backoff is False
