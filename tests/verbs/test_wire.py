"""Form of values in requests: what is encoded is decoded to the same."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import pytest

from rota.errors import BadDuration, Invalid
from rota.values.durations import Duration
from rota.values.scope import Scope
from rota.verbs.wire import Wired, decode, encode, has_durations, wire_type

AT = datetime(2026, 1, 31, 8, tzinfo=UTC)
ScopeOption = Scope | tuple[str, str] | None
Until = datetime | Duration | None


@pytest.mark.parametrize(
    ("annotation", "value", "written", "read"),
    [
        (Duration | None, timedelta(seconds=90), "1m30s", "1m30s"),
        (Duration, "90s", "90s", "90s"),
        (datetime, AT, "2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
        (ScopeOption, ("account", "42"), "account/42", Scope("account", "42")),
        (ScopeOption, Scope("account", "4/2"), "account/4/2", Scope("account", "4/2")),
        (Until, AT, "2026-01-31T08:00:00Z", AT),
        (Until, "2h", "2h", "2h"),
        (list[str] | tuple[str, ...], ("a", "b"), ["a", "b"], ["a", "b"]),
        (int | None, None, None, None),
        (str | None, 7, 7, 7),
        (Annotated[int | None, Wired(str, str, int, absent="never")], None, "never", None),
        (Annotated[int, Wired(str, str, int)], 7, "7", 7),
    ],
)
def test_values_are_written_and_read(annotation: Any, value: Any, written: Any, read: Any) -> None:
    assert encode(value, annotation, "it") == written
    if written != "never":
        assert decode(written, annotation, "it") == read


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [(Duration | None, str | None), (ScopeOption, str | None), (Until, str | None), (list[Duration], list[str])],
)
def test_requests_have_types_that_json_can_hold(annotation: Any, kind: Any) -> None:
    assert wire_type(annotation) == kind


def test_errors_name_the_parameter() -> None:
    with pytest.raises(BadDuration, match="delay"):
        encode(5, Duration, "delay")
    with pytest.raises(BadDuration, match="delay"):
        encode(timedelta(seconds=-1), Duration | None, "delay")
    with pytest.raises(Invalid, match="after must be a datetime with a zone"):
        encode(datetime(2026, 1, 31), datetime, "after")  # noqa: DTZ001
    with pytest.raises(Invalid, match="scope cannot be 'account'"):
        decode("account", ScopeOption, "scope")
    with pytest.raises(Invalid, match="until cannot be"):
        decode("2026-01-31T08:00", Until, "until")


class _Node(msgspec.Struct):
    children: list["_Node"]
    every: timedelta | None = None


class _Leaf(msgspec.Struct):
    name: str


def test_durations_are_found_in_nested_types() -> None:
    assert has_durations(dict[str, _Node])
    assert not has_durations(list[_Leaf])


def test_half_a_scope_is_refused_as_the_client_refuses_it() -> None:
    with pytest.raises(Invalid, match="scope id must be text"):
        decode("account/", ScopeOption, "scope")
