"""Admission: what keys and limits say of new runs, given what was read."""

from typing import Any

import pytest

from rota.core.jobs.unique import KeyHold, OnConflict
from rota.core.limits.limits import Gate, WhenFull
from rota.core.runs.admit import (
    Admitted,
    Applicant,
    Conflicting,
    Decision,
    Facts,
    Full,
    Held,
    Holder,
    Superseded,
    decide,
    decide_all,
)
from rota.errors import DuplicateRun, KeyReused, NotRepeatable

QUEUE, SKIP, REJECT = Gate("k", 2), Gate("k", 2, WhenFull.SKIP), Gate("k", 2, WhenFull.REJECT)
OLDEST, SHORT = Gate("k", 2, WhenFull.CANCEL_OLDEST), Gate("k", 2, WhenFull.QUEUE, 3)
WIDE = Gate("wide", 9, WhenFull.SKIP)
EXISTING, ONCE = KeyHold("u"), KeyHold("u", once=True)
NOW = 1_000


def asks(*gates: Gate, **more: Any) -> Applicant:
    return Applicant("new", "work", gates, **more)


@pytest.mark.parametrize(
    ("gates", "counts", "oldest", "decision"),
    [
        ([], {}, [], Admitted()),
        ([QUEUE], {"k": 900}, [], Admitted()),
        ([SKIP], {"k": 1}, [], Admitted()),
        ([SKIP], {"k": 2}, [], Full(SKIP, refused=False)),
        ([REJECT], {"k": 1}, [], Admitted()),
        ([REJECT], {"k": 2}, [], Full(REJECT, refused=True)),
        ([SHORT], {"k": 4}, [], Admitted()),
        ([SHORT], {"k": 5}, [], Full(SHORT, refused=True)),
        ([OLDEST], {"k": 1}, ["a"], Admitted()),
        ([OLDEST], {"k": 2}, ["a", "b"], Admitted(("a",))),
        ([OLDEST], {"k": 4}, ["a", "b", "c", "d"], Admitted(("a", "b", "c"))),
        ([OLDEST, WIDE], {"k": 2, "wide": 9}, ["a", "b"], Full(WIDE, refused=False)),
    ],
)
def test_limits(gates: list[Gate], counts: dict[str, int], oldest: list[str], decision: Decision) -> None:
    places: dict[str, tuple[str, ...]] = dict.fromkeys(oldest, ("k",))
    assert decide(asks(*gates), Facts(counts=counts, oldest={"k": oldest}, places=places)) == decision


def test_who_gives_way_by_one_limit_counts_under_no_other() -> None:
    facts = Facts(counts={"k": 2, "wide": 9}, oldest={"k": ["a", "b"]}, places={"a": ("k", "wide"), "b": ("k",)})
    assert decide(asks(OLDEST, WIDE), facts) == Admitted(("a",))
    assert decide(asks(WIDE, OLDEST), facts) == Admitted(("a",))


def test_who_cannot_be_stopped_counts_on() -> None:
    facts = Facts(counts={"k": 2, "wide": 9}, oldest={"k": ["a", "b"]}, places={"a": ("k", "wide")}, fixed={"a"})
    assert decide(asks(OLDEST, WIDE), facts) == Full(WIDE, refused=False)
    assert decide(asks(OLDEST), facts) == Admitted(("a",))


def test_what_a_run_displaces_counts_no_more() -> None:
    facts = Facts(counts={"k": 2}, places={"a": ("k",)})
    assert decide(asks(SKIP), facts) == Full(SKIP, refused=False)
    assert decide(asks(SKIP, displaces=("a",)), facts) == Admitted()
    facts.fixed = {"a"}
    assert decide(asks(SKIP, displaces=("a",)), facts) == Full(SKIP, refused=False)


@pytest.mark.parametrize(
    ("hold", "holder", "decision"),
    [
        (EXISTING, None, Admitted()),
        (EXISTING, Holder("new", live=True), Admitted()),
        (EXISTING, Holder("a", live=True), Held("a", EXISTING)),
        (EXISTING, Holder("a"), Admitted()),
        (EXISTING, Holder("a", NOW), Admitted()),
        (EXISTING, Holder("a", NOW + 1), Held("a", EXISTING, live=False)),
        (EXISTING, Holder("a", NOW + 1, done=True), Held("a", EXISTING, live=False)),
        (EXISTING, Holder("a", done=True), Admitted()),
        (EXISTING, Holder("a", once=True, done=True), Held("a", EXISTING, live=False)),
    ],
)
def test_keys(hold: KeyHold, holder: Holder | None, decision: Decision) -> None:
    facts = Facts(now=NOW, holders={} if holder is None else {"u": holder})
    assert decide(asks(holds=(hold,)), facts) == decision


@pytest.mark.parametrize(
    ("hold", "holder", "error"),
    [
        (KeyHold("u", OnConflict.REJECT), Holder("a", live=True), DuplicateRun),
        (ONCE, Holder("a", live=True), NotRepeatable),
        (ONCE, Holder("a", once=True, done=True), NotRepeatable),
        (KeyHold("u", fingerprint="x"), Holder("a", live=True, fingerprint="y"), KeyReused),
    ],
)
def test_keys_that_refuse(hold: KeyHold, holder: Holder, error: type[Exception]) -> None:
    decision = decide(asks(holds=(hold,)), Facts(now=NOW, holders={"u": holder}))
    assert isinstance(decision, Conflicting)
    assert isinstance(decision.error, error)


@pytest.mark.parametrize(
    ("holder", "replaces"),
    [
        (Holder("a", live=True, waits=True), True),
        (Holder("a", live=True, waits=True, begun=True), False),
        (Holder("a", live=True), False),
        (Holder("a", NOW + 1), False),
    ],
)
def test_only_what_has_not_begun_is_replaced(holder: Holder, replaces: bool) -> None:
    hold = KeyHold("u", OnConflict.REPLACE)
    decision = decide(asks(holds=(hold,)), Facts(now=NOW, holders={"u": holder}))
    assert decision == Held("a", hold, replaces=replaces, live=holder.live)


def test_a_replaced_holder_counts_under_the_limits_of_the_new_run() -> None:
    hold = KeyHold("u", OnConflict.REPLACE)
    waiting = Holder("a", live=True, waits=True)
    runs = [Applicant("b", "work", (WIDE,), (hold,)), Applicant("c", "work", (SKIP,))]
    facts = Facts(counts={"k": 2, "wide": 0}, places={"a": ("k",)}, holders={"u": waiting})
    assert decide_all(runs, facts) == [Held("a", hold, replaces=True), Admitted()]
    assert facts.counts == {"k": 2, "wide": 1}
    facts = Facts(counts={"k": 2, "wide": 0}, places={"a": ("k",)})
    assert isinstance(decide_all(runs[1:], facts)[0], Full)


def test_a_key_passes_on_to_who_displaces_its_holder() -> None:
    running, waiting = Holder("a", live=True), Holder("a", live=True, waits=True)
    taken = asks(holds=(EXISTING,), displaces=("a",))
    assert decide(taken, Facts(holders={"u": running})) == Admitted()
    once = asks(holds=(ONCE,), displaces=("a",))
    assert decide(once, Facts(holders={"u": waiting})) == Admitted()
    assert isinstance(decide(once, Facts(holders={"u": running})), Conflicting)


def test_a_runs_own_retry_may_follow_within_the_period() -> None:
    facts = Facts(now=NOW, holders={"u": Holder("a", NOW + 1)})
    assert decide(asks(holds=(EXISTING,), retry_of="a"), facts) == Admitted()


def test_keys_are_asked_before_limits() -> None:
    facts = Facts(counts={"k": 2}, holders={"u": Holder("a", live=True)})
    assert decide(asks(SKIP, holds=(EXISTING,)), facts) == Held("a", EXISTING)


def test_each_run_sees_those_before_it() -> None:
    one, two, three = (Applicant(id, "work", (SKIP,)) for id in "123")
    assert decide_all([one, two, three], Facts(counts={"k": 1})) == [Admitted(), *[Full(SKIP, refused=False)] * 2]
    first, second = (Applicant(id, "work", holds=(EXISTING,)) for id in "12")
    assert decide_all([first, second], Facts()) == [Admitted(), Held("1", EXISTING)]


def test_a_run_that_a_limit_refuses_takes_no_key() -> None:
    first, second = Applicant("1", "work", (SKIP,), (EXISTING,)), Applicant("2", "work", holds=(EXISTING,))
    assert decide_all([first, second], Facts(counts={"k": 2})) == [Full(SKIP, refused=False), Admitted()]


def test_of_several_the_newest_stay_and_what_made_way_before_is_stopped() -> None:
    only = Gate("k", 1, WhenFull.CANCEL_OLDEST)
    facts = Facts(counts={"k": 1}, oldest={"k": ["old"]}, places={"old": ("k",)})
    runs = [Applicant(id, "work", (only,)) for id in "123"]
    assert decide_all(runs, facts) == [Superseded("2", ("old",)), Superseded("3"), Admitted()]
    assert facts.counts == {"k": 1}


def test_reasons_name_things_by_their_names() -> None:
    assert Full(Gate("rate:job:work", 2, WhenFull.QUEUE, 1, 60_000_000), True).reason == (
        "rate of job 'work' is full: 2 per 1m and 1 waiting"
    )
    assert Full(Gate("schedule:0123", 1, WhenFull.SKIP, of="nightly"), False).reason == (
        "limit of schedule 'nightly' is full: 1 at once"
    )
