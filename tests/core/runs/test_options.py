"""Run options: what each does, and what each refuses."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import Delays, Exponential, RetryPolicy
from rota.core.jobs.unique import Unique
from rota.core.runs.dependencies import Dependency
from rota.core.runs.options import RUN_OPTIONS, new_run
from rota.core.runs.run import NewRun, Overrides
from rota.core.workers.requirements import Eligibility, Requirements
from rota.errors import Invalid, JobDisabled, UnknownOption
from rota.values.scope import Scope

PLAIN = JobDefinition(name="work")
RICH = JobDefinition(
    name="work",
    version=3,
    queue="slow",
    priority=-4,
    retry=RetryPolicy(7, Delays((timedelta(seconds=1),))),
    on_lost="fail",
    tags=("declared",),
    metadata={"declared": True},
)


def run_of(definition: JobDefinition = PLAIN, payload: str = '{"n":1}', **options: Any) -> NewRun:
    return new_run(definition, "the-id", payload, options)


def test_without_options_everything_is_the_jobs() -> None:
    run = run_of(RICH)
    assert (run.id, run.job, run.job_version, run.queue, run.priority) == ("the-id", "work", 3, "slow", -4)
    assert (run.max_attempts, run.on_lost, run.overrides) == (7, "fail", None)
    assert (run.tags, run.metadata) == ('["declared"]', '{"declared":true}')
    assert (run.scope_kind, run.scope_id, run.key, run.holds) == ("global", "global", None, ())
    assert (run.run_at, run.delay, run.retry_of, run.origin_id, run.payload) == (None, 0, None, None, '{"n":1}')


WISHES: dict[str, tuple[Any, dict[str, Any]]] = {
    "queue": ("mail", {"queue": "mail"}),
    "priority": (1000, {"priority": 1000}),
    "delay": ("10m", {"delay": 600_000_000}),
    "run_at": (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), {"run_at": 1_767_225_600_000_000}),
    "key": ("front-page", {"key": "front-page"}),
    "scope": (("account", "42"), {"scope_kind": "account", "scope_id": "42"}),
    "unique": (False, {"holds": ()}),
    "max_attempts": (9, {"max_attempts": 9}),
    "backoff": ("5s", {"max_attempts": 4}),
    "timeout": ("10m", {"overrides": '{"timeout":"PT600S"}'}),
    "tags": (["a", "b"], {"tags": '["a","b"]'}),
    "metadata": ({"by": "me"}, {"metadata": '{"by":"me"}'}),
    "idempotency_key": ("abc", {"key": None}),
    "after": (["a"], {"after": (Dependency("a", 1),)}),
    "inputs": ({"pages": "a"}, {"after": (Dependency("a", 1, (("pages",),)),)}),
    "ref": ("a", {"key": None}),
    "only_workers": (["b", "a"], {"eligibility": Eligibility(Requirements(only_workers=("a", "b")))}),
    "labels": (["gpu"], {"eligibility": Eligibility(Requirements(labels=("gpu",)))}),
    "min_worker_version": ("1.4", {"overrides": '{"needs":{"min_worker_version":"1.4"}}'}),
}


def test_every_option_has_its_example() -> None:
    assert set(WISHES) == set(RUN_OPTIONS)


@pytest.mark.parametrize("option", RUN_OPTIONS)
def test_an_option_says_what_the_run_is(option: str) -> None:
    wish, expected = WISHES[option]
    run = run_of(**{option: wish})
    assert {name: getattr(run, name) for name in expected} == expected


def test_a_policy_for_one_run_keeps_the_rest_of_the_jobs() -> None:
    run = run_of(RICH, max_attempts=2, timeout="1m")
    assert run.overrides is not None
    overrides = msgspec.json.decode(run.overrides, type=Overrides)
    assert overrides.retry == RetryPolicy(2, Delays((timedelta(seconds=1),)))
    assert overrides.timeout == timedelta(minutes=1)
    backing_off = msgspec.json.decode(run_of(RICH, backoff=Exponential()).overrides or "", type=Overrides)
    assert backing_off.retry == RetryPolicy(7, Exponential(), backoff_given=True)


def test_empty_tags_and_metadata_lift_the_jobs() -> None:
    run = run_of(RICH, tags=[], metadata={})
    assert (run.tags, run.metadata) == (None, None)


def test_a_key_is_held_unless_told_otherwise() -> None:
    assert [hold.on_conflict for hold in run_of(key="k").holds] == ["existing"]
    assert run_of(key="k", unique=False).holds == ()
    assert [hold.on_conflict for hold in run_of(key="k", unique={"on_conflict": "reject"}).holds] == ["reject"]


def test_a_key_is_what_is_unique_unless_fields_are_named() -> None:
    by_key = run_of(key="k", unique=True).holds
    assert by_key == run_of(key="k", unique=True, payload='{"n":2}').holds
    assert run_of(key="k", unique="n").holds != run_of(key="k", unique="n", payload='{"n":2}').holds


def test_a_key_and_what_the_job_declares_unique_are_held_together() -> None:
    definition = JobDefinition(name="work", unique=Unique(on_conflict="reject"))
    alone, by_key = run_of(definition).holds, run_of(key="k", unique={"on_conflict": "reject"}).holds
    assert run_of(definition, key="k").holds == by_key + alone
    assert run_of(definition, key="k", unique=False).holds == ()
    fields = {"fields": ["n"]}
    assert run_of(key="k", unique=fields).holds == run_of(key="k").holds + run_of(unique=fields).holds
    replacing = JobDefinition(name="work", unique=Unique(on_conflict="replace"))
    assert len(run_of(replacing, key="k").holds) == 1


def test_the_jobs_own_uniqueness() -> None:
    definition = JobDefinition(name="work", unique=Unique(("n",), timedelta(hours=1), "reject"))
    (hold,) = run_of(definition).holds
    assert (hold.on_conflict, hold.period, hold.once) == ("reject", 3_600_000_000, False)
    assert run_of(definition, unique=False).holds == ()


def test_a_job_that_is_not_repeatable_holds_its_name() -> None:
    definition = JobDefinition(name="work", repeatable=False)
    (hold,) = run_of(definition).holds
    assert hold.once
    assert run_of(definition, payload='{"n":2}').holds == (hold,)
    assert run_of(definition, scope=("account", "1")).holds != (hold,)


def test_an_idempotency_key_comes_first_and_knows_the_content() -> None:
    first, second = run_of(idempotency_key="abc", key="k").holds
    assert first.fingerprint is not None
    assert second.fingerprint is None
    assert first.period == 86_400_000_000
    assert run_of(idempotency_key="abc", key="k").holds[0] == first
    assert run_of(idempotency_key="abc", key="k", priority=1).holds[0].fingerprint != first.fingerprint


@pytest.mark.parametrize(
    ("misspelt", "meant"), [("qeue", "queue"), ("max_attempt", "max_attempts"), ("metdata", "metadata")]
)
def test_an_unknown_option_is_named_with_the_nearest(misspelt: str, meant: str) -> None:
    with pytest.raises(UnknownOption, match=f"'work'.*{misspelt}.*did you mean '{meant}'"):
        new_run(PLAIN, "the-id", "{}", {misspelt: 1})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("queue", ""), ("queue", "x" * 201), ("queue", "a\nb"), ("queue", "a\0b"), ("queue", "\ud800"), ("queue", None),
        ("queue", 5), ("priority", 1001), ("priority", -1001), ("priority", "5"), ("priority", True), ("priority", 1.0),
        ("delay", "-1s"), ("delay", 5), ("delay", "soon"), ("run_at", "2026-01-01"), ("run_at", datetime(2026, 1, 1)),  # noqa: DTZ001
        ("run_at", 5), ("key", ""), ("key", 5), ("key", "\0"), ("scope", "account"), ("scope", ("account",)),
        ("scope", ("account", 42)), ("scope", Scope("", "")), ("scope", Scope("a", "\0")), ("scope", {"kind": "a"}),
        ("unique", 5), ("unique", {"on_conflict": "explode"}), ("max_attempts", 0), ("max_attempts", "3"),
        ("backoff", "soon"), ("backoff", 5), ("timeout", "0s"), ("timeout", 5), ("tags", "one"), ("tags", [1]),
        ("tags", ["x"] * 51), ("tags", [""]), ("metadata", [1]), ("metadata", "x"), ("metadata", {"a": float("nan")}),
        ("metadata", {"a": object()}), ("metadata", {"a": "\ud800"}), ("metadata", {"a": "\0"}), ("metadata", None),
        ("idempotency_key", ""), ("idempotency_key", 5),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(option: str, value: object) -> None:
    with pytest.raises(Invalid):
        new_run(PLAIN, "the-id", "{}", {option: value})


def test_delay_and_run_at_contradict_each_other() -> None:
    with pytest.raises(Invalid, match="not both"):
        run_of(delay="1s", run_at=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_disabled_job_takes_no_runs() -> None:
    with pytest.raises(JobDisabled, match="'work'"):
        run_of(JobDefinition(name="work", enabled=False))
