"""Unique keys: which enqueues are the same work."""

import json
from datetime import timedelta
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rota.core.jobs.unique import (
    Unique,
    fingerprint,
    fingerprint_with,
    idempotency_key,
    once_key,
    unique_fields,
    unique_key,
)
from rota.core.runs.options import unique_of
from rota.errors import BadDuration, Invalid, UnknownOption
from rota.values.scope import GLOBAL, Scope

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)
OLD = {
    "all": "u:5d2175a686f1dc6607b4931e2a64543f18393002",
    "some": "u:4cca2cf01c68f77f100bee661e50a72b12910d0b",
    "request": "61b3fc10c5cc521101dac931ff5e7a640677edf3",
}
payloads = st.dictionaries(st.sampled_from(["user", "url", "n", "deep"]), values)


@given(payloads, st.randoms())
def test_the_order_of_fields_does_not_matter(payload: dict[str, object], random: Random) -> None:
    names = list(payload)
    random.shuffle(names)
    shuffled = {name: payload[name] for name in names}
    for fields in ((), ("user",), ("url", "user"), ("user", "url")):
        assert key_of(payload, fields) == key_of(shuffled, fields)


@given(payloads, payloads)
def test_other_content_is_other_work(one: dict[str, object], other: dict[str, object]) -> None:
    assume(json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    assert key_of(one) != key_of(other)


@given(payloads, payloads)
def test_only_the_chosen_fields_count(one: dict[str, object], other: dict[str, object]) -> None:
    other = {**other, "user": one.get("user")}
    assert key_of(one, ("user",)) == key_of(other, ("user",))


def key_of(payload: dict[str, object], fields: tuple[str, ...] = ()) -> str:
    return unique_fields("job", GLOBAL, fields)(json.dumps(payload))


def test_job_scope_and_kind_of_key_keep_keys_apart() -> None:
    keys = [
        unique_key("a", GLOBAL, "k"),
        unique_key("b", GLOBAL, "k"),
        unique_key("a", Scope("account", "1"), "k"),
        unique_key("a", Scope("account", "2"), "k"),
        unique_key("a", GLOBAL, "l"),
        unique_fields("a", GLOBAL, ())('{"k":1}'),
        unique_fields("a", GLOBAL, ("k", "l"))('{"k":1}'),
        once_key("a", GLOBAL),
        once_key("a", Scope("account", "1")),
        idempotency_key("k"),
        idempotency_key("k", GLOBAL),
        idempotency_key("k", Scope("account", "42")),
        idempotency_key("k", Scope("account", "43")),
    ]
    assert len(set(keys)) == len(keys)


def test_keys_are_those_that_older_programs_have_stored() -> None:
    """Else what is unique today would be made a second time by whoever runs another version."""
    scope = Scope("account", "4")
    assert unique_fields("crawl", scope, ())('{"url":"ä","n":[1,{"b":2,"a":1}]}') == OLD["all"]
    assert unique_fields("crawl", scope, ("n", "none"))('{"url":"ä","n":1}') == OLD["some"]
    assert fingerprint("crawl", '{"n":1}', "account", "4", None, "[]", 1) == OLD["request"]
    assert fingerprint_with(["crawl"], ["account", "4", None, "[]", 1])('{"n":1}') == OLD["request"]
    assert fingerprint_with(["crawl"], [])("é") == fingerprint("crawl", "é")


def test_neighbouring_parts_do_not_run_together() -> None:
    assert unique_key("ab", Scope("c", "d"), "k") != unique_key("a", Scope("bc", "d"), "k")
    assert fingerprint("a", "bc") != fingerprint("ab", "c")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, None),
        (False, None),
        (True, Unique()),
        ("url", Unique(("url",))),
        (["url", "user"], Unique(("url", "user"))),
        (("url",), Unique(("url",))),
        ({"fields": ["url"], "period": "1h"}, Unique(("url",), timedelta(hours=1))),
        ({"period": timedelta(hours=1)}, Unique((), timedelta(hours=1))),
        ({"on_conflict": "replace"}, Unique(on_conflict="replace")),
        ({}, Unique()),
        (Unique(("url",)), Unique(("url",))),
    ],
)
def test_what_people_write(written: bool, meant: Unique | None) -> None:
    assert unique_of(written) == meant


@pytest.mark.parametrize(
    "written", [5, 1.5, object(), [1, 2], ["url", None], [""], {"fields": 5}, {"fields": "url"}, {"on_conflict": 3}]
)
def test_what_makes_no_sense(written: bool) -> None:
    with pytest.raises(Invalid):
        unique_of(written)


def test_misspelt_parts_are_named() -> None:
    with pytest.raises(UnknownOption, match="did you mean 'fields'"):
        unique_of({"feilds": ["url"]})
    with pytest.raises(Invalid, match="did you mean 'replace'"):
        unique_of({"on_conflict": "replaced"})
    with pytest.raises(Invalid, match="did you mean 'reject'"):
        unique_of(Unique(on_conflict="rejct"))
    with pytest.raises(Invalid, match="means nothing"):
        unique_of(Unique(on_conflict="reject", clear=("failed",)))
    with pytest.raises(BadDuration):
        unique_of({"period": 60})
