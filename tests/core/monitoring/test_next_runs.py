"""What is to begin: how plan times and waiting runs are listed and counted."""

from datetime import timedelta

import pytest

from rota.core.calendar.triggers import Trigger, after, every, following
from rota.core.jobs.job import JobDefinition
from rota.core.monitoring.overview import UpcomingRuns, period_of, upcoming_runs
from rota.core.monitoring.timeline import Upcoming, WaitingRun
from rota.core.schedules.schedule import define
from rota.errors import BadDuration, Invalid
from rota.values.instants import micros_at

MINUTE = 60_000_000
HOUR = 60 * MINUTE
NOW = 1_750_000_000_000_000 // HOUR * HOUR


def schedule(
    name: str = "s", trigger: Trigger | None = None, *, at: int = NOW + MINUTE, fired: int = 0, **options: object
) -> Upcoming:
    definition = define(JobDefinition(name="work"), trigger or every("1m"), options, name=name, now=NOW)
    return Upcoming(name, "work", definition, at, fired)


def listed(*schedules: Upcoming, runs: tuple[WaitingRun, ...] = (), each: int = 3, limit: int = 100) -> UpcomingRuns:
    return upcoming_runs(NOW, NOW + HOUR, schedules, runs, each=each, limit=limit, more=False)


def minutes(found: UpcomingRuns) -> list[tuple[str | None, int]]:
    return [(item.schedule or item.run_id, (micros_at(item.at) - NOW) // MINUTE) for item in found.items]


def test_a_schedule_that_fires_often_does_not_hide_the_others() -> None:
    found = listed(schedule(), schedule("rare", every("1h"), at=NOW + HOUR))
    assert minutes(found) == [("s", 1), ("s", 2), ("s", 3), ("rare", 60)]
    assert [item.more for item in found.items] == [0, 0, 57, 0]
    assert (found.total, found.truncated) == (61, False)


def test_runs_that_wait_are_among_them() -> None:
    run = WaitingRun(NOW + 2 * MINUTE + 1, "r", 1, "work", "mail", None)
    found = listed(schedule(), runs=(run,))
    assert minutes(found) == [("s", 1), ("s", 2), ("r", 2), ("s", 3)]
    assert (found.items[2].queue, found.items[2].attempt, found.total) == ("mail", 1, 61)


@pytest.mark.parametrize(("fired", "expected", "total"), [(0, [1, 2, 3], 5), (3, [1, 2], 2), (5, [], 0)])
def test_the_last_runs_of_a_schedule(fired: int, expected: list[int], total: int) -> None:
    found = listed(schedule(fired=fired, max_runs=5))
    assert ([at for _, at in minutes(found)], found.total) == (expected, total)


def test_a_late_plan_time_comes_first_and_counts() -> None:
    found = listed(schedule(at=NOW - 10 * MINUTE))
    assert minutes(found) == [("s", -10), ("s", 0), ("s", 1)]
    assert found.total == 62


def test_a_delay_counts() -> None:
    found = listed(schedule(at=NOW, delay=timedelta(minutes=58)))
    assert (minutes(found), found.total) == ([("s", 58), ("s", 59), ("s", 60)], 3)


@pytest.mark.parametrize("trigger", [after("1m"), following("other")])
def test_what_waits_for_ends_has_one_time(trigger: Trigger) -> None:
    assert minutes(listed(schedule(trigger=trigger))) == [("s", 1)]


def test_no_more_than_asked_for() -> None:
    found = listed(schedule(), limit=2)
    assert (len(found.items), found.total, found.truncated) == (2, 60, True)


@pytest.mark.parametrize("within", ["0s", "32d"])
def test_a_wrong_period(within: str) -> None:
    with pytest.raises(Invalid, match="within must be"):
        period_of(within)
    with pytest.raises(BadDuration, match="within"):
        period_of("soon")
