"""Scopes as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.values.scope import Scope, scope_parts, scope_text

PARTS = st.text(st.sampled_from("ab/%2F25é "), min_size=1)


@given(PARTS, PARTS)
def test_a_scope_is_read_back_as_it_was_written(kind: str, id: str) -> None:
    assert scope_parts(scope_text(Scope(kind, id))) == (kind, id)


@given(st.tuples(PARTS, PARTS), st.tuples(PARTS, PARTS))
def test_two_scopes_have_two_texts(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (scope_text(Scope(*one)) == scope_text(Scope(*other))) == (one == other)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("account/42", ("account", "42")),
        ("account/42/7", ("account", "42/7")),
        ("region%2Feu/42", ("region/eu", "42")),
        ("region%2feu/42", ("region/eu", "42")),
        ("50%/42", ("50%", "42")),
        ("account", ("account", None)),
        ("account/", ("account", "")),
    ],
)
def test_what_people_write(text: str, parts: tuple[str, str | None]) -> None:
    assert scope_parts(text) == parts
