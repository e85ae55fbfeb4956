"""Recent runs of a schedule: which, how late, how long."""

import pytest

from rota.core.schedules.recent_runs import Planned, checked_recent, recent_of
from rota.core.states import RunState
from rota.errors import Invalid
from rota.values.instants import instant

SECOND = 1_000_000


def run(no: int, took: int | None = 1, *, began: int | None = None, state: str = "succeeded") -> Planned:
    """Return a run planned at second `no`, started a tenth later."""
    started = no * SECOND + 100_000
    finished = None if took is None else started + took * SECOND
    return Planned(f"r{no}", no * SECOND, no * SECOND, state, began, started, finished)


def test_the_newest_are_told_the_oldest_first() -> None:
    found = recent_of([run(3), run(1), run(2)], 2)
    assert [one.run_id for one in found.recent] == ["r2", "r3"]
    first = found.recent[0]
    assert (first.plan_time, first.state) == (instant(2 * SECOND), RunState.SUCCEEDED)
    assert (first.lateness_ms, first.duration_ms) == (100, 1_000)


def test_lateness_is_that_of_the_first_attempt() -> None:
    assert recent_of([run(5, began=5 * SECOND + 20_000)], 1).recent[0].lateness_ms == 20
    early = Planned("r", 0, 5 * SECOND, "running", None, 4 * SECOND, None)  # clocks differ
    assert recent_of([early], 1).recent[0].lateness_ms == 0


def test_what_never_began_has_neither() -> None:
    (one,) = recent_of([Planned("r", 0, 0, "skipped", None, None, 0)], 1).recent
    assert (one.lateness_ms, one.duration_ms, one.started_at) == (None, None, None)


@pytest.mark.parametrize(
    ("durations", "p50", "p95"),
    [([], None, None), ([3], 3, 3), ([1, 2], 1, 2), ([1, 2, 3, 4], 2, 4), (list(range(1, 101)), 50, 95)],
)
def test_percentiles(durations: list[int], p50: int | None, p95: int | None) -> None:
    found = recent_of([run(no, took) for no, took in enumerate(durations)] + [run(200, None, state="running")], 101)
    told = [None if one is None else one // 1_000 for one in (found.p50_duration_ms, found.p95_duration_ms)]
    assert told == [p50, p95]


@pytest.mark.parametrize(("schedules", "limit"), [(1, 0), (1, 101), (500, 100)])
def test_too_many_are_refused(schedules: int, limit: int) -> None:
    with pytest.raises(Invalid):
        checked_recent(schedules, limit)
    assert checked_recent(500, 30) == 30
