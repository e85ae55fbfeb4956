from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.errors import BadPayload
from rota.values.json import Limits, decode, encode, step

LIMITS = Limits()
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


class Colour(enum.Enum):
    RED = "red"
    BROKEN = "\0"


@dataclass
class Point:
    x: float
    label: object = "here"


class Person(msgspec.Struct, rename="camel"):
    full_name: str
    extra: object = None


def nested(depth: int, make: Callable[[object], object] = lambda inner: [inner]) -> object:
    value = make(0)
    for _ in range(depth - 1):
        value = make(value)
    return value


@given(VALUES)
@example({"a": 10**100, "b": [None, -0.0, 1e308]})
def test_what_encode_accepts_decode_gives_back(value: object) -> None:
    assert decode(encode(value, LIMITS), LIMITS) == value


@given(VALUES)
def test_bytes_and_text_are_read_alike(value: object) -> None:
    text = encode(value, LIMITS)
    assert decode(text.encode(), LIMITS) == decode(text, LIMITS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2026, 3, 1, 12, tzinfo=UTC), '"2026-03-01T12:00:00Z"'),
        (date(2026, 3, 1), '"2026-03-01"'),
        (timedelta(seconds=1.5), '"PT1.5S"'),
        (UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
        (Decimal("1.10"), '"1.10"'),
        (Colour.RED, '"red"'),
        (Point(1.5), '{"x":1.5,"label":"here"}'),
        (Person("Ada"), '{"fullName":"Ada","extra":null}'),
        ((1, 2), "[1,2]"),
        ({3}, "[3]"),
        (2**64 + 1, "18446744073709551617"),
        ({1: "a", date(2026, 3, 1): "b"}, '{"1":"a","2026-03-01":"b"}'),
        (msgspec.Raw(b'{"a":1}'), '{"a":1}'),
        ("back\\u0000slash", '"back\\\\u0000slash"'),
        ({"a": None}, '{"a":null}'),
    ],
)
def test_what_msgspec_writes_is_stored(value: object, text: str) -> None:
    assert encode(value, LIMITS) == text


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ({"items": [1, 2, 3, {"name": math.nan}]}, "$.items[3].name", "JSON has no number nan"),
        ({"a": math.inf}, "$.a", "JSON has no number inf"),
        ([-math.inf], "$[0]", "JSON has no number -inf"),
        (Point(math.nan), "$.x", "JSON has no number nan"),
        ({"at": [Person("a\0")]}, "$.at[0].fullName", "contains a NUL character"),
        ({"a": Colour.BROKEN}, "$.a", "contains a NUL character"),
        ({"a\0b": 1}, "$['a\\x00b']", "contains a NUL character"),
        ({"a": "\ud800"}, "$.a", "contains an unpaired surrogate"),
        ({"\ud800": 1}, "$['\\ud800']", "contains an unpaired surrogate"),
        ({"a": [object()]}, "$.a[0]", "type object cannot be stored as JSON"),
        (Point(1.0, label={"x": 1j}), "$.label.x", "type complex cannot be stored as JSON"),
        (int, "$", "type type cannot be stored as JSON"),
        ({"not a name": object()}, "$['not a name']", "type object cannot be stored as JSON"),
        ({"a": {None: 1}}, "$.a", "type NoneType cannot be a key"),
        ({(1, 2): 1}, "$", "type tuple cannot be a key"),
        ({math.nan: 1}, "$", "JSON has no number nan for a key"),
        ({1: "a", "1": "b"}, "$", "two keys become the same string"),
        (msgspec.Raw(b"{broken"), "$", "cannot be stored as JSON: JSON is malformed"),
        ([msgspec.Raw(b'{"a":"\\u0000"}')], "$[0].a", "contains a NUL character"),
    ],
)
def test_what_json_cannot_hold_is_named(value: object, path: str, problem: str) -> None:
    with pytest.raises(BadPayload) as refused:
        encode(value, LIMITS)
    assert refused.value.path == path
    assert refused.value.problem.startswith(problem)


def test_a_number_too_long_to_be_read_back_is_not_written() -> None:
    with pytest.raises(BadPayload) as refused:
        encode({"n": [10**5000]}, LIMITS)
    assert refused.value.path == "$.n[0]"


@pytest.mark.parametrize("make", [lambda x: [x], lambda x: {"a": x}, lambda x: (x,), lambda x: Point(0, x)])
def test_depth_is_limited_at_its_very_edge(make: Callable[[object], object]) -> None:
    encode(nested(64, make), LIMITS)
    with pytest.raises(BadPayload, match="nested too deeply"):
        encode(nested(65, make), LIMITS)


def test_the_path_leads_to_the_level_that_is_too_much() -> None:
    with pytest.raises(BadPayload) as refused:
        encode({"a": [{"b": []}]}, Limits(max_depth=3))
    assert refused.value.path == "$.a[0].b"


def test_a_value_within_itself_is_refused() -> None:
    knot: list[object] = []
    knot.append(knot)
    with pytest.raises(BadPayload, match="nested too deeply"):
        encode(knot, LIMITS)


def test_brackets_in_strings_are_not_depth() -> None:
    value = [{"[[{{": '"[' * 100, "\\": "]]\\"}, "[" * 500]
    assert decode(encode(value, LIMITS), LIMITS) == value


@given(VALUES)
def test_a_wide_value_is_measured_by_its_depth(value: object) -> None:
    wide = [[value] * 3, value]
    fitting = Limits(max_depth=_depth(wide))
    assert decode(encode(wide, fitting), fitting) == wide
    with pytest.raises(BadPayload, match="nested too deeply"):
        encode(wide, Limits(max_depth=_depth(wide) - 1))


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def test_size_counts_bytes_and_says_both_numbers() -> None:
    limits = Limits(max_bytes=10)
    assert encode("é" * 4, limits) == '"éééé"'
    with pytest.raises(BadPayload, match="is 12 bytes of JSON, the limit is 10"):
        encode("é" * 5, limits)
    with pytest.raises(BadPayload, match="is 12 bytes of JSON, the limit is 10"):
        decode('"ééééé"', limits)


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        ("[" * 100_000, "$", "is nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "$", "is nested too deeply"),
        ('{"a":' * 40_000, "$", "is nested too deeply"),
        ("[" * 65 + "]" * 65, "$" + "[0]" * 64, "is nested too deeply"),
        ('{"a": ["\\u0000"]}', "$.a[0]", "contains a NUL character"),
        ('{"\\u0000": 1}', "$['\\x00']", "contains a NUL character"),
        ("[1, NaN]", "$", "is not JSON"),
        ("-Infinity", "$", "is not JSON"),
        ("[1e400]", "$[0]", "number out of range"),
        ("9" * 5000, "$", "integer value out of range"),
        ('"\\ud800"', "$", "is not JSON"),
        ('"\\ud800\\u0041"', "$", "is not JSON"),
        ('"\\udc00"', "$", "is not JSON"),
        ('"\ud800"', "$", "is not JSON"),
        (b'"\xff"', "$", "is not JSON"),
        (b'"\xed\xa0\x80"', "$", "is not JSON"),
        (b"\xef\xbb\xbf{}", "$", "is not JSON"),
        ("", "$", "is not JSON"),
        ("{} {}", "$", "is not JSON"),
        ("{'a': 1}", "$", "is not JSON"),
        ("[1,]", "$", "is not JSON"),
        ('"\0"', "$", "is not JSON"),
    ],
)
def test_hostile_text_is_refused(text: str | bytes, path: str, problem: str) -> None:
    with pytest.raises(BadPayload) as refused:
        decode(text, LIMITS)
    assert refused.value.path == path
    assert refused.value.problem.startswith(problem)


@given(st.text() | st.binary() | st.text(st.sampled_from('[]{}",:\\u0dDcC89aenlt1.-')))
def test_any_text_is_a_value_or_a_refusal(text: str | bytes) -> None:
    try:
        value = decode(text, LIMITS)
    except BadPayload as refused:
        str(refused).encode()
    else:
        assert decode(encode(value, LIMITS), LIMITS) == value


def test_of_a_key_given_twice_the_last_counts() -> None:
    assert decode('{"a": 1, "a": 2}', LIMITS) == {"a": 2}


@pytest.mark.parametrize(
    ("key", "path"),
    [("name", "$.name"), (3, "$[3]"), ("a.b", "$['a.b']"), ("", "$['']"), ("x" * 500, f"$['{'x' * 79}\\u2026']")],
)
def test_paths_stay_short_and_printable(key: str | int, path: str) -> None:
    assert step("$", key) == path
