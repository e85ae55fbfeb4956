"""Timeline: the lanes of attempts, overlaps, and coming plan times."""

from datetime import UTC, datetime

import msgspec
import pytest

from rota.core.calendar.triggers import after, cron, every
from rota.core.jobs.job import JobDefinition
from rota.core.monitoring.counters import HOUR
from rota.core.monitoring.timeline import MOST_FIRES, Asked, Bar, Grouping, Upcoming, asked_of, overlap, timeline_of
from rota.core.schedules.schedule import ScheduleDefinition, define
from rota.errors import Invalid
from rota.values.instants import instant

NOW = 1_750_000_000_000_000 // HOUR * HOUR
SECOND = 1_000_000
ASKED = Asked(NOW - HOUR, NOW, Grouping.SCHEDULE, 500)


def bar(no: int, start: int = 0, end: int | None = 1, schedule: str | None = "s", worker: str = "w@1") -> Bar:
    """Return an attempt from second `start` to second `end` of the hour."""
    begin = NOW - HOUR
    ended = None if end is None else begin + end * SECOND
    state = "running" if end is None else "succeeded"
    return Bar(f"r{no}", 1, state, worker, begin + start * SECOND, ended, "work", "default", schedule)


def test_lanes_by_name_and_attempts_the_newest_first() -> None:
    bars = [bar(1, 0), bar(2, 5, 6), bar(3, 2, 3, schedule="a"), bar(4, schedule=None)]
    found = timeline_of(ASKED, bars, [])
    assert [(lane.name, [one.run_id for one in lane.attempts]) for lane in found.lanes] == [
        ("a", ["r3"]),
        ("s", ["r2", "r1"]),
    ]
    assert not found.truncated
    assert found.lanes[0].attempts[0].started_at == instant(NOW - HOUR + 2 * SECOND)


@pytest.mark.parametrize(("by", "lanes"), [("job", ["work"]), ("worker", ["w@1", "w@2"]), ("queue", ["default"])])
def test_other_lanes(by: str, lanes: list[str]) -> None:
    asked = msgspec.structs.replace(ASKED, by=Grouping(by))
    found = timeline_of(asked, [bar(1), bar(2, worker="w@2", schedule=None)], [])
    assert [lane.name for lane in found.lanes] == lanes


def test_one_that_is_told_twice_is_one() -> None:
    assert len(timeline_of(ASKED, [bar(1), bar(1)], []).lanes[0].attempts) == 1


def test_the_oldest_are_left_out() -> None:
    asked = msgspec.structs.replace(ASKED, limit=2)
    found = timeline_of(asked, [bar(no, no, no + 1) for no in range(3)], [])
    assert ([one.run_id for one in found.lanes[0].attempts], found.truncated) == (["r2", "r1"], True)
    assert timeline_of(ASKED, [], [], unread_until=1).truncated


@pytest.mark.parametrize(
    ("bars", "expected"),
    [
        ([bar(1, 0, 2), bar(2, 2, 3)], False),
        ([bar(1, 0, 3), bar(2, 2, 5)], True),
        ([bar(1, 0, None), bar(2, 9, 10)], True),
        ([bar(1, 0, 10), bar(2, 1, 2), bar(3, 11, 12)], True),
        ([bar(1, 5, None), bar(2, 0, 5)], False),
        ([bar(1)], False),
    ],
)
def test_overlaps(bars: list[Bar], expected: bool) -> None:
    assert overlap(bars) is expected
    assert overlap(reversed(bars)) is expected


def upcoming(name: str, interval: str = "10m", **options: object) -> Upcoming:
    definition = define(JobDefinition(name="work"), every(interval), dict(options), name=name, now=NOW)
    return Upcoming(name, "work", definition, NOW + 600 * SECOND, 3)


def test_what_is_to_come() -> None:
    asked = msgspec.structs.replace(ASKED, to_at=NOW + HOUR // 2)
    (lane,) = timeline_of(asked, [], [upcoming("s")]).lanes
    assert lane.coming == [instant(NOW + minute * 60 * SECOND) for minute in (10, 20, 30)]
    by_job = msgspec.structs.replace(asked, by=Grouping.JOB)
    (lane,) = timeline_of(by_job, [], [upcoming("s"), upcoming("t")]).lanes
    assert (lane.name, len(lane.coming)) == ("work", 6)
    assert timeline_of(msgspec.structs.replace(asked, by=Grouping.QUEUE), [], [upcoming("s")]).lanes == []
    assert timeline_of(ASKED, [], [upcoming("s")]).lanes == []


def test_no_more_is_to_come_than_there_will_be() -> None:
    asked = msgspec.structs.replace(ASKED, to_at=NOW + 24 * HOUR)
    (often,) = timeline_of(asked, [], [upcoming("s", "1s")]).lanes
    assert len(often.coming) == MOST_FIRES
    (few,) = timeline_of(asked, [], [upcoming("s", max_runs=5)]).lanes
    assert len(few.coming) == 2
    definition = define(JobDefinition(name="work"), after("10m"), {}, name="s", now=NOW)
    (once,) = timeline_of(asked, [], [Upcoming("s", "work", definition, NOW + 1, 0)]).lanes
    assert len(once.coming) == 1


def test_what_is_to_come_in_a_time_that_has_not_begun() -> None:
    asked = Asked(NOW + 24 * HOUR, NOW + 25 * HOUR - 1, Grouping.SCHEDULE, 500)
    (lane,) = timeline_of(asked, [], [upcoming("s")]).lanes
    assert lane.coming == [instant(asked.from_at + minute * 60 * SECOND) for minute in range(0, 60, 10)]
    before = 24 * 6 - 1  # plan times from the next one until then
    (few,) = timeline_of(asked, [], [upcoming("s", max_runs=3 + before + 2)]).lanes
    assert len(few.coming) == 2
    assert timeline_of(asked, [], [upcoming("s", max_runs=3 + before)]).lanes == []
    definition = define(JobDefinition(name="work"), after("10m"), {}, name="s", now=NOW)
    assert timeline_of(asked, [], [Upcoming("s", "work", definition, NOW + 1, 0)]).lanes == []


def test_of_a_zone_that_is_not_known_here_only_the_next_is_told() -> None:
    definition = define(JobDefinition(name="work"), cron("0 * * * *", tz="Europe/Berlin"), {}, name="s", now=NOW)
    text = msgspec.json.encode(definition).replace(b"Berlin", b"Nowhere")
    foreign = Upcoming("s", "work", msgspec.json.decode(text, type=ScheduleDefinition), NOW + 1, 0)
    asked = msgspec.structs.replace(ASKED, to_at=NOW + 24 * HOUR)
    (lane,) = timeline_of(asked, [], [foreign]).lanes
    assert lane.coming == [instant(NOW + 1)]


def test_what_is_asked_is_checked() -> None:
    assert asked_of(None, None, "job", 500, NOW) == Asked(NOW - HOUR, NOW, Grouping.JOB, 500)
    for wrong in ({"by": "colour"}, {"limit": 0}, {"limit": 5_001}):
        with pytest.raises(Invalid):
            asked_of(None, None, **{"by": "job", "limit": 5, "now": NOW, **wrong})  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="after"):
        asked_of(instant(NOW), instant(NOW - 1), "job", 5, NOW)
    with pytest.raises(Invalid, match="zone"):
        asked_of(datetime(2026, 1, 1), None, "job", 5, NOW)  # noqa: DTZ001
    extreme = asked_of(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), "job", 5, NOW)
    assert extreme.from_at == 0
    assert instant(extreme.to_at).year < 9_999
