"""Conditions on revisions: what a method expects is what the headers of a request say."""

import pytest

from rota.verbs.revisions import ANY, Revisions, condition_in, is_expected, written_condition


@pytest.mark.parametrize(
    ("expected", "headers"),
    [
        (None, {}),
        (3, {"If-Match": '"3"'}),
        ([3, 5], {"If-Match": '"3", "5"'}),
        (ANY, {"If-Match": "*"}),
        (0, {"If-None-Match": "*"}),
    ],
)
def test_a_condition_is_written_and_read(expected: Revisions | None, headers: dict[str, str]) -> None:
    assert written_condition(expected) == headers
    assert condition_in(headers.get("If-Match"), headers.get("If-None-Match")) == expected


@pytest.mark.parametrize("tag", ["3", '"three"', 'W/"3"', '"9999999999999999999"', ""])
def test_a_foreign_tag_matches_nothing(tag: str) -> None:
    expected = condition_in(tag, None)
    assert expected is not None
    assert not any(is_expected(revision, expected) for revision in range(10))


@pytest.mark.parametrize(
    ("revision", "expected", "as_expected"),
    [(3, None, True), (3, 3, True), (3, 4, False), (3, [2, 3], True), (3, ANY, True), (0, ANY, False), (0, 0, True)],
)
def test_a_revision_is_as_expected(revision: int, expected: Revisions | None, as_expected: bool) -> None:
    assert is_expected(revision, expected) is as_expected
