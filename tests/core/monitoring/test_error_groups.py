"""Error groups: by job and fingerprint, with a histogram."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.core.monitoring.error_groups import BUCKETS, DAY, FailedRun, checked_window, grouped
from rota.errors import Invalid
from rota.values.instants import instant, micros_at

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
HOUR = 3_600_000_000
SINCE, UNTIL = checked_window(None, None, NOW)


def fault(n: int, at: int, mark: str | None = "f", job: str = "crawl", state: str = "failed") -> FailedRun:
    return FailedRun(f"run-{n}", state, job, mark, at)


def test_the_last_day_if_nothing_is_said() -> None:
    assert (instant(SINCE), instant(UNTIL)) == (NOW - DAY, NOW)
    earlier = NOW - timedelta(hours=1)
    assert checked_window(earlier, None, NOW) == (micros_at(earlier), UNTIL)
    assert checked_window(None, earlier, NOW) == (micros_at(earlier - DAY), micros_at(earlier))


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (None, datetime.min.replace(tzinfo=UTC)),
        (NOW, None),
        (NOW, NOW),
        (None, NOW.replace(tzinfo=None)),
        (NOW.replace(tzinfo=None), None),
    ],
)
def test_times_that_make_no_sense(since: datetime | None, until: datetime | None) -> None:
    with pytest.raises(Invalid):
        checked_window(since, until, NOW)


def test_groups_are_by_job_and_fingerprint_and_the_last_one_seen_is_first() -> None:
    faults = [
        fault(1, SINCE),
        fault(2, SINCE + HOUR - 1, state="timed_out"),
        fault(3, UNTIL - 1),
        fault(4, SINCE + HOUR, job="mail"),
        fault(5, SINCE + 2 * HOUR, mark=None),
        fault(6, SINCE + 2 * HOUR, mark="g"),
    ]
    first, *rest = grouped(reversed(faults), SINCE, UNTIL)
    assert (first.job, first.fingerprint, first.count, first.last_run_id) == ("crawl", "f", 3, "run-3")
    assert (first.first_at, first.last_at) == (instant(SINCE), instant(UNTIL - 1))
    assert first.states == {"failed": 2, "timed_out": 1}
    assert first.histogram == [2, *[0] * (BUCKETS - 2), 1]
    assert [(group.job, group.fingerprint) for group in rest] == [("crawl", "g"), ("crawl", None), ("mail", "f")]
    assert [sum(group.histogram) for group in rest] == [1, 1, 1]


def test_nothing_went_wrong() -> None:
    assert grouped([], SINCE, UNTIL) == []
