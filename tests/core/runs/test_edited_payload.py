"""Edited payloads: what was shown masked stays as it was."""

from typing import Any

import pytest

from rota.core.runs.redaction import edited_fields, restored
from rota.errors import MaskedSecret

OLD = {
    "url": "https://a",
    "token": "hush-hush",
    "note": "say hush-hush",
    "deep": [{"password": "deep", "n": 1}],
    "n": 2,
}
SHOWN = {"url": "https://a", "token": "…", "note": "say …", "deep": [{"password": "…", "n": 1}], "n": 2}


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (SHOWN, OLD),
        ({**SHOWN, "url": "https://b"}, {**OLD, "url": "https://b"}),
        ({**SHOWN, "token": "new"}, {**OLD, "token": "new"}),
        ({**SHOWN, "deep": [{"password": "…", "n": 7}]}, {**OLD, "deep": [{"password": "deep", "n": 7}]}),
        ({"note": "say … again"}, {"note": "say … again"}),
        ({"other": "…"}, {"other": "…"}),
        ({"n": 2.0}, {"n": 2.0}),
        ({"n": True}, {"n": True}),
        ({}, {}),
    ],
)
def test_what_was_not_touched_is_restored(edited: dict[str, Any], expected: dict[str, Any]) -> None:
    assert restored(edited, OLD, SHOWN) == expected
    assert restored(expected, OLD, SHOWN) == expected  # of somebody who sees the secrets


@pytest.mark.parametrize(
    ("edited", "path"),
    [
        ({"secret": "…"}, "$.secret"),
        ({"deep": [{}, {"password": "…"}]}, "$.deep[1].password"),
        ({"moved": {"token": "…"}}, "$.moved.token"),
    ],
)
def test_a_mask_that_stands_for_nothing_is_refused(edited: dict[str, Any], path: str) -> None:
    with pytest.raises(MaskedSecret) as refused:
        restored(edited, OLD, SHOWN)
    assert refused.value.path == path


def test_fields_that_differ() -> None:
    assert edited_fields({"a": 1, "b": 2, "d": None}, {"a": 1, "b": 3, "c": 4}) == ("b", "c", "d")
    assert edited_fields({"a": 1}, None) == ("a",)
