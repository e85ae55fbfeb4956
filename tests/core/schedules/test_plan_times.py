"""Plan times to come, also of documents that are still being written, and the keys of those that are wrong."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from rota.core.calendar.describe import describe
from rota.core.schedules.diff import timing_of, wrong
from rota.core.schedules.plan_times import Fire, plan_times, upcoming, zone_of
from rota.errors import BadPayload, Invalid, RotaError, UnknownJob
from rota.values.instants import instant, micros_at

HOUR = 3_600_000_000
NOW = micros_at(datetime(2027, 3, 26, 12, tzinfo=UTC))


def fires(document: dict[str, object], count: int) -> list[Fire]:
    return upcoming(timing_of(document, NOW), "new", NOW, count)


def test_a_rule_needs_no_name_and_no_job() -> None:
    document: dict[str, object] = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
    assert zone_of(timing_of(document, NOW)) == "Europe/Berlin"
    assert [fire.marks for fire in fires(document, 3)] == [(), ("gap", "transition"), ()]


def test_what_has_no_plan_times_has_words() -> None:
    document: dict[str, object] = {"after": "5m", "name": "", "job": None}
    assert (describe(timing_of(document, NOW).rule), fires(document, 3)) == ("5 minutes after the last run ended", [])


def test_delays_are_part_of_when_it_fires() -> None:
    (fire,) = fires({"every": "1h", "delay": "90s"}, 1)
    assert (fire.eligible_at - fire.plan_time).total_seconds() == 90


def test_no_more_are_told_than_the_schedule_may_have() -> None:
    definition = replace(timing_of({"every": "1h"}, NOW), max_runs=5)
    assert len(upcoming(definition, "new", NOW, 10, fired=3)) == 2
    assert upcoming(definition, "new", NOW, 10, fired=5) == []
    times, cursor = definition.times("new"), NOW - 3 * HOUR
    assert plan_times(times, cursor, NOW, 9, 5) == [NOW + HOUR, NOW + 2 * HOUR]


def test_of_one_that_follows_its_last_run_the_next_is_known() -> None:
    definition = timing_of({"after": "5m"}, NOW)
    assert [fire.plan_time for fire in upcoming(definition, "new", NOW, 9, next_plan=NOW + HOUR)] == [
        instant(NOW + HOUR)
    ]


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "0 9 * * *", "timezone": "Mars/Base"}, "timezone"),
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"every": "soon"}, "every"),
        ({"every": "1h", "windows": ["25:00-26:00"]}, "windows"),
        ({"every": "1h", "start_at": "tomorrow"}, "start_at"),
        ({"cron": "0 9 * * *", "on": "end"}, "on"),
        ({}, None),
    ],
)
def test_the_key_at_fault_is_named(document: dict[str, object], key: str | None) -> None:
    with pytest.raises(RotaError) as refusal:
        timing_of(document, NOW)
    assert wrong(refusal.value, document).key == key


def test_so_is_that_of_the_rest() -> None:
    assert wrong(BadPayload("$.url", "is missing"), {}).key == "payload"
    assert wrong(Invalid("catch_up.keep must be 1 to 10").within("schedule 'it'"), {}).key == "catch_up"
    assert wrong(UnknownJob("crawl", []).within("schedule 'it'"), {}).key == "job"
    assert wrong(Invalid("nothing in particular"), {}).key is None
