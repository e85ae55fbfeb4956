"""The arithmetic of `python -m benchmarks chaos`: windows before a fault and after it."""

from itertools import chain

import pytest

from benchmarks.reports.rates import back_after, rate, recovery, steady_rate


def steady(per_second: int, since: float, until: float) -> list[float]:
    return [since + (number + 0.5) / per_second for number in range(round((until - since) * per_second))]


def test_a_rate_counts_its_beginning_and_not_its_end() -> None:
    assert rate([0.0, 1.0, 2.0, 3.0], 1.0, 3.0) == 1.0


def test_one_bad_second_does_not_lower_the_baseline() -> None:
    instants = [*steady(100, 0, 2), *steady(10, 2, 3), *steady(100, 3, 5)]
    assert steady_rate(instants, 0, 5) == pytest.approx(100)


def test_a_fault_after_which_all_is_as_before() -> None:
    instants = [*steady(100, 0, 10), *steady(100, 16, 40)]
    found = recovery(instants, struck=10, healed=14, seconds=5)
    assert (found.baseline, found.during, found.share) == pytest.approx((100, 0, 1))
    assert found.after == pytest.approx(1.9), "95 % of a window's runs are there, one step before all of them are"
    assert found.is_met


def test_a_burst_of_what_was_held_back_is_no_recovery() -> None:
    instants = [*steady(100, 0, 10), *steady(300, 14, 15), *steady(50, 15, 40)]
    found = recovery(instants, struck=10, healed=14, seconds=5)
    assert found.share == pytest.approx(0.5)
    assert not found.is_met


def test_what_comes_back_late_is_told_and_not_met() -> None:
    instants = [*steady(100, 0, 10), *steady(40, 12, 30), *steady(100, 30, 40)]
    found = recovery(instants, struck=10, healed=12, seconds=5)
    assert found.share == pytest.approx(0.4)
    assert found.after == pytest.approx(17.9, abs=0.11)
    assert not found.is_met


def test_what_never_comes_back_has_no_time() -> None:
    assert back_after(steady(40, 0, 60), healed=10, wanted=95) is None
    assert back_after([], healed=10, wanted=95) is None


def test_one_of_two_is_measured_by_what_one_can_do() -> None:
    instants = list(chain(steady(100, 0, 10), steady(50, 10, 40)))
    assert recovery(instants, struck=10, healed=10.5, seconds=5).share == pytest.approx(0.5)
    assert recovery(instants, struck=10, healed=10.5, seconds=5, part=0.5).is_met
