"""Replicas: decisions that follow from their states."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.states import RunState
from rota.core.workers.replicas import (
    Decision,
    Finish,
    More,
    Replica,
    Replicas,
    Stop,
    Wait,
    decide,
    done_share,
    replicas_of,
    require_workers,
    result_of,
)
from rota.errors import Invalid

S = RunState
STATES = {"q": S.QUEUED, "r": S.RUNNING, "s": S.SUCCEEDED, "f": S.FAILED, "x": S.EXPIRED, "c": S.CANCELLING}


def those(letters: str, **same: Any) -> list[Replica]:
    """Return one replica for each letter; a capital letter is a cleared one."""
    return [
        Replica(run_id=f"{place}", worker=f"w{place}", state=STATES[letter.lower()], cleared=letter.isupper(), **same)
        for place, letter in enumerate(letters)
    ]


THREE, ONE_MAY_FAIL, EVERYBODY = Replicas(count=3), Replicas(count=3, allowed_failures=1), Replicas(all=True)


@pytest.mark.parametrize(
    ("policy", "letters", "decision"),
    [
        (THREE, "", More(count=3)),
        (THREE, "qrs", Wait()),
        (THREE, "sss", Finish(S.SUCCEEDED)),
        (THREE, "ss", More(count=1)),
        (THREE, "ssf", Finish(S.FAILED)),
        (THREE, "srf", Stop(("1",))),
        (THREE, "scf", Wait()),
        (THREE, "ssS", More(count=1)),
        (THREE, "ssF", More(count=1)),
        (ONE_MAY_FAIL, "ssf", More(count=1)),
        (ONE_MAY_FAIL, "sxrr", Wait()),
        (ONE_MAY_FAIL, "sxfr", Stop(("3",))),
        (ONE_MAY_FAIL, "sssx", Finish(S.SUCCEEDED)),
        (EVERYBODY, "sr", Wait()),
        (EVERYBODY, "ss", Finish(S.SUCCEEDED)),
        (EVERYBODY, "sf", Finish(S.FAILED)),
        (EVERYBODY, "sS", More(workers=("w1",))),
        (Replicas(all=True, allowed_failures=1), "sf", Finish(S.SUCCEEDED)),
    ],
)
def test_what_follows(policy: Replicas, letters: str, decision: Decision) -> None:
    assert decide(policy, those(letters), cancelling=False) == decision


@pytest.mark.parametrize(
    ("letters", "decision"),
    [
        ("qrs", Stop(("0", "1"))),
        ("scc", Wait()),
        ("sff", Finish(S.CANCELLED)),
        ("sss", Finish(S.SUCCEEDED)),
        ("", Finish(S.CANCELLED)),
    ],
)
def test_what_follows_of_a_cancel(letters: str, decision: Decision) -> None:
    assert decide(THREE, those(letters), cancelling=True) == decision


def test_what_cannot_be_stopped_is_waited_for() -> None:
    assert decide(THREE, those("qrf"), cancelling=False, stoppable=False) == Stop(("0",))
    assert decide(THREE, those("rrf"), cancelling=False, stoppable=False) == Wait()


def test_running_and_succeeded_ones_are_never_more_than_wanted_and_failed_ones_not_more_than_allowed() -> None:
    for succeeded in range(4):
        for live in range(4 - succeeded):
            for failed in range(3):
                there = those("s" * succeeded + "r" * live + "f" * failed)
                match decide(ONE_MAY_FAIL, there, cancelling=False):
                    case More(count):
                        assert succeeded + live + count == 3
                        assert failed <= 1
                    case Finish(S.SUCCEEDED):
                        assert succeeded == 3
                    case Finish(state):
                        assert (state, failed) == (S.FAILED, 2)
                    case Stop():
                        assert failed == 2


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, None),
        (3, THREE),
        ("all", EVERYBODY),
        ({"count": 3, "allowed_failures": 1}, ONE_MAY_FAIL),
        ({"all": True, "absent_after": "90s"}, Replicas(all=True, absent_after=timedelta(seconds=90))),
    ],
)
def test_what_people_write(written: Any, meant: Replicas | None) -> None:
    assert replicas_of(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        *(0, 1001, True, "some", {}),
        *({"count": 2, "all": True}, {"count": 2, "fails": 1}, {"count": "2"}),
        *({"count": 2, "allowed_failures": -1}, {"all": True, "absent_after": "0s"}),
    ],
)
def test_what_means_nothing_is_refused(written: Any) -> None:
    with pytest.raises(Invalid):
        replicas_of(written)


def test_how_far_it_is() -> None:
    assert done_share(THREE, those("sfr")) == (3333, "1 of 3 workers done, 1 failed")
    assert done_share(EVERYBODY, those("sr")) == (5000, "1 of 2 workers done")


def test_the_result_says_what_each_of_them_said() -> None:
    there = [
        *those("sS", result={"a": 1}),
        Replica(run_id="9", worker="w9", state=S.FAILED, error="ValueError: no"),
    ]
    assert msgspec.json.decode(result_of(there)) == {"replicas": {"w0": {"a": 1}}, "failed": {"w9": "ValueError: no"}}


def test_a_result_that_is_too_long_is_left_out() -> None:
    told = msgspec.json.decode(result_of(those("sss", result="x" * 40_000)))
    assert (list(told["replicas"]), told["left_out"]) == (["w0"], 2)


@pytest.mark.parametrize(("replicas", "named"), [(Replicas(count=3), 2), (Replicas(count=2), 1)])
def test_more_replicas_than_named_workers_are_refused(replicas: Replicas, named: int) -> None:
    with pytest.raises(
        Invalid, match=f"replicas={replicas.count} need as many workers, and only_workers names {named}"
    ):
        require_workers(replicas, [f"web-{number}" for number in range(named)])


@pytest.mark.parametrize("replicas", [None, Replicas(count=2), Replicas(all=True)])
def test_enough_workers_are_named(replicas: Replicas | None) -> None:
    require_workers(replicas, ["web-1", "web-2"])
    require_workers(replicas, [])
