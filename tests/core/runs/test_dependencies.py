"""Dependencies: the `after` option, refs, cycles, and runs whose dependency failed."""

from typing import Any

import pytest

from rota import Follows
from rota.core.jobs.job import JobDefinition
from rota.core.runs.dependencies import (
    ANY_END,
    MOST_FOLLOWED,
    SUCCESS_OR_CANCEL,
    SUCCESS_OR_SKIP,
    Dependency,
    followed_by,
    in_order,
    in_vain,
    is_met,
    link,
    parts_of,
    places_of,
    written,
)
from rota.core.runs.options import new_run
from rota.core.runs.run import Enqueued
from rota.core.states import FINAL_STATES, RunState
from rota.errors import Invalid

WORK = JobDefinition(name="work")
ID = "0196f0a0-0000-7000-8000-000000000001"
OTHER = "0196f0a0-0000-7000-8000-000000000002"


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (ID, SUCCESS_OR_SKIP),
        (Enqueued(ID, True), SUCCESS_OR_SKIP),
        (Follows(ID), SUCCESS_OR_SKIP),
        (Follows(Enqueued(ID, True), otherwise="cancel"), SUCCESS_OR_CANCEL),
        (Follows(ID, on="end"), ANY_END),
        ({"run": ID}, SUCCESS_OR_SKIP),
        ({"run": ID, "on": "success", "otherwise": "cancel"}, SUCCESS_OR_CANCEL),
        ({"run": ID, "on": "end"}, ANY_END),
    ],
)
def test_what_people_write(item: Any, kind: int) -> None:
    assert followed_by([item]) == (Dependency(ID, kind),)
    assert new_run(WORK, OTHER, "{}", {"after": [item]}).after == (Dependency(ID, kind),)


def test_nothing_is_nothing() -> None:
    assert followed_by(None) == followed_by([]) == ()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (ID, "must be a list"),
        ([17], "cannot follow 17"),
        ([""], "1 to 200"),
        ([{"on": "end"}], "names no run"),
        ([{"run": ID, "when": "end"}], "unknown option 'when'|no option"),
        ([{"run": ID, "on": "failure"}], "on of after cannot be 'failure'"),
        ([{"run": ID, "otherwise": "skp"}], "did you mean 'skip'"),
        ([{"run": ID, "on": "end", "otherwise": "cancel"}], "otherwise means nothing"),
        ([ID] * (MOST_FOLLOWED + 1), "at most 1000"),
    ],
)
def test_what_is_refused(value: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        followed_by(value)


def test_a_run_that_follows_others_cannot_replace_one() -> None:
    options = {"after": [ID], "key": "a", "unique": {"on_conflict": "replace"}}
    with pytest.raises(Invalid, match="cannot replace"):
        new_run(WORK, OTHER, "{}", options)


def test_a_repeated_request_may_name_its_run_by_another_answer() -> None:
    def fingerprint(after: list[object]) -> str | None:
        return new_run(WORK, OTHER, "{}", {"after": after, "idempotency_key": "k"}).holds[0].fingerprint

    assert fingerprint([Enqueued(ID, True, 1, 1)]) == fingerprint([Enqueued(ID, False)]) == fingerprint([ID])
    assert fingerprint([ID]) != fingerprint([OTHER])
    assert fingerprint([ID]) != fingerprint([Follows(ID, on="end")])


def linked(**after: list[str]) -> list[list[str]]:
    """Return the refs of a call in an order in which they can run, each with its predecessors."""
    refs = list(after)
    afters = [followed_by(names) for names in after.values()]
    places = places_of(refs)
    assert parts_of(afters, places) == []
    links = link(afters, places, {})
    return [
        [refs[place], *(refs[one] for one in links.follows[place] if isinstance(one, int))] for place in links.order
    ]


def test_refs_may_be_named_before_they_come() -> None:
    assert linked(last=["left", "right"], left=["first"], right=["first"], first=[]) == [
        ["first"],
        ["left", "first"],
        ["right", "first"],
        ["last", "left", "right"],
    ]


def test_otherwise_the_order_is_as_it_was() -> None:
    assert [one[0] for one in linked(a=[], b=[], c=["a"], d=[])] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"a": ["a"]}, "'a' cannot follow itself"),
        ({"a": ["b"], "b": ["a"]}, "a → b → a"),
        ({"start": ["a"], "a": ["b"], "b": ["c"], "c": ["a"], "d": []}, "cycle: a → b → c → a"),
    ],
)
def test_rings_are_shown(after: dict[str, list[str]], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        linked(**after)


def test_a_ref_that_nobody_has() -> None:
    with pytest.raises(Invalid, match=r"no run of this call has the ref 'fetsh' \(did you mean 'fetch'"):
        parts_of([followed_by(["fetsh"])], places_of(["fetch", "store"]))
    with pytest.raises(Invalid, match=r"the ref 'fetch' \(a run's id"):
        parts_of([followed_by(["fetch"])], {})


def test_a_ref_that_two_have() -> None:
    with pytest.raises(Invalid, match="two runs of this call have the ref 'a'"):
        places_of(["a", None, "b", None, "a"])


def test_parts_of_ids_are_looked_for_and_whole_ones_are_not() -> None:
    afters = [followed_by([ID, "beef", "dead"])]
    assert parts_of(afters, {"dead": 1}) == ["beef"], "a ref goes before an id"
    assert parts_of(afters, {"dead": 1}, whole=True) == [ID, "beef"], "unless not every run may be followed"
    links = link([*afters, ()], {"dead": 1}, {"beef": OTHER})
    assert list(links.follows[0]) == [ID, OTHER, 1]


def test_said_twice_it_is_once_and_in_two_ways_it_is_refused() -> None:
    assert list(link([followed_by([ID, ID])], {}, {}).follows[0]) == [ID]
    with pytest.raises(Invalid, match="in two ways"):
        link([followed_by([ID, Follows(ID, on="end")])], {}, {})


def test_a_long_chain_and_a_wide_fan_are_no_trouble() -> None:
    chain = [[place + 1] for place in range(5_000)] + [[]]
    assert in_order(chain, str) == list(reversed(range(5_001)))
    assert in_order([[], *([0] for _ in range(5_000))], str)[0] == 0


def test_what_is_met() -> None:
    for state in FINAL_STATES:
        assert is_met(ANY_END, state)
        assert is_met(SUCCESS_OR_SKIP, state) is is_met(SUCCESS_OR_CANCEL, state) is (state is RunState.SUCCEEDED)
    assert not is_met(SUCCESS_OR_SKIP, None)


def test_as_written() -> None:
    assert [written(kind) for kind in (SUCCESS_OR_SKIP, SUCCESS_OR_CANCEL, ANY_END)] == [
        ("success", "skip"),
        ("success", "cancel"),
        ("end", "skip"),
    ]


def told(failed: list[tuple[str, str, int]], states: dict[str, str | None], *beyond: tuple[str, str, int]) -> list[str]:
    return [f"{one.run} {one.state}: {one.reason}" for one in in_vain(failed, states, beyond)]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("failed", "failed"),
        ("timed_out", "timed out"),
        ("cancelled", "was cancelled"),
        ("expired", "was lost with its worker"),
        ("skipped", "was skipped"),
        (None, "is gone"),
    ],
)
def test_why_it_was_in_vain(state: str | None, words: str) -> None:
    assert told([("b", "a", SUCCESS_OR_SKIP)], {"a": state}) == [f"b skipped: run a {words}"]
    assert told([("b", "a", SUCCESS_OR_CANCEL)], {"a": state}) == [f"b cancelled: run a {words}"]


def test_in_vain_all_the_way_down() -> None:
    skip, cancel = SUCCESS_OR_SKIP, SUCCESS_OR_CANCEL
    assert told([("b", "a", skip)], {"a": "failed"}, ("d", "c", skip), ("c", "b", cancel)) == [
        "b skipped: run a failed",
        "c cancelled: run b was skipped",
        "d skipped: run c was cancelled",
    ]


def test_a_diamond_ends_once() -> None:
    skip = SUCCESS_OR_SKIP
    beyond = [("d", "b", skip), ("d", "c", skip)]
    assert told([("b", "a", skip), ("c", "a", skip)], {"a": "failed"}, *beyond)[2:] == ["d skipped: run b was skipped"]
