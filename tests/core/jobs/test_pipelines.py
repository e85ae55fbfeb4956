"""Pipelines: the payload of a part, and the names of its steps."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.pipelines import Part, Pipeline, is_pipeline, parts_of, payload_of, steps_within, within
from rota.errors import Invalid

PAYLOAD = '{"page":7,"deep":{"a":[1]}}'
RESULTS: dict[str, str | None] = {"fetch": '{"image":"x.png","n":[1,2]}', "count": "3", "none": None}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        (None, {"page": 7, "deep": {"a": [1]}}),
        ({}, {}),
        ("{steps.fetch}", {"image": "x.png", "n": [1, 2]}),
        ({"all": "{payload}"}, {"all": {"page": 7, "deep": {"a": [1]}}}),
        ({"n": "{steps.fetch.n}", "c": "{steps.count}"}, {"n": [1, 2], "c": 3}),
        ({"text": "{payload.page} of {steps.fetch.n}"}, {"text": "7 of [1,2]"}),
        ({"nothing": "{steps.none}", "brace": "{other} {{}}"}, {"nothing": None, "brace": "{other} {{}}"}),
        ({"in": [{"{payload.page}": "{payload.deep.a}"}]}, {"in": [{"7": [1]}]}),
    ],
)
def test_places_are_filled(template: object, filled: object) -> None:
    assert msgspec.json.decode(payload_of(Part("x", "job", template), PAYLOAD, RESULTS)) == filled


@pytest.mark.parametrize("template", ["{steps.count}", {"x": "{steps.later}"}, {"x": "{payload.page.x}"}])
def test_what_is_not_there_is_told(template: object) -> None:
    with pytest.raises(Invalid):
        payload_of(Part("x", "job", template), PAYLOAD, RESULTS)


def test_what_was_filled_in_is_not_looked_at_again() -> None:
    told = payload_of(Part("x", "job", {"a": "{payload.b}"}), '{"b":"{payload.c}","c":1}', {})
    assert msgspec.json.decode(told) == {"a": "{payload.c}"}


def test_the_first_part_that_is_not_done() -> None:
    plan = Pipeline(parts_of("p", [{"step": step, "job": "j"} for step in "abc"]))
    assert [part and part.step for part in (plan.after(""), plan.after("a"), plan.after("b"), plan.after("abc"))] == [
        "a", "b", "a", None,
    ]  # fmt: skip
    assert [part and part.step for part in map(plan.next, "abc")] == ["b", "c", None]


@given(st.text(), st.sampled_from([None, "a", "b"]))
def test_steps_of_a_part_are_called_as_its_handler_calls_them(id: str, part: str | None) -> None:
    recorded = {within(part, id): 1}
    assert steps_within(part, recorded) == {id: 1}
    assert steps_within("another", {within("a", id): 1}) == {}


def test_only_its_own_mark_makes_a_pipeline() -> None:
    assert is_pipeline('{"retry":{},"pipeline":true}')
    assert not is_pipeline(None)
    quoted = msgspec.json.encode({"needs": {"labels": ['"pipeline":true']}}).decode()
    assert not is_pipeline(quoted)
