"""Limits: parsing, the gates of a run, and their names."""

from datetime import timedelta

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import (
    Gate,
    Limit,
    WhenFull,
    gate_under,
    limit_of,
    limits_of,
    title,
    when_full_of,
)
from rota.core.runs.options import check_limits, gates_of, new_run
from rota.errors import Invalid
from rota.values.scope import GLOBAL, Scope


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"max": 2}, Limit(max=2)),
        ({"max": 2, "by": "customer"}, Limit(max=2, by=("customer",))),
        ({"max": 2, "by": ["scope", "customer"]}, Limit(max=2, by=("scope", "customer"))),
        ({"max": 1, "when_full": "skip"}, Limit(max=1, when_full="skip")),
        ({"max": 1, "max_queued": 0}, Limit(max=1, max_queued=0)),
        (Limit(max=3), Limit(max=3)),
        ({"max": 3, "per": "1m"}, Limit(max=3, per=timedelta(minutes=1))),
        ({"max": 3, "per": "1m", "max_queued": 5}, Limit(max=3, per=timedelta(minutes=1), max_queued=5)),
    ],
)
def test_what_people_write(written: object, meant: Limit) -> None:
    assert limit_of(written) == meant
    assert limits_of([written, {"max": 9}]) == (meant, Limit(max=9))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"max": 0}, "from 1 up"),
        ({"max": "two"}, "Expected `int`"),
        ({}, "max"),
        ({"max": 1, "when_full": "skp"}, "did you mean 'skip'"),
        ({"max": 1, "maximum": 1}, "did you mean 'max'"),
        ({"max": 1, "max_queued": -1}, "from 0 up"),
        ({"max": 1, "when_full": "skip", "max_queued": 1}, "means nothing"),
        (5, "cannot be 5"),
        ({"max": 5, "per": 60}, "60"),
        ({"max": 5, "per": "0s"}, "more than 0s"),
        ({"max": 5, "per": "31d"}, "at most 30d"),
        ({"max": 100_001, "per": "1d"}, "at most 100000"),
        ({"max": 5, "per": "1m", "when_full": "skip"}, "supports only"),
    ],
)
def test_what_is_refused(written: object, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        limit_of(written)


@pytest.mark.parametrize("limit", [Limit(max=1, when_full="skp"), Limit(max=1, when_full="skip", max_queued=1)])
def test_what_is_refused_of_a_value(limit: Limit) -> None:
    with pytest.raises(Invalid):
        limit_of(limit)


@pytest.mark.parametrize("more", [{}, {"max_queued": 3}, {"per": "PT60S"}])
def test_a_stored_mode_of_a_newer_program_lets_runs_wait(more: dict[str, object]) -> None:
    text = msgspec.json.encode({"max": 2, "when_full": "defer", **more})
    limit = msgspec.json.decode(text, type=Limit)
    assert msgspec.json.decode(msgspec.json.encode(limit))["when_full"] == "defer"
    assert gate_under("k", limit).when_full is WhenFull.QUEUE
    assert limit.decides == ("max_queued" in more)


@pytest.mark.parametrize("mode", WhenFull)
def test_a_stored_mode_is_what_it_says(mode: WhenFull) -> None:
    assert when_full_of(mode.value) is mode


def job(*limits: Limit) -> JobDefinition:
    return JobDefinition(name="work", limits=limits)


def keys(
    definition: JobDefinition, payload: str = "{}", scope: Scope = GLOBAL, *, unlimited: bool = False
) -> list[str]:
    return [gate.key for gate in gates_of(definition, scope, payload, unlimited=unlimited)]


def test_no_limits_no_gates() -> None:
    assert gates_of(job(), GLOBAL, "{}") == ()
    assert new_run(job(), "id", "{}", {}).limit_key is None


def test_the_narrowest_gate_comes_first() -> None:
    both = job(Limit(max=5), Limit(max=1, by=("a",)))
    narrow, wide = gates_of(both, GLOBAL, '{"a": 1}')
    assert (narrow.max, wide) == (1, Gate("job:work", 5))
    assert narrow.key.startswith("key:work:a:")
    run = new_run(both, "id", '{"a": 1}', {})
    assert run.gates == (narrow, wide)
    assert run.limit_key == narrow.key


def test_runs_alike_share_a_key() -> None:
    by_field = job(Limit(max=1, by=("a",)))
    assert keys(by_field, '{"a": 1, "b": 2}') == keys(by_field, '{"b": 3, "a": 1}')
    assert keys(by_field, '{"a": 1}') != keys(by_field, '{"a": 2}')
    assert keys(by_field, '{"a": 1}') != keys(by_field, '{"a": "1"}')
    assert keys(by_field, '{"a": {"x": 1, "y": 2}}') == keys(by_field, '{"a": {"y": 2, "x": 1}}')
    by_scope = job(Limit(max=1, by=("scope",)))
    assert keys(by_scope, scope=Scope("a", "1")) != keys(by_scope, scope=Scope("a", "2"))
    assert keys(by_scope, '{"scope": 1}') == keys(by_scope, '{"scope": 2}')


def test_the_limit_of_the_whole_job_can_be_left_out() -> None:
    both = job(Limit(max=5), Limit(max=1, by=("a",)))
    assert len(keys(both, '{"a": 1}', unlimited=True)) == 1
    assert keys(job(Limit(max=5)), unlimited=True) == []


def test_rates_have_keys_of_their_own_and_come_before_limits_of_the_same_runs() -> None:
    second, hour = timedelta(seconds=1), timedelta(hours=1)
    both = job(Limit(max=5), Limit(max=99, per=hour), Limit(max=9, per=second), Limit(max=1, per=hour, by=("a",)))
    found = gates_of(both, GLOBAL, '{"a": 1}')
    assert [gate.key.rpartition(":")[0] for gate in found[:1]] == ["rate:key:work:a"]
    assert [(gate.key, gate.max, gate.period) for gate in found[1:]] == [
        ("rate2:job:work", 99, 3_600_000_000),
        ("rate:job:work", 9, 1_000_000),
        ("job:work", 5, None),
    ]
    check_limits(both)


def test_two_rates_of_the_same_runs_have_different_periods() -> None:
    twice = job(Limit(max=5, per=timedelta(hours=1)), Limit(max=6, per=timedelta(hours=1)))
    with pytest.raises(Invalid, match="two limits for the same runs per 1h"):
        check_limits(twice)


@pytest.mark.parametrize(
    ("key", "of", "words"),
    [
        ("job:work", None, "limit of job 'work'"),
        ("rate:job:work", None, "rate of job 'work'"),
        ("rate2:job:work", None, "rate of job 'work'"),
        ("key:work:scope:0123", "tenant/a", "limit of job 'work' by scope (tenant/a)"),
        ("key:a:b:customer,scope:0123", None, "limit of job 'a:b' by customer,scope"),
        ("schedule:0123", "nightly", "limit of schedule 'nightly'"),
        ("rate:schedule:0123", None, "rate of its schedule"),
        ("backfill:0123", None, "concurrency of its backfill"),
        ("quota:tenant/a", None, "quota of tenant/a"),
        ("rate:quota:tenant/a", None, "rate in the quota of tenant/a"),
        ("something", None, "limit 'something'"),
    ],
)
def test_limits_have_names(key: str, of: str | None, words: str) -> None:
    assert title(key, of) == words
