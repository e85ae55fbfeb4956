"""Schedules that follow another job, as values: triggers, documents, words, cycles, templates."""

from typing import Any

import msgspec
import pytest

from rota.core.calendar.describe import describe
from rota.core.calendar.rules import Rule, compiled
from rota.core.calendar.triggers import Following, Trigger, cron, every, following
from rota.core.calendar.triggers.job_end import FollowedEnd
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.payload_template import AfterRun, check_template, filled
from rota.core.schedules.documents import document_of, parse
from rota.core.schedules.job_triggers import Cause, because, cause_of, ring, with_cause
from rota.core.schedules.schedule import define, options_of, sample
from rota.core.schedules.view import policies
from rota.errors import BadTrigger, Invalid
from rota.values.scope import GLOBAL

WORK = JobDefinition(name="work")
AFTER = AfterRun("some-id", "failed", {"rows": 3})


@pytest.mark.parametrize(
    ("job", "more", "said"),
    [
        ("", {}, "must be text"),
        ("x", {"on": "sucess"}, "did you mean 'success'"),
        ("x", {"delay": "500ms"}, "whole seconds"),
    ],
)
def test_what_is_refused(job: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(BadTrigger, match=said):
        following(job, **more)


def test_a_job_may_be_named_by_itself() -> None:
    assert following(WORK) == following("work")


def test_it_is_in_no_union() -> None:
    with pytest.raises(BadTrigger, match="cannot be in a union"):
        following("x") | cron("* * * * *")


def test_it_names_no_times() -> None:
    times = compiled(Rule(following("x")), "")
    assert (times.next(0), times.prev(10**15), times.count(0, 10**15)) == (None, None, 0)


@pytest.mark.parametrize("trigger", [following("extract"), following("extract", on="end", delay="5m")])
def test_documents_come_back_the_same(trigger: Trigger) -> None:
    definition = define(WORK, trigger, {"windows": ["09:00-17:00"]}, name="s", now=0)
    document = document_of("s", definition)
    parsed = parse(msgspec.json.decode(msgspec.json.encode(document)))
    assert define(WORK, parsed.trigger, parsed.options, name="s", now=0) == definition
    assert define(WORK, definition.rule.trigger, options_of(definition), name="s", now=0) == definition


def test_a_document() -> None:
    document = {"name": "s", "job": "work", "following": "extract", "on": "failure"}
    assert parse(document).trigger == Following("extract", FollowedEnd.FAILURE)
    made = following("extract", on="failure")
    assert msgspec.json.encode(parse(document).trigger) == msgspec.json.encode(made)
    assert document_of("s", define(WORK, parse(document).trigger, {}, name="s", now=0)) == document
    with pytest.raises(Invalid, match="on means nothing with every"):
        parse({"name": "s", "job": "work", "every": "1m", "on": "end"})


def test_its_ends_queue_by_default_and_another_trigger_has_its_own_default() -> None:
    definition = define(WORK, following("extract"), {}, name="s", now=0)
    assert definition.overlap.mode == "queue_all"
    assert define(WORK, every("1m"), options_of(definition), name="s", now=0).overlap.mode == "skip"
    assert [name for name, _ in policies(definition)] == ["overlap", "failure"]


@pytest.mark.parametrize(("option", "value"), [("catch_up", "all"), ("scopes", "tenants")])
def test_options_that_mean_nothing(option: str, value: str) -> None:
    with pytest.raises(Invalid):
        define(WORK, following("extract"), {option: value}, name="s", now=0)


def test_in_words() -> None:
    assert describe(Rule(following("extract"))) == "after each success of extract"
    assert because(Cause("an-id", "extract", "timed_out")) == "because run an-id of extract timed out"


@pytest.mark.parametrize(
    ("edges", "path"),
    [
        ([], None),
        ([("b", "c"), ("c", "d")], None),
        ([("b", "a")], ["a", "b", "a"]),
        ([("b", "c"), ("b", "d"), ("d", "a"), ("c", "e"), ("e", "a")], ["a", "b", "d", "a"]),
        ([("b", "c"), ("c", "b")], None),  # a ring of others, which is not this one's
    ],
)
def test_rings(edges: list[tuple[str, str]], path: list[str] | None) -> None:
    assert ring(edges, "a", "b") == path


def test_a_job_that_follows_itself() -> None:
    assert ring([], "a", "a") == ["a", "a"]


@pytest.mark.parametrize(
    ("payload", "wanted"),
    [
        ("{after.result}", {"rows": 3}),
        ("{after.state}", "failed"),
        ("got {after.result}", 'got {"rows":3}'),
        (["{after.run_id}", 5], ["some-id", 5]),
        ("{aftermath}", "{aftermath}"),
    ],
)
def test_templates(payload: Any, wanted: Any) -> None:
    if payload != "{aftermath}":
        assert check_template(payload, after=True)
        assert filled(payload, "s", GLOBAL, 0, AFTER) == wanted
    assert not check_template(payload)
    assert filled(payload, "s", GLOBAL, 0) == payload


def test_a_word_that_is_almost_one_of_ours() -> None:
    with pytest.raises(Invalid, match=r"did you mean 'after\.result'"):
        check_template("{after.reslt}", after=True)


def test_a_payload_that_nobody_can_check_before() -> None:
    payload = {"n": "{after.result}", "of": "{after.run_id}"}
    assert sample(define(WORK, following("extract"), {"payload": payload}, name="s", now=0), "s") is None
    known = sample(define(WORK, following("extract"), {"payload": {"of": "{after.state}"}}, name="s", now=0), "s")
    assert known == {"of": "succeeded"}


def test_a_cause_in_metadata() -> None:
    cause = Cause("an-id", "extract", "failed")
    metadata = msgspec.json.decode(with_cause('{"mine": 1}', cause))
    assert metadata["mine"] == 1
    assert cause_of(metadata) == cause
    assert cause_of({"triggered_by": "me"}) is None
    assert cause_of({}) is None
