"""Placeholders in payloads."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.payload_template import check_template, filled
from rota.errors import Invalid
from rota.values.scope import GLOBAL, Scope

NEW_YEAR = 1_767_225_600_000_000
ACCOUNT = Scope("account", "42")


def fill(payload: Any, scope: Scope = ACCOUNT) -> Any:
    return filled(payload, "nightly", scope, NEW_YEAR)


@pytest.mark.parametrize(
    ("payload", "becomes"),
    [
        ({"at": "{plan_time}"}, {"at": "2026-01-01T00:00:00Z"}),
        ({"who": "{scope.kind}/{scope.id}"}, {"who": "account/42"}),
        ({"by": "from {schedule}!"}, {"by": "from nightly!"}),
        ({"deep": [{"er": ["{scope.id}", 1, None]}]}, {"deep": [{"er": ["42", 1, None]}]}),
        ({"twice": "{scope.id}{scope.id}"}, {"twice": "4242"}),
        ({"n": 1, "x": 1.5, "b": True, "none": None}, {"n": 1, "x": 1.5, "b": True, "none": None}),
        ({"json": '{"a": {}}', "empty": "{}"}, {"json": '{"a": {}}', "empty": "{}"}),
        ({"format": "{0} {name} {Plan_time}"}, {"format": "{0} {name} {Plan_time}"}),
        ({"{plan_time}": "a key is not filled"}, {"{plan_time}": "a key is not filled"}),
        ({"open": "{plan_time", "close": "plan_time}"}, {"open": "{plan_time", "close": "plan_time}"}),
        ({"inner": "{{scope.id}}"}, {"inner": "{42}"}),
        ({}, {}),
    ],
)
def test_places_are_filled_and_everything_else_stays(payload: Any, becomes: Any) -> None:
    check_template(payload)
    assert fill(payload) == becomes


def test_the_global_scope_has_a_name_too() -> None:
    assert fill("{scope.kind}/{scope.id}", GLOBAL) == "global/global"


def test_what_fills_a_place_is_not_filled_again() -> None:
    assert fill("{scope.id}", Scope("account", "{plan_time}")) == "{plan_time}"


@pytest.mark.parametrize(
    ("payload", "places"),
    [({"a": "{plan_time}"}, True), ({"a": ["{scope.id}"]}, True), ({"a": "{name}"}, False), ({}, False)],
)
def test_whether_there_is_a_place_to_fill(payload: Any, places: bool) -> None:
    assert check_template(payload) is places


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("{plan_tim}", "did you mean 'plan_time'"),
        ("{planned_time}", "did you mean 'plan_time'"),
        ("{scope}", "did you mean 'scope"),
        ("{scope.name}", "did you mean 'scope"),
        ("{schedule.name}", "did you mean 'schedule'"),
    ],
)
def test_a_word_that_is_almost_one_of_ours_is_a_mistake(text: str, hint: str) -> None:
    with pytest.raises(Invalid, match=f"unknown placeholder .*{hint}"):
        check_template({"deep": [{"er": f"a {text} b"}]})


def test_the_template_itself_is_not_changed() -> None:
    payload = {"a": ["{scope.id}"]}
    fill(payload)
    assert payload == {"a": ["{scope.id}"]}


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_characters="{}")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_without_places_a_payload_stays_as_it_is(payload: Any) -> None:
    assert check_template(payload) is False
    assert fill(payload) == payload
