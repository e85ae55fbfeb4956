"""Definitions of schedules: everything is checked before anything is stored."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from rota.core.calendar.triggers import Cron, Trigger, after, cron, every, once
from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.jobs.retry import Delays, Exponential, RetryPolicy
from rota.core.limits.limits import Limit
from rota.core.runs.options import new_run
from rota.core.schedules.policies import CatchUp, CatchUpMode, Failure, FailureMode, Overlap, OverlapMode
from rota.core.schedules.schedule import SCHEDULE_OPTIONS, Schedule, ScheduleDefinition, define, options_of
from rota.errors import BadDuration, BadPayload, BadTrigger, Conflict, Invalid, NotSchedulable, UnknownOption
from rota.values.instants import instant, micros_at
from rota.values.scope import GLOBAL, Scope

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
NOW = micros_at(NEW_YEAR)
JOB = JobDefinition(name="report")
HOURLY = every("1h")


def defined(
    trigger: Trigger = HOURLY, job: JobDefinition = JOB, name: str = "nightly", **options: Any
) -> ScheduleDefinition:
    return define(job, trigger, options, name=name, now=NOW)


def test_a_schedule_needs_a_job_and_a_trigger_only() -> None:
    definition = defined()
    assert (definition.job, definition.payload, definition.lanes, definition.follows) == ("report", {}, (GLOBAL,), None)
    assert (definition.catch_up, definition.overlap, definition.failure) == (CatchUp(), Overlap(), Failure())
    assert definition.times("nightly").next(NOW) == NOW + 3_600_000_000


SAMPLE: dict[str, Any] = {
    "max_concurrency": 1,
    "when_full": "skip",
    "overlap": "cancel_previous",
    "failure": "retry",
    "catch_up": {"mode": "all", "keep": 3},
    "timeout": "8s",
}


def test_the_sample_configuration() -> None:
    """Combine an interval of five seconds, a limit, cancelling or retrying the last run, and catching up three."""
    definition = defined(cron("*/5 * * * * *"), name="demo-task", **SAMPLE)
    assert definition.limit == Limit(max=1, when_full="skip")
    assert definition.overlap == Overlap(mode=OverlapMode.CANCEL_PREVIOUS)
    assert definition.failure == Failure(mode=FailureMode.RETRY)
    assert definition.catch_up == CatchUp(mode=CatchUpMode.ALL, keep=3)
    assert definition.options == {"timeout": "8s"}


EVERYTHING: dict[str, Any] = {
    "payload": {"url": "https://example.com/{scope.id}", "deep": [1, {"at": "{plan_time}"}]},
    "scopes": [("account", "1"), Scope("account", "2")],
    "delay": "5m",
    "jitter": timedelta(seconds=30),
    "catch_up": {"mode": "all", "keep": 5, "window": "1h"},
    "overlap": {"mode": "parallel", "max_overlap": 2},
    "failure": {"mode": "backoff", "backoff": ["1m", "5m"]},
    "max_concurrency": 2,
    "when_full": "queue",
    "max_queued": 10,
    "rate": "100/1h",
    "expect": {"start_within": "5m", "min_success_rate": 0.9},
    "max_runs": 100,
    "start_at": NEW_YEAR,
    "end_at": NEW_YEAR + timedelta(days=30),
    "windows": ["09:00-17:00 mon-fri"],
    "exclude": ["2026-01-06"],
    "timezone": "Europe/Berlin",
    "enabled": False,
    "description": "the nightly report",
    "queue": "slow",
    "priority": 5,
    "timeout": timedelta(minutes=10),
    "max_attempts": 3,
    "backoff": Exponential(base=timedelta(seconds=10), factor=3.0),
    "tags": ("a", "b"),
    "metadata": {"owner": "me"},
}


def test_everything_that_can_be_said_can_be_said_at_once() -> None:
    assert set(EVERYTHING) == set(SCHEDULE_OPTIONS)
    definition = defined(**EVERYTHING)
    assert definition.scopes == definition.lanes == (Scope("account", "1"), Scope("account", "2"))
    assert (definition.delay, definition.jitter) == (timedelta(minutes=5), timedelta(seconds=30))


@pytest.mark.parametrize(
    ("trigger", "options"),
    [
        (HOURLY, {}),
        (HOURLY, EVERYTHING),
        (cron("*/5 * * * * *"), SAMPLE),
        (after("5m"), {"failure": "pause", "max_runs": 3}),
        (once(NEW_YEAR), {"scopes": "tenants"}),
        (cron("0 18 * * *", "Asia/Tokyo"), {"windows": ["09:00-17:00"], "timezone": "Europe/Berlin"}),
        (HOURLY, {"catch_up": "all", "overlap": "skip"}),
        (HOURLY, {"catch_up": "all"}),
        (HOURLY, {"backoff": []}),
    ],
)
def test_a_definition_survives_json_and_being_edited(trigger: Trigger, options: dict[str, Any]) -> None:
    definition = defined(trigger, **options)
    assert msgspec.json.decode(msgspec.json.encode(definition), type=ScheduleDefinition) == definition
    assert defined(trigger, **options_of(definition)) == definition


def test_the_options_of_its_runs_are_kept_as_people_write_them() -> None:
    options = defined(timeout=timedelta(minutes=10), max_attempts=3, backoff=Exponential(jitter=0.0)).options
    assert options["timeout"] == "10m"
    stored = msgspec.json.decode(msgspec.json.encode(options))
    assert stored == options
    run = new_run(JOB, "id", "{}", stored)
    assert run.max_attempts == 3
    assert run.overrides is not None
    overrides = msgspec.json.decode(run.overrides)
    assert msgspec.convert(overrides["retry"], RetryPolicy) == RetryPolicy(3, Exponential(jitter=0.0))


@pytest.mark.parametrize(
    ("backoff", "kept"),
    [("30s", ["30s"]), (["1m", "90s"], ["1m", "1m30s"]), ([], []), (Delays((timedelta(seconds=1),)), ["1s"])],
)
def test_a_backoff_of_its_runs_is_kept_as_people_write_it(backoff: Any, kept: list[str]) -> None:
    assert defined(backoff=backoff).options == {"backoff": kept}


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "tab\there", "half \ud800", None, 5])
def test_a_schedule_needs_a_name(name: Any) -> None:
    with pytest.raises(Invalid, match="name of a schedule"):
        defined(name=name)


@pytest.mark.parametrize("interval", ["0s", "-5m", "500ms", 5, "soon"])
def test_a_cadence_must_be_longer_than_nothing(interval: Any) -> None:
    with pytest.raises(Invalid):
        every(interval)


@pytest.mark.parametrize(
    "options",
    [
        {"payload": "text"},
        {"payload": [1, 2]},
        {"payload": None},
        {"payload": {"at": object()}},
        {"payload": {"n": float("nan")}},
        {"payload": {"text": "half \ud800"}},
        {"payload": {"at": "{plan_tme}"}},
        {"scopes": 5},
        {"scopes": {"account": "1"}},
        {"scopes": ["account"]},
        {"scopes": [("account",)]},
        {"scopes": [("account", "")]},
        {"scopes": [("account", 1)]},
        {"scopes": [("account", "1"), ("account", "2"), Scope("account", "1")]},
        {"scopes": [("account", str(n)) for n in range(10_001)]},
        {"scopes": ""},
        {"delay": 5},
        {"delay": "-5m"},
        {"delay": "1500ms"},
        {"delay": None},
        {"jitter": "soon"},
        {"jitter": timedelta(microseconds=1)},
        {"catch_up": "everything"},
        {"catch_up": {"mode": "all", "keep": 0}},
        {"catch_up": {"mode": "all", "per_tick": 0}},
        {"overlap": "wait"},
        {"failure": "ignore"},
        {"max_concurrency": 0},
        {"max_concurrency": "1"},
        {"max_concurrency": 1, "when_full": "explode"},
        {"max_concurrency": 1, "when_full": "skip", "max_queued": 3},
        {"when_full": "skip"},
        {"max_queued": 3},
        {"max_runs": 0},
        {"max_runs": -1},
        {"max_runs": True},
        {"max_runs": 1.5},
        {"start_at": "2026-01-01"},
        {"start_at": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"start_at": NEW_YEAR, "end_at": NEW_YEAR - timedelta(days=1)},
        {"windows": "09:00-17:00"},
        {"windows": 5},
        {"windows": [5]},
        {"windows": ["always"]},
        {"exclude": "2026-01-01"},
        {"exclude": [5]},
        {"exclude": [["2026-01-01"]]},
        {"exclude": ["2026-02-30"]},
        {"windows": ["09:00-17:00"], "timezone": "Mars/Base"},
        {"windows": ["09:00-17:00"], "timezone": 5},
        {"enabled": "yes"},
        {"enabled": 1},
        {"queue": ""},
        {"priority": 5_000},
        {"priority": "high"},
        {"timeout": "0s"},
        {"timeout": 10},
        {"max_attempts": 0},
        {"backoff": "later"},
        {"backoff": {"base": "1m", "facto": 2}},
        {"tags": "one"},
        {"tags": [1]},
        {"metadata": "text"},
        {"metadata": {"at": object()}},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        defined(**options)


@pytest.mark.parametrize(
    ("trigger", "options", "why"),
    [
        (after("5m"), {"catch_up": "all"}, "catch_up means nothing"),
        (after("5m"), {"overlap": "allow"}, "overlap means nothing"),
        (after("5m"), {"scopes": [("a", "1"), ("a", "2")]}, "cannot have several scopes"),
        (after("5m"), {"scopes": "tenants"}, "cannot have several scopes"),
        (HOURLY, {"failure": "retry", "max_attempts": 3}, "a run has one attempt"),
        (HOURLY, {"catch_up": {"mode": "latest", "keep": 3}}, "keep means nothing"),
        (cron("0 9 * * *"), {"timezone": "Europe/Berlin"}, r"timezone means nothing .*cron\(…, 'Europe/Berlin'\)"),
        (HOURLY, {"windows": ["09:30-09:45"]}, "nothing is left of it"),
        (every("1h", anchor="start"), {}, "anchor: there is no start_at .*say start_at"),
        (Cron("0 0 30 2 *"), {}, "day of month: 30 never comes in February"),
    ],
)
def test_contradictions_are_refused(trigger: Trigger, options: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        defined(trigger, **options)


def test_a_job_has_a_say_in_how_it_is_scheduled() -> None:
    with pytest.raises(NotSchedulable) as refused:
        defined(job=JobDefinition(name="by-hand", schedulable=False))
    assert isinstance(refused.value, Conflict)
    stubborn = JobDefinition(name="stubborn", cancel=CancelPolicy(supported=False))
    with pytest.raises(Invalid, match="can be cancelled, and 'stubborn' cannot"):
        defined(job=stubborn, overlap="cancel_previous")
    single = JobDefinition(name="single", repeatable=False)
    with pytest.raises(Invalid, match="not repeatable"):
        defined(job=single)
    assert defined(job=single, max_runs=1).max_runs == 1
    assert defined(once(NEW_YEAR), single).job == "single"


def test_a_job_that_is_disabled_may_keep_its_schedules() -> None:
    assert defined(job=JobDefinition(name="resting", enabled=False)).job == "resting"


def test_errors_say_what_was_meant() -> None:
    with pytest.raises(UnknownOption, match="schedule 'nightly' has no option 'overlaps' .*did you mean 'overlap'"):  # noqa: RUF043
        defined(overlaps="skip")
    with pytest.raises(Invalid, match="scope account/1 is named 2 times"):
        defined(scopes=[("account", "1"), ("account", "1")])
    with pytest.raises(BadPayload, match="payload at"):
        defined(payload={"deep": {"n": float("inf")}})
    with pytest.raises(BadDuration, match=r"delay: 300 is not a duration .*write a number and a unit"):
        defined(delay=300)
    with pytest.raises(BadTrigger, match="use cron, every, after, following or once"):
        defined("1h")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"backoff": 5}, "backoff: 5 is not a duration"),
        ({"backoff": {"base": "x"}}, "backoff.base: 'x' is not a duration"),
        ({"backoff": {"factor": 0.5}}, "backoff, if exponential, needs factor"),
        ({"timeout": "x"}, "timeout: 'x' is not a duration"),
        ({"jitter": "-1s"}, "jitter: '-1s' is not a duration"),
        ({"catch_up": {"mode": "none", "grace": "-1s"}}, "catch_up.grace: '-1s' is not a duration"),
        ({"catch_up": {"window": timedelta(days=-1)}}, "catch_up.window: datetime.timedelta(days=-1) is negative"),
        ({"failure": {"mode": "half_open", "cooldown": 5}}, "failure.cooldown: 5 is not a duration"),
        ({"failure": {"mode": "backoff", "backoff": ["1m", "x"]}}, "failure.backoff: 'x' is not a duration"),
        ({"failure": {"mode": "backoff", "backoff": {"bas": "1m"}}}, "failure.backoff has no option 'bas'"),
        ({"expect": {"start_within": "x"}}, "expect.start_within: 'x' is not a duration"),
        ({"max_concurrency": 0}, "max_concurrency must be a whole number from 1 up, not 0"),
        ({"max_concurrency": None}, "max_concurrency must be a whole number from 1 up, not None"),
        ({"max_concurrency": 1, "max_queued": -1}, "max_queued must be a whole number from 0 up, not -1"),
        ({"max_concurrency": 1, "when_full": "skp"}, "when_full cannot be 'skp'"),
        ({"rate": "0/1h"}, "rate: max must be a whole number from 1 up, not 0"),
        ({"rate": "5/x"}, "rate: 'x' is not a duration"),
    ],
)
def test_an_error_begins_with_the_key_that_people_wrote(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid) as refused:
        defined(**options)
    assert refused.value.message.startswith(said)


def test_a_payload_as_deep_as_the_sea_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadPayload, match="deep"):
        defined(payload={"deep": deep})


def test_the_payload_is_a_copy() -> None:
    payload = {"list": [1]}
    definition = defined(payload=payload)
    payload["list"].append(2)
    assert definition.payload == {"list": [1]}


def stored(**changes: Any) -> Schedule:
    at = instant(NOW)
    facts: dict[str, Any] = {
        "id": "s1", "name": "nightly", "job": "report", "definition": defined(), "owner": "code", "revision": 1,
        "enabled": True, "paused_at": None, "paused_by": None, "pause_reason": None, "resume_at": None,
        "job_paused": False, "cursor_at": at, "next_plan": at, "awaits": None, "fired": 0, "tzdata": "2025b",
        "trouble": None, "created_at": at, "updated_at": at,
    }  # fmt: skip
    return Schedule(**{**facts, **changes})


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "active"),
        ({"enabled": False, "paused_at": NEW_YEAR}, "disabled"),
        ({"paused_at": NEW_YEAR, "next_plan": None}, "paused"),
        ({"job_paused": True}, "job paused"),
        ({"job_paused": True, "job_cancelled": True}, "job cancelled"),
        ({"next_plan": None}, "ended"),
        ({"next_plan": None, "awaits": "r1"}, "active"),
    ],
)
def test_the_state_of_a_schedule(changes: dict[str, Any], state: str) -> None:
    assert stored(**changes).state == state
