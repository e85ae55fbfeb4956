"""Previews of a schedule that is still being written: its rule, its next fires, and the key that is wrong."""

from datetime import UTC, datetime

import pytest

from rota.core.schedules.preview import foresee, wrong
from rota.errors import BadPayload, Invalid, UnknownJob
from rota.values.instants import micros_at

NOW = micros_at(datetime(2027, 3, 26, 12, tzinfo=UTC))


def test_a_rule_is_told_without_a_name_and_a_job() -> None:
    seen = foresee({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, NOW, 3)
    assert seen.rule == "every day at 02:30, Europe/Berlin"
    assert seen.timezone == "Europe/Berlin"
    assert [fire.marks for fire in seen.fires] == [(), ("gap", "transition"), ()]
    assert seen.problems == ()


def test_what_has_no_plan_times_has_words() -> None:
    seen = foresee({"after": "5m", "name": "", "job": None}, NOW, 3)
    assert (seen.rule, seen.fires) == ("5 minutes after the last run ended", ())


def test_delays_are_part_of_when_it_fires() -> None:
    (fire,) = foresee({"every": "1h", "delay": "90s"}, NOW, 1).fires
    assert (fire.eligible_at - fire.plan_time).total_seconds() == 90


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
    (problem,) = foresee(document, NOW, 3).problems
    assert problem.key == key


def test_so_is_that_of_the_rest() -> None:
    assert wrong(BadPayload("$.url", "is missing"), {}).key == "payload"
    assert wrong(Invalid("catch_up.keep must be 1 to 10").within("schedule 'it'"), {}).key == "catch_up"
    assert wrong(UnknownJob("crawl", []).within("schedule 'it'"), {}).key == "job"
    assert wrong(Invalid("nothing in particular"), {}).key is None
