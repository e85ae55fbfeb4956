"""Expectations: parsing, and breaches to the microsecond."""

from datetime import timedelta
from typing import Any

import pytest

from rota.core.alerts.expectations import (
    EXPECTED,
    End,
    Expectations,
    Facts,
    Since,
    breaches,
    changed,
    expectations_of,
    written,
)
from rota.core.jobs.job import JobDefinition
from rota.core.schedules.documents import document_of, parse
from rota.core.schedules.schedule import define
from rota.errors import Invalid, RotaError

SECOND = 1_000_000
MINUTE = 60 * SECOND
NOW = 1_000 * MINUTE


def facts(**known: Any) -> Facts:
    return Facts(**{"since": 0, **known})


def ends(word: str) -> list[End]:
    """Return ends, the newest first, a minute apart: `+` succeeded, `-` failed."""
    return [End(NOW - place * MINUTE, sign == "+") for place, sign in enumerate(word, 1)]


def due(ago: int) -> Since:
    return Since(NOW - ago, "r1")


FIVE = {"start_within": "5m"}
CASES: list[tuple[dict[str, Any], Facts, list[str]]] = [
    (FIVE, facts(), []),
    (FIVE, facts(waiting=due(5 * MINUTE)), []),
    (FIVE, facts(waiting=due(5 * MINUTE + 1)), ["start_within"]),
    (FIVE, facts(live=due(9 * MINUTE), running=due(9 * MINUTE)), []),
    (FIVE, facts(waiting=due(9 * MINUTE), since=NOW - 5 * MINUTE), []),
    (FIVE, facts(waiting=due(9 * MINUTE), since=NOW - 5 * MINUTE - 1), ["start_within"]),
    (FIVE, facts(waiting=Since(NOW - 6 * MINUTE)), ["start_within"]),
    ({"finish_within": "1h"}, facts(live=due(60 * MINUTE)), []),
    ({"finish_within": "1h"}, facts(live=due(60 * MINUTE + 1)), ["finish_within"]),
    ({"finish_within": "1h"}, facts(live=due(90 * MINUTE), since=NOW - MINUTE), []),
    ({"max_duration": "10m"}, facts(running=due(10 * MINUTE)), []),
    ({"max_duration": "10m"}, facts(running=due(10 * MINUTE + 1)), ["max_duration"]),
    ({"max_duration": "10m"}, facts(running=due(11 * MINUTE), since=NOW - MINUTE), ["max_duration"]),
    ({"max_duration": "10m"}, facts(waiting=due(99 * MINUTE), live=due(99 * MINUTE)), []),
    ({"success_every": "1h"}, facts(last_success=NOW - 60 * MINUTE), []),
    ({"success_every": "1h"}, facts(last_success=NOW - 60 * MINUTE - 1), ["success_every"]),
    ({"success_every": "1h"}, facts(since=NOW - 60 * MINUTE), []),
    ({"success_every": "1h"}, facts(since=NOW - 60 * MINUTE - 1), ["success_every"]),
    ({"success_every": "1h"}, facts(since=NOW - MINUTE, last_success=1), []),
    ({"success_every": "1h"}, facts(over=True), []),
    ({"max_consecutive_failures": 2}, facts(ends=ends("--")), []),
    ({"max_consecutive_failures": 2}, facts(ends=ends("---")), ["max_consecutive_failures"]),
    ({"max_consecutive_failures": 2}, facts(ends=ends("--+-----")), []),
    ({"max_consecutive_failures": 2}, facts(ends=ends("---+")), ["max_consecutive_failures"]),
    ({"max_consecutive_failures": 0}, facts(ends=ends("+-")), []),
    ({"max_consecutive_failures": 0}, facts(ends=ends("-+")), ["max_consecutive_failures"]),
    ({"max_consecutive_failures": 0}, facts(), []),
    ({"min_success_rate": 0.75}, facts(ends=ends("---")), []),
    ({"min_success_rate": 0.75}, facts(ends=ends("----")), []),
    ({"min_success_rate": 0.75}, facts(ends=ends("-----")), ["min_success_rate"]),
    ({"min_success_rate": 0.75, "at_least": 4}, facts(ends=ends("+++-")), []),
    ({"min_success_rate": 0.75, "at_least": 4}, facts(ends=ends("++--")), ["min_success_rate"]),
    ({"min_success_rate": "95%"}, facts(ends=ends("+" * 19 + "-")), []),
    ({"min_success_rate": "95%"}, facts(ends=ends("+" * 18 + "--")), ["min_success_rate"]),
    ({"min_success_rate": "95%"}, facts(ends=ends("+" * 20 + "-" * 20)), []),
    ({"min_success_rate": "100%", "over": 5}, facts(ends=ends("++++-")), ["min_success_rate"]),
    (
        {"start_within": "1m", "finish_within": "5m", "success_every": "1h"},
        facts(waiting=due(9 * MINUTE), live=due(9 * MINUTE)),
        ["start_within", "finish_within", "success_every"],
    ),
]


@pytest.mark.parametrize(("expect", "known", "breached"), CASES)
def test_what_is_breached(expect: dict[str, Any], known: Facts, breached: list[str]) -> None:
    assert [breach.what for breach in breaches(expectations_of(expect), known, NOW)] == breached


def test_a_rate_that_wavers_around_its_limit_is_breached_once() -> None:
    """Of twenty runs at least 80 % succeed: with three to five failures the share goes to and fro over its limit."""
    expect = expectations_of({"min_success_rate": 0.8})
    recorded: list[str] = []
    changes = []
    for failures in (4, 5, 4, 5, 3, 4, 5, 3, 5, 2, 3, 4, 5):
        known = facts(ends=ends("-" * failures + "+" * (20 - failures)))
        now = [breach.what for breach in breaches(expect, known, NOW, recorded)]
        changes += [failures] if now != recorded else []
        recorded = now
    assert changes == [5, 2, 5]


@pytest.mark.parametrize("what", EXPECTED)
def test_the_table_of_cases_leaves_nothing_out(what: str) -> None:
    assert {what in breached for expect, _, breached in CASES if what in expect} == {True, False}


def test_a_breach_says_since_when_and_what_is_wrong() -> None:
    expect = expectations_of({"start_within": "5m", "success_every": "1h", "max_consecutive_failures": 1})
    known = facts(waiting=due(6 * MINUTE), last_success=NOW - 61 * MINUTE, ends=ends("---+"))
    late, silent, failing = breaches(expect, known, NOW)
    assert (late.since, silent.since, failing.since) == (NOW - MINUTE, NOW - MINUTE, NOW - 2 * MINUTE)
    assert late.message == "run r1 was due 6m ago, and has not begun; start_within is 5m"
    assert late.details == {"run_id": "r1", "value": "6m", "limit": "5m"}
    assert silent.message == "no run has succeeded for 1h1m; success_every is 1h"
    assert failing.message == "the last 3 runs failed; max_consecutive_failures is 1"
    (planned,) = breaches(expectations_of(FIVE), facts(waiting=Since(NOW - 6 * MINUTE)), NOW)
    assert planned.message.startswith("a plan time was due 6m ago")


def test_how_far_back_it_looks() -> None:
    looks = [Expectations(max_consecutive_failures=3), Expectations(min_success_rate=0.5), Expectations()]
    assert [expect.looks_back for expect in looks] == [4, 20, 0]


@pytest.mark.parametrize("rate", [0.95, "95%", " 95 % ", "0.95"])
def test_a_rate_is_a_share_or_a_percentage(rate: Any) -> None:
    assert expectations_of({"min_success_rate": rate}).min_success_rate == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("5m", "expect must be a table"),
        ({}, "expect is empty"),
        ({"start_within": None}, "expect is empty"),
        ({"starts_within": "5m"}, "did you mean 'start_within'"),
        ({"start_within": "0s"}, "longer than zero"),
        ({"start_within": 5}, "5"),
        ({"start_within": "-5m"}, "-5m"),
        ({"start_within": timedelta(seconds=-1)}, "negative"),
        ({"finish_within": "1m", "start_within": "5m"}, "finish_within (1m) is shorter than start_within (5m)"),
        ({"finish_within": "1m", "max_duration": "5m"}, "max_duration (5m) is longer than finish_within (1m)"),
        ({"max_consecutive_failures": -1}, "0 to 1000"),
        ({"max_consecutive_failures": True}, "whole number"),
        ({"min_success_rate": 0}, "more than 0"),
        ({"min_success_rate": 95}, '"95%"'),
        ({"min_success_rate": "many"}, '"95%"'),
        ({"min_success_rate": "nan"}, "more than 0"),
        ({"min_success_rate": 0.9, "over": 0}, "1 to 1000"),
        ({"min_success_rate": 0.9, "over": 3}, "at_least (5) is more than over (3)"),
        ({"start_within": "1m", "over": 3}, "means nothing without min_success_rate"),
    ],
)
def test_what_cannot_be_expected_is_refused(value: object, says: str) -> None:
    with pytest.raises(RotaError) as refused:
        expectations_of(value)
    assert isinstance(refused.value, Invalid)
    assert says in str(refused.value)


def test_as_short_as_it_may_be() -> None:
    expect = expectations_of({"start_within": "5m", "finish_within": "5m", "max_duration": "5m"})
    assert expect.start_within == expect.finish_within == expect.max_duration == timedelta(minutes=5)


@pytest.mark.parametrize(
    "value",
    [
        {"start_within": "5m", "finish_within": "1h", "success_every": "1d1h", "max_duration": "30m"},
        {"max_consecutive_failures": 0},
        {"min_success_rate": 0.9, "over": 50, "at_least": 10},
    ],
)
def test_what_is_written_is_read_back(value: dict[str, Any]) -> None:
    assert written(expectations_of(value)) == value
    assert expectations_of(expectations_of(value)) == expectations_of(value)


def test_only_what_is_given_changes() -> None:
    expect = expectations_of({"start_within": "5m", "min_success_rate": 0.9, "over": 50})
    assert written(changed(expect, {"start_within": "6m"})) == {**written(expect), "start_within": "6m"}
    assert written(changed(expect, {"min_success_rate": None})) == {"start_within": "5m"}
    assert written(changed(None, {"success_every": "1h"})) == {"success_every": "1h"}
    with pytest.raises(Invalid, match="expect is empty"):
        changed(expectations_of({"start_within": "5m"}), {"start_within": None})


def test_in_a_file_of_schedules() -> None:
    document = {
        "name": "news",
        "job": "crawl",
        "every": "1h",
        "expect": {"success_every": "2h", "min_success_rate": "90%"},
    }
    parsed = parse(document)
    definition = define(JobDefinition(name="crawl"), parsed.trigger, parsed.options, name="news", now=NOW)
    again = document_of("news", definition)
    assert again["expect"] == {"success_every": "2h", "min_success_rate": 0.9}
    assert define(JobDefinition(name="crawl"), *parse(again)[2:], name="news", now=NOW) == definition
    with pytest.raises(Invalid, match="expect must be a table"):
        define(JobDefinition(name="crawl"), parsed.trigger, {"expect": "2h"}, name="news", now=NOW)
